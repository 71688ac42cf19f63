import type pg from 'pg';
import { idBound } from '../pagination/log-page.js';
import { timeOfId } from '@gateway/core/events';
import { sharesTime } from '../events/event-ref.js';
import type { ArchiveFirst } from './archive-first.js';
import { DAY_MS, type Cutoffs } from './cutoffs.js';
import { DEFAULT, idsOfDay, ofDay, type Partitions } from './partitions.js';

const BATCH = 1_000;
export const FIRST = idBound(0, '0');

interface DayToDelete {
  readonly day: string;
  readonly project: string;
  readonly before: Date;
  /** None is deleted before it is archived. */
  readonly archiving: ArchiveFirst | undefined;
  readonly signal: AbortSignal | undefined;
}

/**
 * Expired finished rows of a day whose partitions remain, except those written since the cutoff.
 * Returns their number.
 */
export async function deleteFinishedOfDay(
  client: pg.PoolClient,
  { day, project, before, archiving, signal }: DayToDelete,
  place = ofDay(day),
): Promise<number> {
  const events = { projectId: project, day, partitions: place };
  if (archiving && !(await archiving.saveFinished(events, before))) return 0;
  const [after, until] = idsOfDay(day);
  let deleted = 0;
  for (const statement of [
    deliveriesStatement(place),
    eventsStatement(place),
    messagesStatement(place),
  ])
    deleted += await inBatches(client, statement, [project, after, until, before], signal);
  return deleted;
}

/**
 * In the default partitions, and expired messages in quarantine: replayed and discarded ones, and
 * those of deleted projects. Returns their number.
 */
export async function deleteFinishedElsewhere(
  client: pg.PoolClient,
  cutoffs: Cutoffs,
  { archiving, signal }: Partial<Pick<DayToDelete, 'archiving' | 'signal'>> = {},
): Promise<number> {
  const statements = [
    ...(archiving ? [] : [deliveriesStatement(DEFAULT), eventsStatement(DEFAULT)]),
    messagesStatement(DEFAULT),
  ];
  // Earlier versions stored events under any broker time up to 2200. Such rows expire by when they
  // were written.
  const [ahead, last] = [idBound(Date.now() + 2 * DAY_MS, '0'), idBound(Date.UTC(2200, 0, 2), '0')];
  let deleted = 0;
  for (
    let project = await nextProject(client, FIRST);
    project !== null;
    project = await nextProject(client, project)
  ) {
    const before = cutoffs.of(project);
    const until = idBound(before.getTime(), '0');
    for (const [from, to] of [
      [FIRST, until],
      [ahead, last],
    ] as const) {
      if (archiving)
        for await (const day of daysWithEvents(client, project, from, to))
          deleted += await deleteFinishedOfDay(
            client,
            { day, project, before, archiving, signal },
            DEFAULT,
          );
      for (const statement of statements)
        deleted += await inBatches(client, statement, [project, from, to, before], signal);
    }
    const quarantined = quarantinedStatement(cutoffs.deletedProjects.has(project));
    deleted += await inBatches(client, quarantined, [project, FIRST, until, before], signal);
    await client.query('delete from message_arrivals where project_id = $1 and arrived_at < $2', [
      project,
      before,
    ]);
    if (signal?.aborted) break;
  }
  return deleted;
}

async function* daysWithEvents(
  client: pg.PoolClient,
  project: string,
  from: string,
  to: string,
): AsyncGenerator<string> {
  for (let after = from; ;) {
    const { rows } = await client.query<{ id: string }>(
      'select id from events_default where project_id = $1 and id > $2 and id <= $3 order by id limit 1',
      [project, after, to],
    );
    if (!rows[0]) return;
    const day = new Date(timeOfId(rows[0].id)).toISOString().slice(0, 10);
    yield day;
    [, after] = idsOfDay(day);
  }
}

/** One primary key probe per table. */
async function nextProject(client: pg.PoolClient, after: string): Promise<string | null> {
  const first = (table: string) =>
    `(select project_id from ${table} where project_id > $1 order by project_id limit 1)`;
  const tables = [
    'events_default',
    'event_deliveries_default',
    'event_messages_default',
    'quarantined_messages',
    'message_arrivals',
  ];
  const { rows } = await client.query<{ id: string | null }>(
    `select project_id as id from (${tables.map(first).join(' union all ')}) p order by 1 limit 1`,
    [after],
  );
  return rows[0]?.id ?? null;
}

