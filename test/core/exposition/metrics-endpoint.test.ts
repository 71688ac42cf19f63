import { request } from 'node:http';
import { once } from 'node:events';
import { gunzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  type MetricsResponse,
  metricsPlace,
  serveMetrics,
  metricsResponse,
} from '#core/exposition/metrics-endpoint';
import { resolveConfig } from '#core/config/config';
import { silentLog } from '#core/logging/log';
import { createMeter } from '#core/metrics/meter';
import { answers, freePort } from '../../support/ports.js';

const listener = suite('core/exposition/metrics-endpoint');

const named = { key: 'agent.pulladdr', env: 'GATEWAY_AGENT_PULLADDR' };
const answered = (status: MetricsResponse['status']): MetricsResponse => ({
  status,
  headers: { 'x-of': 'the answer' },
  body: Buffer.from('ä body'),
});

listener(
  'an address is a host and a port, an IPv6 address in brackets and a port, or a port of every address',
  () => {
    const placed = (address: string) => {
      const { bind, port } = metricsPlace({ address, ...named });
      return [bind, port];
    };
    assert.equal(placed('127.0.0.1:9090'), ['127.0.0.1', 9090]);
    assert.equal(placed('[::1]:9090'), ['::1', 9090]);
    assert.equal(placed(':9090'), ['::', 9090]);
  },
);

listener(
  'what is answered is sent as it is, whatever its status; HEAD without the body',
  async () => {
    const port = await freePort();
    let status: MetricsResponse['status'] = 200;
    const serving = await serveMetrics({ address: `127.0.0.1:${port}`, ...named }, () =>
      Promise.resolve(answered(status)),
    );
    try {
      for (status of [200, 401, 500] as const) {
        const answer = await fetch(`http://127.0.0.1:${port}/metrics`);
        assert.equal(
          [answer.status, answer.headers.get('x-of'), await answer.text()],
          [status, 'the answer', 'ä body'],
        );
        const head = request({ port, host: '127.0.0.1', path: '/metrics', method: 'HEAD' }).end();
        const [response] = (await once(head, 'response')) as [
          NodeJS.ReadableStream & { statusCode: number; headers: Record<string, string> },
        ];
        let length = 0;
        for await (const chunk of response) length += chunk.length;
        assert.equal(
          [response.statusCode, response.headers['content-length'], length],
          [status, '7', 0],
        );
      }
      for (const path of ['/', '/healthz', '/metrics/x'])
        assert.is((await fetch(`http://127.0.0.1:${port}${path}`)).status, 404);
      const wrong = await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST' });
      assert.equal([wrong.status, wrong.headers.get('allow')], [405, 'GET']);
    } finally {
      await serving.close();
    }
  },
);

listener(
  'a scraper that goes away in the middle of the answer harms nobody, and keeps no address open',
  async () => {
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
      const gone = request({ port, host: '127.0.0.1', path: '/metrics' }).on(
        'error',
        () => undefined,
      );
      gone.end(() => gone.destroy());
      const { length } = Buffer.from(
        await (await fetch(`http://127.0.0.1:${port}/metrics`)).arrayBuffer(),
      );
      assert.is(length, large.length);
      assert.ok(asked >= 2);
    } finally {
      await serving.close();
    }
    assert.not.ok(await answers(port));
  },
);

const nothing = () => undefined;
const large = '# a line of the exposition\n'.repeat(1_000);

/** Responses and logged errors for this token and backend. */
function answering({
  token,
  expose = () => Promise.resolve(large),
}: { token?: string; expose?: () => Promise<string> } = {}) {
  const errors: object[] = [];
  const config = resolveConfig({
    env: {},
    file: { ...(token === undefined ? {} : { metrics: { bearer_token: token } }) },
  }).config;
  const backend = {
    ...{ add: nothing, set: nothing, observe: nothing, clear: nothing },
    expose: async () => ({ contentType: 'text/plain; version=0.0.4', body: await expose() }),
  };
  const log = { ...silentLog, error: (fields: object) => void errors.push(fields) };
  const respond = metricsResponse({ config, plugins: { meter: createMeter(backend) }, log });
  return {
    errors,
    get: (headers: Record<string, string> = {}, socket = { remoteAddress: '192.0.2.1' }) =>
      respond({ headers, socket }),
  };
}

listener('without a token anybody is shown the exposition', async () => {
  const { status, headers, body } = await answering().get();
  assert.equal(
    [status, headers['content-type'], body.toString()],
    [200, 'text/plain; version=0.0.4', large],
  );
  assert.is(headers['content-encoding'], undefined);
});

listener(
  'guesses of the token are counted by network, and only a connection that sent nothing wrong goes on',
  async () => {
    const { get } = answering({ token: 'right' });
    const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
    const on = (remoteAddress: string) => ({ remoteAddress });
    const [scraper, shared] = [on('192.0.2.9'), on('192.0.2.9')];
    for (const socket of [scraper, shared])
      assert.is((await get(bearer('right'), socket)).status, 200);
    for (const at of [
      (n: number) => on(`2001:db8::${n.toString(16)}`),
      (n: number) => (n === 0 ? shared : on('::ffff:192.0.2.9')),
    ]) {
      const answers = await Promise.all(
        Array.from({ length: 30 }, (_, n) => get(bearer(`wrong ${n}`), at(n))),
      );
      assert.equal(
        [401, 429].map((status) => answers.filter((it) => it.status === status).length),
        [10, 20],
      );
      for (const socket of [at(0), at(1), at(99)])
        assert.is((await get(bearer('right'), socket)).status, 429);
    }
    for (const socket of [on('192.0.2.2'), on('2001:db8:0:1::1'), scraper])
      assert.is((await get(bearer('right'), socket)).status, 200);
  },
);

