import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import type { StorableEvent } from '#store/events/events';
import { BODY_AT_ONCE_MAX } from '#ingest/routing/matcher';
import { encodeSignal } from '#store/events/events';
import { redis } from '../../support/redis.js';
import { until } from '../../support/until.js';
import { acceptPending } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { openRedisKv } from '../../store/redis-kv.js';
import { delivered } from '../hold.js';
import type { RunningAgent } from '../running.js';
import { makeEndpoint, makeProject, makeSubscription } from '../records.js';
import { withAgent, type Scene } from '../scene.js';

const URL_OF_NOBODY = 'https://example.com/';

const queues = suite('agent/routing/pending-queues');

const db = await migratedDatabase();
queues.after(() => db.close());

/** Commits pending events and signals them to the create-event queue. */
type Put = (count: number, fields?: Partial<StorableEvent>) => Promise<StorableEvent[]>;

/** Runs a test with an agent on a real Redis; `running.wiring.start()` starts consuming. */
async function scene(
  test: (scene: Scene & { put: Put }) => Promise<void>,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const own = await redis();
  const kv = await openRedisKv(own.connection, { takeOverMs: 1_000 });
  try {
    await withAgent(
      db,
      (given) => {
        const put: Put = async (count, fields = {}) => {
          const events = await acceptPending(db, count, {
            projectId: given.running.projectId,
            ...fields,
          });
          await kv.queue('create-event').push(events.map(encodeSignal));
          return events;
        };
        return test({ ...given, put });
      },
      { kv, settings },
    );
  } finally {
    await kv.close();
    await own.close();
  }
}

const bothEmpty = async ({ kv }: RunningAgent) =>
  (await kv.queue('create-event').depth()) + (await kv.queue('match-subscriptions').depth()) === 0;

queues('signals lead to deliveries, through one queue or through both, and are done then', () =>
  scene(async ({ running, at, endpointId, put }) => {
    running.wiring.start();
    await put(300);
    await put(300, { endpointId });
    await delivered(running, endpointId, 600);
    await until('both queues to be empty', () => bothEmpty(running));
    assert.is(at.requests.length, 600);
  }),
);

queues('a signal that names nothing is dropped, and its neighbours are routed', () =>
  scene(async ({ running, at, put }) => {
    const queue = running.kv.queue('create-event');
    await queue.push([
      '',
      'nonsense',
      'a b',
      `${newId()} ${newId()}`,
      `${newId()} x'; drop table events; --`,
    ]);
    await put(5);
    await queue.push(['more nonsense']);
    running.wiring.start();
    await at.received(5);
    await until('both queues to be empty', () => bothEmpty(running));
  }),
);

queues('a signal that comes twice makes one delivery', () =>
  scene(async ({ running, at, endpointId, put }) => {
    const events = await put(20);
    for (let n = 0; n < 3; n++)
      await running.kv.queue('create-event').push(events.map(encodeSignal));
    running.wiring.start();
    await until('both queues to be empty', () => bothEmpty(running));
    await delivered(running, endpointId, 20);
    assert.is(at.requests.length, 20);
  }),
);

queues('what an agent pulled that died is taken over', () =>
  scene(async ({ running, at, put }) => {
    await put(10);
    const pulled = await running.kv.queue('create-event').pull(10, AbortSignal.timeout(20_000));
    assert.is(pulled.length, 10);
    running.wiring.start();
    await at.received(10);
    await until('both queues to be empty', () => bothEmpty(running));
  }),
);

queues('while Postgres is away signals wait, and are worked on when it is back', () =>
  scene(async ({ running, postgres, endpointId, put }) => {
    await put(10);
    postgres.cut();
    running.wiring.start();
    await until('a failure', () =>
      running.lines.some(({ sentence }) => sentence.includes('Could not process a queue')),
    );
    assert.not.ok(await bothEmpty(running));
    postgres.restore();
    await delivered(running, endpointId, 10);
    await until('both queues to be empty', () => bothEmpty(running));
  }),
);

