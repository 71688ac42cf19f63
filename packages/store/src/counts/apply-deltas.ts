import type pg from 'pg';
import type { Log } from '@gateway/core/logging';
import { API_SOURCE, OTHER } from '@gateway/core/metrics';
import { withAdvisoryLock } from '../postgres/advisory-lock.js';
import { repeat } from './repeat.js';

/** The lock of those who fold, and of the sampler, which folds as well. */
export const COUNTS_LOCK = 'gateway.counts';

/** Rows of changes that one statement folds: each may hold hundreds of counts. */
const BATCH = 500;

/** Counts of deliveries that a project may have: event types are the producer's words, and beyond this new ones are counted together as `other`. */
const COUNTS_MAX = 20_000;

/*
 * Takes the oldest changes and adds them to the counts. Locks: these changes, and the counts, by their keys; one process at a time does it. Cost: the
 * changes, one probe of a primary key per count, and a read of at most COUNTS_MAX index entries per project.
 */
const FOLD = `
  with gone as (
    delete from count_changes where ctid = any (array(select ctid from count_changes limit $1)) returning *
  ),
  c as materialized (
    select g.project_id, u.endpoint, coalesce(u.source::text, case when u.type is null and u.endpoint is not null then '' else '${API_SOURCE}' end) as source,
           coalesce(u.type, '') as type, u.status, u.http, sum(u.n) as n
    from gone g, unnest(g.endpoints, g.sources, g.event_types, g.statuses, g.http_statuses, g.changes) u(endpoint, source, type, status, http, n)
    group by 1, 2, 3, 4, 5, 6
  ),
  p as materialized (
    select project_id, (select count(*) from (select from event_delivery_counts t where t.project_id = q.project_id limit ${COUNTS_MAX}) t) = ${COUNTS_MAX} as is_full
    from (select distinct project_id from c where endpoint is not null and http is null) q
  ),
  e as (
    insert into event_counts (project_id, source, status, n)
    select project_id, source, status::event_status, n from c where endpoint is null
    on conflict (project_id, source, status) do update set n = event_counts.n + excluded.n
  ),
  d as (
    insert into event_delivery_counts (project_id, endpoint_id, source, event_type, status, n)
    select project_id, endpoint, source, type, status, sum(n) from (
      select c.project_id, c.endpoint, c.source, c.status::event_delivery_status as status, c.n,
             case when p.is_full and not exists (
                    select from event_delivery_counts t where t.project_id = c.project_id and t.endpoint_id = c.endpoint and t.source = c.source
                      and t.event_type = c.type and t.status = c.status::event_delivery_status)
                  then '${OTHER}' else c.type end as type
      from c join p on p.project_id = c.project_id where c.endpoint is not null and c.http is null
    ) c
    group by 1, 2, 3, 4, 5
    on conflict (project_id, endpoint_id, source, event_type, status) do update set n = event_delivery_counts.n + excluded.n
  ),
  a as (
    insert into delivery_attempt_counts (project_id, endpoint_id, delivered, http_status, n)
    select project_id, endpoint, status = 'success', http, n from c where http is not null
    on conflict (project_id, endpoint_id, delivered, http_status) do update set n = delivery_attempt_counts.n + excluded.n
  )
  select count(*)::int as folded from gone`;

/**
 * Adds all changes that a transaction sees to the counts.
 *
 * @param client in a transaction, under `COUNTS_LOCK`
 * @returns how many rows of changes there were
 */
export async function applyCountDeltas(client: pg.PoolClient): Promise<number> {
  for (let total = 0; ;) {
    const { rows } = await client.query<{ folded: number }>({ name: 'fold-counts', text: FOLD, values: [BATCH] });
    const { folded } = rows[0]!;
    total += folded;
    if (folded < BATCH) return total;
  }
}

/** What the table of changes may have grown by before it is vacuumed. */
const VACUUM_BYTES = 4 * 1024 * 1024;

/** Size of the table of changes after its last vacuum by this process; it cannot shrink beside an old transaction, such as a backup. */
const sizes = new WeakMap<pg.Pool, number>();

/** Makes the room of folded changes free again when they are many: autovacuum comes once a minute, when thousands have come every second. */
export async function vacuumDeltas(pool: pg.Pool, client: pg.PoolClient): Promise<void> {
  const size = async () => {
    const { rows } = await client.query<{ bytes: string }>(`select pg_table_size('count_changes') as bytes`);
    return Number(rows[0]!.bytes);
  };
  if ((await size()) < 2 * (sizes.get(pool) ?? 0) + VACUUM_BYTES) return;
  await client.query('vacuum (skip_locked) count_changes');
  sizes.set(pool, await size());
}

const EVERY_MS = 10_000;
/** Whoever found nothing looks this many times less often. */
const IDLE_TIMES = 6;

/**
 * Folds what is counted while metrics are off as well, so that changes do not pile up, and the counts are right whenever somebody looks. Any number of
 * agents may do it: one at a time works. Without work that is one cheap statement a minute.
 *
 * @param everyMs how often, while there is something
 * @returns what stops it; a fold that is under way is broken off, and nothing of it stays
 */
export function startCountUpdates({ pool, log, everyMs = EVERY_MS }: { pool: pg.Pool; log: Log; everyMs?: number }): () => Promise<void> {
  const idleMs = everyMs * IDLE_TIMES;
  return repeat(async (signal) => ((await applyPendingDeltas(pool, signal)) > 0 ? everyMs : idleMs), {
    afterMs: everyMs,
    retryMs: idleMs,
    failed(error, isFirst) {
      if (isFirst) log.warn({ error }, 'What was counted could not be added up; it waits in count_changes and is tried again.');
    },
  });
}

/**
 * Adds what was counted to the counts, when there is something and nobody else is at it.
 *
 * @returns how many rows of changes were folded
 */
export async function applyPendingDeltas(pool: pg.Pool, signal?: AbortSignal): Promise<number> {
  const { rows } = await pool.query<{ any: boolean }>({
    name: 'any-changes',
    text: 'select exists (select from count_changes) as any',
  });
  if (!rows[0]?.any) return 0;
  const work = async (client: pg.PoolClient) => {
    await client.query('begin');
    const total = await applyCountDeltas(client);
    await client.query('commit');
    await vacuumDeltas(pool, client);
    return total;
  };
  return (await withAdvisoryLock(pool, COUNTS_LOCK, work, signal)) ?? 0;
}

/**
 * Forgets the counts of endpoints and projects that were deleted an hour ago or more; until then a last look at them is possible. Leaves it to the next
 * time when somebody folds: the two would wait for rows of each other.
 */
export async function deleteOldCounts(pool: pg.Pool): Promise<void> {
  const deleted = `deleted_at < now() - interval '1 hour'`;
  await withAdvisoryLock(pool, COUNTS_LOCK, async (client) => {
    for (const table of ['event_delivery_counts', 'delivery_attempt_counts'])
      await client.query(
        `delete from ${table} c using endpoints e where e.${deleted} and c.project_id = e.project_id and c.endpoint_id = e.id`,
      );
    for (const table of ['event_counts', 'event_delivery_counts', 'delivery_attempt_counts'])
      await client.query(`delete from ${table} c using projects p where p.${deleted} and c.project_id = p.id`);
  });
}
