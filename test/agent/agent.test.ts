import net from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { isGatewayError } from '#core/errors/errors';
import { startAgent } from '@gateway/agent';
import { PluginError } from '@gateway/plugin';
import { updateSource } from '#store/config/sources';
import type { Kv } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { endpoint as receiver, type Endpoint } from '../support/endpoint.js';
import { proxy } from '../support/proxy.js';
import { redis } from '../support/redis.js';
import { together } from '../support/together.js';
import { until, within } from '../support/until.js';
import { database } from '../support/database.js';
import { migratedDatabase } from '../store/migrated.js';
import { delivered, states } from './hold.js';
import { Broker } from './memory-source.js';
import { makeEndpoint, makeProject, makeSecret, makeSource, makeSubscription } from './records.js';
import { agentConfig, keptLog, pluginsOf, type Migrated } from './running.js';

const agent = suite('agent/agent');
/** Tests that wait for leases and drains. */
const beside = together(agent);

interface Started {
  readonly port: number;
  readonly lines: ReturnType<typeof keptLog>['lines'];
  close(): Promise<void>;
}

interface Scene {
  readonly db: Migrated;
  readonly broker: Broker;
  readonly projectId: string;
  readonly at: Endpoint;
  readonly endpointId: string;
  start(
    settings?: Readonly<Record<string, unknown>>,
    options?: { kv?: Kv; port?: number },
  ): Promise<Started>;
}

async function scene(
  test: (scene: Scene) => Promise<void>,
  endpoint: Partial<Parameters<typeof makeEndpoint>[2]> = {},
): Promise<void> {
  const db = await migratedDatabase();
  const at = await receiver();
  const broker = new Broker();
  const started: Started[] = [];
  const start: Scene['start'] = async (settings = {}, { kv, port } = {}) => {
    const { log, lines } = keptLog();
    const config = agentConfig(db.url, settings, port);
    const running = await within(
      startAgent({ config, plugins: pluginsOf(broker.plugins()), log, ...(kv ? { kv } : {}) }),
      30_000,
      'the agent to start',
    );
    const it = { ...running, lines };
    started.push(it);
    return it;
  };
  try {
    const projectId = await makeProject(db);
    const { id: endpointId } = await makeEndpoint(db, projectId, { url: at.url, ...endpoint });
    await makeSubscription(db, projectId, { endpointId });
    await within(test({ db, broker, projectId, at, endpointId, start }), 75_000, 'the test');
  } finally {
    await Promise.all(started.map((it) => within(it.close(), 40_000, 'an agent to close')));
    await at.close();
    // Fails if an agent leaks a connection.
    await db.close();
  }
}

interface HealthBody {
  readonly data: {
    readonly ready: boolean;
    readonly state: string;
    readonly components: {
      readonly name: string;
      readonly state: string;
      readonly reason?: string;
    }[];
  };
}

async function health(port: number, query = ''): Promise<{ status: number; body: HealthBody }> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz${query}`, {
    signal: AbortSignal.timeout(10_000),
  });
  return { status: response.status, body: (await response.json()) as HealthBody };
}

const message = (n: number) => ({ event_type: 'order.paid', data: { n } });

agent(
  'a message becomes a delivery with its attempt, and the HTTP server tells how the agent stands',
  () =>
    scene(async ({ db, broker, projectId, at, endpointId, start }) => {
      await makeSource(db, projectId, { queue: 'orders' });
      const { port } = await start();
      assert.is(
        await within(
          broker
            .queue('orders')
            .send('{"event_type":"order.paid","data":{ "id":9007199254740993 }}'),
          20_000,
          'the outcome',
        ),
        'accepted',
      );
      const [request] = await at.received(1);
      assert.is(request!.body.toString(), '{ "id":9007199254740993 }');
      await delivered({ db }, endpointId, 1, 'the record');
      const [attempt] = await db.rows('select number, http_status, url from delivery_attempts');
      assert.equal(attempt, { number: 1, http_status: 200, url: at.url });

      await until(
        'the agent to be ready',
        async () => (await health(port, '?ready')).status === 200,
      );
      const { status, body } = await health(port);
      assert.equal([status, body.data.ready, body.data.state], [200, true, 'ok']);
      assert.equal(body.data.components.map(({ name }) => name).sort(), [
        'clock',
        'kv',
        'postgres',
        'source orders',
      ]);
      const headers = { 'x-forwarded-for': '198.51.100.7' };
      const stranger = await fetch(`http://127.0.0.1:${port}/healthz?ready`, { headers });
      assert.is(stranger.headers.get('x-content-type-options'), 'nosniff');
      const kinds = ['clock', 'kv', 'postgres', 'source'].map((name) => ({ name, state: 'ok' }));
      assert.equal(await stranger.json(), {
        status: true,
        message: 'ready',
        data: { ready: true, draining: false, state: 'ok', components: kinds },
      });
      const metrics = await fetch(`http://127.0.0.1:${port}/metrics`);
      assert.match(await metrics.text(), /^# no metrics/);
      for (const path of ['/nothing', '/', '//', '//metrics'])
        assert.is((await fetch(`http://127.0.0.1:${port}${path}`)).status, 404, path);
      const posted = await fetch(`http://127.0.0.1:${port}/healthz`, { method: 'POST' });
      assert.equal([posted.status, posted.headers.get('allow')], [405, 'GET']);
    }),
);

