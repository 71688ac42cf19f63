// deadline: 300 s, long
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migrateUp, migrationsDir } from '#store/postgres/migrate';
import { openUrl } from '../store/migrated.js';
import { endpoint, type ReceivedRequest } from '../support/endpoint.js';
import { gateway as start, runGateway } from '../support/gateway.js';
import { kafka } from '../support/kafka.js';
import { freePort } from '../support/ports.js';
import { useKeys } from '../support/key-use.js';
import {
  kafkaSource,
  managementApi,
  production,
  subscribed,
  type Production,
} from '../support/production.js';
import { sqs } from '../support/sqs.js';
import { until } from '../support/until.js';
import { newerBuild } from './proof/broken-builds.js';

const upgrade = suite('reliability/upgrade');

const broker = await kafka();
const queues = await sqs();
upgrade.after(async () => {
  await queues.close();
  await broker.close();
});

/** The origin of a message: a partition of the topic, or the queue. */
type Way = 'partition 0' | 'partition 1' | 'queue';
const WAYS: readonly Way[] = ['partition 0', 'partition 1', 'queue'];

/**
 * A schema change of a future version: columns with and without a default in tables that agents and
 * servers use, a table, an index.
 */
const NEXT = `
  alter table events add column region text;
  alter table event_deliveries add column priority integer not null default 0;
  alter table delivery_attempts add column region text;
  alter table quarantined_messages add column region text;
  alter table agents add column region text;
  alter table endpoints add column labels jsonb not null default '{}';
  alter table sources add column labels jsonb;
  create table regions (id uuid primary key, name text not null);
  create index event_deliveries_priority on event_deliveries (priority) where status in ('scheduled', 'retry');
`;

/** Sends a message every 20 ms to each origin until stopped. */
interface Load {
  /** @returns messages per origin */
  stop(): Promise<number>;
}

async function load(gateway: Production): Promise<Load> {
  const topic = await kafkaSource(gateway, broker, 2);
  const queue = queues.queue({ VisibilityTimeout: '30' });
  await gateway.api('POST', '/sources', {
    name: 'jobs',
    type: 'pub_sub',
    pub_sub: { type: 'sqs', workers: 1, sqs: queues.connection(queue.name) },
  });
  const message = (way: Way, n: number) =>
    JSON.stringify({ event_type: 'order.created', data: { way, n, at: Date.now() } });
  let stopped = false;
  const producing = (async () => {
    for (let n = 0; ; n++) {
      if (stopped) return n;
      await Promise.all([
        broker.produce(
          topic,
          [0, 1].map((partition) => ({
            partition,
            value: message(`partition ${partition}` as Way, n),
          })),
        ),
        queues.send(queue, [message('queue', n)]),
        sleep(20),
      ]);
    }
  })();
  return {
    stop: () => {
      stopped = true;
      return producing;
    },
  };
}

interface Arrival {
  readonly way: Way;
  readonly n: number;
  readonly at: number;
  readonly receivedAt: number;
}

const arrivalsOf = (requests: readonly ReceivedRequest[]): Arrival[] =>
  requests.map(({ body, receivedAt }) => ({
    ...(JSON.parse(body.toString()) as Omit<Arrival, 'receivedAt'>),
    receivedAt,
  }));

/** The longest period without an arrival, and the longest latency, in milliseconds. */
function pauses(arrivals: readonly Arrival[], way: Way): { gap: number; wait: number } {
  const of = arrivals.filter((arrival) => arrival.way === way);
  return {
    gap: Math.max(
      ...of.map(({ receivedAt }, k) => receivedAt - (of[k - 1]?.receivedAt ?? receivedAt)),
    ),
    wait: Math.max(...of.map(({ receivedAt, at }) => receivedAt - at)),
  };
}

/**
 * Waits until everything has arrived, and checks that each message arrived once and no agent was
 * considered dead.
 */
async function eachOnce(
  gateway: Production,
  requests: readonly ReceivedRequest[],
  count: number,
): Promise<void> {
  const total = count * WAYS.length;
  await until('every delivery to be recorded', async () => {
    const [row] = await gateway.database.rows<{ n: number }>(
      `select count(*)::int as n from event_deliveries where status = 'success'`,
    );
    return row?.n === total;
  });
  const keys = new Set(arrivalsOf(requests).map(({ way, n }) => `${way} ${n}`));
  assert.is(keys.size, total, 'nothing is lost');
  assert.is(requests.length, total, 'nothing arrives twice');
  const [row] = await gateway.database.rows(
    `select (select count(*)::int from events) as events, (select count(*)::int from delivery_attempts) as attempts, (select sum(recovered)::int from event_deliveries) as recovered`,
  );
  assert.equal(
    row,
    { events: total, attempts: total, recovered: 0 },
    'no second event, no second attempt',
  );
}

