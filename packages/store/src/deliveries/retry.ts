import type { Pool } from 'pg';
import { insertCountDeltas, unfinishedDeliveries } from '../counts/count-deltas.js';
import { databaseTime } from '../postgres/server-facts.js';
import { timeOfId } from '@gateway/core/events';
import type { EventDeliveryStatus } from './claims.js';
import { idBound, Values } from '../pagination/log-page.js';
import { GatewayError } from '@gateway/core/errors';

/** Status of which deliveries can be re-queued. What is `processing` is held by an agent, which ends it or gives it back. */
export type RetriedStatus = Exclude<EventDeliveryStatus, 'processing'>;

/** Which event deliveries are meant. */
export interface RetrySelection {
  readonly status: RetriedStatus;
  /** Deliveries whose message is of this time or later. */
  readonly from: Date;
  readonly projects: readonly RetryProject[];
  readonly eventId?: string | undefined;
  readonly endpointId?: string | undefined;
}

/**
 * What becomes of a delivery: it is due now, or when its paused endpoint is active again (`held`); or it is left alone, because its endpoint is
 * `inactive` or `deleted`, or because it is waiting already and is due, or held by a paused endpoint (`waiting`).
 */
export type RetryOutcome = 'due' | 'held' | 'inactive' | 'deleted' | 'waiting';

/** How many deliveries of an endpoint came to an outcome. */
export interface RetryTally {
  readonly projectId: string;
  readonly endpointId: string;
  /** Null when the row of the endpoint is gone. */
  readonly endpointName: string | null;
  readonly outcome: RetryOutcome;
  readonly count: number;
}

/** One short piece of the work, committed. */
export interface RetryStep {
  readonly tallies: readonly RetryTally[];
  /** How much of the time span of all projects is done, from 0 to 1. */
  readonly done: number;
}

/** Narrow rows that one read looks at, and deliveries that one commit changes. */
const LOOK = 10_000;
const BATCH = 1_000;

/**
 * Makes the selected deliveries due again, or counts what would be. They are gone through by the time of their messages, each once: a delivery that
 * changes after the beginning, by an agent or by another run of this, is left alone, so that none is queued twice. Each step is a commit of its own;
 * whoever stops reading stops the work between two of them.
 */
export async function* retryDeliveries(
  pool: Pool,
  selection: RetrySelection,
  { dryRun }: { dryRun: boolean },
): AsyncGenerator<RetryStep, void, void> {
  const began = await databaseTime(pool);
  const { projects, from } = selection;
  const spanMs = Math.max(1, Date.now() - from.getTime());
  for (const [k, { id: projectId }] of projects.entries()) {
    for (let after: string | undefined, more = true; more;) {
      const page = await readPage(pool, { ...selection, projectId, began, after });
      const done = page.last === null ? 1 : Math.min(1, Math.max(0, timeOfId(page.last) - from.getTime()) / spanMs);
      const step = (tallies: RetryTally[]): RetryStep => ({ tallies, done: (k + done) / projects.length });
      const wanted = page.groups.filter(({ outcome }) => outcome === 'due' || outcome === 'held');
      const left = (dryRun ? page.groups : page.groups.filter((group) => !wanted.includes(group))).map((group) => tally(projectId, group));
      yield step(left);
      const names = new Map(wanted.map((group) => [group.endpoint_id, group.endpoint_name]));
      const endpointIds = [...names.keys()];
      const ids = dryRun ? [] : wanted.flatMap((group) => group.ids).sort();
      for (let at = 0; at < ids.length; at += BATCH) {
        const changed = await requeue(pool, { projectId, status: selection.status, began, endpointIds, ids: ids.slice(at, at + BATCH) });
        yield step(changed.map((it) => ({ ...it, projectId, endpointName: names.get(it.endpointId) ?? null })));
      }
      more = page.looked_at === LOOK;
      after = page.last ?? undefined;
    }
  }
}

interface Group {
  readonly endpoint_id: string;
  readonly endpoint_name: string | null;
  readonly outcome: RetryOutcome;
  readonly ids: readonly string[];
}

