import type pg from 'pg';
import { idBound } from '../pagination/log-page.js';
import type { Planes } from '../postgres/planes.js';

/** The nil UUID: as an endpoint id, the whole project; as a source id, the API. */
export const PROJECT = '00000000-0000-0000-0000-000000000000';
/** Activity and backlogs are kept as long. */
export const KEPT_DAYS = 7;

/*
 * A part of `APPLY` in count-deltas.ts, where `c` are the changed counts. Resending a delivery
 * subtracts nothing. Bound: 11,000 rows per project and day, 900 per endpoint and day.
 */
export const ADD_ACTIVITY = `
    insert into activity (project_id, endpoint_id, at, kind, status, n)
    select project_id, id, at, kind, status, sum(n) from (
      select c.*, case when c.endpoint is null then 'event' when c.http is null then 'delivery' else 'attempt' end as kind from c where c.n > 0
    ) c, lateral (values
      ('${PROJECT}'::uuid, date_bin('1 minute', now(), 'epoch')), (c.endpoint, date_bin('10 minutes', now(), 'epoch'))
    ) t(id, at)
    where id is not null
    group by 1, 2, 3, 4, 5
    on conflict (project_id, endpoint_id, at, kind, status) do update set n = activity.n + excluded.n`;

export interface Activity {
  readonly at: Date;
  readonly events: Readonly<Record<'processed' | 'failed', number>>;
  readonly deliveries: Readonly<Record<'success' | 'failure' | 'discarded', number>>;
  readonly attempts: Readonly<Record<'success' | 'failure', number>>;
}

export interface TimeSteps {
  readonly from: Date;
  readonly to: Date;
  /** A multiple of 60, or of 600 for an endpoint. */
  readonly stepSeconds: number;
}

/**
 * A project's or, without events, an endpoint's; oldest first, omitting empty steps. May lag by up
 * to a minute.
 */
export async function readActivity(
  pool: pg.Pool,
  projectId: string,
  { endpointId, from, to, stepSeconds }: TimeSteps & { readonly endpointId?: string | undefined },
): Promise<Activity[]> {
  const sum = (kind: string, status: string) =>
    `coalesce(sum(n) filter (where kind = '${kind}' and status = '${status}'), 0)::float8`;
  const object = (kind: string, ...statuses: string[]) =>
    `json_build_object(${statuses.map((status) => `'${status}', ${sum(kind, status)}`).join(', ')})`;
  const { rows } = await pool.query<Activity>({
    name: 'read-activity',
    text: `select date_bin(make_interval(secs => $5), at, 'epoch') as at, ${object('event', 'processed', 'failed')} as events,
             ${object('delivery', 'success', 'failure', 'discarded')} as deliveries, ${object('attempt', 'success', 'failure')} as attempts
           from activity where project_id = $1 and endpoint_id = $2 and at >= $3 and at <= $4 group by 1 order by 1`,
    values: [projectId, endpointId ?? PROJECT, from, to, stepSeconds],
  });
  return rows;
}

