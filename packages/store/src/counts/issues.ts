import type { Pool } from 'pg';
import {
  edgeOf,
  readPage,
  sortableNumber,
  type PageRequest,
  type PageResult,
} from '../pagination/page.js';
import { batchOf, timeAt } from '../postgres/columns.js';
import type { Querier } from '../postgres/connection.js';

/**
 * Kinds of error of an endpoint that are issues of their own. Endpoints choose their HTTP statuses,
 * so further kinds are one issue, `other`.
 */
export const KINDS_MAX = 20;
export const OTHER_KIND = 'other';
/** Per project. Further endpoints that fail have no issue. */
const ISSUES_MAX = 5_000;
/** An issue that returns later is counted from zero. */
const FORGOTTEN = `interval '1 hour'`;
/** Without a failure; a success then resolves an issue that recurs. */
const QUIET = `interval '1 minute'`;
const RESOLVED_DAYS = 30;
const MUTED_DAYS = 365;

/** Failed attempts at an endpoint with one kind of error. The sample is the newest. */
export interface FailureGroup {
  readonly projectId: string;
  readonly endpointId: string;
  readonly kind: string;
  /** If the issue is new. */
  readonly issueId: string;
  readonly failures: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
  readonly deliveryId: string;
  readonly httpStatus: number | null;
  readonly error: string;
}

const timeOf = (ms: string) => timeAt(`${ms}::float8`);
const FAILURES = batchOf<FailureGroup>([
  ['project', 'projectId', 'uuid'],
  ['endpoint', 'endpointId', 'uuid'],
  ['kind', 'kind'],
  ['id', 'issueId', 'uuid'],
  ['n', 'failures', 'bigint'],
  ['first_at', 'firstAtMs', timeOf],
  ['last_at', 'lastAtMs', timeOf],
  ['delivery', 'deliveryId', 'uuid'],
  ['http', 'httpStatus', 'smallint'],
  ['error', 'error', (text) => `coalesce(${text}, '')`],
]);

/*
 * Locks: the issues, by primary key in sorted order, so that agents cannot deadlock. Cost: a probe
 * per group and, only if there are new groups, the index entries of their projects, at most
 * ISSUES_MAX each. A failure before the success that resolved an issue does not open it again.
 */
const RECORD = `
  with u as materialized (${FAILURES.select()}),
  k as materialized (
    select u.*, (select true from issues i where i.project_id = project and i.endpoint_id = endpoint and i.kind = u.kind limit 1) is null as is_new from u
  ),
  folded as materialized (
    select k.*, case when is_new and row_number() over (partition by project, endpoint, is_new order by kind)
                  + (select count(*) from issues i where i.project_id = project and i.endpoint_id = endpoint) > ${KINDS_MAX} then '${OTHER_KIND}' else kind end as name
    from k
  ),
  room as materialized (
    select project, ${ISSUES_MAX} - (select count(*) from (select from issues i where i.project_id = p.project limit ${ISSUES_MAX}) c) as room
    from (select distinct project from k where is_new) p
  ),
  given as (
    select f.project, endpoint, name, (array_agg(id))[1] as id, min(first_at) as first_at, max(last_at) as last_at, sum(n) as n,
           (array_agg(delivery order by last_at desc))[1] as delivery, (array_agg(http order by last_at desc))[1] as http,
           (array_agg(error order by last_at desc))[1] as error, bool_and(is_new) as is_new, min(r.room) as room
    from folded f left join room r on r.project = f.project group by 1, 2, 3
  )
  insert into issues as i (project_id, endpoint_id, kind, id, first_seen_at, last_seen_at, failures, event_delivery_id, http_status, error)
  select project, endpoint, name, id, first_at, last_at, n, delivery, http, error
  from (select g.*, row_number() over (partition by project, is_new order by endpoint, name) as nth from given g) g
  where not is_new or nth <= room
  order by 1, 2, 3
  on conflict (project_id, endpoint_id, kind) do update set
    first_seen_at = case when excluded.first_seen_at > i.resolved_at + ${FORGOTTEN} then excluded.first_seen_at else least(i.first_seen_at, excluded.first_seen_at) end,
    failures = case when excluded.first_seen_at > i.resolved_at + ${FORGOTTEN} then 0 else i.failures end + excluded.failures,
    recurs = case when excluded.last_seen_at > i.resolved_at then excluded.first_seen_at <= i.resolved_at + ${FORGOTTEN} else i.recurs end,
    resolved_at = case when excluded.last_seen_at > i.resolved_at then null else i.resolved_at end,
    event_delivery_id = case when excluded.last_seen_at >= i.last_seen_at then excluded.event_delivery_id else i.event_delivery_id end,
    http_status = case when excluded.last_seen_at >= i.last_seen_at then excluded.http_status else i.http_status end,
    error = case when excluded.last_seen_at >= i.last_seen_at then excluded.error else i.error end,
    last_seen_at = greatest(i.last_seen_at, excluded.last_seen_at)`;

export async function recordFailures(pool: Pool, groups: readonly FailureGroup[]): Promise<void> {
  await pool.query({ name: 'record-failures', text: RECORD, values: FAILURES.texts(groups) });
}

export interface EndpointSuccess {
  readonly projectId: string;
  readonly endpointId: string;
  readonly atMs: number;
}

const SUCCESSES = batchOf<EndpointSuccess>([
  ['project', 'projectId', 'uuid'],
  ['endpoint', 'endpointId', 'uuid'],
  ['at', 'atMs', timeOf],
]);

