import type { Pool } from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { applyPendingDeltas } from '#store/counts/count-deltas';
import { claimDue, recoverDeliveries, releaseDeliveries } from '#store/deliveries/claims';
import { recordAttempts } from '#store/deliveries/delivery-attempts';
import { recordRoutes } from '#store/events/events';
import { EVERYTHING, readFences } from '#store/events/project-fences';
import {
  beginMove,
  callOffMove,
  continueMove,
  listMoves,
  readMoveStates,
  type Move,
} from '#store/moves/moves';
import { migrateUp } from '#store/postgres/migrate';
import { quarantineMessages } from '#store/quarantine/messages';
import type { Shards } from '#store/shards/open-shards';
import { readProjectShard } from '#store/shards/shards';
import { database } from '../../support/database.js';
import { until } from '../../support/until.js';
import {
  accepted,
  attempt,
  batch,
  newDelivery,
  newEvents,
  pendingEvent,
  quarantinedMessage,
  sorted,
} from '../batches.js';
import { makeProject } from '../made.js';
import { migratedDatabase, openUrl } from '../migrated.js';

const moves = suite('store/moves/moves');

const control = await migratedDatabase();
const empty = await database();
const other = openUrl(empty.url);
moves.before(async () => {
  await migrateUp(other, { shard: 'other' });
  await control.rows(
    `insert into shards (name, schema_name) values ('other', 'elsewhere'), ('third', 'nowhere')`,
  );
});
moves.after(async () => {
  await Promise.all([other.close(), control.close()]);
  await empty.close();
});

const AGENT = 4711;
const settings = { host: '127.0.0.1', port: 1, database: 'x' };
const shardsOf = (pools: Readonly<Record<string, Pool>>) => {
  const of = (name: string) => ({
    ...{ name, settings },
    database: { pool: pools[name]! },
    planes: { shard: name, control: control.pool, data: pools[name]! },
  });
  return { control, of, all: Object.keys(pools).map(of) } as unknown as Shards;
};
const shards = shardsOf({ default: control.pool, other: other.pool });
const rowsOf = { default: control.rows, other: empty.rows };
type Name = keyof typeof rowsOf;

async function project() {
  const { id: projectId } = await makeProject(control);
  const pool = (name: Name) => (name === 'default' ? control.pool : other.pool);
  const begin = (from: Name, to: Name) => beginMove(control.pool, { projectId, from, to });
  const next = async (move: Move) => {
    const [current] = await control.rows<Move>(
      `select project_id as "projectId", number, from_shard as "from", to_shard as "to", phase from project_moves where project_id = $1`,
      [projectId],
    );
    return continueMove(shards, { ...move, ...current });
  };
  const switchTo = async (from: Name, to: Name) => {
    const move = await begin(from, to);
    await next(move);
    return move;
  };
  const finish = async (move: Move) => {
    for (let n = 0; (await next(move)) !== 'done'; n++) assert.ok(n < 200, 'the move ends');
  };
  const count = async (name: Name, table: string) =>
    (await rowsOf[name](`select from ${table} where project_id = $1`, [projectId])).length;
  return {
    ...{ projectId, begin, next, switchTo, finish, count, pool },
    accept: (name: Name, ...events: Parameters<typeof batch>) =>
      accepted(pool(name), batch(...events)),
    shard: () => readProjectShard(control.pool, projectId),
    fence: async (name: Name) =>
      (await readFences(pool(name), [projectId])).get(projectId) ?? 'none',
  };
}

const LOGS = [
  ...['events', 'event_deliveries', 'delivery_attempts', 'event_messages'],
  ...['quarantined_messages', 'idempotency_keys', 'message_arrivals'],
];

/** Everything of a project, as it is stored. */
async function contentOf(name: Name, projectId: string): Promise<readonly string[]> {
  const content = await Promise.all(
    LOGS.map(async (table) =>
      (
        await rowsOf[name]<{ row: string }>(
          `select '${table} ' || to_jsonb(t)::text as row from ${table} t where project_id = $1 order by 1`,
          [projectId],
        )
      ).map(({ row }) => row),
    ),
  );
  return content.flat();
}