export interface Latencies {
  readonly at: Date;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

/** Deliveries that a latency chart is made from, and the fewest of a step. */
const SAMPLED = 1_500;
const SAMPLED_PER_STEP = 10;

const FIRST_ANSWER = `select greatest(0, extract(epoch from a.requested_at - d.occurred_at) * 1000 + a.duration_ms) as ms from delivery_attempts a
  where a.project_id = $1 and a.event_delivery_id = d.id and a.occurred_at = d.occurred_at and a.number = 1`;
const percentile = (share: number) => `percentile_cont(${share}) within group (order by ms)`;

/**
 * Percentiles of the time from the message to the first response for each step, over its latest
 * successful deliveries, at most `SAMPLED` in all steps unless these are many. Oldest first. No
 * lock.
 */
export async function readLatencies(
  pool: pg.Pool,
  projectId: string,
  { from, to, stepSeconds }: TimeSteps,
): Promise<Latencies[]> {
  const stepMs = stepSeconds * 1_000;
  const starts: number[] = [];
  for (let at = from.getTime() - (from.getTime() % stepMs); at <= to.getTime(); at += stepMs)
    starts.push(at);
  const { rows } = await pool.query<Latencies>({
    name: 'read-latencies',
    text: `select at, ${percentile(0.5)} as p50, ${percentile(0.95)} as p95, ${percentile(0.99)} as p99
           from unnest($2::timestamptz[], $3::uuid[], $4::uuid[]) s(at, low, high),
             lateral (select id, occurred_at from event_deliveries where project_id = $1 and status = 'success' and id >= s.low and id <= s.high
                      and occurred_at >= s.at and occurred_at < s.at + make_interval(secs => $5) order by id desc limit $6) d,
             lateral (${FIRST_ANSWER}) l
           group by at order by at`,
    values: [
      projectId,
      starts.map((ms) => new Date(ms)),
      starts.map((ms) => idBound(ms, '0')),
      starts.map((ms) => idBound(ms + stepMs - 1, 'f')),
      stepSeconds,
      Math.max(SAMPLED_PER_STEP, Math.floor(SAMPLED / starts.length)),
    ],
  });
  return rows;
}

export interface EndpointActivity {
  readonly endpoint_id: string;
  readonly success: number;
  readonly failure: number;
  readonly last_at: Date;
}

/** Counted in ten-minute steps. Omits endpoints without attempts. */
export async function readEndpointActivity(
  pool: pg.Pool,
  projectId: string,
  { endpointIds, from, to }: { endpointIds: readonly string[]; from: Date; to: Date },
): Promise<EndpointActivity[]> {
  const sum = (status: string) =>
    `coalesce(sum(n) filter (where status = '${status}'), 0)::float8 as ${status}`;
  const { rows } = await pool.query<EndpointActivity>({
    name: 'read-endpoint-activity',
    text: `select endpoint_id, ${sum('success')}, ${sum('failure')}, max(at) as last_at from activity
           where project_id = $1 and endpoint_id = any ($2::uuid[]) and endpoint_id <> '${PROJECT}' and at >= $3 and at <= $4 and kind = 'attempt' group by 1`,
    values: [projectId, endpointIds, from, to],
  });
  return rows;
}

/** Bounds the response time. */
export const SUMMARY_MAX = 10_000;
const LATENCIES = 1_000;

export interface ProjectSummary {
  readonly pending_events: number;
  readonly oldest_pending_seconds: number | null;
  /**
   * Due now or later. `held_deliveries` wait for a paused endpoint, and agents have claimed
   * `processing_deliveries`.
   */
  readonly waiting_deliveries: number;
  readonly held_deliveries: number;
  readonly processing_deliveries: number;
  readonly quarantined_messages: number;
  readonly endpoints: Readonly<Record<'active' | 'paused' | 'inactive', number>>;
  readonly sources: Readonly<Record<'running' | 'paused' | 'disabled', number>>;
  /** From the message to the first response. Null without successful deliveries. */
  readonly latency_ms: {
    readonly p50: number;
    readonly p95: number;
    readonly p99: number;
    readonly deliveries: number;
  } | null;
}

export const countUpTo = (from: string, max = SUMMARY_MAX): string =>
  `(select count(*)::int from (select from ${from} limit ${max}) c)`;

/**
 * The pending events of project $1, whose sources are $2: their number `n`, and the age of the
 * oldest. Reads up to `SUMMARY_MAX` index entries per source.
 */
export const PENDING = `
    select least(coalesce(sum(n), 0), ${SUMMARY_MAX})::int as n, extract(epoch from now() - min(oldest))::float8 as seconds
    from (select unnest($2::uuid[]) as id union all select '${PROJECT}') s,
         lateral (select count(*) as n, min(accepted_at) as oldest from (
           select accepted_at from events where project_id = $1 and coalesce(source_id, '${PROJECT}') = s.id and status = 'pending' limit ${SUMMARY_MAX}) e) e`;

/** Each count reads at most `SUMMARY_MAX` index entries. No lock. */
export async function readSummary(
  { control, data }: Planes,
  projectId: string,
): Promise<ProjectSummary> {
  type Configured = Pick<ProjectSummary, 'endpoints' | 'sources'>;
  const { rows: configured } = await control.query<Configured & { source_ids: string[] }>({
    name: 'read-configured-summary',
    text: `select
        (select json_build_object('active', count(*) filter (where status = 'active'), 'paused', count(*) filter (where status = 'paused'),
                                  'inactive', count(*) filter (where status = 'inactive'))
           from endpoints where project_id = $1 and deleted_at is null) as endpoints,
        (select json_build_object('running', count(*) filter (where not is_disabled and paused_at is null),
                                  'paused', count(*) filter (where not is_disabled and paused_at is not null), 'disabled', count(*) filter (where is_disabled))
           from sources where project_id = $1 and deleted_at is null) as sources,
        array(select id from sources where project_id = $1) as source_ids`,
    values: [projectId],
  });
  const { source_ids: sourceIds, ...counts } = configured[0]!;
  const { rows } = await data.query<Omit<ProjectSummary, keyof Configured>>({
    name: 'read-summary',
    text: `select
        pending.n as pending_events, pending.seconds as oldest_pending_seconds,
        ${countUpTo(`event_deliveries where project_id = $1 and status in ('scheduled', 'retry') and (next_attempt_at < 'infinity' or next_attempt_at is null)`)} as waiting_deliveries,
        ${countUpTo(`event_deliveries where project_id = $1 and status in ('scheduled', 'retry') and next_attempt_at = 'infinity'`)} as held_deliveries,
        ${countUpTo(`event_deliveries where project_id = $1 and status = 'processing'`)} as processing_deliveries,
        ${countUpTo(`quarantined_messages where project_id = $1 and status = 'quarantined'`)} as quarantined_messages,
        (select case when count(*) > 0 then json_build_object('deliveries', count(*), 'p50', ${percentile(0.5)}, 'p95', ${percentile(0.95)}, 'p99', ${percentile(0.99)}) end
           from (select id, occurred_at from event_deliveries where project_id = $1 and status = 'success' order by id desc limit ${LATENCIES}) d,
                lateral (${FIRST_ANSWER}) l) as latency_ms
      from (${PENDING}) pending`,
    values: [projectId, sourceIds],
  });
  return { ...rows[0]!, ...counts };
}
