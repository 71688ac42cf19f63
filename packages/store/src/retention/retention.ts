import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { deleteFinishedElsewhere, deleteFinishedOfDay, FIRST } from './delete-finished.js';
import { withAdvisoryLock, withLockTimeout } from '../postgres/advisory-lock.js';
import { duringDay, isExpired, readCutoffs, type Cutoffs } from './cutoffs.js';

/** A day that is gone. */
export interface DroppedDay {
  /** `2026-01-31`, in UTC. */
  readonly day: string;
  /** About how many rows it had; null when Postgres had not counted them. */
  readonly events: number | null;
  readonly eventDeliveries: number | null;
  readonly deliveryAttempts: number | null;
}

export interface Retention {
  readonly dropped: readonly DroppedDay[];
  /** Days that are old enough and have work that is not finished. */
  readonly unfinished: readonly string[];
  /** Days that are older than the instance keeps, and have rows of a project that keeps them for longer. */
  readonly kept: readonly string[];
  /** Somebody held a lock for long, such as a backup: what is left is for the next time. */
  readonly locked: boolean;
  /** Finished rows that were deleted beside the days: of projects in days that stay, of the default partitions, and messages that were replayed or discarded. */
  readonly rowsDeleted: number;
}

const NOTHING: Retention = { dropped: [], unfinished: [], kept: [], locked: false, rowsDeleted: 0 };
/** All three, in the order in which every transaction of ours takes them. */
const PARENTS = ['events', 'event_deliveries', 'delivery_attempts'] as const;
/** For how long a table is waited for at a time. */
const LOCK_MS = 200;
const TRIES = 4;
const PAUSE_MS = 200;

/**
 * Forgets what is older than so many whole days before today (UTC), by the time of the message: whole days of events, event deliveries and delivery
 * attempts, and the finished ones among the rows for which there was no day. A day with an event that is not routed or a delivery that is not over
 * stays.
 *
 * Projects that say so keep their rows for fewer days, or for more. A day goes when it is old enough for every project that has rows in it. While it stays
 * for one project, the finished rows of those for which it is old are deleted.
 *
 * Any number of agents may call it: one at a time does the work.
 *
 * @param days whole days, for projects that say nothing
 * @param now what counts as now; by default the time of the database, since an agent with a wrong clock would forget too much
 * @param signal ends it at the end of the statement that is under way
 */
export async function applyRetention(
  pool: pg.Pool,
  { days, now, signal }: { days: number; now?: Date; signal?: AbortSignal },
): Promise<Retention> {
  const done = await withAdvisoryLock(pool, 'gateway.retention', async (client) => {
    const times = await readCutoffs(client, { days, now });
    const { left, ...outcome } = await dropDays(client, times, signal);
    let rowsDeleted = 0;
    for (const { day, projects } of left) {
      for (const project of projects) {
        if (signal?.aborted) break;
        // Asked anew, since millions of rows may have been deleted meanwhile: whoever keeps for longer by now loses nothing more.
        const latest = await times.again();
        if (isExpired(latest, project, day))
          rowsDeleted += await deleteFinishedOfDay(client, { day, project, before: latest.of(project), signal });
      }
    }
    return { ...outcome, rowsDeleted: rowsDeleted + (await deleteFinishedElsewhere(client, times, signal)) };
  });
  return done ?? NOTHING;
}

/** A day that stays, with the projects whose finished rows are old in it. */
interface LeftDay {
  readonly day: string;
  readonly projects: readonly string[];
}

async function dropDays(
  client: pg.PoolClient,
  times: Cutoffs,
  signal?: AbortSignal,
): Promise<Omit<Retention, 'rowsDeleted'> & { left: readonly LeftDay[] }> {
  const [dropped, unfinished, kept, left]: [DroppedDay[], string[], string[], LeftDay[]] = [[], [], [], []];
  let locked = false;
  for (const old of await oldDays(client, times.youngest)) {
    if (signal?.aborted) break;
    const { day } = old;
    const projects = await projectsOf(client, old, times);
    const over = projects.filter((project) => isExpired(times, project, day));
    if (over.length < projects.length) {
      if (isExpired(times, undefined, day)) kept.push(day);
      left.push({ day, projects: over });
      continue;
    }
    // Nobody has rows in it yet; somebody may.
    if (projects.length === 0 && !isExpired(times, undefined, day)) continue;
    if (locked) continue;
    const outcome = await dropDay(client, old, times, signal);
    if (outcome === undefined) locked = true;
    else if (outcome === 'stays') {
      unfinished.push(day);
      left.push({ day, projects: over.filter((project) => times.own.has(project)) });
    } else dropped.push(outcome);
  }
  return { dropped, unfinished, kept, locked, left };
}