queues(
  'limits.routing_work: events of a project whose filters compare more wait their time, and nobody else does',
  () =>
    scene(
      async ({ running, at, endpointId, put }) => {
        const eager = await makeProject(db);
        const { id } = await makeEndpoint(db, eager, { url: at.url });
        const list = Array.from({ length: 150 }, (_, n) => n);
        await makeSubscription(db, eager, {
          endpointId: id,
          filter: { body: { absent: { $nin: list } } },
        });
        await running.configCache.refresh();
        running.wiring.start();
        await put(5, { projectId: eager });
        await until('a delivery of theirs', () => at.requests.length > 0);
        await put(50);
        await delivered(running, endpointId, 50);
        const theirs = await db.rows<{ n: number }>(
          'select count(*)::int as n from event_deliveries where endpoint_id = $1',
          [id],
        );
        assert.ok(theirs[0]!.n < 5, `${theirs[0]!.n} were routed at once`);
        await delivered(running, id, 5);
        await until('both queues to be empty', () => bothEmpty(running));
      },
      { limits: { routing_work: 100 } },
    ),
);

queues('a large body that no filter of its project matches is looked at once', () =>
  scene(
    async ({ running, endpointId, put }) => {
      const eager = await makeProject(db);
      const { id } = await makeEndpoint(db, eager, { url: URL_OF_NOBODY });
      await makeSubscription(db, eager, { endpointId: id, filter: { body: { a: 1 } } });
      await running.configCache.refresh();
      running.wiring.start();
      const [large] = await put(1, {
        projectId: eager,
        data: JSON.stringify({ text: 'x'.repeat(200_000) }),
      });
      await put(5);
      await delivered(running, endpointId, 5);
      const outcomes = () => db.rows('select outcome from events where id = $1', [large!.id]);
      await until(
        'its outcome',
        async () => (await outcomes())[0]?.['outcome'] === 'no_subscription',
        { withinMs: 5_000 },
      );
      await until('both queues to be empty', () => bothEmpty(running));
    },
    { limits: { routing_work: 1_000 } },
  ),
);

queues(
  'events do not wait for the large bodies of others, which are routed one after the other',
  () =>
    scene(async ({ running, at, endpointId, put }) => {
      const eager = await makeProject(db);
      const { id } = await makeEndpoint(db, eager, { url: at.url });
      await makeSubscription(db, eager, { endpointId: id, filter: { body: { a: 1 } } });
      await running.configCache.refresh();
      const { planner } = running.wiring;
      const routeInSteps = planner.routeInSteps.bind(planner);
      let isHeld = true;
      let [begun, most] = [0, 0];
      planner.routeInSteps = function* (project, event) {
        if (event.data.length > BODY_AT_ONCE_MAX) {
          most = Math.max(most, ++begun);
          while (isHeld) yield;
          begun--;
        }
        return yield* routeInSteps(project, event);
      };
      running.wiring.start();
      await put(5, { projectId: eager, data: JSON.stringify({ a: 1, text: 'x'.repeat(100_000) }) });
      await put(50);
      await delivered(running, endpointId, 50);
      assert.is(at.requests.length, 50);
      isHeld = false;
      await delivered(running, id, 5);
      assert.is(most, 1);
      await until('both queues to be empty', () => bothEmpty(running));
    }),
);

queues('limits.routing_work: events with many deliveries wait their time, and all are made', () =>
  scene(
    async ({ running, at, endpointId, put }) => {
      const wide = await makeProject(db);
      for (let n = 0; n < 10; n++) await makeEndpoint(db, wide, { url: at.url });
      await running.configCache.refresh();
      running.wiring.start();
      await put(5, { projectId: wide, messageType: 'broadcast' });
      await until('a delivery of theirs', () => at.requests.length > 0);
      await put(20, { endpointId });
      await delivered(running, endpointId, 20);
      const made = async () => {
        const [row] = await db.rows<{ n: number }>(
          'select count(*)::int as n from event_deliveries where project_id = $1',
          [wide],
        );
        return row!.n;
      };
      assert.ok((await made()) < 50, 'all were routed at once');
      await until('the others', async () => (await made()) === 50);
    },
    { limits: { routing_work: 10_000 } },
  ),
);

queues.run();
