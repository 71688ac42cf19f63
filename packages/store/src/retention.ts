import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { idAt } from './log-page.js';
import { oneAtATime, waitingBriefly } from './one-at-a-time.js';

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
  /** Somebody held a lock for long, such as a backup: what is left is for the next time. */
  readonly locked: boolean;
  /** Finished rows that were deleted beside the days: of the default partitions, and messages that were replayed or discarded. */
  readonly rowsDeleted: number;
}

const NOTHING: Retention = { dropped: [], unfinished: [], locked: false, rowsDeleted: 0 };
const DAY_MS = 86_400_000;
/** All three, in the order in which every transaction of ours takes them. */
const PARENTS = ['events', 'event_deliveries', 'delivery_attempts'] as const;
/** For how long a table is waited for at a time. */
const LOCK_MS = 200;
const TRIES = 4;
const PAUSE_MS = 200;
/** Rows that one statement deletes. */
const BATCH = 1_000;

/**
 * Forgets what is older than so many whole days before today (UTC), by the time of the message: whole days of events, event deliveries and delivery
 * attempts, and the finished ones among the rows for which there was no day. A day with an event that is not routed or a delivery that is not over
 * stays. Any number of agents may call it: one at a time does the work.
 *
 * @param now what counts as now; by default the time of the database, since an agent with a wrong clock would forget too much
 * @param signal ends it at the end of the statement that is under way
 */
export async function forgetOld(
  pool: pg.Pool,
  { days, now, signal }: { days: number; now?: Date; signal?: AbortSignal },
): Promise<Retention> {
  const done = await oneAtATime(pool, 'gateway.retention', async (client) => {
    const { rows } = await client.query<{ now: Date }>('select coalesce($1::timestamptz, now()) as now', [now ?? null]);
    const before = new Date((Math.floor(rows[0]!.now.getTime() / DAY_MS) - days) * DAY_MS);
    return { ...(await dropDays(client, before, signal)), rowsDeleted: await deleteFinished(client, before, signal) };
  });
  return done ?? NOTHING;
}

