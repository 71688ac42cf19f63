import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newApiKey } from '#core/crypto/api-keys';
import { newId } from '#core/events/ids';
import { createLog } from '#core/logging/log';
import { startServer } from '@gateway/server';
import { routes } from '@gateway/server/routes';
import { pathOf, type Route } from '#server/api/route';
import { askDatabase } from '#server/health/database-outage';
import { bootstrapUser } from '#store/people/users';
import { MemoryKv } from '#store/kv/memory-kv';
import type { Shard } from '#store/shards/open-shards';
import { migrate, openUrl } from '../../store/migrated.js';
import { connectionOf, database, type Database } from '../../support/database.js';
import { freeze } from '../../support/frozen.js';
import { proxy } from '../../support/proxy.js';
import { own } from '../../support/services.js';
import { smallDisk, type SmallDisk } from '../../support/small-disk.js';
import { until } from '../../support/until.js';
import { activated, configOf } from '../api.js';

const outage = suite('server/health/database-outage');

const postgres = await own.postgres();
let disk: SmallDisk | undefined;
outage.after(async () => {
  await postgres.close();
  disk?.close();
});

const PASSWORD = 'the password of the database';
const NOTHING = 'the database of the gateway is unavailable: nothing was stored or changed';

interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
  readonly body: {
    readonly code?: string;
    readonly message: string;
    readonly fix?: string;
    readonly data: { readonly uid: string };
  };
}

interface Scene {
  readonly db: Database;
  readonly told: () => { level: string; message: string; reason?: string }[];
  readonly project: string;
  readonly organisation: string;
  call(method: string, path: string, body?: unknown): Promise<Answer>;
}

/**
 * Runs a test with a private database and a server that caches callers and records in KV, or not at
 * all.
 */
async function scene(
  { cache = 'kv', port }: { cache?: 'kv' | 'in-memory'; port?: number },
  test: (it: Scene) => Promise<void>,
): Promise<void> {
  const db = await database({ postgres, migrate });
  const opened = openUrl(db.url);
  const { api_key: key, organisation } = await bootstrapUser(opened.knex, {
    email: 'owner@example.com',
    firstName: 'o',
    lastName: 'w',
  });
  await opened.close();
  const lines: string[] = [];
  const kv = new MemoryKv();
  const file = {
    database: { ...connectionOf(db.url), password: PASSWORD, ...(port ? { port } : {}) },
    server: { http: { port: 0, bind: '127.0.0.1' }, cache },
  };
  const config = configOf(db, file);
  const log = createLog({
    level: 'info',
    name: 'test',
    destination: { write: (line) => lines.push(line) },
  });
  const server = await startServer({ config, plugins: await activated(), log, kv });
  const call: Scene['call'] = async (method, path, body) => {
    const response = await fetch(`http://127.0.0.1:${server.port}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key.key}`, 'content-type': 'application/json' },
      signal: AbortSignal.timeout(60_000),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      retryAfter: response.headers.get('retry-after'),
      text,
      body: JSON.parse(text) as Answer['body'],
    };
  };
  try {
    const { data } = (await call('POST', '/projects', { name: 'orders' })).body;
    const told = () =>
      lines
        .map((line) => JSON.parse(line) as Record<string, string>)
        .filter(({ dependency }) => dependency === 'postgres');
    await test({
      db,
      told: told as Scene['told'],
      project: `/projects/${data.uid}`,
      organisation: organisation.id,
      call,
    });
  } finally {
    await server.close();
    await kv.close();
    await db.close();
  }
}

const event = { event_type: 'order.paid', data: { n: 1 } };