/** An issue that recurs must not have been seen for a minute. Locks the issues in sorted order. */
export async function resolveIssues(
  pool: Pool,
  successes: readonly EndpointSuccess[],
): Promise<void> {
  await pool.query({
    name: 'resolve-issues',
    text: `with s as (${SUCCESSES.select()}),
           over as (
             select i.project_id, i.endpoint_id, i.kind, s.at from s join issues i on i.project_id = s.project and i.endpoint_id = s.endpoint
             where i.resolved_at is null and s.at > i.last_seen_at + case when i.recurs then ${QUIET} else '0' end
             order by 1, 2, 3 for update of i
           )
           update issues i set resolved_at = over.at from over
           where i.project_id = over.project_id and i.endpoint_id = over.endpoint_id and i.kind = over.kind`,
    values: SUCCESSES.texts(successes),
  });
}

const READ_MAX = 100_000;

/** With an unresolved issue. Scans issues_open. No lock. */
export async function readFailingEndpoints(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ endpoint_id: string }>({
    name: 'read-failing-endpoints',
    text: `select endpoint_id from issues where resolved_at is null limit ${READ_MAX}`,
  });
  return rows.map(({ endpoint_id }) => endpoint_id);
}

export const ISSUE_STATES = ['open', 'muted', 'resolved'] as const;
export type IssueState = (typeof ISSUE_STATES)[number];

export interface IssueRow {
  readonly id: string;
  readonly project_id: string;
  readonly endpoint_id: string;
  readonly endpoint_name: string;
  readonly kind: string;
  readonly state: IssueState;
  readonly first_seen_at: Date;
  readonly last_seen_at: Date;
  readonly failures: number;
  readonly event_delivery_id: string;
  readonly http_status: number | null;
  readonly error: string;
  readonly resolved_at: Date | null;
  readonly muted_at: Date | null;
}

const STATE = `case when i.muted_at is not null then 'muted' when i.resolved_at is not null then 'resolved' else 'open' end`;
const SELECT = `select i.id, i.project_id, i.endpoint_id, n.name as endpoint_name, i.kind, ${STATE} as state, i.first_seen_at, i.last_seen_at,
    i.failures::float8 as failures, i.event_delivery_id, i.http_status, i.error, i.resolved_at, i.muted_at
  from issues i join endpoints n on n.project_id = i.project_id and n.id = i.endpoint_id and n.deleted_at is null`;

/** Besides their beginning. */
export const ISSUE_SORTS = {
  failures: sortableNumber('i.failures'),
  last_seen: sortableNumber('extract(epoch from i.last_seen_at) * 1000000'),
};

/** Excludes deleted endpoints. */
export async function listIssues(
  pool: Pool,
  filter: {
    readonly projectId?: string | undefined;
    readonly endpointId?: string | undefined;
    readonly states?: readonly IssueState[] | undefined;
  },
  page: PageRequest,
): Promise<PageResult<IssueRow>> {
  const key = page.by === undefined ? undefined : ISSUE_SORTS[page.by as keyof typeof ISSUE_SORTS];
  const select = key ? SELECT.replace('select ', `select ${key} as sort_key, `) : SELECT;
  const [row, edgeRow] = key ? [`(${key}, i.id)`, '($6::text, $4::uuid)'] : ['i.id', '$4'];
  return readPage(page, async ({ order, after, limit }) => {
    const [edge, id] = after !== undefined && key ? edgeOf(after) : ['', after ?? null];
    const { rows } = await pool.query<IssueRow & { readonly sort_key?: string }>(
      `${select} where ($1::uuid is null or i.project_id = $1) and ($2::uuid is null or i.endpoint_id = $2) and ($3::text[] is null or ${STATE} = any ($3))
         and ($4::uuid is null or ${row} ${order === 'asc' ? '>' : '<'} ${edgeRow}) order by ${key ? `sort_key ${order}, ` : ''}i.id ${order} limit $5`,
      [
        filter.projectId ?? null,
        filter.endpointId ?? null,
        filter.states ?? null,
        id,
        limit,
        ...(key ? [edge] : []),
      ],
    );
    return rows;
  });
}

/** Without a project, in any. */
export async function findIssue(
  pool: Pool,
  id: string,
  projectId?: string,
): Promise<IssueRow | undefined> {
  const { rows } = await pool.query<IssueRow>(
    `${SELECT} where i.id = $1 and ($2::uuid is null or i.project_id = $2)`,
    [id, projectId ?? null],
  );
  return rows[0];
}

export async function muteIssue(
  pool: Pool,
  { id, project_id }: Pick<IssueRow, 'id' | 'project_id'>,
  isMuted: boolean,
): Promise<IssueRow | undefined> {
  await pool.query(
    `update issues set muted_at = case when $3 then coalesce(muted_at, now()) end where project_id = $1 and id = $2`,
    [project_id, id, isMuted],
  );
  return findIssue(pool, id, project_id);
}

/**
 * Issues of deleted endpoints and projects, resolved 30 days ago, or muted and not seen for a year.
 */
export async function deleteOldIssues(pool: Querier): Promise<void> {
  await pool.query(
    `delete from issues i where (muted_at is null and resolved_at < now() - interval '${RESOLVED_DAYS} days') or last_seen_at < now() - interval '${MUTED_DAYS} days'
       or not exists (select from endpoints n join projects p on p.id = n.project_id where n.id = i.endpoint_id and n.deleted_at is null and p.deleted_at is null)`,
  );
}
