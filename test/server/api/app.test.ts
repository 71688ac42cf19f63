import net from 'node:net';
import { text } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { pathOf } from '#server/api/route';
import { createLog } from '#core/logging/log';
import { until } from '../../support/until.js';
import { routes } from '@gateway/server/routes';
import { makeProject, startApi, type Api } from '../api.js';

const app = suite('server/api/app');

let api: Api;
const lines: string[] = [];
app.before(async () => {
  const log = createLog({
    level: 'debug',
    name: 'test',
    destination: { write: (line) => lines.push(line) },
  });
  api = await startApi({ log, file: { ingest: { max_message_bytes: 1000 } } });
});
app.after(() => api.close());
app.before.each(() => {
  lines.length = 0;
});

const logged = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);

app('an unknown path is a 404 in the envelope', async () => {
  for (const path of ['/api', '/api/v1/nothing', '/api/v2/projects', '/favicon.ico']) {
    const { status, body } = await api.call('GET', path);
    assert.equal(
      [status, body.status, body.data, body.code],
      [404, false, null, 'not_found'],
      path,
    );
  }
});

app('a method that a path does not know is a 405 that names those that it does', async () => {
  const { status, body, headers } = await api.call('PATCH', '/projects', {});
  assert.equal([status, body.code, headers.get('allow')], [405, 'method_not_allowed', 'GET, POST']);
  assert.match(body.fix ?? '', 'GET or POST');
});

app(
  'every path of the API allows its own methods only, and says so to others and to OPTIONS',
  async () => {
    const methods = new Map<string, string[]>();
    for (const route of routes) {
      const shape = pathOf(route).replaceAll(/:\w+/g, ':');
      methods.set(shape, [...(methods.get(shape) ?? []), route.method.toUpperCase()]);
    }
    assert.ok(methods.has('/projects/:/events/batch'));
    for (const [shape, own] of methods) {
      const path = shape.replaceAll(':', newId());
      const allow = own.sort().join(', ');
      const others = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'].filter(
        (method) => !own.includes(method),
      );
      const answers = await Promise.all(others.map((method) => api.call(method, `/api/v1${path}`)));
      assert.equal(
        answers.map(({ status, headers }, k) => [others[k], status, headers.get('allow')]),
        others.map((method) => [method, method === 'OPTIONS' ? 204 : 405, allow]),
        path,
      );
    }
    const stray = await api.call('PUT', `/projects/${newId()}/events/none`, {});
    assert.equal([stray.status, stray.headers.get('allow')], [404, null]);
  },
);

app(
  'a body that is no JSON is refused with a sentence, and its words are not repeated',
  async () => {
    const cases: [
      body: string | Buffer,
      headers: Record<string, string>,
      status: number,
      sentence: RegExp,
    ][] = [
      ['{"name": hunter2}', {}, 400, /the body is not JSON: Unexpected token/],
      ['{"name": "x"', {}, 400, /the body is not JSON/],
      ['', {}, 400, /the body is empty/],
      [Buffer.from([0x22, 0xff, 0x22]), {}, 400, /not valid UTF-8/],
      [`${'['.repeat(201)}${']'.repeat(201)}`, {}, 400, /deeper than 200/],
      ['name=x', { 'content-type': 'application/x-www-form-urlencoded' }, 415, /is not supported/],
      [
        '{}',
        { 'content-type': 'application/json', 'content-encoding': 'gzip' },
        415,
        /content-encoding: gzip/,
      ],
      [JSON.stringify({ name: 'x'.repeat(65_536) }), {}, 413, /larger than 65536 bytes/],
      [
        JSON.stringify({ name: 'x'.repeat(65_000) }),
        {},
        422,
        /name: must have at most 200 characters/,
      ],
      ['[]', {}, 422, /body: must be an object/],
      ['null', {}, 422, /body: must be an object/],
    ];
    for (const [body, headers, status, sentence] of cases) {
      const answer = await api.call('POST', '/projects', body, {
        headers: { 'content-type': 'application/json', ...headers },
      });
      assert.is(answer.status, status, `${String(sentence)}: ${answer.text}`);
      assert.match(answer.body.message, sentence);
      assert.not.match(answer.text, 'hunter2');
      assert.ok(answer.body.fix);
    }
  },
);