/** A valid body for each route that accepts one. */
const BODIES: Readonly<Record<string, unknown>> = {
  'post /projects': { name: 'more' },
  'put ': { name: 'other' },
  'post /endpoints': { name: 'shop', url: 'https://example.com' },
  'put /endpoints/:id': { name: 'other' },
  'put /endpoints/:id/expire_secret': {},
  'post /subscriptions': { name: 'all', endpoint_id: newId() },
  'put /subscriptions/:id': { name: 'other' },
  // Disabled, so that no broker is contacted.
  'post /sources': {
    name: 'orders',
    type: 'pub_sub',
    pub_sub: {
      type: 'kafka',
      kafka: { brokers: ['localhost:9092'], topic_name: 'orders', consumer_group_id: 'gateway' },
    },
    is_disabled: true,
  },
  'put /sources/:id': { name: 'other' },
  'post /events': event,
  'post /events/fanout': { ...event, owner_id: 'acme' },
  'post /events/broadcast': event,
  'post /events/batch': { events: [event] },
  'put /scheduled-events/:id': { deliver_at: '2020-01-01T00:00:00Z' },
  'put /quarantine/:id': { raw: '{}' },
  'post /endpoints/:id/test': {},
  'post /sources/:id/rewind': { to: 'earliest' },
  'post /sources/test_connection': { source_id: newId() },
  'post /sources/test_function': { source_id: newId(), payload: 1 },
  'post /auth/login': { email: 'owner@example.com', password: 'twelve letters' },
  'post /auth/invitation': { token: newApiKey().key },
  'post /auth/accept-invitation': { token: newApiKey().key, password: 'twelve letters' },
  'post /auth/forgot-password': { email: 'owner@example.com' },
  'post /auth/reset-password': { token: newApiKey().key, password: 'twelve letters' },
  'put /users/me': { first_name: 'Ada' },
  'put /users/me/password': { current_password: 'x', password: 'twelve letters' },
  'post /users/me/api-keys': { name: 'ci' },
  'post /organisations': { name: 'Acme' },
  'put /members/:user_id': { role: 'viewer' },
  'post /invitations': { email: 'grace@example.com', role: 'member' },
  'post /api-keys': { name: 'ci' },
  'put /api-keys/:id': { name: 'ci' },
  'put /users/me/api-keys/:id': { name: 'ci' },
  'post /event-types': { name: 'order.paid' },
  'put /event-types/:id': { description: 'Paid.' },
  'post /event-types/import': { openapi: '3.1.0', webhooks: { 'order.paid': { post: {} } } },
  'post /subscriptions/test_filter': { filter: {}, sample: {} },
  'post /subscriptions/test_function': { subscription_id: newId(), payload: 1 },
  'post /eventdeliveries/forceresend': { ids: [newId()] },
  'post /auth/oidc/complete': { query: 'code=a&state=b' },
  'post /portal-links': { name: 'Acme', owner_id: 'acme' },
  'put /portal-links/:id': { name: 'Acme' },
  'post /portal-links/:id/refresh_token': {},
  'post /shards': { name: 'big', schema: 'big' },
  'put /shards/:name': { is_draining: true },
};

/** Routes that need only the caller, their organisations and projects, or say what is unknown. */
const CACHED = [
  'get /health',
  'get /organisations',
  'get /sources/codecs',
  'get /sources/types',
  'post /subscriptions/test_filter',
  'post /auth/logout',
];

/** Routes that need no database, or none without an OpenID Connect provider or email. */
const WITHOUT_DATABASE = [
  'get /auth/methods',
  'post /auth/oidc/start',
  'post /auth/oidc/complete',
  // It refuses at once where no email is sent.
  'post /auth/forgot-password',
];

async function callAll({
  call,
  project,
  organisation,
}: Scene): Promise<{ route: Route; name: string; answer: Answer }[]> {
  const answers = [];
  for (const route of routes) {
    const { method, path } = route;
    const name = `${method} ${path}`;
    assert.is(name in BODIES, route.body !== undefined, `${name}: a body for this test`);
    if (WITHOUT_DATABASE.includes(name)) continue;
    const whole = pathOf(route)
      .replace('/projects/:project_id', project)
      .replace('/organisations/:organisation_id', `/organisations/${organisation}`)
      .replace(/:\w+/g, () => newId());
    const given = {
      startDate: new Date(Date.now() - 86_400_000).toISOString(),
      ...(route.query?.required?.includes('endpointId') && { endpointId: newId() }),
    };
    const query =
      route.query && 'startDate' in route.query.properties
        ? `?${new URLSearchParams(given).toString()}`
        : '';
    answers.push({
      route,
      name,
      answer: await call(method.toUpperCase(), whole + query, BODIES[name]),
    });
  }
  return answers;
}

function isAway({ status, retryAfter, text, body }: Answer, { db }: Scene, name = ''): void {
  assert.equal([status, body.code, retryAfter], [503, 'database_away', '5'], `${name}: ${text}`);
  assert.match(body.fix ?? '', 'send the request again after 5 s');
  for (const secret of [
    '127.0.0.1',
    String(postgres.port),
    PASSWORD,
    db.connection.database,
    db.connection.username,
  ])
    assert.not.ok(text.includes(secret), `${name} tells ${secret}: ${text}`);
}

