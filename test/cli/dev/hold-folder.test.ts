import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { holdFolder } from '#cli/dev/hold-folder';
import { startInbox } from '#cli/dev/inbox';
import { claim } from '#cli/dev/lock';
import { reservePorts } from '#cli/dev/ports';
import { freePort } from '../../support/ports.js';
import { tempFolder } from '../../support/start/keep.js';

const holding = suite('cli/dev/hold-folder');

holding.before.each(() => {
  const folder = tempFolder('hold-folder');
  fs.chmodSync(folder, 0o755); // run by root, Postgres runs as another user
  process.chdir(folder);
});

holding('a folder that is given back is not taken from the process that takes it over meanwhile', async () => {
  const reservation = await reservePorts({});
  const held = await holdFolder({ isFresh: false, reservation });
  const next = { pid: process.pid, port: await freePort(), token: 'the next one' };
  const nextInbox = await startInbox(next);
  const { close } = held.inbox;
  let giveBack: (() => void) | undefined;
  Object.assign(held.inbox, {
    close: async () => {
      await close();
      giveBack = await claim(held.folder.lock, next);
    },
  });
  await held.release();
  assert.match(fs.readFileSync(held.folder.lock, 'utf8'), next.token);
  giveBack?.();
  assert.not.ok(fs.existsSync(held.folder.lock));
  await nextInbox.close();
  await reservation.close();
});

holding('a folder whose files are broken is given back', async () => {
  fs.mkdirSync('.gateway');
  fs.writeFileSync('.gateway/dev.json', '{');
  const reservation = await reservePorts({});
  const failure = await holdFolder({ isFresh: false, reservation }).then(
    () => 'held',
    (error: Error) => error.message,
  );
  assert.match(failure, /dev\.json cannot be read/);
  assert.not.ok(fs.existsSync('.gateway/lock'));
  await (await holdFolder({ isFresh: true, reservation })).release();
  await reservation.close();
});

holding('a broken file with secrets is told by the place of the mistake, and nothing of it is quoted', async () => {
  fs.mkdirSync('.gateway', { recursive: true });
  const text = '{ "encryption_key": "hunter2-key",\n  "database": { "password": "hunter2-password" oops } }';
  for (const name of ['gateway.json', 'dev.json']) {
    for (const file of ['gateway.json', 'dev.json']) fs.writeFileSync(`.gateway/${file}`, file === name ? text : '{}');
    const reservation = await reservePorts({});
    const failure = await holdFolder({ isFresh: false, reservation }).then(
      () => 'held',
      (error: Error) => `${error.message} ${String(error.cause)}`,
    );
    await reservation.close();
    assert.match(failure, `${name} cannot be read: line 2`);
    assert.not.match(failure, /hunter2/);
  }
});

holding.run();
