import type { Planes } from '../postgres/planes.js';
import { countUpTo, PENDING, PROJECT, SUMMARY_MAX } from './activity.js';

/** Listed in full. The others are only counted. */
export const ENDPOINTS_LISTED = 10;
export const WAITING_MAX = 1_000;

export interface ProjectStates {
  readonly now: Date;
  readonly has_traffic: boolean;
  readonly pending_events: number;
  readonly oldest_pending_seconds: number | null;
  /** Due, and not taken by an agent. Counted up to `SUMMARY_MAX`. */
  readonly due_deliveries: number;
  readonly oldest_due_seconds: number | null;
  readonly held_deliveries: number;
  readonly paused_since: Date | null;
  readonly parked_keys: number;
  readonly parked_since: Date | null;
  /** The endpoint of the key parked first. */
  readonly parked_endpoint: Pick<EndpointTrouble, 'id' | 'name'> | null;
  readonly quarantined_messages: number;
  readonly quarantined_since: Date | null;
  readonly inactive_endpoints: number;
  readonly inactive_endpoint: {
    readonly id: string;
    readonly name: string;
    readonly reason: string | null;
  } | null;
  readonly inactive_since: Date | null;
  readonly agents: number;
  readonly agents_until: Date | null;
}

type EndpointStates = Pick<
  ProjectStates,
  'paused_since' | 'inactive_endpoints' | 'inactive_endpoint' | 'inactive_since'
>;

/** Index entries only: up to 10,000 of each count, none of finished deliveries. No lock. */
export async function readProjectStates(
  { control, data }: Planes,
  projectId: string,
): Promise<ProjectStates> {
  const waiting = `event_deliveries where project_id = $1 and status in ('scheduled', 'retry')`;
  const held = `event_deliveries where project_id = $1 and next_attempt_at = 'infinity'`;
  const quarantined = `quarantined_messages where project_id = $1 and status = 'quarantined'`;
  const ofStatus = (status: string) =>
    `from endpoints where project_id = $1 and deleted_at is null and status <> 'active' and status = '${status}'`;
  const { rows: configured } = await control.query<EndpointStates & { source_ids: string[] }>({
    name: 'read-endpoint-states',
    text: `select (select min(updated_at) ${ofStatus('paused')}) as paused_since,
        (select count(*)::int ${ofStatus('inactive')}) as inactive_endpoints,
        (select json_build_object('id', id, 'name', name, 'reason', status_reason) ${ofStatus('inactive')} order by updated_at desc limit 1) as inactive_endpoint,
        (select min(updated_at) ${ofStatus('inactive')}) as inactive_since,
        array(select id from sources where project_id = $1) as source_ids`,
    values: [projectId],
  });
  const { source_ids: sourceIds, ...endpoints } = configured[0]!;
  const { rows } = await data.query<
    Omit<ProjectStates, keyof EndpointStates | 'parked_endpoint'> & { endpoint_id: string | null }
  >({
    name: 'read-project-states',
    text: `select now() as now, pending.n as pending_events, pending.seconds as oldest_pending_seconds,
        exists (select from events where project_id = $1) or exists (select from event_counts where project_id = $1 and n > 0)
          or exists (select from quarantined_messages where project_id = $1) as has_traffic,
        ${countUpTo(`${waiting} and next_attempt_at <= now()`)} as due_deliveries,
        (select extract(epoch from now() - next_attempt_at)::float8 from ${waiting} and next_attempt_at <= now() order by next_attempt_at limit 1) as oldest_due_seconds,
        ${countUpTo(held)} as held_deliveries,
        parked.n as parked_keys, parked.since as parked_since, parked.endpoint_id,
        ${countUpTo(quarantined)} as quarantined_messages,
        (select created_at from ${quarantined} order by id limit 1) as quarantined_since,
        (select count(*)::int from agents where expires_at > now()) as agents,
        (select max(expires_at) from agents where expires_at <= now()) as agents_until
      from (${PENDING}) pending, (
        select count(*)::int as n, min(parked_at) as since, (array_agg(endpoint_id order by parked_at))[1] as endpoint_id
        from (select endpoint_id, parked_at from ordered_keys where project_id = $1 and parked_at is not null limit ${SUMMARY_MAX}) k
      ) parked`,
    values: [projectId, sourceIds],
  });
  const { endpoint_id, ...states } = rows[0]!;
  const { rows: parked } = endpoint_id
    ? await control.query<Pick<EndpointTrouble, 'id' | 'name'>>({
        name: 'name-parked-endpoint',
        text: `select id, name from endpoints where project_id = $1 and id = $2 and deleted_at is null`,
        values: [projectId, endpoint_id],
      })
    : { rows: [] };
  return { ...states, ...endpoints, parked_endpoint: parked[0] ?? null };
}

