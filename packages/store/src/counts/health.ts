import type pg from 'pg';
import { countUpTo, PENDING, PROJECT } from './activity.js';

/** The number of endpoints that are returned in full. The others are only counted. */
export const ENDPOINTS_LISTED = 10;
/** The maximum number of waiting deliveries counted per endpoint. */
export const WAITING_MAX = 1_000;

export interface ProjectStates {
  readonly now: Date;
  /** Whether the project has or has had events or quarantined messages. */
  readonly has_traffic: boolean;
  readonly pending_events: number;
  readonly oldest_pending_seconds: number | null;
  /** Deliveries that are due and that no agent has taken, counted up to `SUMMARY_MAX`. */
  readonly due_deliveries: number;
  readonly oldest_due_seconds: number | null;
  readonly held_deliveries: number;
  readonly paused_since: Date | null;
  readonly quarantined_messages: number;
  readonly quarantined_since: Date | null;
  readonly inactive_endpoints: number;
  /** The endpoint that was deactivated last. */
  readonly inactive_endpoint: {
    readonly id: string;
    readonly name: string;
    readonly reason: string | null;
  } | null;
  readonly inactive_since: Date | null;
  readonly agents: number;
  /** The ids of the agents that read sources. */
  readonly readers: readonly number[];
  /** When the last lease expired, of any agent and of an agent that reads sources. */
  readonly agents_until: Date | null;
  readonly readers_until: Date | null;
}

/**
 * Returns the states of a project that its health follows from. Reads index entries only: up to
 * 10,000 of each count, none of finished deliveries. No lock.
 */
export async function readProjectStates(pool: pg.Pool, projectId: string): Promise<ProjectStates> {
  const waiting = `event_deliveries where project_id = $1 and status in ('scheduled', 'retry')`;
  const held = `event_deliveries where project_id = $1 and next_attempt_at = 'infinity'`;
  const quarantined = `quarantined_messages where project_id = $1 and status = 'quarantined'`;
  const expired = 'select max(expires_at) from agents where expires_at <= now()';
  const ofStatus = (status: string) =>
    `from endpoints where project_id = $1 and deleted_at is null and status <> 'active' and status = '${status}'`;
  const { rows } = await pool.query<ProjectStates>({
    name: 'read-project-states',
    text: `select now() as now, pending.n as pending_events, pending.seconds as oldest_pending_seconds,
        exists (select from events where project_id = $1) or exists (select from event_counts where project_id = $1 and n > 0)
          or exists (select from quarantined_messages where project_id = $1) as has_traffic,
        ${countUpTo(`${waiting} and next_attempt_at <= now()`)} as due_deliveries,
        (select extract(epoch from now() - next_attempt_at)::float8 from ${waiting} and next_attempt_at <= now() order by next_attempt_at limit 1) as oldest_due_seconds,
        ${countUpTo(held)} as held_deliveries,
        (select min(updated_at) ${ofStatus('paused')}) as paused_since,
        ${countUpTo(quarantined)} as quarantined_messages,
        (select created_at from ${quarantined} order by id limit 1) as quarantined_since,
        (select count(*)::int ${ofStatus('inactive')}) as inactive_endpoints,
        (select json_build_object('id', id, 'name', name, 'reason', status_reason) ${ofStatus('inactive')} order by updated_at desc limit 1) as inactive_endpoint,
        (select min(updated_at) ${ofStatus('inactive')}) as inactive_since,
        (select count(*)::int from agents where expires_at > now()) as agents,
        array(select id from agents where expires_at > now() and reads_sources order by id) as readers,
        (${expired}) as agents_until, (${expired} and reads_sources) as readers_until
      from (${PENDING}) pending`,
    values: [projectId],
  });
  return rows[0]!;
}

/** An active endpoint with an open breaker, or with failed requests. */
export interface EndpointTrouble {
  readonly id: string;
  readonly name: string;
  /** `failing` if at least half of its requests failed. */
  readonly kind: 'open' | 'failing' | 'partly';
  /** Requests since `since`, which is 10 to 20 minutes ago. */
  readonly success: number;
  readonly failure: number;
  readonly since: Date;
  /** Deliveries that wait for it, counted up to `WAITING_MAX`. */
  readonly waiting: number;
  /** Why its newest unsuccessful delivery failed or waits. */
  readonly reason: string | null;
}

export interface EndpointTroubles {
  /** Up to `ENDPOINTS_LISTED` of each kind, those with most failed requests first. */
  readonly content: readonly EndpointTrouble[];
  /** The number of endpoints of each kind, listed or not. */
  readonly count: Readonly<Record<EndpointTrouble['kind'], number>>;
}

/**
 * Returns the active endpoints among `openIds`, and others with failed requests. Reads the latest
 * activity of these alone and, for those listed, their waiting deliveries and the newest
 * unsuccessful one. No lock.
 */
export async function readEndpointTroubles(
  pool: pg.Pool,
  projectId: string,
  openIds: readonly string[],
): Promise<EndpointTroubles> {
  const unsuccessful = (status: string) =>
    `(select id, reason from event_deliveries where project_id = $1 and endpoint_id = l.id and status = '${status}' order by id desc limit 1)`;
  const { rows } = await pool.query<EndpointTrouble & { of_kind: number }>({
    name: 'read-endpoint-troubles',
    text: `with recent as materialized (select date_bin('10 minutes', now(), 'epoch') - interval '10 minutes' as since),
      failed as materialized (
        select endpoint_id as id, sum(n)::float8 as failure from activity
        where project_id = $1 and at >= (select since from recent) and kind = 'attempt' and status = 'failure' and endpoint_id <> '${PROJECT}' group by 1
      ),
      counted as materialized (
        select n.id, n.name, r.since, a.success, t.failure, case when t.is_open then 'open' when t.failure >= a.success then 'failing' else 'partly' end as kind
        from (
          select id, max(failure) as failure, bool_or(is_open) as is_open
          from (select id, failure, false as is_open from failed union all select unnest($2::uuid[]), 0, true) t group by id
        ) t cross join recent r
        join endpoints n on n.project_id = $1 and n.id = t.id and n.deleted_at is null and n.status = 'active'
        cross join lateral (
          select coalesce(sum(n), 0)::float8 as success from activity
          where project_id = $1 and endpoint_id = t.id and at >= r.since and kind = 'attempt' and status = 'success') a
      ),
      ranked as materialized (
        select c.*, row_number() over (partition by kind order by failure desc, id) as k, count(*) over (partition by kind)::int as of_kind
        from counted c
      )
      select l.id, l.name, l.kind, l.success, l.failure, l.since, l.of_kind, last.reason,
        ${countUpTo(`event_deliveries where project_id = $1 and endpoint_id = l.id and status in ('scheduled', 'retry')`, WAITING_MAX)} as waiting
      from ranked l left join lateral (
        select reason from (${unsuccessful('retry')} union all ${unsuccessful('failure')}) d order by id desc limit 1
      ) last on true
      where l.k <= ${ENDPOINTS_LISTED} order by l.k`,
    values: [projectId, openIds],
  });
  const count = { open: 0, failing: 0, partly: 0 };
  for (const { kind, of_kind } of rows) count[kind] = of_kind;
  return { content: rows.map(({ of_kind: _, ...row }) => row), count };
}