moves('a project is moved with everything that it has, unchanged', async () => {
  const { projectId, accept, switchTo, finish, shard, pool } = await project();
  const dayMs = 86_400_000;
  const events = newEvents(2_500, (n) => ({
    projectId,
    occurredAtMs: Date.now() - (n % 5) * dayMs - (n % 1_000),
    ...(n % 10 === 0 && { idempotencyKey: `key ${n}` }),
    ...(n % 7 === 0 && { status: 'pending', outcome: null }),
    data: JSON.stringify({ n, text: 'ü\u2028"\\' }),
  }));
  const deliveries = events
    .filter(({ status }) => status === 'processed')
    .map((event, n) =>
      newDelivery(event, {
        status: (['processing', 'scheduled', 'discarded'] as const)[n % 3]!,
        ...(n % 3 === 1 && { dueInMs: n % 2 === 0 ? Infinity : 5_000 }),
      }),
    );
  assert.is(await accept('default', events, { deliveries, agentId: AGENT }), 'all');
  const sent = deliveries.filter(({ status }) => status === 'processing');
  await recordAttempts(
    control.pool,
    sent.map((delivery, n) =>
      attempt(delivery, {
        agentId: AGENT,
        ...(n % 2 === 1 && { status: 'retry', dueInMs: 60_000 }),
      }),
    ),
  );
  await quarantineMessages(control.pool, [
    quarantinedMessage({ projectId, raw: Buffer.from([0, 255, 13]) }),
    quarantinedMessage({ projectId, occurredAtMs: Date.now() - 9 * dayMs }),
  ]);
  await control.rows('insert into message_arrivals values ($1, $2)', [projectId, newId()]);
  await applyPendingDeltas(control.pool);
  const before = await contentOf('default', projectId);
  const counts = (name: Name) =>
    rowsOf[name]('select source, status, n from event_counts where project_id = $1 order by 1, 2', [
      projectId,
    ]);
  const counted = await counts('default');
  assert.ok(counted.length > 0 && before.length > 5_000);

  const move = await switchTo('default', 'other');
  assert.is(await shard(), 'other');
  await finish(move);
  assert.equal(await contentOf('other', projectId), before);
  assert.equal(await contentOf('default', projectId), []);
  assert.equal(await counts('other'), counted);
  assert.equal(await counts('default'), []);
  const stray = await pool('other').query('select from events_default where project_id = $1', [
    projectId,
  ]);
  assert.is(stray.rowCount, 0, 'each day has its partition');
});

moves('each shard refuses what is on the other one, and others go on', async () => {
  const it = await project();
  const { projectId, accept, fence } = it;
  const now = Date.now();
  const old = newEvents(1_500, (n) => ({ projectId, occurredAtMs: now - 60_000 + n }));
  await accept('default', old);
  const move = await it.begin('default', 'other');
  await it.next(move);
  assert.is(await fence('default'), EVERYTHING);
  const late = newEvents(1, { projectId, idempotencyKey: 'b' });
  const theirs = newEvents(1, { projectId: (await project()).projectId });
  assert.equal(await accept('default', sorted([...late, ...theirs])), new Set([theirs[0]!.id]));
  assert.is(
    await it.count('default', 'idempotency_keys'),
    0,
    'an event that is refused takes no key',
  );
  const message = quarantinedMessage({ projectId });
  assert.equal([...(await quarantineMessages(control.pool, [message]))], [[message, 'refused']]);

  // The new shard takes what is newer than all of the history, and nothing else.
  assert.is(await accept('other', late), 'all');
  assert.equal(await accept('other', [old[0]!]), new Set());
  assert.equal(await accept('other', [old[1_499]!]), new Set());
  assert.is(await it.count('other', 'events'), 1);
  await it.next(move);
  const fenced = await fence('other');
  assert.ok(old[0]!.id <= fenced && fenced < old[1_499]!.id, 'the fence goes down with the rows');
  const between = newEvents(1, { projectId, occurredAtMs: now - 59_000 });
  assert.is(await accept('other', between), 'all');
  assert.equal(await accept('other', [old[1_499]!]), new Set(), 'a duplicate');
  await it.finish(move);
  assert.is(await fence('other'), 'none');
  assert.equal(await accept('other', [old[0]!]), new Set(), 'a duplicate');
  assert.is(await it.count('other', 'events'), 1_502);
});

moves('an idempotency key stays in use', async () => {
  const { projectId, accept, switchTo, count } = await project();
  await accept('default', newEvents(1, { projectId, idempotencyKey: 'a' }));
  await switchTo('default', 'other');
  const again = newEvents(1, { projectId, idempotencyKey: 'a' });
  assert.equal(await accept('other', again), new Set());
  assert.is(await count('other', 'events'), 0);
});

