import type { Knex } from 'knex';
import type pg from 'pg';
import { readRows, type PageRequest, type PageResult } from '../pagination/page.js';

/** An event that is delivered later. */
export interface ScheduledEvent {
  readonly projectId: string;
  /** Its time is `deliverAt`. */
  readonly id: string;
  readonly deliverAt: Date;
  readonly eventType: string;
  readonly messageType: 'single' | 'fanout' | 'broadcast';
  readonly endpointId: string | null;
  readonly ownerId: string | null;
  readonly idempotencyKey: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: string;
}

export interface ScheduledRow {
  readonly project_id: string;
  readonly id: string;
  readonly deliver_at: Date;
  readonly created_at: Date;
  readonly event_type: string;
  readonly message_type: ScheduledEvent['messageType'];
  readonly endpoint_id: string | null;
  readonly owner_id: string | null;
  readonly idempotency_key: string | null;
  readonly data_bytes: number;
}

const COLUMNS =
  'project_id id deliver_at created_at event_type message_type endpoint_id owner_id idempotency_key'.split(
    ' ',
  );

/** Events that a run of an agent makes. */
const DUE_MAX = 100;
/** How long a claim lasts. */
const MAKING = "interval '1 minute'";

/**
 * Returns the id of the event, or of the one that has its idempotency key. Undefined if the project
 * has `max`; concurrent inserts can exceed it.
 */
export async function insertScheduled(
  pool: pg.Pool,
  it: ScheduledEvent,
  max: number,
): Promise<{ readonly id: string; readonly duplicate: boolean } | undefined> {
  const insert = () =>
    pool.query<{ id: string; duplicate: boolean }>(
      `with same as (select id from scheduled_events where project_id = $1 and idempotency_key = $8),
     added as (
       insert into scheduled_events (project_id, id, deliver_at, due_at, event_type, message_type, endpoint_id, owner_id, idempotency_key, headers, data)
       select $1, $2, $3, $3, $4, $5, $6, $7, $8, $9, $10
       where not exists (select from same)
         and (select count(*) from (select from scheduled_events where project_id = $1 limit $11) s) < $11
       on conflict do nothing returning id
     )
     select id, false as duplicate from added union all select id, true from same`,
      [
        it.projectId,
        it.id,
        it.deliverAt,
        it.eventType,
        it.messageType,
        it.endpointId,
        it.ownerId,
        it.idempotencyKey,
        JSON.stringify(it.headers),
        it.data,
        max,
      ],
    );
  const { rows } = await insert();
  // A concurrent insert of the same key is not seen at first.
  return rows[0] ?? (it.idempotencyKey === null ? undefined : (await insert()).rows[0]);
}

const ofProject = (knex: Knex, projectId: string) =>
  knex('scheduled_events').where({ project_id: projectId });

/** By the time of their delivery. */
export function listScheduled(
  knex: Knex,
  projectId: string,
  page: PageRequest,
): Promise<PageResult<ScheduledRow>> {
  const bytes = knex.raw('octet_length(data) as data_bytes');
  return readRows(ofProject(knex, projectId), [...COLUMNS, bytes], page);
}

export async function findScheduled(
  knex: Knex,
  projectId: string,
  id: string,
): Promise<(ScheduledRow & { readonly headers: object; readonly data: string }) | undefined> {
  const bytes = knex.raw('octet_length(data) as data_bytes');
  return ofProject(knex, projectId)
    .where({ id })
    .first(...COLUMNS, 'headers', 'data', bytes);
}

/** False if it is due, or not there. */
export async function moveScheduled(
  pool: pg.Pool,
  { projectId, id }: Pick<ScheduledEvent, 'projectId' | 'id'>,
  to: Pick<ScheduledEvent, 'id' | 'deliverAt'>,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    `update scheduled_events set id = $3, deliver_at = $4, due_at = $4
     where project_id = $1 and id = $2 and deliver_at > now()`,
    [projectId, id, to.id, to.deliverAt],
  );
  return rowCount === 1;
}

/** False if it is due, or not there. */
export async function cancelScheduled(
  pool: pg.Pool,
  { projectId, id }: Pick<ScheduledEvent, 'projectId' | 'id'>,
): Promise<boolean> {
  const { rowCount } = await pool.query(
    'delete from scheduled_events where project_id = $1 and id = $2 and deliver_at > now()',
    [projectId, id],
  );
  return rowCount === 1;
}

/** Due events of projects on these shards, earliest first. They are due again after a minute. */
export async function claimScheduled(
  pool: pg.Pool,
  shards: readonly string[],
): Promise<{ readonly events: readonly ScheduledEvent[]; readonly isFull: boolean }> {
  const { rows } = await pool.query<ScheduledEvent>({
    name: 'claim-scheduled',
    text: `with due as (
             select s.project_id, s.id from scheduled_events s join projects p on p.id = s.project_id
             where s.due_at <= now() and p.deleted_at is null and p.shard = any ($1::text[])
             order by s.due_at limit ${DUE_MAX} for update of s skip locked
           )
           update scheduled_events s set due_at = now() + ${MAKING} from due
           where s.project_id = due.project_id and s.id = due.id
           returning s.project_id as "projectId", s.id, s.deliver_at as "deliverAt", s.event_type as "eventType", s.message_type as "messageType",
             s.endpoint_id as "endpointId", s.owner_id as "ownerId", s.idempotency_key as "idempotencyKey", s.headers, s.data`,
    values: [shards],
  });
  const events = rows.sort((a, b) => Number(a.deliverAt) - Number(b.deliverAt));
  return { events, isFull: rows.length === DUE_MAX };
}

/** After they have become events. */
export async function deleteScheduled(
  pool: pg.Pool,
  events: readonly Pick<ScheduledEvent, 'projectId' | 'id'>[],
): Promise<void> {
  await pool.query(
    `delete from scheduled_events s using unnest($1::uuid[], $2::uuid[]) as d(project_id, id)
     where s.project_id = d.project_id and s.id = d.id`,
    [events.map(({ projectId }) => projectId), events.map(({ id }) => id)],
  );
}
