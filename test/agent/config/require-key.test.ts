import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { requireKey } from '#agent/config/require-key';
import { projectOf } from '#ingest/routing/project';
import { sealer } from '#core/crypto/sealing';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { ENCRYPTION_KEY, makeSecret, secretRecord } from '../records.js';

const key = suite('agent/config/require-key');

const { open } = sealer(ENCRYPTION_KEY);
const other = sealer(Buffer.alloc(32, 1).toString('base64'));
const plain = {
  url: 'https://example.com',
  owner_id: null,
  status: 'active',
  status_reason: null,
  authentication: null,
} as const;
const ID = newId();
const good = secretRecord(makeSecret(), null, ID);
const lost = { ...good, value: other.seal('x', ['endpoints', ID, 'secrets']) };

function projects(...values: (typeof good)[][]) {
  const record = { id: newId(), name: 'shop', type: 'outgoing', config: {} } as const;
  const endpoints = values.map((secrets, at) => ({
    ...{ ...plain, project_id: record.id, id: at === values.length - 1 ? ID : newId(), secrets },
    ...{
      timeout_ms: 1000,
      concurrency: null,
      strategy: null,
      rate_limit: null,
      rate_limit_duration: null,
    },
  }));
  const texts = {
    project: [JSON.stringify(record)],
    endpoints: endpoints.map((one) => JSON.stringify(one)),
    subscriptions: [],
    sources: [],
    event_types: [],
  };
  const steps = projectOf(texts, undefined, () => undefined);
  for (;;) {
    const { done, value } = steps.next();
    if (done) return [value];
  }
}

key('a key that opens no secret is refused', () => {
  assert.throws(
    () => requireKey(projects([lost], [lost]), open),
    (error: unknown) => isGatewayError(error, 'not_unsealable'),
  );
});

key(
  'a key that opens one is taken, and so is any where there is nothing that this version can open',
  () => {
    requireKey(projects([lost], [], [good]), open);
    requireKey(projects([]), open);
    requireKey([], open);
    requireKey(projects([{ ...good, value: 'sealed:v9:abc' }]), open);
  },
);

key.run();
