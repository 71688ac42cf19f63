import { execFileSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { readSandboxFacts } from '#ingest/transform/sandbox-facts';

const test = suite('ingest/transform/sandbox-facts');

const has = (program: string) => {
  try {
    return process.platform === 'linux' && execFileSync('which', [program]).byteLength > 0;
  } catch {
    return false;
  }
};

test('a function runs, confined by what this machine has for that', async () => {
  const { startMs, ...confinement } = await readSandboxFacts(resolveConfig({ env: {}, file: {} }).config);
  assert.ok(startMs > 0);
  assert.equal(confinement, { memoryLimited: has('prlimit'), diesWithParent: has('setpriv') });
});

test.run();
