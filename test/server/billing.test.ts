import { createServer, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { silentLog, type Log } from '#core/logging/log';
import { startServer } from '@gateway/server';
import { startBilling } from '#server/billing';
import { insertProject } from '#store/config/projects';
import { bootstrapUser } from '#store/people/users';
import { MemoryKv } from '#store/kv/memory-kv';
import { listUsage } from '#store/counts/usage';
import { migratedDatabase } from '../store/migrated.js';
import { connectionOf } from '../support/database.js';
import { endpoint as receiver, type Endpoint, type ReceivedRequest } from '../support/endpoint.js';
import { httpProxy } from '../support/http-proxy.js';
import { freePort, loopback } from '../support/ports.js';
import { proxy } from '../support/proxy.js';
import { until, within } from '../support/until.js';
import { activated, configOf } from './api.js';

const billing = suite('server/billing');

/** Billing on a test's database, which posts to its receiver. */
interface Scene {
  readonly db: Awaited<ReturnType<typeof migratedDatabase>>;
  readonly at: Endpoint;
  readonly organisations: readonly string[];
  start(settings?: Readonly<Record<string, unknown>>): { close(): Promise<void> };
  /** `start` within a server. */
  serve(
    settings?: Readonly<Record<string, unknown>>,
    log?: Log,
  ): Promise<{ port: number; close(): Promise<void> }>;
  record(organisationId: string, daysAgo: number, events?: number): Promise<void>;
  /** Posted days, with the organisation. */
  posted(): Promise<string[]>;
}

async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const db = await migratedDatabase();
  const at = await receiver();
  const started: { close(): Promise<void> }[] = [];
  /** Closed at the end, unless the test has done so. */
  const keep = (it: { close(): Promise<void> }) => {
    let closed: Promise<void> | undefined;
    const once = { close: () => (closed ??= it.close()) };
    started.push(once);
    return once;
  };
  const configWith = (settings: Readonly<Record<string, unknown>> = {}) =>
    configOf(db, {
      billing: { enabled: true, url: `${at.url}/usage`, api_key: 'key-of-billing' },
      ...settings,
    });
  try {
    const organisations = [newId(), newId()].sort();
    await db.rows(
      `insert into organisations (id, name) select id, 'Shop Ltd' from unnest($1::uuid[]) id`,
      [organisations],
    );
    await within(
      test({
        db,
        at,
        organisations,
        start: (settings) =>
          keep(startBilling({ config: configWith(settings), database: db, log: silentLog })!),
        serve: async (settings, log = silentLog) => {
          const server = await startServer({
            config: configWith(settings),
            plugins: await activated(),
            log,
            kv: new MemoryKv(),
          });
          return { port: server.port, ...keep(server) };
        },
        record: async (organisationId, daysAgo, events = 1) => {
          await db.rows(
            `insert into usage_days (organisation_id, day, events, deliveries, bytes) values ($1, (now() at time zone 'UTC')::date - $2::int, $3, 2, 3)`,
            [organisationId, daysAgo, events],
          );
        },
        posted: async () =>
          (await listUsage(db.pool, { days: 100 }))
            .filter((it) => it.posted_at)
            .map((it) => `${it.organisation_id}:${it.day}`),
      }),
      60_000,
      'the test',
    );
  } finally {
    await Promise.all(started.map((it) => within(it.close(), 20_000, 'billing to close')));
    await at.close();
    await db.close();
  }
}

const keysOf = (requests: readonly ReceivedRequest[]) =>
  requests.map(({ headers }) => headers['idempotency-key']);
const dayOf = (daysAgo: number) =>
  new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10);

billing(
  'the record of each closed day is posted once per organisation, oldest first, and that of today is not',
  () =>
    scene(async ({ at, organisations: [a = '', b = ''], start, record, posted }) => {
      for (const [organisation, days] of [
        [a, [0, 2, 3]],
        [b, [2]],
      ] as const)
        for (const ago of days) await record(organisation, ago, 7);
      const first = start();
      await until('the records', async () => (await posted()).length === 3);
      assert.equal(keysOf(at.requests), [
        `${a}:${dayOf(3)}`,
        `${a}:${dayOf(2)}`,
        `${b}:${dayOf(2)}`,
      ]);
      const [request] = at.requests;
      assert.equal([request?.method, request?.url], ['POST', '/usage']);
      assert.is(request?.headers['authorization'], 'Bearer key-of-billing');
      assert.is(request?.headers['content-type'], 'application/json');
      assert.equal(JSON.parse(request?.body.toString() ?? ''), {
        organisation_id: a,
        day: dayOf(3),
        events: 7,
        deliveries: 2,
        bytes: 3,
      });

      // A restart posts only what has closed since.
      await first.close();
      await record(b, 4);
      start();
      await until('the new record', async () => (await posted()).length === 4);
      assert.equal(keysOf(at.requests).slice(3), [`${b}:${dayOf(4)}`]);
    }),
);

