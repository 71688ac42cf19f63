// deadline: 120 s, long
import crypto from 'node:crypto';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { makeDelivery, makeEndpoint, makeEvents } from '../store/made.js';
import { openUrl } from '../store/migrated.js';
import { database, type Database } from '../support/database.js';
import { gateway, runGateway, type GatewayProcess } from '../support/gateway.js';
import { freePort, loopback } from '../support/ports.js';
import { redis, type RedisDatabase } from '../support/redis.js';
import { certificates } from '../support/start/certificates.js';
import { discard, tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';

const serverFlags = suite('e2e/server-flags');

/** The documented flags of `gateway server`, without the global ones. */
const PROMISED = [
  '--api-auth',
  '--basic-auth',
  '--cache',
  '--env',
  '--host',
  '--limiter',
  '--logger',
  '--max-response-size',
  '--native',
  '--port',
  '--proxy',
  '--pulladdr',
  '--root-path',
  '--ssl',
  '--ssl-cert-file',
  '--ssl-key-file',
] as const;
type Flag = (typeof PROMISED)[number];

const tested = new Set<Flag>();

/** Declares a test of one or several flags. */
function flag(flags: Flag | readonly Flag[], behaviour: string, test: () => Promise<void>): void {
  const names = typeof flags === 'string' ? [flags] : flags;
  for (const name of names) tested.add(name);
  serverFlags(`${names.join(' ')}: ${behaviour}`, test);
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: {
    message: string;
    code?: string;
    data: {
      content: unknown[];
      environment: string;
      uid: string;
      api_key: { key: string };
      response_body: string;
    };
  };
}

interface Server {
  readonly process: GatewayProcess;
  readonly port: number;
  get(path: string, headers?: Record<string, string>): Promise<Answer>;
  call(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<Answer>;
  /** Creates a project. Returns the path of its endpoints, its id and its key. */
  project(): Promise<{ id: string; endpoints: string; bearer: { authorization: string } }>;
}

const KEY = 'key-of-the-process-0123456789';
const ORGANISATIONS = '/api/v1/organisations';

const folder = tempFolder('server-flags');
let db: Database;
let kv: RedisDatabase;
let account: { organisation: { id: string }; api_key: { key: string } };
let proxy: { readonly asked: readonly string[]; readonly url: string; close(): Promise<unknown> };
let metricsAt: string;
/**
 * A server with only a port and a rate, one with the flags that affect requests, and one that
 * accepts no stored keys and passwords.
 */
let plain: Server, flagged: Server, strict: Server;

serverFlags.before(async () => {
  db = await database();
  kv = await redis();
  const config = {
    encryption_key: crypto.randomBytes(32).toString('base64'),
    database: db.connection,
    kv: kv.connection,
    server: { http: { bind: '127.0.0.1', port: 1 } },
  };
  const migrated = await runGateway(['migrate', 'up'], { folder, config });
  assert.is(migrated.code, 0, migrated.stderr);
  account = JSON.parse(
    (await runGateway(['bootstrap', '--email', 'ops@example.com'], { folder })).stdout,
  ) as typeof account;
  proxy = await refusingProxy();
  metricsAt = `127.0.0.1:${await freePort()}`;
  // Usage for billing to post.
  await db.rows(
    `insert into usage_days (organisation_id, day, events) values ($1, (now() - interval '3 days')::date, 1)`,
    [account.organisation.id],
  );
  const rate = ['--api-rate-limit', '20'];
  // The aliases start the server too.
  [plain, flagged, strict] = await Promise.all([
    start('server', rate),
    start(
      'serve',
      [
        ...['--api-auth', KEY, '--api-auth', `${KEY}-2`, '--basic-auth', 'ops:a password of ops'],
        ...['--cache', 'in-memory', '--limiter', 'in-memory', ...rate],
        ...['--env', 'staging', '--host', 'https://hooks.example.com', '--root-path', '/gateway'],
        ...['--logger', 'debug', '--max-response-size', '1', '--pulladdr', metricsAt],
        ...[
          '--proxy',
          proxy.url,
          '--billing-enabled',
          '--billing-url',
          'http://billing.example.com/usage',
          '--billing-api-key',
          'k',
        ],
      ],
      '/gateway',
    ),
    start('s', ['--no-native', '--api-auth', KEY, '--logger', 'error']),
  ]);
});
serverFlags.after(async () => {
  await Promise.all([plain, flagged, strict].map((it) => it?.process.terminate()));
  await proxy?.close();
  await kv.close();
  await db.close();
  discard(folder);
});
serverFlags.before.each(async () => void (await kv.client.flushdb()));

/** Starts a server on a free port; API paths are given without the prefix. */
async function start(command: string, flags: readonly string[], prefix = ''): Promise<Server> {
  const port = await freePort();
  const process = gateway([command, '--port', String(port), ...flags], { folder });
  const call: Server['call'] = async (
    method,
    target,
    body,
    headers = { authorization: `Bearer ${account.api_key.key}` },
  ) => {
    const response = await fetch(
      `http://127.0.0.1:${port}${target.startsWith('/api') ? prefix : ''}${target}`,
      {
        method,
        headers: { ...headers, 'content-type': 'application/json' },
        signal: AbortSignal.timeout(30_000),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      },
    );
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text.startsWith('{') ? JSON.parse(text) : { message: text }) as Answer['body'],
    };
  };
  try {
    await process.healthy(port);
  } catch (error) {
    await process.terminate();
    throw error;
  }
  return {
    process,
    port,
    call,
    get: (target, headers) => call('GET', target, undefined, headers),
    async project() {
      const { uid: id, api_key: apiKey } = (
        await call('POST', '/api/v1/projects', { name: 'orders' })
      ).body.data;
      return {
        id,
        endpoints: `/api/v1/projects/${id}/endpoints`,
        bearer: { authorization: `Bearer ${apiKey.key}` },
      };
    },
  };
}