upgrade(
  'a rolling restart under load loses nothing, repeats nothing, and pauses nobody for over a second',
  async () => {
    const receiver = await endpoint();
    const gateway = await production({ agents: 2 });
    try {
      await subscribed(gateway, receiver.url);
      const running = await load(gateway);
      await until('all to be read', () =>
        WAYS.every((way) => arrivalsOf(receiver.requests).some((arrival) => arrival.way === way)),
      );
      await sleep(500);
      const from = receiver.requests.length;
      for (let restarts = 0; restarts < 2; restarts++) {
        const [old] = gateway.agents.splice(0, 1);
        assert.is((await old!.process.terminate()).code, 0);
        await gateway.startAgent();
      }
      // Adds a second server, then stops the first.
      const port = await freePort();
      const server = start(['server', '--port', String(port)], { folder: gateway.server.folder });
      await server.healthy(port);
      assert.is((await gateway.server.terminate()).code, 0);
      const count = await running.stop();
      await eachOnce(gateway, receiver.requests, count);
      assert.is((await server.terminate()).code, 0);
      const arrivals = arrivalsOf(receiver.requests.slice(from));
      for (const way of WAYS) {
        const { gap, wait } = pauses(arrivals, way);
        console.log(
          `    ${way}: nothing arrived for ${gap} ms at most, a message took ${wait} ms at most`,
        );
        assert.ok(gap < 5_000 && wait < 5_000, 'a second is promised');
      }
    } finally {
      await gateway.close();
      await receiver.close();
    }
  },
);

upgrade(
  'a migration runs while agents of the schema before deliver, and nothing of theirs fails',
  async () => {
    const receiver = await endpoint();
    const gateway = await production({ agents: 1 });
    const next = fs.mkdtempSync(path.join(os.tmpdir(), 'gateway-next-'));
    const database = openUrl(gateway.database.url);
    try {
      await subscribed(gateway, receiver.url);
      const running = await load(gateway);
      await until('all to be read', () =>
        WAYS.every((way) => arrivalsOf(receiver.requests).some((arrival) => arrival.way === way)),
      );
      fs.cpSync(migrationsDir(), next, { recursive: true });
      fs.writeFileSync(path.join(next, '9999_next.up.sql'), NEXT);
      fs.writeFileSync(path.join(next, '9999_next.down.sql'), '');
      const from = receiver.requests.length;
      assert.equal(await migrateUp(database, { dir: next }), ['9999_next']);
      const migratedAt = receiver.requests.length;
      await receiver.received(migratedAt + 100);

      const ready = await fetch(`http://127.0.0.1:${gateway.serverPort}/healthz?ready`);
      const { data } = (await ready.json()) as {
        data: { components: { name: string; state: string; reason?: string }[] };
      };
      assert.is(ready.status, 200, 'the server is ready as before');
      assert.match(
        data.components.find(({ name }) => name === 'migrations')?.reason ?? '',
        /9999_next/,
        'and says what is up',
      );
      const late = await gateway.startAgent();
      await late.process.line(/"migrations":\["9999_next"\].*The database is newer/);

      await eachOnce(gateway, receiver.requests, await running.stop());
      const troubles = [...gateway.agents.map(({ process }) => process), gateway.server]
        .flatMap(({ stdout, stderr }) => `${stdout}\n${stderr}`.split('\n'))
        .filter(
          (line) =>
            /"level":"(warn|error)"/.test(line) && !/rebalanc|The database is newer/.test(line),
        );
      assert.equal(troubles, []);
      for (const way of WAYS) {
        const { gap, wait } = pauses(arrivalsOf(receiver.requests.slice(from)), way);
        console.log(
          `    ${way}: nothing arrived for ${gap} ms at most, a message took ${wait} ms at most`,
        );
        assert.ok(gap < 5_000 && wait < 5_000);
      }
    } finally {
      await database.close();
      await gateway.close();
      await receiver.close();
      fs.rmSync(next, { recursive: true });
    }
  },
);