billing(
  'an answer other than 2xx is tried again with the same key and body, after a restart too',
  () =>
    scene(async ({ at, organisations: [a = ''], start, record, posted }) => {
      at.answer({ status: 500 });
      await record(a, 2);
      const first = start();
      await at.received(2);
      await first.close();
      assert.equal(await posted(), []);
      const failed = at.requests.length;
      at.answer([{ status: 500 }, { status: 204 }]);
      start();
      await until('the record', async () => (await posted()).length === 1);
      assert.is(at.requests.length, failed + 2);
      assert.is(new Set(keysOf(at.requests)).size, 1);
      assert.is(new Set(at.requests.map(({ body }) => body.toString())).size, 1);
    }),
);

billing('two servers post a record once', () =>
  scene(async ({ at, organisations: [a = '', b = ''], start, record, posted }) => {
    for (const ago of [2, 3, 4, 5, 6])
      for (const organisation of [a, b]) await record(organisation, ago);
    start();
    start();
    await until('the records', async () => (await posted()).length === 10);
    assert.is(new Set(keysOf(at.requests)).size, 10);
    assert.is(at.requests.length, 10);
  }),
);

billing('a record that is refused for itself holds up no other', () =>
  scene(async ({ at, organisations: [a = '', b = ''], start, record, posted }) => {
    at.answer(({ body }) => ({ status: body.includes(a) ? 422 : 200 }));
    await record(a, 3);
    await record(b, 2);
    start();
    await until('the other record', async () => (await posted()).length === 1);
    assert.equal(await posted(), [`${b}:${dayOf(2)}`]);
    await until('another try', () => at.requests.filter(({ body }) => body.includes(a)).length > 1);
  }),
);

billing('a rejected key holds up all records: the oldest is tried again', () =>
  scene(async ({ at, organisations: [a = '', b = ''], start, record, posted }) => {
    at.answer({ status: 401 });
    await record(a, 3);
    await record(b, 2);
    start();
    await until('another try', () => at.requests.length > 1);
    assert.equal([...new Set(keysOf(at.requests))], [`${a}:${dayOf(3)}`]);
    assert.equal(await posted(), []);
  }),
);

billing('a receiver that is away is one warning and a degraded component; requests go on', () =>
  scene(async ({ at, organisations: [a = ''], serve, record, posted }) => {
    await record(a, 2);
    at.answer({ status: 503 });
    const warnings: string[] = [];
    const log: Log = { ...silentLog, warn: (_, sentence) => void warnings.push(sentence) };
    const { port } = await serve({}, log);
    const component = async () => {
      const response = await fetch(`http://127.0.0.1:${port}/healthz?ready`);
      const { data } = (await response.json()) as {
        data: { components: { name: string; state: string; reason?: string }[] };
      };
      return { status: response.status, ...data.components.find(({ name }) => name === 'billing') };
    };
    await at.received(2);
    const found = await until('the component', async () => {
      const it = await component();
      return it.state === 'degraded' && it;
    });
    assert.equal(
      [found.status, found.reason],
      [200, `Usage is waiting to be posted to ${at.url}/usage: it answered 503.`],
    );
    assert.equal(warnings, ['Could not post usage to billing.url; will retry: it answered 503.']);
    at.answer({ status: 200 });
    await until('the record', async () => (await posted()).length === 1);
    await until('the component to be well', async () => (await component()).state === 'ok');
  }),
);

billing(
  'it posts through delivery.proxy, which is asked for a plain URL and not for a tunnel',
  () =>
    scene(async ({ at, organisations: [a = ''], start, record, posted }) => {
      const between = await httpProxy({ login: 'ops:secret of the proxy' });
      try {
        await record(a, 2);
        const server = start({ delivery: { proxy: between.url } });
        await until('the record', async () => (await posted()).length === 1);
        assert.equal(between.asked, [`POST ${at.url}/usage`]);
        await server.close();
      } finally {
        await between.close();
      }
    }),
);