/** A proxy that records requests and fails them. */
async function refusingProxy(): Promise<typeof proxy> {
  const asked: string[] = [];
  const server = http.createServer(({ url = '' }, response) => {
    asked.push(url);
    response.writeHead(502).end();
  });
  server.on('connect', ({ url = '' }, socket) => {
    asked.push(url);
    socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
  });
  const port = await loopback(server);
  return {
    asked,
    url: `http://127.0.0.1:${port}`,
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

/** Returns the error of a server that must not start. */
async function refused(flags: readonly string[]): Promise<string> {
  const { code, stderr } = await runGateway(
    ['server', ...(flags.includes('--port') ? [] : ['--port', '0']), ...flags],
    { folder },
  );
  assert.is(code, 1, stderr);
  assert.not.match(stderr, /^\s+at /m, 'no stack');
  return stderr;
}

flag(
  '--api-auth',
  'a key of the process reaches every organisation, and a short one is refused without being repeated',
  async () => {
    for (const known of [KEY, `${KEY}-2`]) {
      const { status, body } = await flagged.get(ORGANISATIONS, {
        authorization: `Bearer ${known}`,
      });
      assert.equal([status, body.data.content.length], [200, 1]);
    }
    assert.is((await flagged.get(ORGANISATIONS, { authorization: `Bearer ${KEY}-3` })).status, 401);
    assert.is((await plain.get(ORGANISATIONS, { authorization: `Bearer ${KEY}` })).status, 401);
    const sentence = await refused(['--api-auth', 'hunter2']);
    assert.match(sentence, /server\.auth\.api_keys has 7 characters/);
    assert.not.match(sentence, 'hunter2');
  },
);

flag(
  '--basic-auth',
  'a username with password of the process reaches every organisation',
  async () => {
    const basic = (pair: string) => ({
      authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
    });
    assert.is((await flagged.get(ORGANISATIONS, basic('ops:a password of ops'))).status, 200);
    const wrong = await flagged.get(ORGANISATIONS, basic('ops:another'));
    assert.is(wrong.status, 401);
    assert.match(wrong.headers.get('www-authenticate') ?? '', 'Basic realm=');
    assert.match(await refused(['--basic-auth', 'hunter2']), /server\.auth\.basic has no colon/);
  },
);

flag('--native', 'stored API keys are accepted, and with --no-native they are not', async () => {
  assert.is((await plain.get(ORGANISATIONS)).status, 200);
  const { status, body } = await strict.get(ORGANISATIONS);
  assert.is(status, 401);
  assert.match(body.message, 'server.auth.native is off');
  assert.is((await strict.get(ORGANISATIONS, { authorization: `Bearer ${KEY}` })).status, 200);
  assert.match(await refused(['--no-native']), /no request could be authenticated.*--api-auth/s);
});

flag('--cache', 'what a request looks up is kept in KV, or in memory', async () => {
  const cached = () => kv.client.keys('gateway:cache:*');
  const inKv = await plain.project();
  await kv.client.flushdb();
  // The record of a project needs no cache once its configuration has been read.
  await until('the key in KV', async () => {
    assert.is((await plain.get(inKv.endpoints, inKv.bearer)).status, 200);
    return (await cached()).some((name) => name.startsWith('gateway:cache:key:'));
  });
  const inMemory = await flagged.project();
  await kv.client.flushdb();
  for (let n = 0; n < 3; n++)
    assert.is((await flagged.get(inMemory.endpoints, inMemory.bearer)).status, 200);
  assert.equal(await cached(), []);
});

flag('--limiter', 'requests are counted in KV, or in memory', async () => {
  for (const [server, buckets] of [
    [plain, 1],
    [flagged, 0],
  ] as const) {
    const { endpoints, bearer } = await server.project();
    await kv.client.flushdb();
    const late = await until('a request too many', async () =>
      (await Promise.all(Array.from({ length: 40 }, () => server.get(endpoints, bearer)))).find(
        ({ status }) => status === 429,
      ),
    );
    assert.match(late.headers.get('retry-after') ?? '', /^[1-9]/);
    assert.is((await kv.client.keys('gateway:rate:api:*')).length, buckets);
  }
});

flag('--env', 'health tells the environment', async () => {
  assert.is((await flagged.get('/healthz')).body.data.environment, 'staging');
});

flag(
  ['--host', '--root-path'],
  'the API is below the prefix, and links carry the public name',
  async () => {
    assert.is((await fetch(`http://127.0.0.1:${flagged.port}${ORGANISATIONS}`)).status, 404);
    assert.is((await flagged.get(ORGANISATIONS)).status, 200);
    for (const target of [
      '/healthz?ready',
      '/gateway/healthz?ready',
      '/metrics',
      '/gateway/metrics',
    ])
      assert.is((await flagged.get(target)).status, 200);
    const { headers, body } = await flagged.call('POST', '/api/v1/projects', { name: 'orders' });
    assert.is(
      headers.get('location'),
      `https://hooks.example.com/gateway/api/v1/projects/${body.data.uid}`,
    );
    assert.match(await refused(['--host', 'hooks.example.com/path']), /--host/);
  },
);

flag('--logger', 'the level of the log', async () => {
  await flagged.get(ORGANISATIONS);
  await flagged.process.line(/"level":"debug".*"path":"\/gateway\/api\/v1\/organisations"/);
  assert.is(strict.process.stderr, '');
});

flag('--max-response-size', 'a stored response is shown up to so many kilobytes', async () => {
  const made = openUrl(db.url);
  try {
    const { id: projectId } = await flagged.project();
    const endpoint = await makeEndpoint(made, projectId);
    const [eventId] = await makeEvents(made, projectId, [{ atMs: Date.now() }]);
    const delivery = await makeDelivery(made, {
      projectId,
      eventId: eventId!,
      endpointId: endpoint.id,
      status: 'success',
      attempts: 1,
    });
    const body = `${'é'.repeat(511)}aé and more`;
    await db.rows(
      `insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, http_status, url, response_body)
       select project_id, id, $2, occurred_at, now(), endpoint_id, 5, 1, 200, 'https://example.com', $3 from event_deliveries where id = $1`,
      [delivery, crypto.randomUUID(), body],
    );
    const attempts = `/api/v1/projects/${projectId}/eventdeliveries/${delivery}/deliveryattempts`;
    const { content } = (await flagged.get(attempts)).body.data as unknown as {
      content: { uid: string; response_body: string }[];
    };
    assert.is(content[0]?.response_body, `${'é'.repeat(511)}a`);
    assert.is(
      (await flagged.get(`${attempts}/${content[0]?.uid}`)).body.data.response_body,
      `${'é'.repeat(511)}a`,
    );
    const { data } = (await plain.get(`${attempts}/${content[0]?.uid}`)).body;
    assert.is(data.response_body, body, 'by default fifty are');
  } finally {
    await made.close();
  }
});

flag(
  '--port',
  'the server listens there, whatever the file says, and a port that is taken ends it',
  async () => {
    const { status, body } = await plain.get('/healthz');
    assert.equal([status, body.data.environment], [200, 'development']);
    const { port } = plain;
    assert.match(
      await refused(['--port', String(port)]),
      new RegExp(`port ${port} on 127\\.0\\.0\\.1 is already in use.*--port`, 's'),
    );
  },
);

flag(
  '--proxy',
  'what the server sends goes through the proxy, that of connection tests included',
  async () => {
    await until('the proxy to be asked for billing', () =>
      proxy.asked.includes('http://billing.example.com/usage'),
    );
    const { id } = await flagged.project();
    const connection = {
      access_key_id: 'key',
      secret_key: 'secret',
      default_region: 'eu-west-1',
      queue_name: 'orders',
    };
    const connect = async (more: object) => {
      const pub_sub = { type: 'sqs', workers: 1, sqs: { ...connection, ...more } };
      const { status, body } = await flagged.call('POST', `/api/v1/projects/${id}/sources`, {
        name: 'orders',
        type: 'pub_sub',
        pub_sub,
      });
      assert.is(status, 422);
      return body.message;
    };
    const { host } = new URL(proxy.url);
    const forbids = (place: string) =>
      `The proxy ${host} answered 403 Forbidden when asked for a connection to ${place}; its rules do not allow it`;
    assert.match(await connect({}), forbids('sqs.eu-west-1.amazonaws.com:443'));
    const role = { role_arn: 'arn:aws:iam::123456789012:role/orders' };
    assert.match(await connect(role), forbids('sts.eu-west-1.amazonaws.com:443'));
    await connect({ endpoint: 'http://queue.example.com' });
    assert.ok(proxy.asked.includes('http://queue.example.com/'));
  },
);

flag(
  '--pulladdr',
  'a second address answers /metrics alone, and one that is taken ends the start',
  async () => {
    const metrics = await fetch(`http://${metricsAt}/metrics`);
    assert.equal(
      [metrics.status, await metrics.text()],
      [200, (await flagged.get('/metrics')).body.message],
    );
    assert.is((await fetch(`http://${metricsAt}/healthz`)).status, 404);
    assert.match(
      await refused(['--pulladdr', metricsAt]),
      new RegExp(`port ${metricsAt.split(':')[1]}.*--pulladdr`, 's'),
    );
  },
);

flag(
  ['--ssl', '--ssl-cert-file', '--ssl-key-file'],
  'the API is served over TLS with this certificate; what is missing or wrong ends the start',
  async () => {
    const { ca, certificate, key } = certificates(path.join(folder, 'tls'));
    const port = await freePort();
    const tls = gateway(
      [
        'server',
        '--port',
        String(port),
        '--ssl',
        '--ssl-cert-file',
        certificate,
        '--ssl-key-file',
        key,
      ],
      { folder },
    );
    try {
      await tls.line('Ready.');
      const status = await new Promise((resolve, reject) => {
        const options = {
          host: '127.0.0.1',
          port,
          path: ORGANISATIONS,
          ca: fs.readFileSync(ca),
          agent: false,
        } as const;
        https
          .get(
            { ...options, headers: { authorization: `Bearer ${account.api_key.key}` } },
            (response) => resolve(response.resume().statusCode),
          )
          .on('error', reject);
      });
      assert.is(status, 200);
    } finally {
      await tls.terminate();
    }
    const refusals: [flags: string[], sentence: RegExp][] = [
      [['--ssl'], /ssl is true without server\.http\.ssl_cert_file \(--ssl-cert-file/],
      [
        ['--ssl-cert-file', certificate, '--ssl-key-file', key],
        /ssl_cert_file is set, but server\.http\.ssl \(--ssl/,
      ],
      [
        ['--ssl', '--ssl-cert-file', '/no/such.pem', '--ssl-key-file', key],
        /\/no\/such\.pem.*there is no such file/,
      ],
    ];
    await Promise.all(
      refusals.map(async ([flags, sentence]) => assert.match(await refused(flags), sentence)),
    );
  },
);

serverFlags('every promised flag has a test here, and stands in the help', async () => {
  assert.equal([...tested].sort(), [...PROMISED].sort());
  const { stdout } = await runGateway(['server', '--help'], { folder });
  for (const name of PROMISED)
    assert.match(stdout, new RegExp(`(--|\\[no-\\])${name.slice(2)}\\b`), name);
});

serverFlags.run();
