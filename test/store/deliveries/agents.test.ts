import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { recoverDeliveries } from '#store/deliveries/claims';
import { acceptEvents, type NewEventDelivery } from '#store/events/events';
import type { Database } from '#store/postgres/database';
import {
  findReaders,
  sendHeartbeat,
  registerAgent,
  deregisterAgent,
} from '#store/deliveries/agents';
import { until, within } from '../../support/until.js';
import {
  batch,
  empty,
  genericPlan,
  newDelivery,
  newEvent,
  newEvents,
  noting,
  onPostgres,
  pendingEvent,
  readWhole,
} from '../batches.js';
import { migratedDatabase } from '../migrated.js';

const agents = suite('store/deliveries/agents');

const db = await migratedDatabase();
agents.after(() => db.close());
agents.before.each(() => empty(db));

const TTL_MS = 60_000;

agents(
  'each agent that enters has an id of its own, also when the names are the same',
  async () => {
    const ids = await Promise.all(
      Array.from({ length: 5 }, () => registerAgent(db.pool, 'host:1', TTL_MS)),
    );
    assert.is(new Set(ids).size, 5);
    assert.ok(ids.every((id) => Number.isInteger(id) && id > 0));
  },
);

agents('a beat tells that all is well when there is nothing to do', async () => {
  const id = await registerAgent(db.pool, 'a', TTL_MS);
  const { nowMs, ...rest } = await sendHeartbeat(db.pool, id, TTL_MS);
  assert.ok(Math.abs(nowMs - Date.now()) < 60_000, `the time of Postgres, not ${nowMs}`);
  assert.equal(rest, {
    alive: true,
    agents: 1,
    readers: [id],
    anyDead: false,
    nextDeadInMs: null,
    oldestPendingMs: null,
    dueInMs: new Map(),
  });
  const { nowMs: _now, ...idle } = await sendHeartbeat(db.pool, id, TTL_MS);
  assert.equal(idle, {
    alive: true,
    agents: 1,
    readers: [id],
    anyDead: false,
    nextDeadInMs: null,
    oldestPendingMs: null,
    dueInMs: new Map(),
  });
});

agents(
  'a beat names the agents that read sources, in the order of their ids; one that does not say is one of them',
  async () => {
    const id = await registerAgent(db.pool, 'a', TTL_MS);
    await registerAgent(db.pool, 'dead', -1);
    await registerAgent(db.pool, 'retry', TTL_MS, { readsSources: false });
    await db.rows(
      `insert into agents (name, expires_at) values ('of the version before', now() + interval '1 minute')`,
    );
    const [{ id: old } = { id: 0 }] = await db.rows<{ id: number }>(
      `select id from agents where name = 'of the version before'`,
    );
    assert.equal((await sendHeartbeat(db.pool, id, TTL_MS)).readers, [id, old]);
    assert.equal((await findReaders(db.pool)).ids, [id, old]);
  },
);

agents('a beat keeps its agent alive', async () => {
  const id = await registerAgent(db.pool, 'a', TTL_MS);
  const expiry = async () =>
    (
      await db.rows<{ expires_at: Date }>('select expires_at from agents where id = $1', [id])
    )[0]!.expires_at.getTime();
  const before = await expiry();
  await until('the time to go on', async () => {
    await sendHeartbeat(db.pool, id, TTL_MS);
    return (await expiry()) > before;
  });
});

agents('an agent that was late and not yet swept lives on with its next beat', async () => {
  const id = await registerAgent(db.pool, 'a', -1);
  assert.is((await sendHeartbeat(db.pool, id, TTL_MS)).alive, true);
  const other = await registerAgent(db.pool, 'b', TTL_MS);
  assert.is((await sendHeartbeat(db.pool, other, TTL_MS)).anyDead, false);
});

agents('an agent that was swept is told so, and counts no more', async () => {
  const id = await registerAgent(db.pool, 'a', TTL_MS);
  const other = await registerAgent(db.pool, 'b', TTL_MS);
  await deregisterAgent(db.pool, id);
  assert.is((await sendHeartbeat(db.pool, id, TTL_MS)).alive, false);
  assert.is((await sendHeartbeat(db.pool, other, TTL_MS)).agents, 1);
  await deregisterAgent(db.pool, id);
});

agents(
  'an agent that leaves with something in hand is left as a dead one, and what it held is recovered',
  async () => {
    const id = await registerAgent(db.pool, 'a', TTL_MS);
    const other = await registerAgent(db.pool, 'b', TTL_MS);
    const event = newEvent();
    await acceptEvents(db.pool, batch([event], { deliveries: [newDelivery(event)], agentId: id }));
    await deregisterAgent(db.pool, id);
    const beat = await sendHeartbeat(db.pool, other, TTL_MS);
    assert.equal([beat.agents, beat.anyDead], [1, true]);
    assert.is(await recoverDeliveries(db.pool, { orphans: false }), 1);
    assert.equal(await db.rows('select id from agents'), [{ id: other }]);
  },
);

agents('an agent that stopped sending heartbeats is seen by the others', async () => {
  const id = await registerAgent(db.pool, 'a', TTL_MS);
  await registerAgent(db.pool, 'dead', -1);
  const beat = await sendHeartbeat(db.pool, id, TTL_MS);
  assert.equal([beat.agents, beat.anyDead, beat.nextDeadInMs], [1, true, null]);
});

