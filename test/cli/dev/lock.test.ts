import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { claim, PROOF_PATH } from '#cli/dev/lock';
import { freePort } from '../../support/ports.js';
import { tempFolder } from '../../support/start/keep.js';

const lock = suite('cli/dev/lock');

const lockFile = () => path.join(tempFolder('lock'), 'lock');

/** A process that answers for itself, as the inbox does; `answer` false is one that is suspended. */
async function holder({ answer = true } = {}) {
  const token = crypto.randomUUID();
  const server = http.createServer((request, response) => {
    if (answer) response.end(request.url === PROOF_PATH ? token : 'another page');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  return { claim: { pid: process.pid, port, token }, close };
}

const refusal = (claiming: Promise<unknown>) =>
  claiming.then(
    () => 'claimed',
    (error: Error) => error.message,
  );

lock('a folder that is held is refused with the process that holds it, and is free when given back', async () => {
  const file = lockFile();
  const [first, second] = [await holder(), await holder()];
  const giveBack = await claim(file, first.claim);
  assert.match(await refusal(claim(file, second.claim)), `already (process ${process.pid})`);
  giveBack();
  (await claim(file, second.claim))();
  assert.not.ok(fs.existsSync(file));
  await Promise.all([first.close(), second.close()]);
});

lock('what a killed process left is taken over, even when its pid and its port belong to somebody else now', async () => {
  const file = lockFile();
  const [stranger, own] = [await holder(), await holder()];
  for (const left of [
    JSON.stringify({ pid: process.pid, port: await freePort(), token: 'gone' }),
    JSON.stringify({ ...stranger.claim, token: 'gone' }),
    '{"pid":',
    '',
  ]) {
    fs.writeFileSync(file, left);
    (await claim(file, own.claim))();
  }
  await Promise.all([stranger.close(), own.close()]);
});

lock('a suspended process still holds it', async () => {
  const file = lockFile();
  const [suspended, own] = [await holder({ answer: false }), await holder()];
  await claim(file, suspended.claim);
  assert.match(await refusal(claim(file, own.claim)), 'already');
  await Promise.all([suspended.close(), own.close()]);
});

lock('of many at once, on a stale lock, one gets it', async () => {
  const file = lockFile();
  fs.writeFileSync(file, JSON.stringify({ pid: process.pid, port: await freePort(), token: 'gone' }));
  const holders = await Promise.all(Array.from({ length: 8 }, () => holder()));
  // Each has a file name of its own, as each process has by its pid.
  const outcomes = await Promise.all(holders.map(({ claim: own }, k) => refusal(claim(file, { ...own, pid: process.pid + k * 100_000 }))));
  assert.is(outcomes.filter((it) => it === 'claimed').length, 1, outcomes.join('\n'));
  await Promise.all(holders.map(({ close }) => close()));
});

lock.run();
