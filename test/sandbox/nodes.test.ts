import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { nodeProgram } from '../support/start/node.js';

// The walls of the sandbox on each version of Node that the gateway runs on: what a function can
// reach differs between them.

const nodes = suite('sandbox/nodes');

const compiled = fileURLToPath(
  new URL('../../.tests/sandbox/child/guest-globals.test.js', import.meta.url),
);

for (const major of [20, 22, 24, 26].filter(
  (major) => major !== Number(process.versions.node.split('.')[0]),
)) {
  nodes(`the globals of functions are the same on Node ${major}`, async () => {
    const { stdout } = await promisify(execFile)(nodeProgram(major), [compiled]).catch(
      (failure: { stdout: string; stderr: string }) => failure,
    );
    assert.match(stdout, /Total: +(\d+)\n +Passed: +\1\n/, stdout);
  });
}

nodes.run();
