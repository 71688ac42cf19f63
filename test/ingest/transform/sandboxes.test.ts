import { execFileSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { idleSandbox, readSandboxFacts } from '#ingest/transform/sandboxes';
import { DEFAULT_LIMITS } from '#sandbox/protocol/protocol';
import { until } from '../../support/until.js';

const sandboxes = suite('ingest/transform/sandboxes');

sandboxes(
  'processes start with the first run, end when nothing runs for a while, and start again',
  async () => {
    const sandbox = idleSandbox({ ...DEFAULT_LIMITS, processes: 1 }, 100);
    const run = async () =>
      (await sandbox.run({ key: 'f', text: 'function transform() { return {}; }' }, ['1']))[0]
        ?.kind;
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
  },
);

const has = (program: string) => {
  try {
    return process.platform === 'linux' && execFileSync('which', [program]).byteLength > 0;
  } catch {
    return false;
  }
};

sandboxes('a function runs, confined by what this machine has for that', async () => {
  const { startMs, ...confinement } = await readSandboxFacts(
    resolveConfig({ env: {}, file: {} }).config,
  );
  assert.ok(startMs > 0);
  assert.equal(confinement, { memoryLimited: has('prlimit'), diesWithParent: has('setpriv') });
});

sandboxes.run();