interface OldDay {
  readonly day: string;
  /** Its partitions that are there, by the table they are of. */
  readonly tables: Readonly<Partial<Record<(typeof PARENTS)[number], string>>>;
}

/** Days that have partitions and are before that time, oldest first. Reads the catalogue alone. */
async function oldDays(client: pg.PoolClient, before: Date): Promise<OldDay[]> {
  const { rows } = await client.query<OldDay>(
    `select to_char(to_date(right(c.relname, 8), 'YYYYMMDD'), 'YYYY-MM-DD') as day, json_object_agg(p.relname, c.relname) as tables
       from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
      where i.inhparent = any (array['events', 'event_deliveries', 'delivery_attempts']::regclass[])
        and c.relname ~ ('^' || p.relname || '_[0-9]{8}$') and right(c.relname, 8) < $1
      group by 1 order by 1`,
    [before.toISOString().slice(0, 10).replaceAll('-', '')],
  );
  return rows;
}

/** The projects that have rows in the partitions of a day; none when none has days of its own, as then it does not matter. */
async function projectsOf(client: pg.PoolClient, { tables }: OldDay, times: Cutoffs): Promise<string[]> {
  if (times.own.size === 0) return [];
  const { rows } = await client.query<{ id: string }>(projectsIn(Object.values(tables)));
  return rows.map(({ id }) => id);
}

/** The question which projects have rows in these tables: one look at the primary key of each for every project, however many rows it has. */
export function projectsIn(tables: readonly string[]): string {
  const next = (table: string) => `(select project_id from ${table} where project_id > p.id order by project_id limit 1)`;
  return `with recursive p as (
            select '${FIRST}'::uuid as id
            union all
            select least(${tables.map(next).join(', ')}) from p where p.id is not null)
          select id from p where id > '${FIRST}'`;
}

/** Undefined when a lock could not be had. */
async function dropDay(
  client: pg.PoolClient,
  old: OldDay,
  times: Cutoffs,
  signal?: AbortSignal,
): Promise<DroppedDay | 'stays' | undefined> {
  // Without a lock first: nobody waits for a day that stays anyway.
  if (await isUnfinished(client, old.day)) return 'stays';
  for (let tries = 1; ; tries++) {
    const outcome = await withLockTimeout(client, LOCK_MS, () => dropLocked(client, old, times));
    if (outcome !== undefined || tries === TRIES || signal?.aborted) return outcome;
    await sleep(PAUSE_MS * tries);
  }
}

/**
 * Takes access exclusive on the three parents, as the drop of a partition does anyway, for a look at partial indexes and the drop: beside a default
 * partition none can be detached concurrently. With the locks held nothing can come into the day any more.
 */
async function dropLocked(client: pg.PoolClient, old: OldDay, times: Cutoffs): Promise<DroppedDay | 'stays'> {
  const { day, tables } = old;
  const counted = await countsOf(client, tables);
  await client.query('lock table only events, only event_deliveries, only delivery_attempts in access exclusive mode');
  if (await isUnfinished(client, day)) return 'stays';
  // Somebody who keeps it may have written to it since, or have said so just now.
  const latest = await times.again();
  if ((await projectsOf(client, old, latest)).some((project) => !isExpired(latest, project, day))) return 'stays';
  await client.query(`drop table ${Object.values(tables).join(', ')}`);
  const [events, eventDeliveries, deliveryAttempts] = PARENTS.map((parent) => counted.get(tables[parent] ?? '') ?? null);
  return { day, events: events ?? null, eventDeliveries: eventDeliveries ?? null, deliveryAttempts: deliveryAttempts ?? null };
}

async function isUnfinished(client: pg.PoolClient, day: string): Promise<boolean> {
  const { rows } = await client.query<{ unfinished: boolean }>(unfinished(day));
  return rows[0]!.unfinished;
}

/**
 * The question whether a day has an event that is not routed, or a delivery that is not over, be they in its partitions or in the default ones. Reads
 * partial indexes that hold nothing else. The day is written out, so that the planner sees which partitions to leave alone.
 *
 * @param day `2026-01-31`
 */
export function unfinished(day: string): string {
  const within = duringDay('occurred_at', day);
  return `select exists (select from events where status = 'pending' and ${within})
              or exists (select from event_deliveries where status in ('scheduled', 'retry') and ${within})
              or exists (select from event_deliveries where status = 'processing' and ${within}) as unfinished`;
}

/** What Postgres thinks that tables hold, by their names; counting would read them. */
async function countsOf(client: pg.PoolClient, tables: OldDay['tables']): Promise<Map<string, number | null>> {
  const { rows } = await client.query<{ name: string; rows: number | null }>(
    `select relname as name, case when reltuples >= 0 then reltuples::float8 end as rows from pg_class where oid = any ($1::regclass[])`,
    [Object.values(tables)],
  );
  return new Map(rows.map(({ name, rows }) => [name, rows]));
}
