import type { Pool } from 'pg';
import { findLoggedEndpoints, type LoggedEndpoint } from '../config/endpoints.js';
import { finishedDeliveries, insertCountDeltas } from '../counts/count-deltas.js';
import { isSameDelivery } from '../events/event-ref.js';
import type { Planes } from '../postgres/planes.js';
import { deleteKeys } from '../ordering/settle-keys.js';
import { notifyDue } from './agents.js';
import { DISCARD_REASONS } from './stored-reasons.js';
import { WAITING_PROJECTS } from './waiting-projects.js';

/** Rows per commit. Agents can claim deliveries between commits. */
const BATCH = 5000;

interface Waiting {
  readonly projectId: string;
  readonly endpointId?: string | undefined;
}

/** These bring waiting deliveries in line with their endpoint or project. */
const CHANGES = {
  discard: { set: `status = 'discarded', next_attempt_at = null`, of: ofEndpoint('$3') },
  hold: {
    set: `next_attempt_at = 'infinity'`,
    of: `next_attempt_at < 'infinity' and ${ofEndpoint('$3')}`,
  },
  release: {
    set: `next_attempt_at = now()`,
    of: `next_attempt_at = 'infinity' and endpoint_id = $3`,
  },
} as const;

/**
 * Brings waiting deliveries in line with their endpoint: discards them if it is deleted, holds them
 * if it is paused, and otherwise releases held ones. Without an endpoint, discards those of a
 * deleted project. Repeated, resumed and concurrent calls converge on the stored state. Skips rows
 * being claimed. Returns the number of changed deliveries.
 */
export async function settleDeliveries(
  { control, data }: Planes,
  of: Waiting,
  signal?: AbortSignal,
): Promise<number> {
  let [changed, released] = [0, 0];
  for (let it = await readChange(control, of); it.change && !signal?.aborted;) {
    const { change, reason } = it;
    const n = await changeBatch(data, of, change, reason);
    changed += n;
    if (change === 'discard') await deleteKeys(data, of);
    if (change === 'release') released += n;
    // A call after a later change may have ended before this batch committed. Reading again finds
    // it.
    it = await readChange(control, of);
    if (n < BATCH && it.change === change) break;
  }
  if (released > 0) await notifyDue(control, [of.projectId]);
  return changed;
}

/**
 * For endpoints whose status is no longer that in `before`. Call it after a statement that relied
 * on `before`: the call that followed the change may have ended before the statement committed.
 * Returns the present states.
 */
export async function settleChanged(
  planes: Planes,
  projectId: string,
  before: ReadonlyMap<string, LoggedEndpoint>,
): Promise<ReadonlyMap<string, LoggedEndpoint>> {
  const states = await findLoggedEndpoints(planes.control, projectId, before.keys());
  for (const [endpointId, { status }] of before)
    if (states.get(endpointId)?.status !== status)
      await settleDeliveries(planes, { projectId, endpointId });
  return states;
}

/** `change` is null if the stored state requires none. Two primary key probes, no lock. */
async function readChange(
  pool: Pool,
  { projectId, endpointId }: Waiting,
): Promise<{ change: keyof typeof CHANGES | null; reason: string | null }> {
  const { rows } = await pool.query<{ reason: string | null; status: string | null }>({
    name: 'read-endpoint-state',
    text: `select case when p.id is null then '${DISCARD_REASONS.project_deleted}' when $2::uuid is not null and e.id is null then '${DISCARD_REASONS.endpoint_deleted}' end as reason, e.status
           from (select) as one
           left join projects p on p.id = $1 and p.deleted_at is null
           left join endpoints e on e.project_id = $1 and e.id = $2 and e.deleted_at is null`,
    values: [projectId, endpointId ?? null],
  });
  const { reason, status } = rows[0]!;
  if (reason !== null) return { change: 'discard', reason };
  return { change: status === null ? null : status === 'paused' ? 'hold' : 'release', reason };
}

/** Row comparisons leave event_deliveries_by_endpoint as the only usable index. */
function ofEndpoint(endpoint: string): string {
  return `status <> 'processing' and (endpoint_id, status) >= (${endpoint}, 'scheduled') and (endpoint_id, status) <= (${endpoint}, 'retry')
    order by endpoint_id, status, id`;
}

/**
 * Returns the size. Locks the rows of the batch, skipping those being claimed. The inner query
 * scans only rows to change: for a project, in event_deliveries_due; for an endpoint, in
 * event_deliveries_by_endpoint or event_deliveries_held.
 */
