import { request } from 'node:http';
import { once } from 'node:events';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { MetricsResponse } from '#core/exposition/metrics-response';
import { metricsPlace, serveMetrics } from '#core/exposition/metrics-listener';
import { answers, freePort } from '../../support/ports.js';

const listener = suite('core/exposition/metrics-listener');

const named = { key: 'agent.pulladdr', env: 'GATEWAY_AGENT_PULLADDR' };
const answered = (status: MetricsResponse['status']): MetricsResponse => ({
  status,
  headers: { 'x-of': 'the answer' },
  body: Buffer.from('ä body'),
});

listener('an address is a host and a port, an IPv6 address in brackets and a port, or a port of every address', () => {
  const placed = (address: string) => {
    const { bind, port } = metricsPlace({ address, ...named });
    return [bind, port];
  };
  assert.equal(placed('127.0.0.1:9090'), ['127.0.0.1', 9090]);
  assert.equal(placed('[::1]:9090'), ['::1', 9090]);
  assert.equal(placed(':9090'), ['0.0.0.0', 9090]);
});

listener('what is answered is sent as it is, whatever its status; HEAD without the body', async () => {
  const port = await freePort();
  let status: MetricsResponse['status'] = 200;
  const serving = await serveMetrics({ address: `127.0.0.1:${port}`, ...named }, () => Promise.resolve(answered(status)));
  try {
    for (status of [200, 401, 500] as const) {
      const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
      assert.equal([answer.status, answer.headers.get('x-of'), await answer.text()], [status, 'the answer', 'ä body']);
      const head = request({ port, host: '127.0.0.1', path: '/metrics', method: 'HEAD' }).end();
      const [response] = (await once(head, 'response')) as [
        NodeJS.ReadableStream & { statusCode: number; headers: Record<string, string> },
      ];
      let length = 0;
      for await (const chunk of response) length += chunk.length;
      assert.equal([response.statusCode, response.headers['content-length'], length], [status, '7', 0]);
    }
    for (const path of ['/', '/healthz', '/metrics/x']) assert.is((await fetch(`http://127.0.0.1:${port}${path}`)).status, 404);
    const wrong = await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST' });
    assert.equal([wrong.status, wrong.headers.get('allow')], [405, 'GET']);
  } finally {
    await serving.close();
  }
});

listener('a scraper that goes away in the middle of the answer harms nobody, and keeps no address open', async () => {
  const port = await freePort();
  const large = Buffer.alloc(30_000_000, 'x');
  let asked = 0;
  const serving = await serveMetrics({ address: `127.0.0.1:${port}`, ...named }, () => {
    asked++;
    return Promise.resolve({ ...answered(200), body: large });
  });
  try {
    const impatient = request({ port, host: '127.0.0.1', path: '/metrics' }).end();
    const [response] = (await once(impatient, 'response')) as [NodeJS.ReadableStream];
    await once(response, 'data');
    impatient.destroy();
    const gone = request({ port, host: '127.0.0.1', path: '/metrics' }).on('error', () => undefined);
    gone.end(() => gone.destroy());
    const { length } = Buffer.from(await (await fetch(`http://127.0.0.1:${port}/metrics`)).arrayBuffer());
    assert.is(length, large.length);
    assert.ok(asked >= 2);
  } finally {
    await serving.close();
  }
  assert.not.ok(await answers(port));
});

listener.run();