upgrade(
  'servers of two versions side by side refuse no valid key, and what only the new one can read costs no attempt, there and back',
  async () => {
    const newer = newerBuild();
    const receiver = await endpoint();
    const gateway = await production({ agents: 1 });
    const { folder } = gateway.server;
    const port = await freePort();
    const startServer = async () => {
      const server = start(['server', '--port', String(port)], { folder, bin: newer.bin });
      await server.healthy(port);
      return server;
    };
    const startAgent = async () => {
      const at = await freePort();
      const process = start(['agent', '--port', String(at)], { folder, bin: newer.bin });
      await process.healthy(at);
      return process;
    };
    const running: { terminate(): Promise<unknown> }[] = [];
    const stop = async (process: { terminate(): Promise<{ code: number | null }> }) =>
      assert.is((await process.terminate()).code, 0);
    const count = async (condition: string) =>
      (
        await gateway.database.rows<{ n: number }>(
          `select count(*)::int as n from event_deliveries where ${condition}`,
        )
      )[0]!.n;
    try {
      const { uid: readable } = await subscribed(gateway, receiver.url);
      const owned = await gateway.api<{ key: string }>('POST', '/api-keys', { name: 'shop' });
      const link = await gateway.api<{ token: string }>('POST', '/portal-links', {
        name: 'Acme',
        owner_id: 'acme',
        auth_type: 'static_token',
      });
      const path = `/projects/${gateway.projectId}`;
      const post = (what: string, key: string) =>
        ({
          what,
          key,
          method: 'POST',
          path: `${path}/events`,
          body: () => ({ event_type: 'order.created', data: {} }),
        }) as const;
      const requests = [
        post('a personal key', gateway.apiKey),
        post('a key of the project', owned.key),
        { what: 'a portal link', key: link.token, method: 'GET', path: `${path}/portal` },
      ];
      const keys = useKeys(requests, [gateway.serverPort, port], 200);
      const used = (at: number) => keys.accepted.get(at) ?? 0;
      running.push({ terminate: () => keys.stop() });

      // Upgrade: agents, then servers.
      const agent = await startAgent();
      running.push(agent);
      await stop(gateway.agents.splice(0, 1)[0]!.process);
      const server = await startServer();
      running.push(server);
      const [before, beforeThere] = [used(gateway.serverPort), used(port)];
      await until(
        'both servers to be used',
        () => used(gateway.serverPort) > before + 15 && used(port) > beforeThere + 15,
      );

      // A key revoked at one server is refused by the other.
      const ports = [gateway.serverPort, port];
      for (const [here, there] of [ports, ports.toReversed()] as [number, number][]) {
        const { uid, key } = await gateway.api<{ uid: string; key: string }>('POST', '/api-keys', {
          name: 'leaked',
        });
        const statusAt = async (at: number) =>
          (
            await fetch(`http://127.0.0.1:${at}/api/v1${path}/endpoints`, {
              headers: { authorization: `Bearer ${key}` },
            })
          ).status;
        assert.equal([await statusAt(there), await statusAt(here)], [200, 200]);
        await managementApi(here, gateway.apiKey)('DELETE', `${path}/api-keys/${uid}`);
        const revokedAtMs = performance.now();
        await until(
          'the other server to forget the key',
          async () => (await statusAt(there)) === 401,
          { withinMs: 10_000 },
        );
        console.log(
          `    the other server took a revoked key for ${Math.round(performance.now() - revokedAtMs)} ms`,
        );
      }

      // Saved by the new version, in a format that the old one cannot read.
      const made = await managementApi(port, gateway.apiKey)<{ uid: string }>(
        'POST',
        `${path}/endpoints`,
        {
          name: 'new',
          url: receiver.url,
        },
      );
      const subscription = {
        name: 'new',
        endpoint_id: made.uid,
        filter_config: { event_types: ['*'] },
      };
      await managementApi(port, gateway.apiKey)('POST', `${path}/subscriptions`, subscription);
      await until('the new agent to send to it', () =>
        count(`endpoint_id = '${made.uid}' and status = 'success'`),
      );

      // Downgrade: servers, then agents.
      await stop(server);
      const { port: oldPort } = await gateway.startAgent();
      await stop(agent);
      const sent = await count(`endpoint_id = '${readable}' and status = 'success'`);
      await until(
        'the old agent to send',
        async () => (await count(`endpoint_id = '${readable}' and status = 'success'`)) > sent + 20,
      );
      const left = await count(`endpoint_id = '${made.uid}' and status = 'scheduled'`);
      assert.ok(left >= 10, `${left} deliveries are left to the new version`);
      const health = await (await fetch(`http://127.0.0.1:${oldPort}/healthz?ready`)).text();
      assert.match(
        health,
        new RegExp(`This agent cannot read endpoint ${made.uid} \\(a secret is sealed in a way`),
      );
      await keys.stop();

      running.push(await startAgent());
      await until(
        'everything to be delivered',
        async () => (await count(`status <> 'success'`)) === 0,
      );
      assert.equal(keys.refusals, []);
      assert.equal(await gateway.database.rows('select distinct attempts from event_deliveries'), [
        { attempts: 1 },
      ]);
      assert.equal(
        await gateway.database.rows(`select distinct error_class from delivery_attempts`),
        [{ error_class: null }],
      );
    } finally {
      for (const process of running.toReversed()) await process.terminate().catch(() => undefined);
      await gateway.close();
      await receiver.close();
      newer.close();
    }
  },
);