async function changeBatch(
  pool: Pool,
  { projectId, endpointId }: Waiting,
  change: keyof typeof CHANGES,
  reason: string | null,
): Promise<number> {
  const values = endpointId === undefined ? [projectId, reason] : [projectId, reason, endpointId];
  const { rows } = await pool.query<{ n: number }>(
    `with waiting as (
       select project_id, id, occurred_at, endpoint_id from event_deliveries
       where project_id = $1 and ${endpointId === undefined ? `status in ('scheduled', 'retry')` : CHANGES[change].of}
       limit ${BATCH} for update skip locked
     ),
     d as (
       update event_deliveries d set ${CHANGES[change].set}, reason = coalesce($2, d.reason), updated_at = now() from waiting w
       where ${isSameDelivery('d', 'w')}
       returning d.project_id, d.endpoint_id, d.source_id, d.event_type, d.status
     ),
     counted as (${insertCountDeltas(finishedDeliveries('d'))})
     select count(*)::int as n from d`,
    values,
  );
  return rows[0]!.n;
}

/*
 * Projects with waiting, and endpoints with held deliveries. No lock. As for `WAITING_PROJECTS`,
 * each recursion step is one probe of event_deliveries_held per partition.
 */
const WAITING_AND_HELD = `
  with recursive ${WAITING_PROJECTS},
  held as (
    (select project_id, endpoint_id from event_deliveries where next_attempt_at = 'infinity' order by project_id, endpoint_id limit 1)
    union all
    select n.project_id, n.endpoint_id from held h cross join lateral (
      select project_id, endpoint_id from event_deliveries
      where next_attempt_at = 'infinity' and (project_id, endpoint_id) > (h.project_id, h.endpoint_id) order by project_id, endpoint_id limit 1) n
  )
  select project_id as "projectId", null as "endpointId" from waiting
  union all
  select project_id, endpoint_id from held`;

/*
 * Finds which of these projects are deleted, which of these endpoints are not paused, and which
 * endpoints were recently deleted. Deliveries of endpoints deleted earlier are discarded when due.
 * Subqueries with a limit avoid joins, which could read everything.
 */
const CONTRADICTED = `
  select project as "projectId", endpoint as "endpointId", false as "isDeletedLately" from unnest($1::uuid[], $2::uuid[]) u(project, endpoint)
  where case when endpoint is null then (select true from projects p where p.id = project and p.deleted_at is null limit 1)
             else (select true from endpoints e where e.project_id = project and e.id = endpoint and e.status = 'paused' and e.deleted_at is null limit 1) end is null
  union all
  select project_id, id, true from endpoints where deleted_at > now() - $3::float8 * interval '1 second'`;

/** One index probe per endpoint. */
const OF_DELETED = `
  select project as "projectId", endpoint as "endpointId" from unnest($1::uuid[], $2::uuid[]) u(project, endpoint)
  where (select true from event_deliveries where project_id = project and ${ofEndpoint('endpoint')} limit 1)`;

/**
 * For what a killed process left, or agents with a stale configuration wrote. Returns the number of
 * changed deliveries.
 *
 * @param deletedSeconds how long after an endpoint's deletion its deliveries are settled even
 *   before they are due
 */
export async function sweepDeliveries(
  planes: Planes,
  deletedSeconds: number,
  signal?: AbortSignal,
): Promise<number> {
  type Found = { readonly projectId: string; readonly endpointId: string | null };
  const idsOf = (found: readonly Found[]) => [
    found.map(({ projectId }) => projectId),
    found.map(({ endpointId }) => endpointId),
  ];
  const { rows: waiting } = await planes.data.query<Found>({
    name: 'read-waiting',
    text: WAITING_AND_HELD,
  });
  const { rows: contradicted } = await planes.control.query<
    Found & { readonly isDeletedLately: boolean }
  >({
    name: 'read-contradicted',
    text: CONTRADICTED,
    values: [...idsOf(waiting), deletedSeconds],
  });
  const deleted = contradicted.filter(({ isDeletedLately }) => isDeletedLately);
  const { rows: ofDeleted } =
    deleted.length === 0
      ? { rows: [] }
      : await planes.data.query<Found>({
          name: 'read-waiting-of-deleted',
          text: OF_DELETED,
          values: idsOf(deleted),
        });
  let changed = 0;
  for (const { projectId, endpointId } of [
    ...contradicted.filter(({ isDeletedLately }) => !isDeletedLately),
    ...ofDeleted,
  ])
    changed += await settleDeliveries(
      planes,
      { projectId, endpointId: endpointId ?? undefined },
      signal,
    );
  return changed;
}
