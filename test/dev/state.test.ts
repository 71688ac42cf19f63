import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lockFolder, openState } from '#dev/state';
import { tempFolder } from '../support/start/keep.js';

const state = suite('dev/state');

state.before.each(() => {
  const folder = tempFolder('state');
  fs.chmodSync(folder, 0o755); // if started by root, Postgres runs as another user
  process.chdir(folder);
});

const failure = (opening: Promise<unknown>) =>
  opening.then(
    () => 'opened',
    (error: Error) => `${error.message} ${String(error.cause)}`,
  );

state(
  'another process that runs keeps the lock; one that has ended, or whose pid belongs to another process, does not',
  () => {
    const other = spawn(process.execPath, ['-e', 'setInterval(() => {}, 1000)'], {
      stdio: 'ignore',
    });
    const command = [process.execPath, '-e', 'setInterval(() => {}, 1000)', ''].join('\0');
    try {
      fs.writeFileSync('lock', JSON.stringify({ pid: other.pid, command }));
      if (fs.existsSync('/proc/self'))
        assert.throws(
          () => lockFolder('lock'),
          new RegExp(`already running in this folder \\(process ${other.pid}\\)`),
        );
      for (const left of [
        JSON.stringify({ pid: other.pid, command: 'another' }),
        JSON.stringify({ pid: 2 ** 30, command }),
        '{"pid":',
        '',
      ]) {
        fs.writeFileSync('lock', left);
        const unlock = lockFolder('lock');
        assert.is(
          (JSON.parse(fs.readFileSync('lock', 'utf8')) as { pid: number }).pid,
          process.pid,
        );
        unlock();
        assert.not.ok(fs.existsSync('lock'));
      }
    } finally {
      other.kill('SIGKILL');
    }
  },
);

state('a folder with broken files is unlocked, and --fresh starts with a new one', async () => {
  fs.mkdirSync('.gateway');
  fs.writeFileSync('.gateway/dev.json', '{');
  assert.match(await failure(openState({ isFresh: false })), /dev\.json cannot be read/);
  assert.not.ok(fs.existsSync('.gateway/lock'));
  (await openState({ isFresh: true })).unlock();
  assert.not.ok(fs.existsSync('.gateway/dev.json'));
});

state(
  'an error about a broken file names the place of the mistake and quotes no secret',
  async () => {
    fs.mkdirSync('.gateway');
    const text =
      '{ "encryption_key": "hunter2-key",\n  "database": { "password": "hunter2-password" oops } }';
    for (const name of ['gateway.json', 'dev.json']) {
      for (const file of ['gateway.json', 'dev.json'])
        fs.writeFileSync(`.gateway/${file}`, file === name ? text : '{"api_key":"k"}');
      const told = await failure(openState({ isFresh: false }));
      assert.match(told, `${name} cannot be read: line 2`);
      assert.not.match(told, /hunter2/);
    }
  },
);

state(
  'data without its keys, and keys without their data, are replaced, and the notice says what is missing',
  async () => {
    fs.mkdirSync('.gateway/postgres/data', { recursive: true });
    const first = await openState({ isFresh: false });
    assert.match(
      first.notice ?? '',
      /\.gateway lacks the API key.* and the keys in .*gateway\.json\. Starting with a new state\./,
    );
    assert.not.ok(fs.existsSync('.gateway/postgres'));
    first.unlock();
    fs.writeFileSync('.gateway/dev.json', '{"api_key":"k"}');
    const second = await openState({ isFresh: false });
    assert.match(second.notice ?? '', /lacks the data of Postgres/);
    second.unlock();
  },
);

state.run();