upgrade(
  'migrate down and then up keeps events, and down stops before it would drop them',
  async () => {
    const receiver = await endpoint({
      answer: (request) => ({ status: JSON.parse(request.body.toString()).n === 7 ? 500 : 200 }),
    });
    const gateway = await production({ agents: 1 });
    const run = { folder: gateway.server.folder };
    try {
      await subscribed(gateway, receiver.url);
      const topic = await kafkaSource(gateway, broker, 2);
      const produce = (from: number, count: number) =>
        broker.produce(
          topic,
          Array.from({ length: count }, (_, k) =>
            JSON.stringify({ event_type: 'order.created', data: { n: from + k } }),
          ),
        );
      await produce(0, 20);
      const states = async () =>
        (
          await gateway.database.rows<{ text: string }>(
            `select concat_ws(' ', id, status, attempts) as text from event_deliveries order by id`,
          )
        ).map(({ text }) => text);
      await until(
        '19 to be delivered and one to fail',
        async () => (await states()).filter((text) => /success|retry/.test(text)).length === 20,
      );
      const [agent] = gateway.agents.splice(0);
      await agent!.process.terminate();
      await gateway.server.terminate();
      const kept = async () => ({
        // The digest is a column of a rolled-back migration.
        events: (await gateway.database.rows('select * from events order by id')).map(
          ({ digest: _digest, ...event }) => event,
        ),
        attempts: await gateway.database.rows('select * from delivery_attempts order by id'),
        deliveries: await states(),
      });
      const before = await kept();

      const applied = await gateway.database.rows<{ name: string }>(
        'select name from gateway_migrations order by name desc',
      );
      const names = applied.map(({ name }) => name);
      const down = names.indexOf('0003_usage_and_notifications');
      const refused = await runGateway(['migrate', 'down', '--max', '1000'], run);
      assert.is(refused.code, 1);
      assert.match(
        refused.stderr,
        /rolling back .*0002_events.* would drop tables that hold data: .*events, .*; nothing was rolled back/s,
      );
      assert.match(refused.stderr, /--drop-data/);
      assert.equal(await kept(), before);

      const few = ['migrate', 'down', '--max', String(down)];
      assert.match(
        (await runGateway(few, run)).stderr,
        /would drop (a table that holds|tables that hold) data: \w+/,
      );
      const undone = await runGateway([...few, '--drop-data'], run);
      assert.equal(
        [undone.code, undone.stdout.trim().split('\n')],
        [0, names.slice(0, down).map((name) => `rolled back ${name}`)],
      );
      const up = await runGateway(['migrate', 'up'], run);
      assert.is(up.code, 0, up.stderr);
      assert.equal(await kept(), before);

      await gateway.startAgent();
      receiver.answer({});
      await gateway.database.rows(
        `update event_deliveries set next_attempt_at = now() where status = 'retry'`,
      );
      await produce(20, 20);
      await until(
        'all to be delivered',
        async () => (await states()).filter((text) => text.includes('success')).length === 40,
      );
      const others = receiver.requests
        .map(({ body }) => (JSON.parse(body.toString()) as { n: number }).n)
        .filter((n) => n !== 7);
      assert.equal(
        [others.length, new Set(others).size],
        [39, 39],
        'each once but the one that failed',
      );

      const lost = await runGateway(['migrate', 'down', '--max', '1000', '--drop-data'], run);
      assert.is(lost.code, 0, lost.stderr);
      assert.equal(await gateway.database.rows(`select to_regclass('events')::text as events`), [
        { events: null },
      ]);
    } finally {
      for (const { process } of gateway.agents.splice(0)) await process.kill();
      await gateway.close();
      await receiver.close();
    }
  },
);

upgrade.run();
