import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import pg from 'pg';
import { database } from '../support/database.js';
import { freePort, loopback } from '../support/ports.js';
import { until, within } from '../support/until.js';
import { migratedDatabase } from '../store/migrated.js';
import { configOf, makeProject, refusal, sourceOf, startApi } from './api.js';
import { httpSource, sign } from './ingest/http-source.js';

const server = suite('server/server');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
server.before(async () => {
  db = await migratedDatabase();
});
server.after(() => db.close());

server('without an encryption key it refuses and says how to make one', async () => {
  const { fix } = await refusal(configOf(db, { encryption_key: '' }), 'encryption_key_missing');
  assert.match(fix, 'openssl rand -base64 32');
  await refusal(configOf(db, { encryption_key: 'c2hvcnQ=' }), 'encryption_key_invalid');
});

server('on a database without migrations it refuses', async () => {
  const empty = await database();
  const { fix } = await refusal(configOf(empty), 'migration_pending');
  assert.match(fix, 'gateway migrate up');
  await empty.close();
});

server('a port that is taken is named with its setting', async () => {
  const taken = createServer();
  const port = await freePort();
  await loopback(taken, port);
  const error = await refusal(
    configOf(db, { server: { http: { port, bind: '127.0.0.1' } } }),
    'port_in_use',
  );
  assert.match(error.message, String(port));
  assert.match(error.fix, 'server.http.port');
  await new Promise((resolve) => taken.close(resolve));
});

server('Postgres that is away, or has no such database, is named with its setting', async () => {
  const port = await freePort();
  const at = { host: '127.0.0.1', port, username: 'postgres', database: 'gateway' };
  const away = await refusal(configOf(db, { database: at }), 'database_unreachable');
  assert.match(away.message, `127.0.0.1:${port}`);
  assert.match(away.fix, 'GATEWAY_DB_PORT');
  const missing = await refusal(
    configOf({ url: db.url.replace(/[^/]+$/, 'no_such_database') }),
    'database_missing',
  );
  assert.match(missing.message, 'no_such_database');
});

server('closing lets a request that is under way end, and takes no new one', async () => {
  let answer: (() => void) | undefined;
  const checking = new Promise<void>((resolve) => (answer = resolve));
  let asked = false;
  const slow = sourceOf({ type: 'object' }, async () => {
    asked = true;
    await checking;
  });
  const api = await startApi({ sources: { slow } });
  const { body } = await api.call('POST', '/projects', { name: 'x' });
  const request = api.call('POST', `/projects/${body.data.uid}/sources`, {
    name: 's',
    type: 'pub_sub',
    pub_sub: { type: 'slow', slow: {} },
  });
  await until('the request to be under way', () => asked);
  const closed = api.close();
  answer?.();
  assert.is((await within(request, 10_000, 'the answer')).status, 201);
  await within(closed, 10_000, 'the server to close');
  await api.call('GET', '/healthz').then(
    () => assert.unreachable('it still answers'),
    (error: Error) => assert.match(String(error.cause), 'ECONNREFUSED'),
  );
});

server(
  'server.project_concurrency: further requests of a project wait, and too many are refused, while another project is answered',
  async () => {
    const ends: (() => void)[] = [];
    const slow = sourceOf(
      { type: 'object' },
      () => new Promise<void>((resolve) => ends.push(resolve)),
    );
    const api = await startApi({ sources: { slow }, file: { server: { project_concurrency: 2 } } });
    try {
      const [busy, other] = [await makeProject(api), await makeProject(api)];
      const source = { name: 's', type: 'pub_sub', pub_sub: { type: 'slow', slow: {} } };
      const first = [1, 2].map(() => api.call('POST', `${busy.path}/sources`, source));
      await until('both to be under way', () => ends.length === 2);
      let answered = 0;
      const waiting = Array.from({ length: 200 }, () =>
        api.call('GET', `${busy.path}/endpoints`).finally(() => answered++),
      );
      const refused = await until('a refusal', async () => {
        const answer = await within(
          api.call('GET', `${busy.path}/endpoints`),
          1_000,
          'an answer',
        ).catch(() => undefined);
        return answer?.status === 429 && answer;
      });
      assert.is(refused.body.code, 'too_many_at_once');
      assert.is(refused.headers.get('retry-after'), '1');
      assert.is(
        refused.body.message,
        'too many requests are waiting: 2 run at a time (server.project_concurrency)',
      );
      assert.is(answered, 0);
      assert.is((await api.call('GET', `${other.path}/endpoints`)).status, 200);
      for (const end of ends) end();
      for (const { status } of await Promise.all(first)) assert.is(status, 201);
      for (const { status } of await Promise.all(waiting)) assert.is(status, 200);
      assert.is((await api.call('GET', `${busy.path}/endpoints`)).status, 200);
    } finally {
      await api.close();
    }
  },
);