agent(
  'an agent whose key is not that of its database any more stops, says so, and gives back what it held without an attempt',
  () =>
    scene(
      async ({ db, broker, projectId, at, endpointId, start }) => {
        await makeSource(db, projectId, { queue: 'q' });
        const { port, lines } = await start();
        at.answer({ delayMs: 500 });
        for (let n = 0; n < 20; n++)
          assert.is(
            await within(broker.queue('q').send(message(n)), 20_000, 'the outcome'),
            'accepted',
          );
        await at.received(1);
        const foreign = sealer(Buffer.alloc(32, 1).toString('base64')).seal(makeSecret(), [
          'endpoints',
          endpointId,
          'secrets',
        ]);
        await db.rows(
          `update endpoints set secrets = jsonb_set(secrets, '{0,value}', to_jsonb($1::text))`,
          [foreign],
        );
        await until(
          'the agent to have left',
          async () => (await db.rows('select 1 from agents')).length === 0,
        );

        const failures = await db.rows(
          'select error from delivery_attempts where error_class is not null',
        );
        assert.equal(failures, []);
        const left = await states({ db }, endpointId);
        assert.equal(Object.keys(left).sort(), ['scheduled due', 'success']);
        assert.is(left['scheduled due']! + left['success']!, 20);
        assert.is(broker.queue('q').readers, 0);
        const { status, body } = await health(port, '?ready');
        assert.is(status, 503);
        const { state, reason } = body.data.components.find(
          ({ name }) => name === 'encryption key',
        )!;
        assert.is(state, 'down');
        assert.match(
          reason!,
          /^The encryption key of this agent opens no secret of the database.* restart the agent\.$/,
        );
        assert.equal(
          lines.filter(({ level }) => level === 'error').map(({ sentence }) => sentence),
          [reason],
        );
      },
      { concurrency: 1 },
    ),
);

agent(
  'a function that is changed in the database is used at once, long before the next refresh',
  () =>
    scene(async ({ db, broker, projectId, at, start }) => {
      const { id } = await makeSource(db, projectId, {
        queue: 'q',
        bodyFunction: `function transform() { return { event_type: 'a', data: { version: 1 } } }`,
      });
      await start({ agent: { interval_seconds: 3600 } });
      const queue = broker.queue('q');
      await within(queue.send('x'), 20_000, 'the first outcome');
      await updateSource(db.knex, projectId, id, {
        body_function: `function transform() { return { event_type: 'a', data: { version: 2 } } }`,
      });
      // Sends messages one by one until the new function runs.
      await until('the new function', async () => {
        await queue.send('x');
        await until('the request', () => at.requests.length > 0);
        return at.requests.some(({ body }) => body.toString() === '{"version":2}');
      });
      await updateSource(db.knex, projectId, id, { is_disabled: true });
      await until('nobody to read', () => queue.readers === 0);
      assert.is(queue.connections, 1);
    }),
);