async function dropDays(client: pg.PoolClient, before: Date, signal?: AbortSignal): Promise<Omit<Retention, 'rowsDeleted'>> {
  const dropped: DroppedDay[] = [];
  const unfinished: string[] = [];
  for (const old of await oldDays(client, before)) {
    if (signal?.aborted) break;
    const outcome = await dropDay(client, old, signal);
    if (outcome === undefined) return { dropped, unfinished, locked: true };
    if (outcome === 'unfinished') unfinished.push(old.day);
    else dropped.push(outcome);
  }
  return { dropped, unfinished, locked: false };
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

/** Undefined when a lock could not be had. */
async function dropDay(client: pg.PoolClient, old: OldDay, signal?: AbortSignal): Promise<DroppedDay | 'unfinished' | undefined> {
  // Without a lock first: nobody waits for a day that stays anyway.
  if (await isUnfinished(client, old.day)) return 'unfinished';
  for (let tries = 1; ; tries++) {
    const outcome = await waitingBriefly(client, LOCK_MS, () => dropLocked(client, old));
    if (outcome !== undefined || tries === TRIES || signal?.aborted) return outcome;
    await sleep(PAUSE_MS * tries);
  }
}

/**
 * Takes access exclusive on the three parents, as the drop of a partition does anyway, for a look at partial indexes and the drop: beside a default
 * partition none can be detached concurrently. With the locks held nothing can come into the day any more.
 */
async function dropLocked(client: pg.PoolClient, { day, tables }: OldDay): Promise<DroppedDay | 'unfinished'> {
  const counted = await countsOf(client, tables);
  await client.query('lock table only events, only event_deliveries, only delivery_attempts in access exclusive mode');
  if (await isUnfinished(client, day)) return 'unfinished';
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
  const within = `occurred_at >= '${day}T00:00Z' and occurred_at < '${new Date(Date.parse(day) + DAY_MS).toISOString()}'`;
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

/**
 * A day of an old message has no partition any more when the message comes, so that its rows are in the default partitions, beside those of days to
 * come. And messages in quarantine that somebody has replayed or discarded; those that wait for a person stay.
 */
async function deleteFinished(client: pg.PoolClient, before: Date, signal?: AbortSignal): Promise<number> {
  let deleted = 0;
  for (let project = await nextProject(client, idAt(0, '0')); project !== null; project = await nextProject(client, project)) {
    for (const statement of [DELETE_DELIVERIES, DELETE_EVENTS, DELETE_QUARANTINED]) {
      if (signal?.aborted) return deleted;
      deleted += await deleteBatches(client, { statement, project, before, signal });
    }
  }
  return deleted;
}

/** The next project with rows that may be deleted, by one look at each primary key; null after the last. */
async function nextProject(client: pg.PoolClient, after: string): Promise<string | null> {
  const first = (table: string) => `(select project_id from ${table} where project_id > $1 order by project_id limit 1)`;
  const tables = ['events_default', 'event_deliveries_default', 'quarantined_messages'];
  const { rows } = await client.query<{ id: string | null }>(
    `select project_id as id from (${tables.map(first).join(' union all ')}) p order by 1 limit 1`,
    [after],
  );
  return rows[0]?.id ?? null;
}

/*
 * Ids begin with the time of their message, so that the primary key finds the old ones of a project. Rows that were written lately stay, however old
 * their message is. A delivery that is made due again at this moment is locked, and is passed over. $1 project, $2 the id that old ones are before, $3 the
 * same as a time.
 */
const DELETE_DELIVERIES = `
  with old as materialized (
    select project_id, id, occurred_at from event_deliveries_default
     where project_id = $1 and id < $2 and created_at < $3 and status in ('success', 'failure', 'discarded') order by id limit ${BATCH}
       for update skip locked),
  gone as (
    delete from event_deliveries_default d using old
     where d.project_id = old.project_id and d.id = old.id and d.occurred_at = old.occurred_at),
  attempts as (
    delete from delivery_attempts_default a using old
     where a.project_id = old.project_id and a.event_delivery_id = old.id and a.occurred_at = old.occurred_at)
  select count(*)::int as deleted from old`;

/* The deliveries of an event begin with the same time; they may be in a partition that was made after the event came. */
const DELETE_EVENTS = `
  with gone as (
    delete from events_default
     where (project_id, id, occurred_at) in (
       select project_id, id, occurred_at from events_default e
        where project_id = $1 and id < $2 and accepted_at < $3 and status <> 'pending'
          and not exists (
            select from event_deliveries d
             where d.project_id = e.project_id and d.event_id = e.id and d.occurred_at = e.occurred_at
               and d.id between (left(e.id::text, 13) || '-0000-0000-000000000000')::uuid and (left(e.id::text, 13) || '-ffff-ffff-ffffffffffff')::uuid)
        order by id limit ${BATCH})
    returning 1)
  select count(*)::int as deleted from gone`;

const DELETE_QUARANTINED = `
  with gone as (
    delete from quarantined_messages
     where (project_id, id) in (
       select project_id, id from quarantined_messages
        where project_id = $1 and id < $2 and updated_at < $3 and status in ('replayed', 'discarded') order by id limit ${BATCH})
    returning 1)
  select count(*)::int as deleted from gone`;

async function deleteBatches(
  client: pg.PoolClient,
  { statement, project, before, signal }: { statement: string; project: string; before: Date; signal: AbortSignal | undefined },
): Promise<number> {
  for (let total = 0; ;) {
    const { rows } = await client.query<{ deleted: number }>(statement, [project, idAt(before.getTime(), '0'), before]);
    const { deleted } = rows[0]!;
    total += deleted;
    if (deleted < BATCH || signal?.aborted) return total;
  }
}
