import { newId } from '#core/events/ids';
import type { Database } from '#store/postgres/database';
import { makeProject } from '../store/made.js';

export interface Amounts {
  readonly finished: number;
  readonly pending: number;
  readonly endpoints: number;
  readonly days: number;
}

/**
 * Fills a migrated database: finished deliveries over some days, a tenth as many events and
 * attempts, and today's unfinished deliveries, each kind with one statement.
 */
export async function makeHistory(
  db: Pick<Database, 'knex'> & {
    rows(sql: string, values?: readonly unknown[]): Promise<unknown>;
  } & Database,
  { finished, pending, endpoints, days }: Amounts,
): Promise<{ projectId: string }> {
  const { id: projectId } = await makeProject(db);
  const sources = [newId(), newId(), newId()];
  await db.rows(
    `insert into endpoints (project_id, id, name, url, secrets) select $1, gen_random_uuid(), 'e' || n, 'http://127.0.0.1:1/', '[]' from generate_series(1, $2::int) n`,
    [projectId, endpoints],
  );
  await db.rows(
    `select ensure_day((now() at time zone 'UTC')::date - n) from generate_series(0, $1::int) n`,
    [days],
  );
  await db.rows(
    'create temp table e as select row_number() over () - 1 as k, id from endpoints; create unique index on e (k); analyze e',
  );
  // Time-ordered ids, as the gateway's: the milliseconds and the row number.
  const id = (n: string) =>
    `(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '8000' || '8' || lpad(to_hex(${n}), 15, '0'))::uuid`;
  const at = `date_trunc('day', now()) - interval '1 second' - (n % $2::bigint) * ($3::float8 / $2::bigint) * interval '1 day'`;
  const rows = (columns: string, count: string) =>
    `(select n, ${at} as at, ${columns} from generate_series(1, ${count}) n) u`;
  await db.rows(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, event_type, source_id, status, attempts, created_at, updated_at)
     select $1, ${id('n')}, at, ${id('n')}, e.id, 'order.paid', ($4::uuid[])[1 + n % 3],
            (case n % 20 when 0 then 'failure' when 1 then 'discarded' else 'success' end)::event_delivery_status, 1, at, at
     from ${rows('1', '$2::bigint')} join e on e.k = n % $5::int`,
    [projectId, finished, days, sources, endpoints],
  );
  await db.rows(
    `insert into events (project_id, id, occurred_at, source_id, coordinates, event_type, status, outcome, headers, data)
     select $1, ${id('n')}, at, ($4::uuid[])[1 + n % 3], 't/0/' || n, 'order.paid', 'processed', 'routed', '{}', '{}' from ${rows('1', '$2::bigint')}`,
    [projectId, Math.ceil(finished / 10), days, sources],
  );
  await db.rows(
    `insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, http_status, url)
     select $1, ${id('n')}, ${id('n')}, at, at, e.id, 10, 1, 200, 'http://127.0.0.1:1/' from ${rows('1', '$2::bigint')} join e on e.k = n % $4::int`,
    [projectId, Math.ceil(finished / 10), days, endpoints],
  );
  await db.rows(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, event_type, source_id, status, claimed_by, attempts, next_attempt_at)
     select $1, gen_random_uuid(), now() - n * interval '10 milliseconds', gen_random_uuid(), e.id, 'order.paid', ($3::uuid[])[1 + n % 3],
            s.status, case when s.status = 'processing' then 1 end, 0, case when s.status <> 'processing' then now() + interval '1 hour' end
     from generate_series(1, $2::int) n join e on e.k = n % $4::int
     cross join lateral (select (case n / $4::int % 3 when 0 then 'scheduled' when 1 then 'retry' else 'processing' end)::event_delivery_status as status) s`,
    [projectId, pending, sources, endpoints],
  );
  await db.rows(
    `insert into events (project_id, id, occurred_at, source_id, coordinates, event_type, status, headers, data)
     select $1, gen_random_uuid(), now(), ($3::uuid[])[1 + n % 3], 'p/0/' || n, 'order.paid', 'pending', '{}', '{}' from generate_series(1, $2::int) n`,
    [projectId, Math.ceil(pending / 10), sources],
  );
  await db.rows('drop table e');
  return { projectId };
}
