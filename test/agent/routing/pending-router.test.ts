import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { silentLog } from '#core/logging/log';
import { LoopShares } from '#core/process/loop-shares';
import { TokenBuckets } from '#core/process/token-buckets';
import { PendingRouter } from '#agent/routing/pending-router';
import { DeliveryPlanner } from '#agent/routing/plan-deliveries';
import { newId } from '#core/events/ids';
import { type StorableEvent, readStalePending } from '#store/events/events';
import { acceptPending } from '../../store/batches.js';
import { changeUntold } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';
import { delivered, states } from '../hold.js';
import { makeEndpoint } from '../records.js';
import type { RunningAgent } from '../running.js';
import { withAgent, type Scene } from '../scene.js';

const pending = suite('agent/routing/pending-router');

const db = await migratedDatabase();
pending.after(() => db.close());

type Put = (count: number, fields?: Partial<StorableEvent>) => Promise<StorableEvent[]>;

function scene(
  test: (scene: Scene & { put: Put }) => Promise<void>,
  settings: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  return withAgent(
    db,
    (given) => {
      const put: Put = (count, fields = {}) =>
        acceptPending(db, count, { projectId: given.running.projectId, ...fields });
      return test({ ...given, put });
    },
    { settings },
  );
}

/** A router of the running agent, or of another agent that shares its memory. */
function router(
  { wiring, database, configCache }: RunningAgent,
  agentId = wiring.lease.agentId,
  claimsFirstAttempts = true,
) {
  const { inFlight, gates, dueTimes } = wiring;
  const planner = new DeliveryPlanner({
    configCache,
    lease: { agentId },
    inFlight,
    gates,
    dueTimes,
    batchSize: 1,
    routingPace: new TokenBuckets(0),
    claimsFirstAttempts,
  });
  return new PendingRouter({
    log: silentLog,
    database,
    configCache,
    inFlight,
    planner,
    loopShares: new LoopShares(0),
  });
}

pending('pending events are read, routed and delivered', () =>
  scene(async ({ running, at, put }) => {
    const events = await put(20, { data: '{ "id":9007199254740993 }', headers: '{"x-shop":"7"}' });
    const read = await router(running).read(events);
    assert.is(read.length, 20);
    await router(running).route(read);
    const requests = await at.received(20);
    assert.is(requests[0]!.body.toString(), '{ "id":9007199254740993 }');
    assert.is(requests[0]!.headers['x-shop'], '7');
    assert.equal(await router(running).read(events), []);
    assert.equal(await db.rows('select distinct status, outcome from events'), [
      { status: 'processed', outcome: 'routed' },
    ]);
  }),
);

pending(
  'two routers with the same events, in whatever order they have them, make each delivery once',
  () =>
    scene(async ({ running, at, endpointId, put }) => {
      for (let round = 0; round < 5; round++) {
        const read = await router(running).read(await put(200));
        const shuffled = [
          read,
          read.toReversed(),
          [...read.slice(100), ...read.slice(0, 100)],
          read.toReversed(),
        ];
        await Promise.all(shuffled.map((events) => router(running).route(events)));
      }
      await delivered(running, endpointId, 1000);
      assert.is(at.requests.length, 1000);
    }),
);

pending(
  'an endpoint that is as new as the event is found: nothing fails because the config cache is out of date',
  () =>
    scene(async ({ running, at, put }) => {
      await db.rows('alter table endpoints disable trigger all');
      const { id } = await makeEndpoint(db, running.projectId, { url: at.url, owner_id: 'new' });
      await db.rows('alter table endpoints enable trigger all');
      await changeUntold(db);
      assert.is(running.configCache.endpoint(running.projectId, id), undefined);
      await router(running).route(
        await router(running).read([
          ...(await put(1, { endpointId: id })),
          ...(await put(1, { ownerId: 'new' })),
        ]),
      );
      await at.received(2);
      assert.equal(await db.rows('select distinct outcome from events'), [{ outcome: 'routed' }]);
    }),
);

pending('what nobody is to get is recorded with its reason', () =>
  scene(async ({ running, put }) => {
    const events = [
      ...(await put(1, { ownerId: 'nobody' })),
      ...(await put(1, { endpointId: 'nobody' })),
    ];
    await router(running).route(await router(running).read(events));
    const rows = await db.rows('select status, outcome from events order by outcome');
    assert.equal(rows, [
      { status: 'failed', outcome: 'unknown_endpoint' },
      { status: 'failed', outcome: 'unknown_owner' },
    ]);
  }),
);

pending('an event of a project that cannot be loaded waits, and is routed when it can be', () =>
  scene(async ({ running, put }) => {
    const projectId = newId();
    await db.rows(
      `with p as (insert into projects (id, organisation_id, name, type, config) select $1, organisation_id, 'p', 'outgoing', 'null' from projects where id = $2 returning id)
       insert into endpoints (project_id, id, name, url, secrets) select id, id, 'e', 'https://example.com', '[]' from p`,
      [projectId, running.projectId],
    );
    await running.configCache.refresh();
    assert.equal(running.configCache.unloaded, [projectId]);
    await router(running).route(
      await router(running).read([...(await put(1, { projectId })), ...(await put(1))]),
    );
    const statuses = () =>
      db.rows('select project_id = $1 as is_unloaded, status, outcome from events order by 1', [
        projectId,
      ]);
    assert.equal(await statuses(), [
      { is_unloaded: false, status: 'processed', outcome: 'routed' },
      { is_unloaded: true, status: 'pending', outcome: null },
    ]);
    assert.equal(
      await readStalePending(running.database.pool, 0, 10, running.configCache.unloaded),
      [],
      'nobody asks for it in vain',
    );
    await db.rows(`update projects set config = '{}' where id = $1`, [projectId]);
    await running.configCache.refresh();
    await router(running).route(
      await readStalePending(running.database.pool, 0, 10, running.configCache.unloaded),
    );
    assert.equal((await statuses())[1], {
      is_unloaded: true,
      status: 'processed',
      outcome: 'no_subscription',
    });
  }),
);

pending('what there is no room for is left to be claimed', () =>
  scene(
    async ({ running, at, endpointId, put }) => {
      at.answer({ hang: true });
      await router(running).route(await router(running).read(await put(10)));
      await at.received(3);
      assert.equal(await states(running, endpointId), { processing: 3, 'scheduled due': 7 });
      at.answer({});
      await at.close();
    },
    { delivery: { allowed_networks: ['127.0.0.0/8'], max_outstanding: 4 } },
  ),
);

pending('an agent for retries leaves the deliveries to others', () =>
  scene(
    async ({ running, endpointId, put }) => {
      await router(running, running.wiring.lease.agentId, false).route(
        await router(running).read(await put(4)),
      );
      assert.equal(await states(running, endpointId), { 'scheduled due': 4 });
    },
    { agent: { mode: 'retry' } },
  ),
);

pending.run();
