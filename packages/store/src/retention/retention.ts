import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { deleteFinishedElsewhere, deleteFinishedOfDay, FIRST } from './delete-finished.js';
import { withAdvisoryLock, withLockTimeout } from '../postgres/advisory-lock.js';
import { controlBeside, type Planes } from '../postgres/planes.js';
import { duringDay, isExpired, readCutoffs, type Cutoffs } from './cutoffs.js';

/**
 * A dropped UTC day (`2026-01-31`) with estimated row counts. A count is null if Postgres has no
 * estimate.
 */
export interface DroppedDay {
  readonly day: string;
  readonly events: number | null;
  readonly eventDeliveries: number | null;
  readonly deliveryAttempts: number | null;
}

export interface Retention {
  readonly dropped: readonly DroppedDay[];
  readonly unfinished: readonly string[];
  /** Days expired for the instance, but not for a project with rows in them. */
  readonly kept: readonly string[];
  /** Whether a lock was unavailable, as during a backup. The next run continues. */
  readonly locked: boolean;
  /** Finished rows deleted from remaining days, default partitions and quarantine. */
  readonly rowsDeleted: number;
}

const NOTHING: Retention = { dropped: [], unfinished: [], kept: [], locked: false, rowsDeleted: 0 };
/** The partitioned tables, in the order in which every transaction locks them. */
export const PARENTS = [
  'events',
  'event_deliveries',
  'delivery_attempts',
  'event_messages',
] as const;
const LOCK_MS = 200;
const TRIES = 4;
const PAUSE_MS = 200;

/**
 * Deletes rows whose message is older than `days` whole UTC days or the project's own retention.
 * Runs in one agent at a time. Drops a day's partitions once it has expired for all projects with
 * rows in it and all its rows are finished; until then, deletes finished rows per project, as in
 * the default partitions. `now` defaults to the database's time, because an agent with a wrong
 * clock would delete too much.
 */
export async function applyRetention(
  planes: Planes,
  { days, now, signal }: { days: number; now?: Date; signal?: AbortSignal },
): Promise<Retention> {
  const done = await withAdvisoryLock(planes.data, 'gateway.retention', async (client) => {
    const cutoffs = await readCutoffs(controlBeside(planes, client), { days, now });
    const { left, ...outcome } = await dropDays(client, cutoffs, signal);
    let rowsDeleted = 0;
    for (const { day, projects } of left) {
      for (const project of projects) {
        if (signal?.aborted) break;
        // Read the cutoffs again: deleting may take a long time, and the retention may have been
        // extended in the meantime.
        const latest = await cutoffs.again();
        if (isExpired(latest, project, day))
          rowsDeleted += await deleteFinishedOfDay(client, {
            day,
            project,
            before: latest.of(project),
            signal,
          });
      }
    }
    return {
      ...outcome,
      rowsDeleted: rowsDeleted + (await deleteFinishedElsewhere(client, cutoffs, signal)),
    };
  });
  return done ?? NOTHING;
}

interface LeftDay {
  readonly day: string;
  readonly projects: readonly string[];
}

async function dropDays(
  client: pg.PoolClient,
  cutoffs: Cutoffs,
  signal?: AbortSignal,
): Promise<Omit<Retention, 'rowsDeleted'> & { left: readonly LeftDay[] }> {
  const [dropped, unfinished, kept, left]: [DroppedDay[], string[], string[], LeftDay[]] = [
    [],
    [],
    [],
    [],
  ];
  let locked = false;
  for (const old of await oldDays(client, cutoffs.youngest)) {
    if (signal?.aborted) break;
    const { day } = old;
    const projects = await projectsOf(client, old, cutoffs);
    const over = projects.filter((project) => isExpired(cutoffs, project, day));
    if (over.length < projects.length) {
      if (isExpired(cutoffs, undefined, day)) kept.push(day);
      left.push({ day, projects: over });
      continue;
    }
    // The day is empty, but projects without their own retention can still write to it.
    if (projects.length === 0 && !isExpired(cutoffs, undefined, day)) continue;
    if (locked) continue;
    const outcome = await dropDay(client, old, cutoffs, signal);
    if (outcome === undefined) locked = true;
    else if (outcome === 'stays') {
      unfinished.push(day);
      left.push({ day, projects: over.filter((project) => cutoffs.own.has(project)) });
    } else dropped.push(outcome);
  }
  return { dropped, unfinished, kept, locked, left };
}

interface OldDay {
  readonly day: string;
  readonly tables: Readonly<Partial<Record<(typeof PARENTS)[number], string>>>;
}

/**
 * Returns the days before `before` that have partitions, oldest first. Reads only the catalogue.
 */
