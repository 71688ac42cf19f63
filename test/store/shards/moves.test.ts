import type { Pool } from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { acceptEvents } from '#store/events/events';
import { readKnown, readMoved } from '#store/events/moved-projects';
import { migrateUp } from '#store/postgres/migrate';
import { quarantineMessages } from '#store/quarantine/messages';
import { callOffMove, finishMoves, forgetFormerShard, moveProject } from '#store/shards/moves';
import { readProjectShards } from '#store/shards/shards';
import { database } from '../../support/database.js';
import { until } from '../../support/until.js';
import { batch, newEvents, quarantinedMessage, sorted } from '../batches.js';
import { makeProject } from '../made.js';
import { migratedDatabase, openUrl } from '../migrated.js';

const moves = suite('store/shards/moves');

const control = await migratedDatabase();
const empty = await database();
const other = openUrl(empty.url);
moves.before(async () => {
  await migrateUp(other, { shard: 'other' });
  await control.rows(`insert into shards (name, schema_name) values ('other', 'elsewhere')`);
});
moves.after(async () => {
  await Promise.all([other.close(), control.close()]);
  await empty.close();
});

const poolOf = (name: string) => (name === 'default' ? control.pool : other.pool);

async function project() {
  const { id: projectId } = await makeProject(control);
  const move = (from: string, to: string) =>
    moveProject(
      { control: control.pool, from: poolOf(from), into: poolOf(to) },
      { projectId, from, to },
    );
  return { projectId, move, shards: () => readProjectShards(control.pool, projectId) };
}

moves(
  'after a move, the former shard accepts nothing of the project, and others go on',
  async () => {
    const { projectId, move, shards } = await project();
    const mine = newEvents(1, { projectId, idempotencyKey: 'a' });
    assert.is(await acceptEvents(control.pool, batch(mine)), 'all');
    assert.ok(await move('default', 'other'));
    assert.not(await move('default', 'other'), 'moved already');
    assert.equal(await shards(), { shard: 'other', former_shards: ['default'] });

    const late = newEvents(1, { projectId, idempotencyKey: 'b' });
    const theirs = newEvents(1, { projectId: (await project()).projectId });
    assert.equal(
      await acceptEvents(control.pool, batch(sorted([...late, ...theirs]))),
      new Set([theirs[0]!.id]),
    );
    assert.equal(await readMoved(control.pool, [projectId]), new Map([[projectId, 'other']]));
    const keys = await control.rows('select key from idempotency_keys where project_id = $1', [
      projectId,
    ]);
    assert.equal(keys, [{ key: 'a' }], 'a refused event takes no key');
    const message = quarantinedMessage({ projectId });
    assert.equal([...(await quarantineMessages(control.pool, [message])).keys()], [message]);
    assert.equal((await quarantineMessages(other.pool, [message])).size, 0);

    assert.is(await acceptEvents(other.pool, batch(late)), 'all');
    const again = { ...newEvents(1, { projectId })[0]!, idempotencyKey: 'a' };
    assert.equal(
      await readKnown(control.pool, [...mine, ...late, again]),
      new Set([mine[0]!.id, again.id]),
    );
  },
);

moves('a project that comes back is accepted where it was before', async () => {
  const { projectId, move, shards } = await project();
  assert.ok(await move('default', 'other'));
  assert.ok(await move('other', 'default'));
  assert.equal(await shards(), { shard: 'default', former_shards: ['other'] });
  assert.is(await acceptEvents(control.pool, batch(newEvents(1, { projectId }))), 'all');
  assert.equal(await acceptEvents(other.pool, batch(newEvents(1, { projectId }))), new Set());
});

moves('a move waits for commits under way, and a commit that waits for it is refused', async () => {
  const { projectId, move } = await project();
  const client = await control.pool.connect();
  await client.query('begin');
  await acceptEvents(client, batch(newEvents(1, { projectId })));
  let moved = false;
  const moving = move('default', 'other').then(() => (moved = true));
  await until('the move to wait', async () => {
    const rows = await control.rows(
      `select from pg_locks where relation = 'moved_projects'::regclass and not granted`,
    );
    return rows.length === 1;
  });
  assert.not(moved);
  const waiting = acceptEvents(control.pool, batch(newEvents(1, { projectId })));
  await client.query('commit');
  client.release();
  await moving;
  // It waited behind the move or came before it; one after the move is refused.
  await waiting;
  const count = async () =>
    (await control.rows('select from events where project_id = $1', [projectId])).length;
  const before = await count();
  assert.equal(await acceptEvents(control.pool, batch(newEvents(1, { projectId }))), new Set());
  assert.is(await count(), before);
});

moves('a commit that waited for the lock of a move sees the move', async () => {
  const { projectId } = await project();
  const client = await control.pool.connect();
  await client.query('begin');
  await client.query('lock table moved_projects in access exclusive mode');
  const waiting = acceptEvents(control.pool, batch(newEvents(1, { projectId })));
  await until('the commit to wait', async () => {
    const rows = await control.rows(
      `select from pg_locks where relation = 'moved_projects'::regclass and not granted`,
    );
    return rows.length === 1;
  });
  await client.query(`insert into moved_projects values ($1, 'other', 1)`, [projectId]);
  await client.query('commit');
  client.release();
  assert.equal(await waiting, new Set());
});

moves('a move whose process ended in between is ended by another', async () => {
  const { projectId, shards } = await project();
  await control.rows(`insert into moved_projects values ($1, 'other', 1)`, [projectId]);
  await empty.rows(`insert into moved_projects values ($1, 'default', 0)`, [projectId]);
  const { planes } = control;
  assert.ok((await finishMoves(planes, poolOf)) > 0);
  assert.is(await finishMoves(planes, poolOf), 0);
  assert.equal(await shards(), { shard: 'other', former_shards: ['default'] });
  assert.is(await acceptEvents(other.pool, batch(newEvents(1, { projectId }))), 'all');
});