billing('a proxy that is away is what the reason names, and not billing.url', () =>
  scene(async ({ organisations: [a = ''], serve, record }) => {
    await record(a, 2);
    const warnings: string[] = [];
    const log: Log = { ...silentLog, warn: (_, sentence) => void warnings.push(sentence) };
    const port = await freePort();
    await serve({ delivery: { proxy: `http://127.0.0.1:${port}` } }, log);
    const warning = await until('the warning', () => warnings.find((it) => it.includes('usage')));
    assert.match(warning, `The proxy 127.0.0.1:${port} cannot be reached: nothing listens there.`);
  }),
);

billing('a proxy that never opens the tunnel does not hold up the end of the server', () =>
  scene(async ({ organisations: [a = ''], serve, record }) => {
    const sockets: Socket[] = [];
    const silent = createServer((socket) => void sockets.push(socket));
    const port = await loopback(silent);
    try {
      await record(a, 2);
      const server = await serve({
        delivery: { proxy: `http://127.0.0.1:${port}` },
        billing: {
          enabled: true,
          url: 'https://billing.example.com/usage',
          api_key: 'key-of-billing',
        },
      });
      await until('the proxy to be asked', () => sockets.length > 0);
      await within(server.close(), 20_000, 'the server to close');
    } finally {
      for (const socket of sockets) socket.destroy();
      silent.close();
    }
  }),
);

billing('when Postgres is what fails, the reason names Postgres', () =>
  scene(async ({ db, at, organisations: [a = ''], serve, record }) => {
    const between = await proxy({ port: Number(new URL(db.url).port) });
    const warnings: string[] = [];
    const log: Log = { ...silentLog, warn: (_, sentence) => void warnings.push(sentence) };
    try {
      await record(a, 2);
      at.answer(() => {
        between.cut();
        return { status: 200 };
      });
      await serve({ database: { ...connectionOf(db.url), port: between.port } }, log);
      const warning = await until('the warning', () => warnings.find((it) => it.includes('usage')));
      assert.match(warning, `Postgres at 127.0.0.1:${between.port}`);
      between.restore();
    } finally {
      await between.close();
    }
  }),
);

billing(
  'nothing is posted while billing is not enabled, and enabled it needs a URL and a key',
  () =>
    scene(async ({ db, at, organisations: [a = ''], serve, record, posted }) => {
      await record(a, 2);
      const off = await serve({ billing: { enabled: false, url: at.url, api_key: 'k' } });
      await off.close();
      assert.equal([at.requests.length, await posted()], [0, []]);
      for (const [settings, setting] of [
        [{ enabled: true, api_key: 'k' }, 'url'],
        [{ enabled: true, url: at.url }, 'api_key'],
      ] as const) {
        try {
          await startServer({
            config: configOf(db, { billing: settings }),
            plugins: await activated(),
            log: silentLog,
            kv: new MemoryKv(),
          });
          assert.unreachable();
        } catch (error) {
          assert.ok(isGatewayError(error, 'invalid_settings'), String(error));
          assert.match(error.message, `billing.enabled is true without billing.${setting}`);
        }
      }
    }),
);

billing(
  'an event that is created over the API counts once, a duplicate does not; what is counted is kept when the server closes',
  () =>
    scene(async ({ db, serve }) => {
      const owner = await bootstrapUser(db.knex, {
        email: 'owner@example.com',
        firstName: 'o',
        lastName: 'w',
      });
      const project = await insertProject(db.knex, owner.organisation.id, {
        name: 'orders',
        type: 'outgoing',
        config: {},
      });
      const server = await serve({ billing: {} });
      for (const body of [
        '{"event_type":"a","data":{"ä":1},"idempotency_key":"k"}',
        '{"event_type":"a","data":{}}',
      ]) {
        for (const _ of [1, 2]) {
          const response = await fetch(
            `http://127.0.0.1:${server.port}/api/v1/projects/${project.id}/events`,
            {
              method: 'POST',
              headers: {
                authorization: `Bearer ${owner.api_key.key}`,
                'content-type': 'application/json',
              },
              body,
            },
          );
          assert.ok(response.ok, await response.text());
        }
      }
      await server.close();
      const records = await listUsage(db.pool, { days: 2 });
      assert.equal(
        records.map(({ organisation_id, events, bytes, deliveries }) => [
          organisation_id,
          events,
          bytes,
          deliveries,
        ]),
        [[owner.organisation.id, 3, 12, 0]],
      );
    }),
);

billing.run();