async function oldDays(client: pg.PoolClient, before: Date): Promise<OldDay[]> {
  const { rows } = await client.query<OldDay>(
    `select to_char(to_date(right(c.relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') as day, json_object_agg(p.relname, c.relname) as tables
       from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
      where i.inhparent = any ($2::regclass[])
        and c.relname ~ ('^' || p.relname || '_[0-9]{8}$') and right(c.relname, 8) < $1
      group by 1 order by 1`,
    [before.toISOString().slice(0, 10).replaceAll('-', ''), PARENTS],
  );
  return rows;
}

/**
 * Returns the projects with rows in a day, or none if no project has its own retention, because all
 * then expire together.
 */
async function projectsOf(
  client: pg.PoolClient,
  { tables }: OldDay,
  cutoffs: Cutoffs,
): Promise<string[]> {
  if (cutoffs.own.size === 0) return [];
  const { rows } = await client.query<{ id: string }>(projectsIn(Object.values(tables)));
  return rows.map(({ id }) => id);
}

/**
 * Returns the query for the projects with rows in these tables, with one primary key probe per
 * project and table.
 */
export function projectsIn(tables: readonly string[]): string {
  const next = (table: string) =>
    `(select project_id from ${table} where project_id > p.id order by project_id limit 1)`;
  return `with recursive p as (
            select '${FIRST}'::uuid as id
            union all
            select least(${tables.map(next).join(', ')}) from p where p.id is not null)
          select id from p where id > '${FIRST}'`;
}

async function dropDay(
  client: pg.PoolClient,
  old: OldDay,
  cutoffs: Cutoffs,
  signal?: AbortSignal,
): Promise<DroppedDay | 'stays' | undefined> {
  // First check without a lock, so that no statement waits for a day that cannot be dropped.
  if (await isUnfinished(client, old.day)) return 'stays';
  for (let tries = 1; ; tries++) {
    const outcome = await withLockTimeout(client, LOCK_MS, () => dropLocked(client, old, cutoffs));
    if (outcome !== undefined || tries === TRIES || signal?.aborted) return outcome;
    await sleep(PAUSE_MS * tries);
  }
}

/**
 * Drops the partitions of a day, unless it must remain. Locks the parents in access exclusive mode,
 * as dropping a partition does anyway: with a default partition, none can be detached concurrently.
 * The locks last for probes of partial indexes and the drop, during which no row can be added to
 * the day.
 */
async function dropLocked(
  client: pg.PoolClient,
  old: OldDay,
  cutoffs: Cutoffs,
): Promise<DroppedDay | 'stays'> {
  const { day, tables } = old;
  const counted = await countsOf(client, tables);
  await client.query(
    `lock table ${PARENTS.map((parent) => `only ${parent}`).join(', ')} in access exclusive mode`,
  );
  if (await isUnfinished(client, day)) return 'stays';
  // Since the projects were read, one that keeps the day may have written to it or changed its
  // retention.
  const latest = await cutoffs.again();
  if ((await projectsOf(client, old, latest)).some((project) => !isExpired(latest, project, day)))
    return 'stays';
  await client.query(`drop table ${Object.values(tables).join(', ')}`);
  const [events, eventDeliveries, deliveryAttempts] = PARENTS.map(
    (parent) => counted.get(tables[parent] ?? '') ?? null,
  );
  return {
    day,
    events: events ?? null,
    eventDeliveries: eventDeliveries ?? null,
    deliveryAttempts: deliveryAttempts ?? null,
  };
}

async function isUnfinished(client: pg.PoolClient, day: string): Promise<boolean> {
  const { rows } = await client.query<{ unfinished: boolean }>(unfinished(day));
  return rows[0]!.unfinished;
}

/**
 * Returns the query for whether a day (`2026-01-31`) has unfinished rows, in its own or the default
 * partitions. Probes partial indexes of unfinished rows.
 */
export function unfinished(day: string): string {
  const within = duringDay('occurred_at', day);
  return `select exists (select from events where status = 'pending' and ${within})
              or exists (select from event_deliveries where status in ('scheduled', 'retry') and ${within})
              or exists (select from event_deliveries where status = 'processing' and ${within}) as unfinished`;
}

/** Returns estimated row counts by table name. Exact counts would read all rows. */
async function countsOf(
  client: pg.PoolClient,
  tables: OldDay['tables'],
): Promise<Map<string, number | null>> {
  const { rows } = await client.query<{ name: string; rows: number | null }>(
    `select relname as name, case when reltuples >= 0 then reltuples::float8 end as rows from pg_class where oid = any ($1::regclass[])`,
    [Object.values(tables)],
  );
  return new Map(rows.map(({ name, rows }) => [name, rows]));
}