listener('probes without a token are refused, and lock nobody out', async () => {
  const { get } = answering({ token: 'right' });
  const socket = { remoteAddress: '192.0.2.9' };
  for (let n = 0; n < 30; n++) assert.is((await get({}, socket)).status, 401);
  assert.is((await get({ authorization: 'Bearer right' }, socket)).status, 200);
});

listener('with a token nobody else is, and is told the setting and not the token', async () => {
  const { get } = answering({ token: 'long and secret 日本' });
  const wrong = [
    'Bearer',
    'Bearer ',
    'Bearer long',
    'Bearer long and secret',
    'Basic bG9uZw==',
    'long and secret 日本',
    '',
  ];
  for (const headers of [{}, ...wrong.map((authorization) => ({ authorization }))]) {
    const refused = await get(headers);
    assert.equal(
      [refused.status, refused.headers['www-authenticate']],
      [401, 'Bearer realm="metrics"'],
      JSON.stringify(headers),
    );
    assert.match(
      refused.body.toString(),
      /metrics\.bearer_token \(GATEWAY_METRICS_BEARER_TOKEN, --metrics-bearer-token\)/,
    );
    assert.not.match(refused.body.toString(), 'secret');
  }
  // Node decodes the bytes of a header as Latin-1.
  const bytes = Buffer.from('long and secret 日本').toString('latin1');
  for (const scheme of ['Bearer', 'bearer', 'Bearer '])
    assert.is((await get({ authorization: `${scheme} ${bytes}` })).status, 200, scheme);
});

listener('the exposition is compressed for who takes gzip', async () => {
  const { get } = answering();
  for (const accepted of ['gzip', 'deflate, gzip;q=1.0, *;q=0.5', 'br, GZIP', '*']) {
    const { headers, body } = await get({ 'accept-encoding': accepted });
    assert.is(headers['content-encoding'], 'gzip', accepted);
    assert.is(gunzipSync(body).toString(), large);
    assert.ok(body.length < large.length / 10);
  }
  for (const accepted of ['', 'identity', 'gzip;q=0', 'gzip; q=0.000', 'deflate, br', 'gzipped']) {
    const { headers, body } = await get({ 'accept-encoding': accepted });
    assert.equal([headers['content-encoding'], body.toString()], [undefined, large], accepted);
  }
  const small = await answering({ expose: () => Promise.resolve('# small\n') }).get({
    'accept-encoding': 'gzip',
  });
  assert.is(small.headers['content-encoding'], undefined);
});

listener(
  'others have a turn before a text of megabytes is copied, and another before it is sent',
  async () => {
    const turns: string[] = [];
    const { get } = answering({
      expose: () => {
        setImmediate(() => {
          turns.push('one');
          setImmediate(() => turns.push('two'));
        });
        return Promise.resolve(large);
      },
    });
    await get();
    assert.equal(turns, ['one', 'two']);
  },
);

listener(
  'a text of megabytes is copied in turns, and no character of it is cut in two',
  async () => {
    const piece = 512 * 1024;
    for (const text of [
      `${'x'.repeat(piece - 1)}🙂${'日本'.repeat(piece)}`,
      '🙂'.repeat(2 * piece),
      `\ud83d${'ü'.repeat(2 * piece)}\ude42`,
    ]) {
      let isAnswered = false;
      let turns = 0;
      const count = () => {
        turns += 1;
        if (!isAnswered) setImmediate(count);
      };
      const { body } = await answering({
        expose: () => {
          setImmediate(count);
          return Promise.resolve(text);
        },
      }).get();
      isAnswered = true;
      assert.ok(body.equals(Buffer.from(text)));
      assert.ok(turns > text.length / piece, `${turns} turns`);
    }
  },
);

listener(
  'a backend that fails is answered with 500, without its reason, and logged when that begins',
  async () => {
    let fails = true;
    const { get, errors } = answering({
      expose: () =>
        fails ? Promise.reject(new Error('no place at db.internal')) : Promise.resolve(large),
    });
    for (let at = 0; at < 2; at++) {
      const { status, headers, body } = await get();
      assert.equal([status, headers['content-type']], [500, 'text/plain; charset=utf-8']);
      assert.match(body.toString(), 'failed to produce the exposition');
      assert.not.match(body.toString(), 'db.internal');
    }
    assert.is(errors.length, 1);
    assert.match(String((errors[0] as { error: Error }).error), 'db.internal');
    fails = false;
    assert.is((await get()).status, 200);
    fails = true;
    assert.is((await get()).status, 500);
    assert.is(errors.length, 2);
  },
);

listener.run();