/** An active endpoint with an open breaker, or with failed requests. */
export interface EndpointTrouble {
  readonly id: string;
  readonly name: string;
  /** `failing` if at least half of its requests failed. */
  readonly kind: 'open' | 'failing' | 'partly';
  /** Since `since`, 10 to 20 minutes ago. */
  readonly success: number;
  readonly failure: number;
  readonly since: Date;
  readonly waiting: number;
  readonly reason: string | null;
}

export interface EndpointTroubles {
  /** Up to `ENDPOINTS_LISTED` of each kind, those with most failed requests first. */
  readonly content: readonly EndpointTrouble[];
  readonly count: Readonly<Record<EndpointTrouble['kind'], number>>;
}

type Counted = Omit<EndpointTrouble, 'name' | 'waiting' | 'reason'>;

/**
 * Active endpoints among `openIds`, and others with failed requests. Reads their latest activity
 * and, for those listed, their waiting deliveries and the newest unsuccessful one. No lock.
 */
export async function readEndpointTroubles(
  { control, data }: Planes,
  projectId: string,
  openIds: readonly string[],
): Promise<EndpointTroubles> {
  const { rows: counted } = await data.query<Counted>({
    name: 'count-endpoint-troubles',
    text: `with recent as materialized (select date_bin('10 minutes', now(), 'epoch') - interval '10 minutes' as since),
      failed as materialized (
        select endpoint_id as id, sum(n)::float8 as failure from activity
        where project_id = $1 and at >= (select since from recent) and kind = 'attempt' and status = 'failure' and endpoint_id <> '${PROJECT}' group by 1
      )
      select t.id, case when t.is_open then 'open' when t.failure >= a.success then 'failing' else 'partly' end as kind, a.success, t.failure, r.since
      from (
        select id, max(failure) as failure, bool_or(is_open) as is_open
        from (select id, failure, false as is_open from failed union all select unnest($2::uuid[]), 0, true) t group by id
      ) t cross join recent r
      cross join lateral (
        select coalesce(sum(n), 0)::float8 as success from activity
        where project_id = $1 and endpoint_id = t.id and at >= r.since and kind = 'attempt' and status = 'success') a
      order by t.failure desc, t.id`,
    values: [projectId, openIds],
  });
  const count = { open: 0, failing: 0, partly: 0 };
  if (counted.length === 0) return { content: [], count };
  const { rows: active } = await control.query<Pick<EndpointTrouble, 'id' | 'name'>>({
    name: 'name-endpoint-troubles',
    text: `select id, name from endpoints where project_id = $1 and id = any ($2::uuid[]) and deleted_at is null and status = 'active'`,
    values: [projectId, counted.map(({ id }) => id)],
  });
  const names = new Map(active.map(({ id, name }) => [id, name]));
  const listed: (Counted & { readonly name: string; readonly rank: number })[] = [];
  for (const it of counted) {
    const name = names.get(it.id);
    if (name === undefined) continue;
    const rank = ++count[it.kind];
    if (rank <= ENDPOINTS_LISTED) listed.push({ ...it, name, rank });
  }
  listed.sort((one, other) => one.rank - other.rank);
  const unsuccessful = (status: string) =>
    `(select id, reason from event_deliveries where project_id = $1 and endpoint_id = l.id and status = '${status}' order by id desc limit 1)`;
  const { rows: waiting } = await data.query<Pick<EndpointTrouble, 'reason' | 'waiting'>>({
    name: 'read-endpoint-troubles',
    text: `select last.reason,
        ${countUpTo(`event_deliveries where project_id = $1 and endpoint_id = l.id and status in ('scheduled', 'retry')`, WAITING_MAX)} as waiting
      from unnest($2::uuid[]) with ordinality l(id, n) left join lateral (
        select reason from (${unsuccessful('retry')} union all ${unsuccessful('failure')}) d order by id desc limit 1
      ) last on true
      order by l.n`,
    values: [projectId, listed.map(({ id }) => id)],
  });
  const content = listed.map(({ rank: _, ...it }, k) => ({ ...it, ...waiting[k]! }));
  return { content, count };
}