outage('while Postgres is stopped every route answers 503, and the log tells why, once', () =>
  scene({ cache: 'in-memory' }, async (it) => {
    await postgres.stop();
    try {
      await sleep(1_100); // lets the memory cache of one second expire
      for (const { route, name, answer } of await callAll(it)) {
        isAway(answer, it, name);
        // A login has no caller to look up before the route runs.
        if (route.reach !== 'open') assert.is(answer.body.message, NOTHING, name);
      }
      const lines = it.told();
      assert.equal(
        lines.map(({ level, message }) => `${level} ${message}`),
        ['warn Postgres is unavailable: requests get 503.'],
      );
      assert.match(
        lines[0]!.reason ?? '',
        `Postgres at 127.0.0.1:${postgres.port} cannot be reached: nothing listens there. To fix it:`,
      );
    } finally {
      await postgres.start();
    }
    await until('the log to tell that Postgres is back', async () => {
      assert.is((await it.call('GET', '/projects')).status, 200);
      return it.told().length > 1;
    });
    assert.equal(
      it.told().map(({ level, message }) => `${level} ${message}`),
      ['warn Postgres is unavailable: requests get 503.', 'info Postgres is available again.'],
    );
  }),
);

outage('a route whose caller and project a cache knows finds out by itself', () =>
  scene({}, async (it) => {
    assert.is((await it.call('GET', it.project)).status, 200);
    await postgres.stop();
    try {
      for (const { route, name, answer } of await callAll(it)) {
        if (CACHED.includes(name) || (route.reach === 'organisation' && name === 'get ')) {
          assert.is(answer.status, 200, 'the cache knows all of it');
          continue;
        }
        // Only for portal links, unlike this caller.
        if (name === 'get /portal') continue;
        isAway(answer, it, name);
        // Changes of shards and of their projects begin with a read.
        const isCertain =
          route.method === 'get' || route.status === 201 || route.path.startsWith('/shards/');
        const whole = isCertain
          ? NOTHING
          : /is unavailable: it is unknown whether the request was carried out; it is safe to send it again/;
        assert.match(answer.body.message, whole, name);
      }
      assert.is(it.told().length, 1);
    } finally {
      await postgres.start();
    }
  }),
);

outage('when the answer to a commit is lost, it is not said that nothing was stored', async () => {
  const between = await proxy({ port: postgres.port });
  try {
    await scene({ port: between.port }, async (it) => {
      assert.is((await it.call('POST', `${it.project}/events`, event)).status, 201);
      const lost = between.loseAnswer('order.lost');
      const answer = await it.call('POST', `${it.project}/events`, {
        ...event,
        event_type: 'order.lost',
      });
      await lost;
      isAway(answer, it);
      assert.match(answer.body.message, 'it is unknown whether the request was carried out');
      const [row] = await it.db.rows<{ n: number }>(
        `select count(*)::int as n from events where event_type = 'order.lost'`,
      );
      assert.is(row!.n, 1, 'it was');
    });
  } finally {
    await between.close();
  }
});

outage('Postgres that is frozen is away too', () =>
  scene({ cache: 'in-memory' }, async (it) => {
    await sleep(1_100);
    const thaw = freeze(postgres.pid);
    try {
      const answers = await Promise.all([
        it.call('GET', '/organisations'),
        it.call('POST', `${it.project}/events`, event),
      ]);
      for (const answer of answers) {
        isAway(answer, it);
        assert.is(answer.body.message, NOTHING);
      }
    } finally {
      thaw();
    }
    await until(
      'it to be back',
      async () => (await it.call('POST', `${it.project}/events`, event)).status === 201,
      { withinMs: 30_000 },
    );
  }),
);

