import type { Production } from '../../support/production.js';

const DAYS = 25;
/** The columns of each table, from `u (n, id, at)`, `project` and `endpoint`. */
const TABLES = {
  events: {
    project_id: 'project',
    id: 'id',
    occurred_at: 'at',
    accepted_at: 'at',
    coordinates: `'history/0/' || n`,
    event_type: `'order.created'`,
    message_type: `'single'::message_type`,
    status: `'processed'::event_status`,
    outcome: `'routed'`,
    headers: `'{}'`,
    data: `'{"id":' || n || '}'`,
  },
  event_messages: {
    project_id: 'project',
    id: 'id',
    occurred_at: 'at',
    digest: `'\\x0011223344556677'::bytea`,
    headers: `'{}'`,
    raw_bytes: '1000',
  },
  event_deliveries: {
    project_id: 'project',
    id: 'id',
    occurred_at: 'at',
    event_id: 'id',
    endpoint_id: 'endpoint',
    status: `'success'::event_delivery_status`,
    event_type: `'order.created'`,
    attempts: '1',
    created_at: 'at',
    updated_at: 'at',
  },
  delivery_attempts: {
    project_id: 'project',
    event_delivery_id: 'id',
    id: 'id',
    occurred_at: 'at',
    requested_at: 'at',
    endpoint_id: 'endpoint',
    duration_ms: '10',
    number: '1',
    http_status: '200',
    url: `'http://127.0.0.1/'`,
  },
} as const;

/**
 * Adds the rows of finished events to a project, evenly over today and the 25 days before: for each
 * an event, its message, a delivery and an attempt. A day is filled before it becomes a
 * partition, which makes its indexes at once.
 *
 * @param rows the rows of all tables
 */
export async function addHistory(
  { database, projectId }: Pick<Production, 'database' | 'projectId'>,
  endpointId: string,
  rows: number,
): Promise<void> {
  const perDay = Math.ceil(rows / Object.keys(TABLES).length / (DAYS + 1));
  await database.rows(`set maintenance_work_mem = '1GB'`);
  const [{ today }] = (await database.rows<{ today: string }>(
    `select to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as today`,
  )) as [{ today: string }];
  for (let ago = 0; ago <= DAYS; ago++) {
    const day = dayBefore(today, ago);
    for (const [parent, columns] of Object.entries(TABLES)) {
      const table = `${parent}_${day.replaceAll('-', '')}`;
      const [{ isNew }] = (await database.rows<{ isNew: boolean }>(
        `select to_regclass('${table}') is null as "isNew"`,
      )) as [{ isNew: boolean }];
      if (isNew)
        await database.rows(
          `create table ${table} (like ${parent} including defaults including constraints)`,
        );
      await database.rows(
        `with u as (
           select n, at, (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '80008' || lpad(to_hex(n), 15, '0'))::uuid as id, $1::uuid as project, $2::uuid as endpoint
           from (select n, $3::date::timestamp at time zone 'UTC' + n * $5::float8 / $4::int * interval '1 second' as at from generate_series(0, $4::int - 1) n) made
         )
         insert into ${table} (${Object.keys(columns).join(', ')}) select ${Object.values(columns).join(', ')} from u`,
        [projectId, endpointId, day, perDay, secondsOf(ago)],
      );
      if (isNew)
        await database.rows(
          `alter table ${parent} attach partition ${table} for values from ('${day} 00:00+00') to ('${dayBefore(day, -1)} 00:00+00')`,
        );
    }
  }
  await database.rows('vacuum (analyze)');
}

/** Returns how much of the day has passed. */
function secondsOf(ago: number): number {
  return ago > 0 ? 86_400 : (Date.now() % 86_400_000) / 1000;
}

function dayBefore(day: string, days: number): string {
  return new Date(Date.parse(day) - days * 86_400_000).toISOString().slice(0, 10);
}
