import type pg from 'pg';
import { API_SOURCE, OTHER } from '@gateway/core/metrics/series';
import { ADD_ACTIVITY, PROJECT } from './activity.js';
import { withAdvisoryLock } from '../postgres/advisory-lock.js';
import type { Querier } from '../postgres/connection.js';
import { controlBeside } from '../postgres/planes.js';
import type { ShardPlanes } from '../shards/open-shards.js';

/*
 * The statement that finishes rows also counts them: it inserts a row of count_changes per project,
 * which `applyCountDeltas` adds to the counts. Only rows that it inserted or updated count, so a
 * repeated statement counts nothing twice. In the fragments, `from` has the named columns; `un…`
 * subtract rows by their former status.
 */

export function insertCountDeltas(...rows: readonly string[]): string {
  return `insert into count_changes (project_id, endpoints, sources, event_types, statuses, http_statuses, changes)
    select project, array_agg(endpoint), array_agg(source), array_agg(type), array_agg(status), array_agg(http), array_agg(n)
    from (${rows.join(' union all ')}) c group by project`;
}

export function finishedEvents(from: string, sign: '' | '-' = ''): string {
  return `select project_id as project, null::uuid as endpoint, source_id as source, null::text as type, status::text as status, null::smallint as http, ${sign}count(*)::int as n
    from ${from} where status <> 'pending' group by project_id, source_id, status`;
}

export function unfinishedEvents(from: string): string {
  return finishedEvents(from, '-');
}

export function finishedDeliveries(from: string, sign: '' | '-' = ''): string {
  return `select project_id as project, endpoint_id as endpoint, source_id as source, event_type as type, status::text as status, null::smallint as http, ${sign}count(*)::int as n
    from ${from} where status in ('success', 'failure', 'discarded') group by project_id, endpoint_id, source_id, event_type, status`;
}

export function unfinishedDeliveries(from: string): string {
  return finishedDeliveries(from, '-');
}

export function madeAttempts(from: string): string {
  return `select project_id as project, endpoint_id as endpoint, null::uuid as source, null::text as type, case when error_class is null then 'success' else 'failure' end as status,
           coalesce(http_status, 0::smallint) as http, count(*)::int as n
    from ${from} group by project_id, endpoint_id, error_class is null, http_status`;
}

/** For applying deltas and taking samples. */
export const COUNTS_LOCK = 'gateway.counts';

/**
 * Rows of count_changes in a statement, and the counts in them, but for those of the last row. A
 * statement updates each count once, so with many projects a large one costs least.
 */
const BATCH = 100_000;
const BATCH_COUNTS = 200_000;

/**
 * Per project. Producers choose the event types, so beyond it, new counts get the event type
 * `other`.
 */
const COUNTS_MAX = 20_000;

/*
 * Locks: the deleted deltas and the updated counts, by key; the advisory lock admits one process.
 * Cost: the deltas, a primary key probe per count, and at most COUNTS_MAX index entries per
 * project. `known` is read apart: Citus cannot insert from a query that reads the same table.
 */
const APPLY = `
  with gone as (
    delete from count_changes where ctid = any (array(
      select ctid from (
        select ctid, coalesce(sum(cardinality(changes)) over (rows between unbounded preceding and 1 preceding), 0) as before from (select ctid, changes from count_changes limit $1) c
      ) c where before < ${BATCH_COUNTS}
    )) returning *
  ),
  c as materialized (
    select u.project_id, u.endpoint, coalesce(u.source::text, case when u.type is null and u.endpoint is not null then '' else '${API_SOURCE}' end) as source,
           coalesce(u.type, '') as type, u.status, u.http, sum(u.n) as n
    from (select project_id, unnest(endpoints) as endpoint, unnest(sources) as source, unnest(event_types) as type, unnest(statuses) as status,
                 unnest(http_statuses) as http, unnest(changes) as n from gone) u
    group by 1, 2, 3, 4, 5, 6
  ),
  full_projects as materialized (
    select project_id from (select distinct project_id from c where endpoint is not null and http is null) q
    where (select count(*) from (select from event_delivery_counts t where t.project_id = q.project_id limit ${COUNTS_MAX}) t) = ${COUNTS_MAX}
  ),
  known as materialized (
    select c.project_id, c.endpoint, c.source, c.type, c.status from full_projects f
    join c on c.project_id = f.project_id and c.endpoint is not null and c.http is null
    join event_delivery_counts t on t.project_id = c.project_id and t.endpoint_id = c.endpoint and t.source = c.source
      and t.event_type = c.type and t.status = c.status::event_delivery_status
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
             case when c.project_id not in (select project_id from full_projects)
                    or (c.project_id, c.endpoint, c.source, c.type, c.status) in (select project_id, endpoint, source, type, status from known)
                  then c.type else '${OTHER}' end as type
      from c where c.endpoint is not null and c.http is null
    ) c
    group by 1, 2, 3, 4, 5
    on conflict (project_id, endpoint_id, source, event_type, status) do update set n = event_delivery_counts.n + excluded.n
  ),
  a as (
    insert into delivery_attempt_counts (project_id, endpoint_id, delivered, http_status, n)
    select project_id, endpoint, status = 'success', http, n from c where http is not null
    on conflict (project_id, endpoint_id, delivered, http_status) do update set n = delivery_attempt_counts.n + excluded.n
  ),
  t as (${ADD_ACTIVITY}
  )
  select count(*)::int as applied, count(*) = $1 or coalesce(sum(cardinality(changes)), 0) >= ${BATCH_COUNTS} as more from gone`;