moves('a delivery that is being sent stays until its attempt is recorded', async () => {
  const it = await project();
  const { projectId, accept, count } = it;
  const [event, second] = newEvents(2, { projectId });
  const [sent, dead] = [newDelivery(event!, {}), newDelivery(second!, {})];
  const deliveries = [sent, dead].map((one) => ({ ...one, status: 'processing' as const }));
  await accept('default', [event!, second!], { deliveries, agentId: AGENT });
  const move = await it.switchTo('default', 'other');
  for (let n = 0; n < 5; n++) assert.is.not(await it.next(move), 'done');
  assert.equal(
    [await count('default', 'event_deliveries'), await count('other', 'event_deliveries')],
    [2, 0],
  );
  assert.equal(await accept('other', [event!]), new Set(), 'the event is known');
  await recordAttempts(control.pool, [attempt(sent, { agentId: AGENT })]);
  // The lease of its agent ended. Nothing is claimed on the former shard.
  await recoverDeliveries(control.pool, { orphans: true });
  const claim = (pool: Pool) =>
    claimDue(pool, AGENT, {
      ...{ projectId, statuses: ['scheduled', 'retry'], exceptEndpoints: [], limit: 10 },
    });
  assert.equal((await claim(control.pool)).claimed, []);
  await it.finish(move);
  assert.equal(
    (await claim(other.pool)).claimed.map(({ id }) => id),
    [dead.id],
  );
  assert.is(await count('other', 'delivery_attempts'), 1);
  await releaseDeliveries(other.pool, AGENT, [dead], { to: 'due', dueInMs: 0 });
});

moves('a pending event is routed on one shard, the new one', async () => {
  const { projectId, accept, switchTo, next, count } = await project();
  const event = pendingEvent({ projectId });
  await accept('default', [event]);
  const move = await switchTo('default', 'other');
  const routes = {
    events: [{ ...event, status: 'processed', outcome: 'routed' } as const],
    deliveries: [newDelivery(event, { status: 'processing' })],
    agentId: AGENT,
  };
  assert.is((await recordRoutes(control.pool, routes)).added.size, 0);
  await next(move);
  assert.is(await count('default', 'events'), 0);
  assert.is((await recordRoutes(other.pool, routes)).added.size, 1);
});

moves('a move waits for commits under way, and a commit that waits for it is refused', async () => {
  const { projectId, accept, begin, next, count } = await project();
  const client = await control.pool.connect();
  await client.query('begin');
  await accepted(client, batch(newEvents(1, { projectId })));
  let isDone = false;
  const moving = next(await begin('default', 'other')).then(() => (isDone = true));
  await until('the move to wait', async () => {
    const rows = await control.rows(
      `select from pg_locks where relation = 'project_fences'::regclass and not granted`,
    );
    return rows.length === 1;
  });
  assert.not(isDone);
  const waiting = accept('default', newEvents(1, { projectId }));
  await client.query('commit');
  client.release();
  await moving;
  // It waited behind the move or came before it; one after the move is refused.
  await waiting;
  const before = await count('default', 'events');
  assert.equal(await accept('default', newEvents(1, { projectId })), new Set());
  assert.is(await count('default', 'events'), before);
});

moves('a commit that waited for the lock of a move sees its fence', async () => {
  const { projectId, accept } = await project();
  const client = await control.pool.connect();
  await client.query('begin');
  await client.query('lock table project_fences in access exclusive mode');
  const waiting = accept('default', newEvents(1, { projectId }));
  await until('the commit to wait', async () => {
    const rows = await control.rows(
      `select from pg_locks where relation = 'project_fences'::regclass and not granted`,
    );
    return rows.length === 1;
  });
  await client.query('insert into project_fences values ($1, 1, $2)', [projectId, EVERYTHING]);
  await client.query('commit');
  client.release();
  assert.equal(await waiting, new Set());
});

/** Fails instead of the n-th statement that is not a read, counted over all pools. */
function failing(at: number): Shards {
  let n = 0;
  const wrap = (target: Pool): Pool =>
    new Proxy(target, {
      get: (it, name) => {
        const member: unknown = Reflect.get(it, name);
        if (name === 'connect') return async () => wrap((await it.connect()) as unknown as Pool);
        if (name !== 'query') return typeof member === 'function' ? member.bind(it) : member;
        return (...args: unknown[]) => {
          const text = String((args[0] as { text?: string }).text ?? args[0]);
          if (!/^\s*select/.test(text) && n++ === at) throw new Error('killed');
          return (member as (...all: unknown[]) => unknown).apply(it, args);
        };
      },
    });
  const pools = { default: wrap(control.pool), other: wrap(other.pool) };
  const { of } = shardsOf(pools);
  return { of, control: { pool: wrap(control.pool) } } as unknown as Shards;
}

