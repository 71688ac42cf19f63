import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '@gateway/core';
import { acceptEvents, signalText, type NewEvent } from '@gateway/store';
import { RedisKv } from '@gateway/store/kv-redis';
import { endpoint as receiver, type Endpoint } from '../support/endpoint.js';
import { proxy, type Proxy } from '../support/proxy.js';
import { redis } from '../support/redis.js';
import { until, within } from '../support/until.js';
import { batch, empty, newEvents } from '../store/batches.js';
import { migratedDatabase } from '../store/migrated.js';
import { states } from './hold.js';
import { makeEndpoint, makeSubscription } from './records.js';
import { runWay, type RunningWay } from './running.js';

const queues = suite('agent/queues');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
queues.before(async () => {
  db = await migratedDatabase();
});
queues.after(() => db.close());

interface Scene {
  readonly running: RunningWay;
  readonly postgres: Proxy;
  readonly at: Endpoint;
  readonly endpointId: string;
  /** Commits pending events and signals them to the create-event queue. */
  put(count: number, fields?: Partial<NewEvent>): Promise<NewEvent[]>;
}

/** Runs a test with an agent whose KV is a real Redis; `running.way.start()` begins to consume. */
async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const own = await redis();
  const kv = new RedisKv({ type: 'redis', scheme: 'redis', ...own.connection }, () => undefined, { takeOverMs: 1_000 });
  await until('Redis to answer', () => kv.ping().then(() => true));
  const postgres = await proxy({ port: Number(new URL(db.url).port) });
  const running = await runWay({ db, kv, port: postgres.port });
  const at = await receiver();
  try {
    const { id: endpointId } = await makeEndpoint(db, running.projectId, { url: at.url });
    await makeSubscription(db, running.projectId, { endpointId });
    await running.store.refresh();
    const put: Scene['put'] = async (count, fields = {}) => {
      const events = newEvents(count, { projectId: running.projectId, status: 'pending', outcome: null, ...fields });
      await acceptEvents(db.pool, batch(events));
      await kv.queue('create-event').push(events.map(signalText));
      return events;
    };
    await within(test({ running, postgres, at, endpointId, put }), 60_000, 'the test');
  } finally {
    postgres.restore();
    await at.close();
    await running.close();
    await postgres.close();
    await kv.close();
    await own.close();
    await empty(db);
  }
}

const bothEmpty = async ({ kv }: RunningWay) =>
  (await kv.queue('create-event').depth()) + (await kv.queue('match-subscriptions').depth()) === 0;

queues('signals lead to deliveries, through one queue or through both, and are done then', () =>
  scene(async ({ running, at, endpointId, put }) => {
    running.way.start();
    await put(300);
    await put(300, { endpointId });
    await until('all deliveries', async () => (await states(running, endpointId))['success'] === 600);
    await until('both queues to be empty', () => bothEmpty(running));
    assert.is(at.requests.length, 600);
  }),
);

queues('a signal that names nothing is dropped, and its neighbours are routed', () =>
  scene(async ({ running, at, put }) => {
    const queue = running.kv.queue('create-event');
    await queue.push(['', 'nonsense', 'a b', `${newId()} ${newId()}`, `${newId()} x'; drop table events; --`]);
    await put(5);
    await queue.push(['more nonsense']);
    running.way.start();
    await at.received(5);
    await until('both queues to be empty', () => bothEmpty(running));
  }),
);

queues('a signal that comes twice makes one delivery', () =>
  scene(async ({ running, at, endpointId, put }) => {
    const events = await put(20);
    for (let n = 0; n < 3; n++) await running.kv.queue('create-event').push(events.map(signalText));
    running.way.start();
    await until('both queues to be empty', () => bothEmpty(running));
    await until('all deliveries', async () => (await states(running, endpointId))['success'] === 20);
    assert.is(at.requests.length, 20);
  }),
);

queues('what an agent pulled that died is taken over', () =>
  scene(async ({ running, at, put }) => {
    await put(10);
    const pulled = await running.kv.queue('create-event').pull(10, AbortSignal.timeout(20_000));
    assert.is(pulled.length, 10);
    running.way.start();
    await at.received(10);
    await until('both queues to be empty', () => bothEmpty(running));
  }),
);

queues('while Postgres is away signals wait, and are worked on when it is back', () =>
  scene(async ({ running, postgres, endpointId, put }) => {
    await put(10);
    postgres.cut();
    running.way.start();
    await until('a failure', () => running.lines.some(({ sentence }) => sentence.includes('A queue cannot be worked on')));
    assert.not.ok(await bothEmpty(running));
    postgres.restore();
    await until('all deliveries', async () => (await states(running, endpointId))['success'] === 10);
    await until('both queues to be empty', () => bothEmpty(running));
  }),
);

queues.run();