server(
  'bodies that arrive slowly over a portal link, or unsigned at a source, keep nothing else waiting, and end with 408',
  async () => {
    const api = await startApi({
      file: { server: { http: { port: 0, bind: '127.0.0.1', body_timeout_seconds: 3 } } },
    });
    const sockets: Socket[] = [];
    const answers: string[] = [];
    const begin = (path: string, authorization: string) => {
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
      const at = answers.push('') - 1;
      socket.on('data', (bytes) => (answers[at] += bytes.toString())).on('error', () => undefined);
      socket.write(
        `POST ${path} HTTP/1.1\r\nhost: a\r\n${authorization}content-type: application/json\r\ncontent-length: 5000\r\n\r\n{"a":`,
      );
      sockets.push(socket);
      return new Promise<void>((resolve) => socket.once('connect', resolve));
    };
    try {
      const { path } = await makeProject(api);
      const incoming = await makeProject(api, { type: 'incoming' });
      const source = await httpSource(api, incoming, {
        event_type: 'a',
        verifier: { type: 'github', secret: 's3cret' },
      });
      const { token } = (
        await api.call('POST', `${path}/portal-links`, { name: 'l', owner_id: 'acme' })
      ).body.data;
      const test = `/api/v1${path}/subscriptions/test_filter`;
      await Promise.all(
        Array.from({ length: 30 }, () => begin(test, `authorization: Bearer ${token}\r\n`)),
      );
      await Promise.all(Array.from({ length: 270 }, () => begin(source.url, '')));
      const quick = await within(
        Promise.all([
          api.call('POST', `${path}/events`, { event_type: 'a', data: {} }),
          api.call(
            'POST',
            `${path}/subscriptions/test_filter`,
            { schema: {}, body: {} },
            { key: token },
          ),
          source.post('{}', { 'x-hub-signature-256': `sha256=${sign('s3cret', '{}')}` }),
        ]),
        2_500,
        'answers',
      );
      assert.equal([quick[0].status, quick[2].status], [201, 200]);
      assert.is.not(quick[1].status, 429);
      await until('each slow body to be answered and its connection closed', () =>
        sockets.every(({ closed }) => closed),
      );
      for (const answer of answers) {
        assert.match(answer, /^HTTP\/1.1 408 /);
        assert.match(answer, '"code":"body_slow"');
      }
    } finally {
      for (const socket of sockets) socket.destroy();
      await api.close();
    }
  },
);

server(
  'requests that one connection sends before it has answers run one after the other',
  async () => {
    let [running, most] = [0, 0];
    const slow = sourceOf({ type: 'object' }, async () => {
      most = Math.max(most, ++running);
      await delay(20);
      running--;
    });
    const api = await startApi({ sources: { slow } });
    try {
      const { path } = await makeProject(api);
      const body = JSON.stringify({
        name: 's',
        type: 'pub_sub',
        pub_sub: { type: 'slow', slow: {} },
      });
      const head = `POST /api/v1${path}/sources HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${api.owner.api_key.key}\r\n`;
      const socket = connect(Number(new URL(api.url).port), '127.0.0.1');
      let text = '';
      socket.on('data', (bytes) => (text += bytes.toString()));
      socket.write(
        `${head}content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`.repeat(
          5,
        ),
      );
      await until('five answers', () => text.split('HTTP/1.1 201').length === 6);
      assert.is(most, 1);
      socket.destroy();
    } finally {
      await api.close();
    }
  },
);

server(
  'database.max_open_connections and max_builder_connections: many requests at once open no more',
  async () => {
    const most = async (connections: object) => {
      const api = await startApi({ file: { database: connections } });
      const blocker = new pg.Client(api.db.url);
      const open = async () => {
        const [row] = await api.db.rows<{ n: number }>(
          `select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name like 'gateway-server%'`,
        );
        return row!.n;
      };
      try {
        const { path } = await makeProject(api);
        await blocker.connect();
        // Requests block, so that each needs another connection.
        await blocker.query('begin; lock table events, endpoints in access exclusive mode');
        const requests = Array.from({ length: 60 }, (_, n) => [
          api.call('POST', `${path}/events`, { event_type: 'a', data: { n } }),
          api.call('GET', `${path}/endpoints`),
        ]).flat();
        await until('more than four connections', async () => (await open()) > 4, {
          withinMs: 2_000,
        }).catch(() => undefined);
        await blocker.query('rollback');
        for (const { status } of await Promise.all(requests)) assert.ok(status < 300, `${status}`);
        return await open();
      } finally {
        await blocker.end();
        await api.close();
      }
    };
    const [few, many] = [
      await most({ max_open_connections: 2, max_builder_connections: 1 }),
      await most({}),
    ];
    assert.ok(few <= 2 + 1 + 1, `${few} of them, with the one that listens`);
    assert.ok(many > 4, `${many} by default`);
  },
);

server.run();