interface RetryPage {
  readonly looked_at: number;
  /** Id of the last row that was looked at. */
  readonly last: string | null;
  readonly groups: readonly Group[];
}

function tally(projectId: string, { endpoint_id: endpointId, endpoint_name: endpointName, outcome, ids }: Group): RetryTally {
  return { projectId, endpointId, endpointName, outcome, count: ids.length };
}

function isWaiting(status: RetriedStatus): boolean {
  return status === 'scheduled' || status === 'retry';
}

/**
 * The next rows of the project by id, and those among them that are selected, by endpoint. Cost: `LOOK` rows of one index scan per partition of the time
 * span; the id begins with the time of the message, so the same bound prunes partitions and begins the scan at the right place. No lock.
 */
async function readPage(
  pool: Pool,
  selection: RetrySelection & { readonly projectId: string; readonly began: string; readonly after: string | undefined },
): Promise<RetryPage> {
  const { status, from, projectId, eventId, endpointId, began, after } = selection;
  const values = new Values();
  const project = values.add(projectId);
  const fromMs = Math.max(0, from.getTime());
  const conditions = [
    `e.project_id = ${project}`,
    `e.id >= ${values.add(idBound(fromMs, '0'))}::uuid`,
    `e.occurred_at >= ${values.add(new Date(fromMs))}`,
    ...(after === undefined ? [] : [`e.id > ${values.add(after)}::uuid`]),
    ...(endpointId === undefined ? [] : [`e.endpoint_id = ${values.add(endpointId)}::uuid`]),
    // The deliveries of an event share its millisecond.
    ...(eventId === undefined
      ? []
      : [
          `e.event_id = ${values.add(eventId)}::uuid`,
          `e.occurred_at = ${values.add(new Date(timeOfId(eventId)))}`,
          `e.id <= ${values.add(idBound(timeOfId(eventId), 'f'))}::uuid`,
        ]),
  ];
  const hit = `e.status = ${values.add(status)}::event_delivery_status and e.updated_at <= ${values.add(began)}::timestamptz`;
  const outcome = `case when n.status is null then 'deleted' when n.status = 'inactive' then 'inactive'
    ${isWaiting(status) ? `when n.status = 'paused' or g.is_due then 'waiting'` : `when n.status = 'paused' then 'held'`} else 'due' end`;
  const { rows } = await pool.query<Omit<RetryPage, 'groups'> & (Group | { readonly ids: null })>(
    `with page as materialized (
       select e.id, e.endpoint_id, e.next_attempt_at, ${hit} as hit from event_deliveries e where ${conditions.join(' and ')}
       order by e.id limit (select ${values.add(LOOK)}::int)
     ),
     g as materialized (
       select endpoint_id, next_attempt_at <= now() as is_due, array_agg(id::text) as ids from page where hit group by 1, 2
     )
     select l.looked_at, l.last, g.endpoint_id, n.name as endpoint_name, ${outcome} as outcome, g.ids
     from (select count(*)::int as looked_at, (select id from page order by id desc limit 1) as last from page) l
     left join g on true
     left join lateral (
       select name, case when deleted_at is null then status end as status from endpoints where project_id = ${project} and id = g.endpoint_id limit 1
     ) n on true`,
    values.list,
  );
  const { looked_at: lookedAt, last } = rows[0]!;
  return { looked_at: lookedAt, last, groups: rows.filter((row) => row.ids !== null) };
}

/*
 * Locks: the endpoints, shared, so that pausing, activating or deleting one comes before or after the batch and never in its middle; and the rows that
 * change, by primary key in the few partitions of the batch, without those that somebody else has. The memberships are hashed sub-plans on purpose: as
 * joins, in a plan that was made on empty tables, they walk all deliveries once for each row.
 */
