import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { withLock } from '../../scripts/prepare/lock.mjs';
import { tempFolder } from '../support/start/keep.js';
import { within } from '../support/until.js';
import { root } from './house.js';

const prepare = suite('meta/prepare');

const { renameSync } = fs;
const say = console.error;

prepare.after.each(() => {
  Object.assign(fs, { renameSync });
  console.error = say;
});

function staleLock(): string {
  const file = path.join(tempFolder('prepare'), 'lock');
  fs.writeFileSync(file, 'of a dead process');
  fs.utimesSync(file, 0, 0);
  return file;
}

/** Replaces the next `times` renames. */
function moving(times: number, move: (from: string, to: string) => void): void {
  let left = times;
  Object.assign(fs, {
    renameSync: (from: string, to: string) => (left-- > 0 ? move(from, to) : renameSync(from, to)),
  });
}

prepare('a stale lock is taken over without a word', async () => {
  const file = staleLock();
  const said: unknown[] = [];
  console.error = (text) => said.push(text);
  assert.is(
    await within(
      withLock(file, () => Promise.resolve('done')),
      10_000,
      'the lock',
    ),
    'done',
  );
  assert.equal(said, []);
  assert.equal(fs.readdirSync(path.dirname(file)), []);
});

prepare('a stale lock that may not be taken away is waited for, and that is said', async () => {
  const file = staleLock();
  const said: unknown[] = [];
  console.error = (text) => said.push(text);
  moving(2, () => {
    throw Object.assign(new Error('EPERM: operation not permitted, rename'), { code: 'EPERM' });
  });
  const began = performance.now();
  await within(
    withLock(file, () => Promise.resolve()),
    10_000,
    'the lock',
  );
  assert.equal(said, ['waiting for another process that installs or builds here']);
  assert.ok(performance.now() - began >= 300, 'it did not wait');
});

prepare(
  'of a lock that changes hands twice while it is looked at nothing stays behind',
  async () => {
    const file = staleLock();
    console.error = () => undefined;
    moving(1, (from, to) => {
      fs.writeFileSync(from, 'of one who was faster');
      renameSync(from, to);
      fs.writeFileSync(from, 'of one who came when it was gone');
      setTimeout(() => fs.rmSync(from), 100);
    });
    await within(
      withLock(file, () => Promise.resolve()),
      10_000,
      'the lock',
    );
    assert.equal(fs.readdirSync(path.dirname(file)), []);
  },
);

for (const script of ['start.mjs', 'bench.mjs', 'prepare.mjs']) {
  prepare(`what keeps ${script} from installing is said without a stack`, () => {
    const folder = tempFolder('prepare');
    fs.cpSync(path.join(root, 'scripts'), path.join(folder, 'scripts'), { recursive: true });
    const { status, stderr } = spawnSync(process.execPath, [path.join(folder, 'scripts', script)], {
      encoding: 'utf8',
      env: { PATH: folder },
      timeout: 30_000,
    });
    assert.is(status, 1, stderr);
    assert.match(stderr, /there is no npm on the PATH/);
    assert.not.match(stderr, /^ +at /m);
  });
}

prepare.run();