app('of a body with more than twenty problems the rest is counted, and names are cut', async () => {
  const { path } = await makeProject(api);
  const fields = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`field${n}`, 1]));
  const many = await api.call('POST', `${path}/events`, { event_type: 'x', data: {}, ...fields });
  assert.equal([many.status, many.body.errors?.length], [422, 21]);
  assert.equal(many.body.errors?.at(-1), {
    field: 'body',
    sentence: 'has 9980 more problems, not examined after the first 20',
  });
  const long = await api.call('POST', `${path}/events`, {
    event_type: 'x',
    data: {},
    ['n'.repeat(200_000)]: 1,
  });
  assert.equal(long.body.errors, [
    { field: `${'n'.repeat(200)}…`, sentence: 'is not a field here' },
  ]);
  assert.ok(long.text.length < 1_000);
});

app('a message may be larger than other bodies, as ingest.max_message_bytes says', async () => {
  const { path } = await makeProject(api);
  const padded = (more: object) =>
    JSON.stringify({ event_type: 'x', data: {}, ...more }).replace('{', `{${' '.repeat(70_000)}`);
  for (const [at, more] of [
    ['', {}],
    ['/broadcast', {}],
    ['/fanout', { owner_id: 'o' }],
  ] as const)
    assert.is.not((await api.call('POST', `${path}/events${at}`, padded(more))).status, 413, at);
  const edit = { raw: 'x'.repeat(70_000) };
  assert.is((await api.call('PUT', `${path}/quarantine/${newId()}`, edit)).status, 404);
  assert.is((await api.call('PUT', path, padded({}))).status, 413);
});

app('every answer carries the security headers', async () => {
  const { path } = await makeProject(api);
  for (const [target, status] of [
    [path, 200],
    ['/nothing', 404],
    ['/metrics', 200],
    ['/healthz', 200],
  ] as const) {
    const answer = await api.call('GET', target);
    assert.is(answer.status, status);
    const names = [
      'x-content-type-options',
      'referrer-policy',
      'content-security-policy',
      'cache-control',
      'strict-transport-security',
    ];
    assert.equal(
      names.map((name) => answer.headers.get(name)),
      ['nosniff', 'no-referrer', "default-src 'none'; frame-ancestors 'none'", 'no-store', null],
      target,
    );
  }
});

app('a client that goes away in the middle of its body is no fault of ours', async () => {
  const { hostname, port } = new URL(api.url);
  const authorization = `authorization: Bearer ${api.owner.api_key.key}\r\ncontent-type: application/json`;
  for (const rest of [
    'content-length: 1000\r\n\r\n{"name":',
    'transfer-encoding: chunked\r\n\r\n9\r\n{"name":"\r\nzz\r\n',
  ]) {
    lines.length = 0;
    const socket = net.connect(Number(port), hostname);
    socket
      .on('error', () => undefined)
      .end(`POST /api/v1/projects HTTP/1.1\r\nhost: x\r\n${authorization}\r\n${rest}`);
    await until('the request to be over', () =>
      logged().some(({ message }) => message === 'request'),
    );
    assert.equal(
      logged().filter(({ level }) => level === 'error'),
      [],
      rest,
    );
    socket.destroy();
  }
});

app(
  'a request with several Host headers, or one that is no host, is refused, also for pages',
  async () => {
    const { hostname, port } = new URL(api.url);
    const statusOf = async (hosts: readonly string[], version = '1.1') => {
      const socket = net.connect(Number(port), hostname);
      socket.end(
        `GET /api/v1/auth/methods HTTP/${version}\r\n${hosts.map((it) => `${it}\r\n`).join('')}connection: close\r\n\r\n`,
      );
      return (await text(socket)).split(' ', 2)[1];
    };
    const refused = [
      [],
      ['Host: a', 'Host: b'],
      ['host: a', 'HOST: a'],
      ['Host: a, b'],
      ['Host: a/b'],
      ['Host: u@a'],
      ['Host: a b'],
    ];
    for (const hosts of refused) assert.is(await statusOf(hosts), '400', hosts.join());
    for (const hosts of [['Host: a'], ['Host: [::1]:80'], ['Host: a_b.example:8080'], ['Host:']])
      assert.is(await statusOf(hosts), '200', hosts.join());
    assert.is(await statusOf([], '1.0'), '200');
  },
);

