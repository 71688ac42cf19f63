import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { openFunctions } from '#ingest/requests/functions';
import { SandboxError } from '#sandbox/protocol/result';

const functions = suite('ingest/requests/functions');

const { config } = resolveConfig({ env: {}, file: {} });
const text = 'function transform(p) { return p; }';

functions(
  'a sandbox that cannot start makes functions unavailable for a moment, and messages without a function go on',
  async () => {
    const sandbox = {
      run: () => Promise.reject(new SandboxError('no process', { fix: 'none' })),
      close: () => Promise.resolve(),
    };
    const catalogue = { firstUnknown: () => Promise.resolve(undefined) };
    const it = openFunctions({
      config,
      database: { pool: undefined as never },
      catalogue,
      log: silentLog,
      sandbox,
    });
    const message = {
      coordinates: 'c',
      timestamp: Date.now(),
      body: Buffer.from('{"event_type":"a","data":{}}'),
      headers: {},
    };
    const source = { projectId: newId(), id: newId(), bodyFunction: text };
    const replayed = {
      ...message,
      ...source,
      sourceId: source.id,
      occurredAtMs: message.timestamp,
    };
    for (const run of [
      () => it.preview(text, message),
      () => it.transform(text, { data: '{}', projectId: source.projectId }),
      () => it.accept(source, message),
      () =>
        it
          .replay([replayed as never], { dryRun: true, planes: {} as never })
          .then(([only]) => Promise.reject((only as PromiseRejectedResult).reason as Error)),
    ]) {
      const error = await run().then(
        () => undefined,
        (reason: unknown) => reason,
      );
      if (!isGatewayError(error)) throw error;
      assert.is(error.code, 'functions_unavailable');
      assert.match(error.message, 'no process');
    }
    const ready = await it.accept({ ...source, bodyFunction: null }, message);
    assert.is(ready.events[0]?.eventType, 'a');
  },
);

functions.run();