agents('a beat tells when the first of the others would be dead', async () => {
  const id = await registerAgent(db.pool, 'a', 1_000);
  await registerAgent(db.pool, 'b', 50_000);
  await registerAgent(db.pool, 'c', 20_000);
  const { nextDeadInMs } = await sendHeartbeat(db.pool, id, TTL_MS);
  assert.ok(
    nextDeadInMs !== null && nextDeadInMs > 10_000 && nextDeadInMs <= 20_000,
    String(nextDeadInMs),
  );
});

agents('a beat tells how long the oldest accepted event has waited for its route', async () => {
  const id = await registerAgent(db.pool, 'a', TTL_MS);
  const [old, fresh] = [pendingEvent(), pendingEvent({ occurredAtMs: 0, coordinates: 'odd/0' })];
  await acceptEvents(db.pool, batch([fresh, old, newEvent()]));
  await db.rows(`update events set accepted_at = now() - interval '90 s' where id = $1`, [old.id]);
  const { oldestPendingMs } = await sendHeartbeat(db.pool, id, TTL_MS);
  assert.ok(
    oldestPendingMs !== null && oldestPendingMs >= 90_000 && oldestPendingMs < 150_000,
    String(oldestPendingMs),
  );
});

agents(
  'a beat tells when the next delivery of each project is due, first attempts and retries alike',
  async () => {
    const id = await registerAgent(db.pool, 'a', TTL_MS);
    const [later, overdue, held, busy] = [newId(), newId(), newId(), newId()];
    for (const [projectId, dueInMs] of [
      [later, 50_000],
      [later, 90_000],
      [overdue, 0],
      [overdue, Infinity],
      [held, Infinity],
    ] as const) {
      const event = newEvent({ projectId });
      await acceptEvents(
        db.pool,
        batch([event], { deliveries: [newDelivery(event, { status: 'scheduled', dueInMs })] }),
      );
    }
    const event = newEvent({ projectId: busy });
    await acceptEvents(db.pool, batch([event], { deliveries: [newDelivery(event)] }));
    await db.rows(
      `update event_deliveries set status = 'retry', attempts = 1, next_attempt_at = now() - interval '30 s' where project_id = $1 and next_attempt_at < 'infinity'`,
      [overdue],
    );

    const { dueInMs } = await sendHeartbeat(db.pool, id, TTL_MS);
    assert.equal([...dueInMs.keys()].sort(), [later, overdue].sort());
    assert.ok(dueInMs.get(later)! > 0 && dueInMs.get(later)! <= 50_000, String(dueInMs.get(later)));
    assert.ok(dueInMs.get(overdue)! <= -30_000, String(dueInMs.get(overdue)));
  },
);

onPostgres(agents)('a beat costs nothing for a project without waiting deliveries', async () => {
  const client = await db.pool.connect();
  const scansSoFar = async () => {
    const { rows } = await client.query<{ n: number }>(
      `select sum(idx_scan)::int as n from pg_stat_xact_user_tables where relname like 'event_deliveries%'`,
    );
    return rows[0]!.n;
  };
  const cost = async () => {
    await client.query('begin');
    const before = await scansSoFar();
    const { dueInMs } = await sendHeartbeat(client as unknown as Database['pool'], 1, TTL_MS);
    const scans = (await scansSoFar()) - before;
    await client.query('commit');
    return { scans, due: dueInMs.size };
  };
  const accept = async (count: number, fields: Partial<NewEventDelivery>) => {
    const events = newEvents(count, () => ({ projectId: newId() }));
    const deliveries = events.map((event) => newDelivery(event, fields));
    await acceptEvents(db.pool, batch(events, { deliveries }));
  };
  try {
    await accept(1, { status: 'scheduled', dueInMs: 0 });
    await cost();
    const one = await cost();
    assert.is(one.due, 1);
    await accept(100, {});
    assert.equal(await cost(), one);
    await accept(100, { status: 'scheduled', dueInMs: 0 });
    const all = await cost();
    assert.is(all.due, 101);
    assert.ok(all.scans > 20 * one.scans, `${one.scans}, then ${all.scans} scans`);
  } finally {
    client.release();
  }
});

agents('agents that beat at once do not wait for each other', async () => {
  const ids = await Promise.all(
    Array.from({ length: 8 }, (_, n) => registerAgent(db.pool, `agent ${n}`, TTL_MS)),
  );
  const beats = await within(
    Promise.all(ids.flatMap((id) => [id, id].map((one) => sendHeartbeat(db.pool, one, TTL_MS)))),
    30_000,
    'the beats',
  );
  assert.ok(beats.every(({ alive, agents: count }) => alive && count === 8));
});

onPostgres(agents)('a beat reads no table whole, with a plan made on empty tables', async () => {
  const { pool, texts } = noting(db);
  await sendHeartbeat(pool, 1, TTL_MS);
  await deregisterAgent(pool, 1);
  assert.is(texts.size, 2);
  for (const text of texts) {
    const plan = await genericPlan(db, text);
    assert.equal(readWhole(plan), [], plan);
    // The minimum is the first entry of an index: no sorting or counting.
    assert.not.match(plan, /-> +Sort\b|GroupAggregate/);
  }
});

agents.run();