moves('a move that has not ended is called off, and can neither end nor come back', async () => {
  const { projectId, move, shards } = await project();
  await move('default', 'other');
  await move('other', 'default');
  await control.rows(
    `insert into moved_projects select $1, 'other', move_number + 1 from projects where id = $1`,
    [projectId],
  );
  const accepted = () => acceptEvents(control.pool, batch(newEvents(1, { projectId })));
  assert.equal(await accepted(), new Set());
  assert.ok(await callOffMove(control.planes, projectId));
  assert.is(await accepted(), 'all');
  await finishMoves(control.planes, poolOf);
  assert.equal(await shards(), { shard: 'default', former_shards: ['other'] });
  assert.equal(await acceptEvents(other.pool, batch(newEvents(1, { projectId }))), new Set());
  assert.ok(await move('default', 'other'), 'a later move');
  assert.not(await callOffMove(control.planes, projectId), 'a move that has ended');
});

moves('a shard that does not answer holds up the moves to it alone', async () => {
  const [held, free] = [await project(), await project()];
  await control.rows(`insert into moved_projects values ($1, 'frozen', 1), ($2, 'other', 1)`, [
    held.projectId,
    free.projectId,
  ]);
  const frozen = { query: () => new Promise(() => undefined) } as unknown as Pool;
  void finishMoves(control.planes, (name) => (name === 'frozen' ? frozen : poolOf(name)));
  await until('the other move', async () => (await free.shards())?.shard === 'other');
  assert.is((await held.shards())?.shard, 'default');
  await control.rows('delete from moved_projects where project_id = $1', [held.projectId]);
});

moves('the time of a move is after all that the former shards have', async () => {
  const { projectId, move } = await project();
  const movedAtMs = async () => {
    const [row] = await control.rows<{ ms: number }>(
      'select (extract(epoch from moved_at) * 1000)::float8 as ms from projects where id = $1',
      [projectId],
    );
    return row!.ms;
  };
  const ahead = Date.now() + 20 * 3_600_000;
  const dated = [ahead - 5_000, Date.now() - 3_600_000, Date.now()];
  await acceptEvents(
    control.pool,
    batch(newEvents(3, (n) => ({ projectId, occurredAtMs: dated[n]! }))),
  );
  await move('default', 'other');
  assert.is(await movedAtMs(), ahead - 5_000);
  await quarantineMessages(other.pool, [quarantinedMessage({ projectId, occurredAtMs: ahead })]);
  await move('other', 'default');
  assert.is(await movedAtMs(), ahead);
  await move('default', 'other');
  assert.is(await movedAtMs(), ahead, 'another shard has a message of that time');
});

moves('a move that hung until later ones ended changes nothing', async () => {
  for (const [hang, release] of [
    ['before it refuses', 0],
    ['before it accepts', 1],
    ['before it switches', 2],
  ] as const) {
    const { projectId, move, shards } = await project();
    let step = 0;
    let goOn = (): void => {};
    const hung = new Promise<void>((resolve) => (goOn = resolve));
    let isHanging = false;
    /** Waits before the statement or the connection of the step, counted over all three pools. */
    const slow = (pool: Pool): Pool =>
      new Proxy(pool, {
        get: (it, name) => {
          const member: unknown = Reflect.get(it, name);
          if (name !== 'query' && name !== 'connect') return member;
          const call = (member as (...args: unknown[]) => unknown).bind(it);
          return async (...args: unknown[]) => {
            const isRead = /^select/.test(String(args[0]));
            if (!isRead && step++ === release) {
              isHanging = true;
              await hung;
            }
            return call(...args);
          };
        },
      });
    const moving = moveProject(
      { control: slow(control.pool), from: slow(control.pool), into: slow(other.pool) },
      { projectId, from: 'default', to: 'other' },
    );
    await until('the move to hang', () => isHanging);
    await move('default', 'other');
    await move('other', 'default');
    goOn();
    assert.not(await moving, hang);
    await finishMoves(control.planes, poolOf);
    assert.is((await shards())?.shard, 'default', hang);
    assert.is(await acceptEvents(control.pool, batch(newEvents(1, { projectId }))), 'all', hang);
    assert.equal(await acceptEvents(other.pool, batch(newEvents(1, { projectId }))), new Set());
  }
});

moves('a former shard is forgotten when retention has left nothing there', async () => {
  const { projectId, move, shards } = await project();
  const [event] = newEvents(1, { projectId, idempotencyKey: newId() });
  await acceptEvents(control.pool, batch([event!]));
  await move('default', 'other');
  const { planes } = control;
  await control.rows(`update projects set moved_at = now() - interval '3 days' where id = $1`, [
    projectId,
  ]);
  assert.is(await forgetFormerShard(planes), 0);
  await control.rows('delete from events where project_id = $1', [projectId]);
  assert.is(await forgetFormerShard(planes), 0, 'its key has not expired');
  await control.rows('update idempotency_keys set expires_at = now() where project_id = $1', [
    projectId,
  ]);
  assert.is(await forgetFormerShard(planes), 1);
  assert.equal(await shards(), { shard: 'other', former_shards: [] });
  assert.equal(
    await control.rows('select from idempotency_keys where project_id = $1', [projectId]),
    [],
  );
  assert.equal(await readMoved(control.pool, [projectId]), new Map());
});

moves.run();
