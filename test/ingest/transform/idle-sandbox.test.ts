import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { idleSandbox } from '#ingest/transform/idle-sandbox';
import { DEFAULT_LIMITS } from '#sandbox/protocol/protocol';
import { until } from '../../support/until.js';

const idle = suite('ingest/transform/idle-sandbox');

idle('processes start with the first run, end when nothing runs for a while, and start again', async () => {
  const sandbox = idleSandbox({ ...DEFAULT_LIMITS, processes: 1 }, 100);
  const run = async () => (await sandbox.run({ key: 'f', text: 'function transform() { return {}; }' }, ['1']))[0]?.kind;
  try {
    assert.is(sandbox.processes, 0);
    for (let n = 0; n < 2; n++) {
      assert.is(await run(), 'object');
      assert.is(sandbox.processes, 1);
      await until('the process to end', () => sandbox.processes === 0);
    }
  } finally {
    await sandbox.close();
  }
});

idle.run();