outage('Postgres that is read-only answers what is asked, and 503 to what changes something', () =>
  scene({}, async (it) => {
    const turn = async (how: string) => {
      await it.db.rows(`alter system ${how}`);
      await it.db.rows('select pg_reload_conf()');
    };
    await turn('set default_transaction_read_only = on');
    const refused = await until('a write to be refused', async () => {
      const answer = await it.call('POST', `${it.project}/events`, event);
      return answer.status !== 201 && answer;
    });
    const { status, retryAfter, body } = refused;
    assert.equal(
      [status, retryAfter, body.code, body.message],
      [
        503,
        '5',
        'database_takes_no_writes',
        'the database of the gateway accepts no writes: nothing was stored or changed',
      ],
    );
    assert.is((await it.call('GET', `${it.project}/events`)).status, 200);
    assert.is(
      (await it.call('POST', '/projects', { name: 'more' })).status,
      503,
      'also over the other pool',
    );
    await turn('reset default_transaction_read_only');
    await until('the log to tell that it takes writes', async () => {
      await it.call('POST', `${it.project}/events`, event);
      return it.told().length > 1;
    });
    assert.equal(
      it.told().map(({ message }) => message),
      [
        'Postgres accepts no writes: requests that change something get 503.',
        'Postgres accepts writes again.',
      ],
    );
  }),
);

outage('an error of Postgres that is none of these is a fault of ours', () =>
  scene({}, async (it) => {
    await it.db.rows('alter table subscriptions rename to other');
    const { status, retryAfter, body } = await it.call('GET', `${it.project}/subscriptions`);
    assert.equal([status, retryAfter, body.code], [500, null, 'internal']);
    assert.equal(it.told(), []);
  }),
);

outage('Postgres whose disk is full takes no writes', () =>
  scene({}, async (it) => {
    disk = await smallDisk(postgres, it.db);
    await disk.fill();
    const data = { text: Array.from({ length: 500 }, newId).join() };
    const answer = await until(
      'an event to be refused',
      async () => {
        const one = await it.call('POST', `${it.project}/events`, { ...event, data });
        return one.status !== 201 && one;
      },
      { everyMs: 1 },
    );
    assert.equal(
      [answer.status, answer.retryAfter, answer.body.code],
      [503, '5', 'database_takes_no_writes'],
      answer.text,
    );
    assert.match(it.told()[0]?.reason ?? '', 'its disk is full');
    await disk.free();
    await until(
      'events to be stored again',
      async () => (await it.call('POST', `${it.project}/events`, event)).status === 201,
    );
  }),
);

outage(
  'work that does not end in time is blamed on Postgres only if Postgres does not answer either',
  async () => {
    const lines: string[] = [];
    const log = createLog({
      level: 'info',
      name: 'test',
      destination: { write: (line) => lines.push(line) },
    });
    const code = (query: () => Promise<unknown>) =>
      askDatabase({ config: configOf(postgres), log, database: { pool: { query } } })(
        () => new Promise<never>(() => undefined),
        {
          effect: 'changes',
          withinMs: 20,
        },
      ).catch((error: { code: string }) => error.code);
    assert.is(await code(() => Promise.resolve()), 'took_too_long');
    assert.equal(lines, []);
    assert.is(await code(() => Promise.reject(new Error('away'))), 'database_away');
    assert.is(lines.length, 1);
  },
);

outage('a shard that is away is named, unless the control plane is away too', async () => {
  const lines: { shard?: string; msg: string }[] = [];
  const log = createLog({
    level: 'info',
    name: 'test',
    destination: { write: (line) => lines.push(JSON.parse(line) as (typeof lines)[number]) },
  });
  const config = configOf(postgres);
  const away = Object.assign(new Error('connect ECONNREFUSED'), {
    code: 'ECONNREFUSED',
    syscall: 'connect',
  });
  const state = { control: true, second: false };
  const poolOf = (name: keyof typeof state) => ({
    query: () =>
      state[name] ? Promise.resolve({ rows: [{ writable: true }] }) : Promise.reject(away),
  });
  const second = {
    name: 'second',
    settings: config.database,
    database: { pool: poolOf('second'), connect: () => Promise.reject(away) },
  } as unknown as Shard;
  const ask = askDatabase({ config, log, database: { pool: poolOf('control') } });
  const failure = () =>
    ask(() => Promise.reject(away), {
      effect: 'creates',
      withinMs: 1_000,
      shards: () => Promise.resolve([second]),
    }).catch((error: { code: string; message: string }) => error);
  const { code, message } = await failure();
  assert.is(code, 'shard_away');
  assert.is(
    message,
    'the database of the shard second is unavailable: nothing was stored or changed',
  );
  assert.is(lines.length, 1);
  assert.is(lines[0]!.shard, 'second');
  state.control = false;
  assert.is(((await failure()) as { code: string }).code, 'database_away');
  state.control = state.second = true;
  assert.is(((await failure()) as { code: string }).code, 'database_away');
});

outage.run();