const REQUEUE = `
  with n as materialized (
    select id, status from endpoints
    where project_id = $1 and deleted_at is null and status <> 'inactive' and id = any ($2::uuid[])
    order by id for share
  ),
  w as materialized (
    select d.id from event_deliveries d
    where d.project_id = $1 and d.id = any ($3::uuid[]) and d.occurred_at between $4 and $5
      and d.status = $6::event_delivery_status and d.updated_at <= $7::timestamptz
      and case when d.endpoint_id in (select id from n) then true else false end
    for update of d skip locked
  ),
  changed as (
    update event_deliveries d set status = case when d.status = 'retry' then 'retry' else 'scheduled' end::event_delivery_status,
      next_attempt_at = case when d.endpoint_id in (select id from n where status = 'paused') then 'infinity' else now() end, reason = null, updated_at = now()
    where d.project_id = $1 and d.id = any ($3::uuid[]) and d.occurred_at between $4 and $5 and case when d.id in (select id from w) then true else false end
    returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.next_attempt_at = 'infinity' as held
  ),
  counted as (${insertCountDeltas(unfinishedDeliveries('(select *, $6::event_delivery_status as status from changed) d'))}),
  told as (select pg_notify('gateway_due', $1::text) from (select from changed where not held limit 1) one)
  select endpoint_id, held, count(*)::int as count, (select count(*) from told) as told from changed group by endpoint_id, held`;

/** Makes a batch of deliveries of a project, in the order of their ids, due, or holds them where the endpoint is paused, and tells the agents. */
async function requeue(
  pool: Pool,
  {
    projectId,
    status,
    began,
    ids,
    endpointIds,
  }: { projectId: string; status: RetriedStatus; began: string; ids: readonly string[]; endpointIds: readonly string[] },
): Promise<{ endpointId: string; outcome: 'due' | 'held'; count: number }[]> {
  const { rows } = await pool.query<{ endpoint_id: string; held: boolean; count: number }>({
    name: 'requeue-deliveries',
    text: REQUEUE,
    values: [projectId, endpointIds, ids, new Date(timeOfId(ids[0]!)), new Date(timeOfId(ids.at(-1)!)), status, began],
  });
  return rows.map(({ endpoint_id: endpointId, held, count }) => ({ endpointId, outcome: held ? 'held' : 'due', count }));
}

/** A project whose deliveries are re-queued. */
export interface RetryProject {
  readonly id: string;
  readonly name: string;
}

/**
 * The projects that hold what these ids name, or all that are not deleted. No lock; one probe per project at most.
 *
 * @throws GatewayError `not_found` for an id that is not there: nothing found would look like nothing to do
 */
export async function findRetryProjects(
  pool: Pool,
  { projectId, eventId, endpointId }: { projectId?: string | undefined; eventId?: string | undefined; endpointId?: string | undefined },
): Promise<RetryProject[]> {
  const { rows } = await pool.query<RetryProject>(
    `select id, name from projects where deleted_at is null and ($1::uuid is null or id = $1) order by id`,
    [projectId ?? null],
  );
  if (projectId !== undefined && rows.length === 0) throw new GatewayError('not_found', { thing: 'project', id: projectId });
  let projects = rows;
  const keep = (thing: string, id: string, found: readonly { readonly id: string }[]) => {
    projects = projects.filter((project) => found.some((it) => it.id === project.id));
    if (projects.length === 0) throw new GatewayError('not_found', { thing, id });
  };
  if (endpointId !== undefined) keep('endpoint', endpointId, await projectsOfEndpoint(pool, endpointId));
  if (eventId !== undefined) keep('event', eventId, await projectsOfEvent(pool, eventId));
  return projects;
}

async function projectsOfEndpoint(pool: Pool, endpointId: string): Promise<{ id: string }[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select p.id from projects p join endpoints n on n.project_id = p.id and n.id = $1 and n.deleted_at is null`,
    [endpointId],
  );
  return rows;
}

async function projectsOfEvent(pool: Pool, eventId: string): Promise<{ id: string }[]> {
  const { rows } = await pool.query<{ id: string }>(
    `select p.id from projects p join events e on e.project_id = p.id and e.id = $1 and e.occurred_at = $2`,
    [eventId, new Date(timeOfId(eventId))],
  );
  return rows;
}
