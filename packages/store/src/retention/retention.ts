import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { ArchiveFirst, type Archive, type NotArchived } from './archive-first.js';
import { deleteFinishedElsewhere, deleteFinishedOfDay, FIRST } from './delete-finished.js';
import { withAdvisoryLock, withLockTimeout } from '../postgres/advisory-lock.js';
import { controlBeside, type Planes } from '../postgres/planes.js';
import { duringDay, isExpired, readCutoffs, type Cutoffs } from './cutoffs.js';

/** In UTC (`2026-01-31`). A count is null if Postgres has no estimate. */
export interface DroppedDay {
  readonly day: string;
  readonly events: number | null;
  readonly event_deliveries: number | null;
  readonly delivery_attempts: number | null;
}

export interface Retention {
  readonly dropped: readonly DroppedDay[];
  readonly unfinished: readonly string[];
  /** Expired, but not for a project with rows in them. */
  readonly kept: readonly string[];
  /** A lock was unavailable, as during a backup. The next run continues. */
  readonly locked: boolean;
  /** Without dropped days. */
  readonly rowsDeleted: number;
  readonly notArchived?: NotArchived;
}

const NOTHING: Retention = { dropped: [], unfinished: [], kept: [], locked: false, rowsDeleted: 0 };
/** Every transaction locks the partitioned tables in this order. */
export const PARENTS = [
  'events',
  'event_deliveries',
  'delivery_attempts',
  'event_messages',
] as const;
const DETACHED = '_expired';
const LOCK_MS = 200;
const TRIES = 4;
const PAUSE_MS = 200;

/**
 * Deletes rows whose message is older than `days` whole UTC days or the project's own retention.
 * Runs in one process at a time. Drops a day's partitions once it has expired for all projects with
 * rows in it and all its rows are finished; until then, deletes finished rows per project, as in
 * the default partitions. `now` defaults to the database's time, because an agent with a wrong
 * clock would delete too much. With `archive`, nothing is deleted before it is archived.
 */
export async function applyRetention(
  planes: Planes,
  {
    days,
    now,
    archive,
    signal,
  }: { days: number; now?: Date; archive?: Archive | undefined; signal?: AbortSignal },
): Promise<Retention> {
  const done = await withAdvisoryLock(planes.data, 'gateway.retention', async (client) => {
    const cutoffs = await readCutoffs(controlBeside(planes, client), { days, now });
    if (!archive) await client.query('delete from archive_failure');
    const archiving = archive && new ArchiveFirst(client, { archive, cutoffs, signal });
    const { left, ...outcome } = await dropDays(client, cutoffs, { archiving, signal });
    let rowsDeleted = 0;
    for (const { day, projects } of left) {
      for (const project of projects) {
        if (signal?.aborted) break;
        // Deleting may take long, and the retention may have been extended meanwhile.
        const latest = await cutoffs.again();
        if (isExpired(latest, project, day))
          rowsDeleted += await deleteFinishedOfDay(client, {
            day,
            project,
            before: latest.of(project),
            archiving,
            signal,
          });
      }
    }
    rowsDeleted += await deleteFinishedElsewhere(client, cutoffs, { archiving, signal });
    await archiving?.end();
    return {
      ...outcome,
      rowsDeleted,
      ...(archiving && { notArchived: archiving }),
    };
  });
  return done ?? NOTHING;
}

interface Run {
  readonly archiving: ArchiveFirst | undefined;
  readonly signal: AbortSignal | undefined;
}

interface LeftDay {
  readonly day: string;
  readonly projects: readonly string[];
}

async function dropDays(
  client: pg.PoolClient,
  cutoffs: Cutoffs,
  run: Run,
): Promise<Omit<Retention, 'rowsDeleted'> & { left: readonly LeftDay[] }> {
  const { archiving, signal } = run;
  const dropped: DroppedDay[] = [];
  const unfinished: string[] = [];
  const kept: string[] = [];
  const left: LeftDay[] = [];
  let locked = false;
  for (const detached of await detachedDays(client)) {
    if (signal?.aborted) break;
    const outcome = await dropDetached(client, detached, cutoffs, archiving);
    if (outcome) dropped.push(outcome);
  }
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
    if (locked || archiving?.keeps(day)) continue;
    const outcome = await dropDay(client, old, cutoffs, run);
    if (outcome === undefined) locked = true;
    else if (outcome === 'stays') {
      unfinished.push(day);
      left.push({ day, projects: over.filter((project) => cutoffs.own.has(project)) });
    } else if (outcome !== 'waits') dropped.push(outcome);
  }
  return { dropped, unfinished, kept, locked, left };
}

interface OldDay {
  readonly day: string;
  readonly tables: Readonly<Partial<Record<(typeof PARENTS)[number], string>>>;
}

/** Days with partitions, oldest first. Reads only the catalogue. */
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

/** Their events may not be archived yet. Oldest first. */
async function detachedDays(client: pg.PoolClient): Promise<OldDay[]> {
  const { rows } = await client.query<OldDay>(
    `select to_char(to_date(substr(c.relname, length(p.relname) + 2, 8), 'YYYYMMDD'), 'YYYY-MM-DD') as day, json_object_agg(p.relname, c.relname) as tables
       from pg_class p join pg_class c on c.relnamespace = p.relnamespace and c.relname ~ ('^' || p.relname || '_[0-9]{8}${DETACHED}$')
      where p.oid = any ($1::regclass[]) group by 1 order by 1`,
    [PARENTS],
  );
  return rows;
}