agent('a source that cannot be read makes the agent say so, and the others go on', () =>
  scene(async ({ db, broker, projectId, at, start }) => {
    broker.queue('bad').failure = new PluginError('The broker refused the password.', {
      fix: 'Check the field password.',
    });
    await makeSource(db, projectId, { queue: 'bad' });
    await makeSource(db, projectId, { queue: 'good' });
    const { port } = await start();
    assert.is(
      await within(broker.queue('good').send(message(1)), 20_000, 'the outcome'),
      'accepted',
    );
    await at.received(1);
    const found = await until('the failure to be told', async () =>
      (await health(port)).body.data.components.find(
        ({ name, state }) => name === 'source bad' && state === 'down',
      ),
    );
    assert.is(
      found.reason,
      'The broker refused the password. Check the field password. Trying again.',
    );
    broker.queue('bad').failure = undefined;
    await until('the source to be well', async () =>
      (await health(port)).body.data.components.every(({ state }) => state === 'ok'),
    );
  }),
);

agent('two agents that share Redis ingest at one rate together', async () => {
  const own = await redis();
  try {
    await scene(async ({ db, broker, projectId, start }) => {
      await makeSource(db, projectId, { queue: 'q' });
      const settings = { instance_ingest_rate: 100, kv: { type: 'redis', ...own.connection } };
      await start(settings);
      await start(settings);
      const queue = broker.queue('q');
      await until('two readers', () => queue.readers === 2);
      const startedAtMs = performance.now();
      const outcomes = await within(
        Promise.all(Array.from({ length: 500 }, (_, n) => queue.send(message(n)))),
        60_000,
        'all messages',
      );
      const seconds = (performance.now() - startedAtMs) / 1000;
      assert.ok(outcomes.every((outcome) => outcome === 'accepted'));
      // The bucket starts with one second's worth; the other four hundred messages take four
      // seconds.
      assert.ok(seconds >= 3.5, `500 messages in ${seconds} s`);
    });
  } finally {
    await own.close();
  }
});

beside('one agent for first attempts and one for retries share the work', () =>
  scene(
    async ({ db, broker, projectId, at, endpointId, start }) => {
      await makeSource(db, projectId, { queue: 'q' });
      at.answer([{ status: 500 }, { status: 500 }, {}]);
      const kv = new MemoryKv();
      await start({ agent: { mode: 'events' } }, { kv });
      await Promise.all([broker.queue('q').send(message(1)), broker.queue('q').send(message(2))]);
      await until(
        'both to be due again',
        async () => (await states({ db }, endpointId))['retry due'] === 2,
      );
      assert.is(at.requests.length, 2);
      const retries = await start({ agent: { mode: 'retry' } }, { kv });
      await delivered({ db }, endpointId, 2, 'both to be delivered');
      assert.is(at.requests.length, 4);
      assert.is(broker.queue('q').readers, 1);
      assert.ok(retries.port > 0);
    },
    { strategy: { type: 'linear', duration: 1, retry_count: 5 } },
  ),
);

beside('closing settles what is in flight, gives back what waits and leaves no row behind', () =>
  scene(
    async ({ db, broker, projectId, at, endpointId, start }) => {
      await makeSource(db, projectId, { queue: 'q' });
      at.answer({ delayMs: 300 });
      const { close } = await start();
      const queue = broker.queue('q');
      const outcomes: string[] = [];
      for (let n = 0; n < 400; n++)
        void queue.send(message(n)).then((outcome) => outcomes.push(outcome));
      await at.received(1);
      await within(close(), 30_000, 'the agent to close');
      const accepted = outcomes.length;
      assert.equal([...new Set(outcomes)], ['accepted']);
      assert.is(queue.waiting, 400 - accepted, 'what was not accepted is back in the queue');
      const found = await states({ db }, endpointId);
      assert.is(found['processing'], undefined);
      assert.is(
        Object.values(found).reduce((sum, n) => sum + n, 0),
        accepted,
      );
      assert.is(found['success'], at.requests.length);
      assert.equal(await db.rows('select from agents'), []);

      at.answer({});
      await start();
      await until(
        'the rest',
        async () =>
          outcomes.length === 400 && (await states({ db }, endpointId))['success'] === 400,
      );
      assert.is(new Set(at.requests.map(({ headers }) => headers['webhook-id'])).size, 400);
    },
    { concurrency: 5 },
  ),
);