app('a name holds nothing that a terminal, a log or a mail would obey', async () => {
  const { path } = await makeProject(api);
  for (const name of [
    'a\r\nb',
    'a\u001b[2J',
    'a\u009b2J',
    'a\u202eb',
    'a\u2066b',
    'a\u2028b',
    'a\u0000',
  ]) {
    for (const [place, body] of [
      ['/organisations', { name }],
      ['/projects', { name }],
      ['/api/v1/users/me/api-keys', { name }],
      [`${path}/api-keys`, { name }],
      [`${path}/endpoints`, { name, url: 'https://example.com' }],
      [`${path}/portal-links`, { name, owner_id: 'x' }],
      [`${path}/sources`, { name, type: 'http' }],
      [`${path}/event-types`, { name }],
    ] as const)
      assert.match(
        (await api.call('POST', place, body)).body.message,
        /name: must not .*contain control characters/,
        `${place} ${JSON.stringify(name)}`,
      );
    const { status, text: told } = await api.call('PUT', '/api/v1/users/me', { first_name: name });
    assert.is(status, 422, told);
    const event = await api.call('POST', `${path}/events`, { event_type: name, data: {} });
    assert.is(event.status, 422, event.text);
  }
  for (const name of ['Grüße 你好', 'خبر', '👩‍👩‍👧', 'a\u00a0b', "O'Neil & <Co>"]) {
    const { status, text: told } = await api.call('PUT', path, { name });
    assert.is(status, 200, told);
  }
});

app('a body that is sent in pieces without a length is limited too', async () => {
  const pieces = (async function* () {
    for (let n = 0; n < 40; n++) yield Buffer.alloc(10_000, 0x20);
  })();
  const response = await fetch(`${api.url}/api/v1/projects`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${api.owner.api_key.key}`,
      'content-type': 'application/json',
    },
    body: pieces,
    duplex: 'half',
    signal: AbortSignal.timeout(30_000),
  } as unknown as RequestInit);
  assert.is(response.status, 413);
  await response.text();
  // The connection remains usable.
  for (let n = 0; n < 3; n++) assert.is((await api.call('GET', '/projects')).status, 200);
});

app(
  'what nobody foresaw is a 500 that leaks nothing, and the log has it under the request id',
  async () => {
    const { path } = await makeProject(api);
    await api.db.rows('alter table subscriptions rename to gone');
    try {
      const { status, body, text, headers } = await api.call('GET', `${path}/subscriptions`);
      assert.equal(
        [status, body.code, body.request_id],
        [500, 'internal', headers.get('x-request-id') ?? ''],
      );
      assert.not.match(text, /subscriptions|relation|select |node_modules/i);
      const line = logged().find(
        (it) => it['request_id'] === body.request_id && it['level'] === 'error',
      );
      assert.match(JSON.stringify(line), 'subscriptions');
    } finally {
      await api.db.rows('alter table gone rename to subscriptions');
    }
  },
);

app('requests are logged at debug, without keys and bodies', async () => {
  await api.call('POST', '/projects', { name: 'a-name-of-a-person' });
  const line = logged().find((it) => it['message'] === 'request');
  assert.equal(
    [line?.['level'], line?.['method'], line?.['path'], line?.['status']],
    ['debug', 'POST', '/api/v1/projects', 201],
  );
  assert.not.match(lines.join(), /a-name-of-a-person|gw_[0-9a-f]{16}_/);
});

app('no other origin is allowed to call', async () => {
  const { headers } = await api.call('GET', '/projects', undefined, {
    headers: { origin: 'https://evil.example' },
  });
  assert.is(headers.get('access-control-allow-origin'), null);
});

app('/metrics answers without a key, and says why it is empty', async () => {
  const { status, text, headers } = await api.call('GET', '/metrics', undefined, { key: null });
  assert.is(status, 200);
  assert.match(headers.get('content-type') ?? '', /^text\/plain/);
  assert.match(text, /^# .*no metrics backend is selected/);
});

app('every answer has a request id', async () => {
  const [a, b] = await Promise.all([
    api.call('GET', '/projects'),
    api.call('GET', `/projects/${newId()}`),
  ]);
  assert.is.not(a.headers.get('x-request-id'), b.headers.get('x-request-id'));
  assert.match(a.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
});

app.run();