/** None if no project has its own retention: all then expire together. */
async function projectsOf(
  client: pg.PoolClient,
  { tables }: OldDay,
  cutoffs: Cutoffs,
): Promise<string[]> {
  if (cutoffs.own.size === 0) return [];
  const { rows } = await client.query<{ id: string }>(projectsIn(Object.values(tables)));
  return rows.map(({ id }) => id);
}

/** One primary key probe per project and table. */
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
  { archiving, signal }: Run,
): Promise<DroppedDay | 'stays' | 'waits' | undefined> {
  // Without a lock first, so that no statement waits for a day that cannot be dropped.
  if (await isUnfinished(client, old.day)) return 'stays';
  for (let tries = 1; ; tries++) {
    const outcome = await withLockTimeout<DroppedDay | OldDay | 'stays'>(client, LOCK_MS, () =>
      takeLocked<DroppedDay | OldDay>(client, old, cutoffs, archiving ? detach : drop),
    );
    if (typeof outcome === 'object' && 'tables' in outcome)
      return (await dropDetached(client, outcome, cutoffs, archiving)) ?? 'waits';
    if (outcome !== undefined || tries === TRIES || signal?.aborted) return outcome;
    await sleep(PAUSE_MS * tries);
  }
}

/** Undefined if the day must wait for the archive. Takes no lock that others wait for. */
async function dropDetached(
  client: pg.PoolClient,
  { day, tables }: OldDay,
  cutoffs: Cutoffs,
  archiving: ArchiveFirst | undefined,
): Promise<DroppedDay | undefined> {
  if (archiving && tables.events !== undefined) {
    const suffix = tables.events.slice('events'.length);
    const events = { day, partitions: { suffix, within: () => '' } };
    const { rows } = await client.query<{ id: string }>(projectsIn([tables.events]));
    const saved: string[] = [];
    for (const { id: projectId } of rows)
      if (await archiving.save({ ...events, projectId }, cutoffs.of(projectId)))
        saved.push(projectId);
    if (saved.length < rows.length) {
      // The tables stay for the projects that wait, without the rows of the others.
      for (const table of Object.values(tables))
        await client.query(`delete from ${table} where project_id = any ($1)`, [saved]);
      return undefined;
    }
  }
  return drop(client, { day, tables });
}

/**
 * Unless the day must remain. Locks the parents in access exclusive mode, as dropping or detaching
 * a partition does anyway: with a default partition, none can be detached concurrently. During
 * probes of partial indexes and `take`, no row can be added to the day.
 */
async function takeLocked<Taken>(
  client: pg.PoolClient,
  old: OldDay,
  cutoffs: Cutoffs,
  take: (client: pg.PoolClient, old: OldDay) => Promise<Taken>,
): Promise<Taken | 'stays'> {
  const { day } = old;
  await client.query(
    `lock table ${PARENTS.map((parent) => `only ${parent}`).join(', ')} in access exclusive mode`,
  );
  if (await isUnfinished(client, day)) return 'stays';
  // Since they were read, a project that keeps the day may have written to it or changed its
  // retention.
  const latest = await cutoffs.again();
  if ((await projectsOf(client, old, latest)).some((project) => !isExpired(latest, project, day)))
    return 'stays';
  return take(client, old);
}

async function drop(client: pg.PoolClient, { day, tables }: OldDay): Promise<DroppedDay> {
  const counted = await countsOf(client, tables);
  await client.query(`drop table ${Object.values(tables).join(', ')}`);
  const of = (parent: (typeof PARENTS)[number]) => counted.get(tables[parent] ?? '') ?? null;
  return {
    day,
    events: of('events'),
    event_deliveries: of('event_deliveries'),
    delivery_attempts: of('delivery_attempts'),
  };
}

/**
 * Nothing can change detached partitions while they are archived, and no statement waits. Returns
 * the renamed tables, one for each parent.
 */
async function detach(client: pg.PoolClient, { day, tables }: OldDay): Promise<OldDay> {
  const renamed = PARENTS.map((parent) => {
    const name = `${parent}_${day.replaceAll('-', '')}${DETACHED}`;
    return { parent, table: tables[parent], name };
  });
  for (const { parent, table, name } of renamed)
    // One command each: Citus hands the text of a statement on, which may hold only one.
    if (table === undefined) await client.query(`create table ${name} (like ${parent})`);
    else {
      await client.query(`alter table ${parent} detach partition ${table}`);
      await client.query(`alter table ${table} rename to ${name}`);
    }
  return {
    day,
    tables: Object.fromEntries(renamed.map(({ parent, name }) => [parent, name])),
  };
}

async function isUnfinished(client: pg.PoolClient, day: string): Promise<boolean> {
  const { rows } = await client.query<{ unfinished: boolean }>(unfinished(day));
  return rows[0]!.unfinished;
}

/** In its own or the default partitions. Probes partial indexes of unfinished rows. */
export function unfinished(day: string): string {
  const within = duringDay('occurred_at', day);
  return `select exists (select from events where status = 'pending' and ${within})
              or exists (select from event_deliveries where status in ('scheduled', 'retry') and ${within})
              or exists (select from event_deliveries where status = 'processing' and ${within}) as unfinished`;
}

/** Estimates: exact counts would read all rows. */
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