/**
 * Adds the deltas that are visible at the call. Later ones wait for the next, which finds more per
 * count. The caller must hold `COUNTS_LOCK`.
 */
export async function applyCountDeltas(client: pg.PoolClient): Promise<number> {
  for (let total = 0; ;) {
    const { rows } = await client.query<{ applied: number; more: boolean }>({
      name: 'apply-count-deltas',
      text: APPLY,
      values: [BATCH],
    });
    const { applied, more } = rows[0]!;
    total += applied;
    if (!more) return total;
  }
}

const VACUUM_BYTES = 4 * 1024 * 1024;

/**
 * After this process last vacuumed count_changes, which does not shrink while an old transaction,
 * such as a backup, is open.
 */
const sizes = new WeakMap<pg.Pool, number>();

/** Autovacuum runs once a minute, too rarely for thousands of inserts and deletes a second. */
export async function vacuumDeltas(pool: pg.Pool, client: pg.PoolClient): Promise<void> {
  const size = async () => {
    const { rows } = await client.query<{ bytes: string }>(
      `select pg_table_size('count_changes') as bytes`,
    );
    return Number(rows[0]!.bytes);
  };
  if ((await size()) < 2 * (sizes.get(pool) ?? 0) + VACUUM_BYTES) return;
  await client.query('vacuum (skip_locked) count_changes');
  sizes.set(pool, await size());
}

/** Unless another process is doing so. Returns the number of applied rows. */
export async function applyPendingDeltas(pool: pg.Pool, signal?: AbortSignal): Promise<number> {
  const { rows } = await pool.query<{ any: boolean }>({
    name: 'any-deltas',
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

/** Projects and endpoints per page of `deleteOldCounts`. */
const DELETED = 5_000;
const OF_ENDPOINTS = ['event_delivery_counts', 'delivery_attempt_counts', 'activity'];
const OF_PROJECTS = [...OF_ENDPOINTS, 'event_counts', 'backlog_samples'];

/**
 * On a shard, of endpoints and projects deleted over an hour ago. Does nothing while another
 * process holds `COUNTS_LOCK`, because applying deltas locks the same rows.
 */
export async function deleteOldCounts(planes: ShardPlanes): Promise<void> {
  await withAdvisoryLock(planes.data, COUNTS_LOCK, async (client) => {
    const control = controlBeside(planes, client);
    for (let [project, endpoint, more] = [PROJECT, PROJECT, true]; more;) {
      const deleted = await readDeleted(control, planes.shard, [project, endpoint]);
      const projects = deleted.flatMap((it) => (it.endpoint === PROJECT ? it.project : []));
      const endpoints = deleted.filter((it) => it.endpoint !== PROJECT);
      for (const table of OF_PROJECTS)
        await client.query(`delete from ${table} where project_id = any ($1::uuid[])`, [projects]);
      for (const table of OF_ENDPOINTS)
        await client.query(
          `delete from ${table} c using unnest($1::uuid[], $2::uuid[]) u(project, endpoint) where c.project_id = u.project and c.endpoint_id = u.endpoint`,
          [endpoints.map((it) => it.project), endpoints.map((it) => it.endpoint)],
        );
      more = deleted.length === DELETED;
      if (more) ({ project, endpoint } = deleted.at(-1)!);
    }
  });
}

/** A deleted project has the endpoint `PROJECT`. No lock. */
async function readDeleted(
  control: Querier,
  shard: string,
  after: readonly [project: string, endpoint: string],
): Promise<{ project: string; endpoint: string }[]> {
  const { rows } = await control.query<{ project: string; endpoint: string }>(
    `with p as (select id, deleted_at from projects where shard = $3)
     select * from (
       select id as project, '${PROJECT}'::uuid as endpoint, deleted_at from p union all select p.id, e.id, e.deleted_at from p join endpoints e on e.project_id = p.id
     ) d where deleted_at < now() - interval '1 hour' and (project, endpoint) > ($1, $2) order by project, endpoint limit ${DELETED}`,
    [...after, shard],
  );
  return rows;
}
