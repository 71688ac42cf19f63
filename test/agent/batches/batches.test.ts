import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Webhook } from 'standardwebhooks';
import { verify } from '@gateway/client';
import type { EndpointBatch } from '#store/config/endpoints';
import { endpoint as receiver, type Endpoint, type Script } from '../../support/endpoint.js';
import { until, within } from '../../support/until.js';
import { empty } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { hold, states } from '../hold.js';
import { makeEndpoint } from '../records.js';
import { runAgent, type RunningAgent } from '../running.js';

const batches = suite('agent/batches/batches');

const db = await migratedDatabase();
batches.after(() => db.close());

interface Entry {
  readonly id: string;
  readonly type: string;
  readonly timestamp: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly data: unknown;
}

const entriesOf = ({ body }: { readonly body: Buffer }) =>
  (JSON.parse(body.toString()) as { events: Entry[] }).events;
const RETRIES = { type: 'linear', duration: 1, retry_count: 2 } as const;

interface Scene {
  readonly running: RunningAgent;
  readonly at: Endpoint;
  readonly secret: string;
  readonly endpointId: string;
  push(count: number, event?: Parameters<typeof hold>[3]): Promise<string[]>;
  become(expected: Record<string, number>): Promise<void>;
}

async function scene(
  batch: Partial<EndpointBatch>,
  answer: Script,
  test: (scene: Scene) => Promise<void>,
  fields: Partial<Parameters<typeof makeEndpoint>[2]> = {},
): Promise<void> {
  const running = await runAgent({ db });
  const at = await receiver({ answer });
  try {
    const { id: endpointId, secret } = await makeEndpoint(db, running.projectId, {
      url: at.url,
      strategy: RETRIES,
      batch: { max_events: 10, max_bytes: 100_000, max_wait_ms: 300, ...batch },
      ...fields,
    });
    await running.configCache.refresh();
    const push: Scene['push'] = async (count, event) => {
      const held = await hold(running, endpointId, count, event);
      running.wiring.inFlight.add(held);
      return held.map(({ id }) => id);
    };
    const become: Scene['become'] = async (expected) => {
      let last = '';
      await until(JSON.stringify(expected), async () => {
        last = JSON.stringify(await states(running, endpointId));
        return last === JSON.stringify(expected);
      }).catch((error: Error) => {
        throw new Error(`${error.message}; found ${last}`);
      });
    };
    await within(test({ running, at, secret, endpointId, push, become }), 60_000, 'the test');
  } finally {
    await at.close();
    await running.close();
    await empty(db);
  }
}

const attemptsOf = (id: string) =>
  db.rows<{ number: number; error_class: string | null; error: string; response_body: string }>(
    'select number, error_class, error, response_body from delivery_attempts where event_delivery_id = $1 order by number',
    [id],
  );

batches('deliveries share signed requests, and each is recorded with its batch', () =>
  scene({}, { body: 'OK' }, async ({ at, secret, push, become }) => {
    const ids = await push(12, { data: '{"n":1.50}', headers: { 'x-order': '7' } });
    await become({ success: 12 });
    const [full, rest] = at.requests;
    assert.is(at.requests.length, 2);
    assert.equal(
      [full!, rest!].map((it) => entriesOf(it).length),
      [10, 2],
    );
    assert.ok(rest!.receivedAt - full!.receivedAt > 200, 'the rest waited for others');
    assert.is(full!.headers['content-type'], 'application/vnd.gateway.batch+json');
    assert.equal(
      [full!, rest!].flatMap(entriesOf).map(({ id }) => id),
      ids,
    );
    assert.match(full!.body.toString(), '"data":{"n":1.50}', 'the bytes of the data');
    assert.is(entriesOf(full!)[0]!.headers?.['x-order'], '7');
    new Webhook(secret).verify(full!.body.toString(), full!.headers);
    const verified = await verify<{ events: Entry[] }>(full!.body, full!.headers, secret);
    assert.is(verified.events.length, 10);
    const [attempt] = await attemptsOf(ids[0]!);
    assert.is(attempt!.error, `Sent in the batch ${full!.headers['webhook-id']} of 10 events.`);
    assert.is(attempt!.response_body, 'OK');
  }),
);