beside('closing while Postgres is away ends in time, and nothing is acknowledged', () =>
  scene(async ({ db, broker, projectId, at, start }) => {
    await makeSource(db, projectId, { queue: 'q' });
    const postgres = await proxy({ port: Number(new URL(db.url).port) });
    try {
      const { close } = await start(
        { agent: { drain_timeout_seconds: 4 } },
        { port: postgres.port },
      );
      const queue = broker.queue('q');
      await until('a reader', () => queue.readers === 1);
      postgres.cut();
      let settled = 0;
      for (let n = 0; n < 20; n++) void queue.send(message(n)).then(() => settled++);
      await until('the messages to be read', () => queue.waiting === 0);
      await within(close(), 20_000, 'the agent to close');
      assert.is(settled, 0);
      await until('the messages to be back', () => queue.waiting === 20);
    } finally {
      await postgres.close();
    }
    await start();
    await at.received(20);
    assert.equal(await db.rows('select count(*)::int as n from events'), [{ n: 20 }]);
  }),
);

beside(
  'what an agent had in hand that is cut off moves on with another one, long before its requests time out',
  () =>
    scene(
      async ({ db, broker, projectId, at, endpointId, start }) => {
        await makeSource(db, projectId, { queue: 'q' });
        const postgres = await proxy({ port: Number(new URL(db.url).port) });
        try {
          at.answer({ hang: true });
          // Its requests hang until the end: it must not wait for them.
          const first = await start(
            { agent: { drain_timeout_seconds: 5 } },
            { port: postgres.port },
          );
          await broker.queue('q').send(message(0));
          for (let n = 1; n < 30; n++) await broker.queue('q').send(message(n));
          await at.received(5);
          postgres.cut();
          at.answer({});
          await start();
          await delivered({ db }, endpointId, 30);
          assert.equal(
            await db.rows('select count(*)::int as n from agents where expires_at > now()'),
            [{ n: 1 }],
          );

          // The first agent returns under a new id, and works.
          postgres.restore();
          await until('it to be back', () =>
            first.lines.some(({ sentence }) => sentence.includes('presumed dead')),
          );
          await until(
            'two agents',
            async () => (await db.rows(`select from agents where expires_at > now()`)).length === 2,
          );
        } finally {
          postgres.restore();
          await postgres.close();
        }
      },
      { concurrency: 5, timeout_ms: 60_000 },
    ),
);

agent('events that were created over the API or left by others are routed after a start', () =>
  scene(async ({ db, projectId, at, start }) => {
    const id = '01900000-0000-7000-8000-000000000001';
    await db.rows(
      `insert into events (project_id, id, occurred_at, accepted_at, coordinates, event_type, status, headers, data)
       values ($1, $2, timestamptz 'epoch' + ('x0190000000000000'::bit(64)::bigint >> 16) * interval '1 ms', now() - interval '1 min', 'api', 'order.paid', 'pending', '{}', '{"n":1}')`,
      [projectId, id],
    );
    await start();
    await at.received(1);
  }),
);

async function refusal(starting: Promise<Started>): Promise<string> {
  try {
    await starting;
  } catch (error) {
    if (isGatewayError(error)) return error.code;
    throw error;
  }
  throw new Error('it started');
}

agent('a start that cannot work is refused with its reason, and leaves nothing behind', () =>
  scene(async ({ db, start }) => {
    const { port } = await start();
    const taken = net.createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { log } = keptLog();
    const usual = agentConfig(db.url);
    const attempts: [string, object][] = [
      [
        'port_in_use',
        {
          ...usual,
          server: {
            http: { ...usual.server.http, agent_port: (taken.address() as net.AddressInfo).port },
          },
        },
      ],
      ['encryption_key_missing', { ...usual, encryption_key: undefined }],
      ['encryption_key_invalid', { ...usual, encryption_key: 'short' }],
    ];
    const codes: string[] = [];
    for (const [, config] of attempts) {
      const starting = startAgent({ config: config as never, plugins: pluginsOf(), log }).then(
        (running) => ({ ...running, lines: [] }),
      );
      codes.push(await within(refusal(starting), 30_000, 'the refusal').catch(String));
    }
    await new Promise((resolve) => taken.close(resolve));
    assert.equal(
      codes,
      attempts.map(([code]) => code),
    );
    assert.is((await health(port)).status, 200);
  }),
);

agent('a database without its migrations is refused', async () => {
  const own = await database();
  try {
    const { log } = keptLog();
    const starting = startAgent({ config: agentConfig(own.url), plugins: pluginsOf(), log }).then(
      (running) => ({ ...running, lines: [] }),
    );
    assert.match(await within(refusal(starting), 30_000, 'the refusal'), /migration/);
  } finally {
    await own.close();
  }
});

agent.run();