moves('a move that is killed at any statement is ended by another process', async () => {
  let isKilled = true;
  let at = 0;
  for (; isKilled; at++) {
    isKilled = false;
    const { projectId, accept, finish, count, shard } = await project();
    const events = newEvents(3, (n) => ({
      projectId,
      ...(n === 1 && { status: 'pending', outcome: null, idempotencyKey: 'a' }),
    }));
    const deliveries = [newDelivery(events[0]!, { status: 'scheduled', dueInMs: 0 })];
    await accept('default', events, { deliveries });
    const killed = failing(at);
    const move = await beginMove(control.pool, { projectId, from: 'default', to: 'other' });
    try {
      for (let is = ''; is !== 'done';) {
        const [current] = await control.rows<Move>(
          'select phase from project_moves where project_id = $1',
          [projectId],
        );
        is = await continueMove(killed, { ...move, ...current });
      }
    } catch (error) {
      assert.is((error as Error).message, 'killed');
      isKilled = true;
    }
    if (isKilled) await finish(move);
    assert.is(await shard(), 'other');
    for (const [table, n] of [
      ['events', 3],
      ['event_deliveries', 1],
      ['idempotency_keys', 1],
    ] as const)
      assert.equal([await count('default', table), await count('other', table)], [0, n], table);
    await applyPendingDeltas(other.pool);
    assert.equal(
      await empty.rows('select n::int from event_counts where project_id = $1', [projectId]),
      [{ n: 2 }],
    );
  }
  assert.ok(at > 20, `${at} statements`);
});

moves('a move is called off, and a process that goes on with it changes nothing', async () => {
  const { projectId, accept, begin, fence, shard } = await project();
  const move = await begin('default', 'other');
  await control.rows('insert into project_fences values ($1, $2, $3)', [
    projectId,
    move.number,
    EVERYTHING,
  ]);
  assert.equal(await accept('default', newEvents(1, { projectId })), new Set());
  assert.ok(await callOffMove(shards, projectId));
  assert.is(await accept('default', newEvents(1, { projectId })), 'all');
  await continueMove(shards, move);
  assert.equal([await shard(), await fence('default')], ['default', 'none']);
  assert.is(await accept('default', newEvents(1, { projectId })), 'all');
  assert.not(await callOffMove(shards, projectId));
  const later = await begin('default', 'other');
  assert.ok(BigInt(later.number) > BigInt(move.number));
});

moves('a project comes back with what it got meanwhile', async () => {
  const { projectId, accept, switchTo, finish, count } = await project();
  await accept('default', newEvents(2, { projectId, idempotencyKey: null }));
  await finish(await switchTo('default', 'other'));
  await accept('other', newEvents(1, { projectId, idempotencyKey: 'a' }));
  await finish(await switchTo('other', 'default'));
  assert.equal([await count('default', 'events'), await count('other', 'events')], [3, 0]);
  assert.equal(
    await accept('default', newEvents(1, { projectId, idempotencyKey: 'a' })),
    new Set(),
  );
  assert.is(await accept('default', newEvents(1, { projectId })), 'all');
});

moves('another move of a project waits for the history', async () => {
  const { projectId, accept, switchTo, finish, begin } = await project();
  await accept('default', newEvents(1, { projectId }));
  const move = await switchTo('default', 'other');
  const refused = await begin('other', 'default').catch((error: Error) => error.message);
  assert.match(
    refused as string,
    'the events of the project are still being moved from the shard default',
  );
  const states = await readMoveStates(control.pool, projectId);
  assert.equal(
    states.map(({ from, to, phase, error }) => ({ from, to, phase, error })),
    [{ from: 'default', to: 'other', phase: 'history', error: null }],
  );
  await finish(move);
  assert.equal(await readMoveStates(control.pool, projectId), []);
  assert.ok(await begin('other', 'default'));
});

moves('the fences of a move are deleted after a day', async () => {
  const { projectId, switchTo, finish, fence } = await project();
  await finish(await switchTo('default', 'other'));
  assert.is(await fence('default'), EVERYTHING);
  const ofProject = async () =>
    (await listMoves(control.pool)).find((it) => it.projectId === projectId);
  assert.is(await ofProject(), undefined);
  await control.rows(
    `update project_moves set ended_at = now() - interval '25 hours' where project_id = $1`,
    [projectId],
  );
  await continueMove(shards, (await ofProject())!);
  assert.is(await fence('default'), 'none');
  assert.equal(
    await control.rows('select from project_moves where project_id = $1', [projectId]),
    [],
  );
});

moves.run();