batches('an answer per id settles each event, and the others are delivered', () =>
  scene(
    {},
    (request, number) => {
      const [a, b, c] = entriesOf(request);
      if (number > 0) return { body: '{}' };
      const results = [
        { id: a!.id, status: 'retry', message: 'later', retry_after: 1 },
        { id: b!.id, status: 'reject', message: 'never' },
        { id: c!.id, status: 'ok' },
        { id: 'unknown', status: 'reject' },
        null,
      ];
      return { body: JSON.stringify({ results }) };
    },
    async ({ at, push, become }) => {
      const [a, b, c, d] = await push(4);
      await become({ failure: 1, success: 3 });
      assert.equal(
        at.requests.map((it) => entriesOf(it).map(({ id }) => id)),
        [[a, b, c, d], [a]],
      );
      const [rejected] = await attemptsOf(b!);
      assert.match(rejected!.error, 'The endpoint rejected the event. It says: "never".');
      assert.is(JSON.parse(rejected!.response_body).id, b, 'its own result only');
      assert.is(rejected!.error_class, 'status');
      assert.is((await attemptsOf(a!)).length, 2);
    },
  ),
);

batches('one bad event fails alone, because the last retry of each is sent alone', () =>
  scene(
    {},
    (request) => ({
      status: request.body.includes('poison') ? 500 : 200,
    }),
    async ({ at, push, become }) => {
      await push(4);
      await push(1, { data: '{"poison":true}' });
      await become({ failure: 1, success: 4 });
      assert.ok(at.requests.some((it) => entriesOf(it).length === 1 && it.body.includes('poison')));
    },
  ),
);

batches('all are retried after a timeout, and after an answer that cannot be read', () =>
  scene(
    {},
    [{ hang: true }, { body: '{"results":[{"id":"' }, { body: '' }],
    async ({ push, become }) => {
      const ids = await push(3);
      await become({ success: 3 });
      const [late, unread] = await attemptsOf(ids[0]!);
      assert.is(late!.error_class, 'timeout');
      assert.match(late!.error, ' of 3 events.');
      assert.match(unread!.error, 'does not tell which events were taken');
    },
    { timeout_ms: 500, strategy: { ...RETRIES, retry_count: 5 } },
  ),
);

batches('no request is larger than max_bytes, except for one event', () =>
  scene({ max_bytes: 2_000 }, {}, async ({ at, push, become }) => {
    await push(3, { data: JSON.stringify({ a: 'x'.repeat(800) }) });
    await push(1, { data: JSON.stringify({ a: 'x'.repeat(5_000) }) });
    await become({ success: 4 });
    assert.equal(at.requests.map((it) => entriesOf(it).length).sort(), [1, 1, 2]);
  }),
);

batches('a batch counts as one request of the rate limit and of concurrency', () =>
  scene(
    { max_wait_ms: 2_000 },
    {},
    async ({ at, push, become }) => {
      await push(20);
      await become({ success: 20 });
      assert.is(at.requests.length, 2);
    },
    { rate_limit: 2, concurrency: 1 },
  ),
);

batches('410 ends all deliveries of a batch', () =>
  scene({}, { status: 410 }, async ({ push, become }) => {
    await push(3);
    await become({ failure: 3 });
  }),
);

batches('deliveries that wait for others return to Postgres when the agent stops', () =>
  scene({ max_wait_ms: 60_000 }, {}, async ({ running, at, push, become }) => {
    await push(3);
    await new Promise((resolve) => setTimeout(resolve, 300));
    await running.wiring.drainDeliveries();
    await become({ 'scheduled due': 3 });
    assert.is(at.requests.length, 0);
  }),
);

batches.run();
