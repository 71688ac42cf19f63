import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { silentLog } from '#core/logging/log';
import { startServer } from '@gateway/server';
import { migratedDatabase } from '../store/migrated.js';
import { answers, freePort, loopback } from '../support/ports.js';
import { activated, configOf, refusal } from './api.js';
import { createServer } from 'node:net';

const metrics = suite('server/pulladdr');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
metrics.before(async () => {
  db = await migratedDatabase();
});
metrics.after(() => db.close());

const config = (pulladdr: string) =>
  configOf(db, { server: { http: { port: 0, bind: '127.0.0.1' }, pulladdr } });

metrics('a second address answers /metrics and nothing else, until the server closes', async () => {
  const port = await freePort();
  const server = await startServer({
    config: config(`127.0.0.1:${port}`),
    plugins: await activated(),
    log: silentLog,
  });
  const get = (path: string, method = 'GET') =>
    fetch(`http://127.0.0.1:${port}${path}`, { method });
  try {
    const answer = await get('/metrics?name=x');
    assert.is(answer.status, 200);
    assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/);
    assert.match(await answer.text(), 'no metrics backend is selected');
    assert.is((await get('/metrics', 'HEAD')).status, 200);
    assert.is((await get('/metrics', 'POST')).status, 405);
    for (const path of ['/', '/healthz', '/api/v1/organisations', '/metrics/x', '//metrics'])
      assert.is((await get(path)).status, 404, path);
    assert.is(
      (await fetch(`http://127.0.0.1:${server.port}/metrics`)).status,
      200,
      'the server answers it too',
    );
  } finally {
    await server.close();
  }
  assert.not.ok(await answers(port));
});

metrics('a port alone means every address', async () => {
  const port = await freePort();
  const server = await startServer({
    config: config(`:${port}`),
    plugins: await activated(),
    log: silentLog,
  });
  try {
    assert.is((await fetch(`http://127.0.0.1:${port}/metrics`)).status, 200);
  } finally {
    await server.close();
  }
});

metrics(
  'an address that is taken, or not of this machine, is named with its own setting, and the server does not start',
  async () => {
    const taken = createServer();
    const port = await loopback(taken);
    try {
      const inUse = await refusal(config(`127.0.0.1:${port}`), 'port_in_use');
      assert.match(inUse.message, `port ${port}`);
      assert.match(inUse.fix, /--pulladdr or server\.pulladdr/);
      const foreign = await refusal(config(`203.0.113.1:${port}`), 'port_refused');
      assert.match(foreign.message, '203.0.113.1');
      assert.match(foreign.fix, '--pulladdr');
      assert.not.match(foreign.fix, 'server.http.bind');
    } finally {
      await new Promise((resolve) => taken.close(resolve));
    }
  },
);

metrics.run();