/*
 * Ids start with the message's time: the primary key scans a project's old rows in order. Each
 * statement reads the next BATCH of them, finished or not, and returns the last id. Every table
 * repeats the bounds, or a plan could read more.
 * $1 project, $2 id before the batch, $3 upper bound of ids, $4 rows written since then remain.
 */
function deleting(
  table: string,
  { within }: Pick<Partitions, 'within'>,
  gone: string,
  counted = 'gone',
): string {
  return `
  with batch as materialized (
    select id as last
      from (select id from ${table} t where project_id = $1 and id > $2 and id < $3 ${within('t')} order by id limit ${BATCH}) b
     order by id desc limit 1),
  ${gone}
  select (select count(*)::int from ${counted}) as deleted, (select last from batch) as last`;
}

/** A row of the batch, by its id. */
const ofBatch = (row: string, id = 'id') =>
  `${row}.project_id = $1 and ${row}.${id} > $2 and ${row}.${id} <= (select last from batch)`;

/** With their attempts. Locks the deleted rows, skipping deliveries that are being queued again. */
export function deliveriesStatement(partitions: Partitions): string {
  const { suffix, within } = partitions;
  const table = `event_deliveries${suffix}`;
  return deleting(
    table,
    partitions,
    `old as materialized (
    select id, occurred_at from ${table} t where ${ofBatch('t')} ${within('t')}
       and created_at < $4 and status in ('success', 'failure', 'discarded') for update skip locked),
  gone as (
    delete from ${table} d using old where ${ofBatch('d')} ${within('d')} and d.id = old.id and d.occurred_at = old.occurred_at),
  attempts as (
    delete from delivery_attempts${suffix} a using old where ${ofBatch('a', 'event_delivery_id')} ${within('a')}
       and a.event_delivery_id = old.id and a.occurred_at = old.occurred_at)`,
    'old',
  );
}

/**
 * Without deliveries, which may be in a newer partition than the event. Locks the deleted rows.
 * Each event is probed separately, because a join could read all deliveries.
 */
export function eventsStatement(partitions: Partitions): string {
  const { suffix, within } = partitions;
  const table = `events${suffix}`;
  return deleting(
    table,
    partitions,
    `gone as (
    delete from ${table} e where ${ofBatch('e')} ${within('e')} and e.accepted_at < $4 and e.status <> 'pending'
       and (select 1 from event_deliveries d
             where d.project_id = $1 and ${sharesTime('d.id', 'e.id')} ${within('d')} and d.occurred_at = e.occurred_at
               and d.event_id = e.id
             order by d.id limit 1) is null
    returning 1)`,
  );
}

/** Without an event of the same time. Locks the deleted rows. */
export function messagesStatement(partitions: Partitions): string {
  const { suffix, within } = partitions;
  const table = `event_messages${suffix}`;
  return deleting(
    table,
    partitions,
    `gone as (
    delete from ${table} m where ${ofBatch('m')} ${within('m')}
       and (m.occurred_at < $4 or m.occurred_at > now() + interval '1 day')
       and (select 1 from events${suffix} e
             where e.project_id = $1 and ${sharesTime('e.id', 'm.id')} ${within('e')} and e.occurred_at = m.occurred_at
             order by e.id limit 1) is null
    returning 1)`,
  );
}

function quarantinedStatement(isOfDeletedProject: boolean): string {
  const isOver = isOfDeletedProject ? '' : `and status in ('replayed', 'discarded')`;
  return deleting(
    'quarantined_messages',
    DEFAULT,
    `gone as (delete from quarantined_messages q where ${ofBatch('q')} and updated_at < $4 ${isOver} returning 1)`,
  );
}

async function inBatches(
  client: pg.PoolClient,
  statement: string,
  [project, after, until, before]: readonly [string, string, string, Date],
  signal: AbortSignal | undefined,
): Promise<number> {
  let total = 0;
  for (let from: string | null = after; from !== null && !signal?.aborted;) {
    const { rows }: pg.QueryResult<{ deleted: number; last: string | null }> = await client.query(
      statement,
      [project, from, until, before],
    );
    total += rows[0]!.deleted;
    from = rows[0]!.last;
  }
  return total;
}
