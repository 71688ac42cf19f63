import type { Pool } from 'pg';
import { newId } from '@gateway/core/events';
import { deactivateEndpoint, heard, waiting } from '../config/index.js';
import { PROJECT } from '../counts/activity.js';
import type { Planes } from '../postgres/planes.js';
import type { ShardPlanes } from '../shards/open-shards.js';
import { INACTIVE_REASONS } from './stored-reasons.js';

/** In the last week, for an endpoint to be disabled. */
const ATTEMPTS_MIN = 10;
/** Between the warning and the end; at most half of the days. */
const NOTICE = `least(interval '1 day', days * interval '12 hours')`;

const PAGE = 1_000;
const FIRST: EndpointKey = { project_id: PROJECT, endpoint_id: PROJECT };

/** Deletes those of endpoints that have changed since, or whose project no longer asks for it. */
const CHANGED = `
  delete from endpoint_outages o where not exists (
    select from endpoints e join projects p on p.id = e.project_id
    where e.project_id = o.project_id and e.id = o.endpoint_id and e.status = 'active' and e.updated_at <= o.since
      and e.deleted_at is null and p.deleted_at is null and p.config ->> 'disable_after_days' is not null)`;

/**
 * On a shard, with their known outages. Former shards see no success any more, so they do not
 * judge.
 */
const ENDPOINTS = `
  select e.project_id, e.id as endpoint_id, e.updated_at::text as updated_at, o.since::text as since
  from projects p join endpoints e on e.project_id = p.id left join endpoint_outages o on o.project_id = e.project_id and o.endpoint_id = e.id
  where p.config ->> 'disable_after_days' is not null and p.deleted_at is null and e.status = 'active' and e.deleted_at is null
    and p.shard = $3 and (e.project_id, e.id) > ($1, $2) order by e.project_id, e.id limit ${PAGE}`;

/*
 * Finds since when endpoints have only failed: since their known outage, unless an attempt has
 * succeeded since, or else the first failure after the last success and after the last change.
 * `lasts` are endpoints that were tried often enough and lately.
 */
const FAILING = `
  select project as project_id, endpoint as endpoint_id, known::text as known, o.since::text as since, o.since is distinct from known as differs, t.lasts
  from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::timestamptz[]) u(project, endpoint, changed_at, known),
    lateral (select max(at) as at from ${attempts('success')}) s,
    lateral (select min(at) as at from ${attempts('failure')} and at > changed_at - interval '10 minutes' and at > coalesce(s.at, '-infinity')) f,
    lateral (select case when known > coalesce(s.at, '-infinity') then known when f.at is not null then greatest(f.at, changed_at) end as since) o,
    lateral (select sum(n) filter (where at >= o.since) >= ${ATTEMPTS_MIN} and max(at) > now() - interval '1 day' as lasts from ${attempts('failure')}) t
  where known is not null or o.since is not null`;

function attempts(status: 'success' | 'failure'): string {
  return `activity where project_id = project and endpoint_id = endpoint and kind = 'attempt' and status = '${status}'`;
}

/** Without endpoints that have changed since. `note` is the id of a notification, if given. */
const LASTING = `
  from unnest($1::uuid[], $2::uuid[], $3::uuid[]) u(project, endpoint, note)
    join endpoint_outages o on o.project_id = project and o.endpoint_id = endpoint
    join endpoints e on e.project_id = project and e.id = endpoint and e.updated_at <= o.since
    join projects p on p.id = project,
    lateral (select (p.config ->> 'disable_after_days')::int as days) d`;

export interface DisabledEndpoint {
  readonly project_id: string;
  readonly endpoint_id: string;
  readonly since: Date;
  readonly days: number;
}

/**
 * For projects with `disable_after_days`: endpoints that have only failed for so long, with a
 * warning before. Counts from the first failure after the last success or change of the endpoint,
 * by its activity on the shard. Safe to run in several agents at once.
 */
export async function disableFailingEndpoints(
  planes: ShardPlanes,
  isMailed: boolean,
): Promise<DisabledEndpoint[]> {
  const { control, shard } = planes;
  await control.query(CHANGED);
  const disabled = [];
  for (let after: EndpointKey | undefined = FIRST; after;) {
    const { rows }: { rows: ActiveEndpoint[] } = await control.query<ActiveEndpoint>(ENDPOINTS, [
      after.project_id,
      after.endpoint_id,
      shard,
    ]);
    const lasting = await recordOutages(planes, rows);
    if (lasting.length > 0) {
      await warn(control, lasting, isMailed);
      disabled.push(...(await disable(control, lasting, isMailed)));
    }
    after = rows[PAGE - 1];
  }
  return disabled;
}

interface EndpointKey {
  readonly project_id: string;
  readonly endpoint_id: string;
}

/** Times are texts, because a Date would lose their microseconds. */
interface ActiveEndpoint extends EndpointKey {
  readonly updated_at: string;
  readonly since: string | null;
}

/** Returns those with an outage that were tried often enough and lately. */
async function recordOutages(
  { control, data }: Planes,
  endpoints: readonly ActiveEndpoint[],
): Promise<EndpointKey[]> {
  if (endpoints.length === 0) return [];
  const { rows } = await data.query<
    EndpointKey & {
      known: string | null;
      since: string | null;
      differs: boolean;
      lasts: boolean | null;
    }
  >(FAILING, [
    ...keysOf(endpoints),
    endpoints.map(({ updated_at }) => updated_at),
    endpoints.map(({ since }) => since),
  ]);
  const ended = rows.filter(({ known, differs }) => known !== null && differs);
  const begun = rows.filter(({ since, differs }) => since !== null && differs);
  if (ended.length > 0)
    await control.query(
      `delete from endpoint_outages o using unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) u(project, endpoint, since)
       where o.project_id = u.project and o.endpoint_id = u.endpoint and o.since = u.since`,
      [...keysOf(ended), ended.map(({ known }) => known)],
    );
  if (begun.length > 0)
    await control.query(
      `insert into endpoint_outages (project_id, endpoint_id, since) select * from unnest($1::uuid[], $2::uuid[], $3::timestamptz[]) on conflict do nothing`,
      [...keysOf(begun), begun.map(({ since }) => since)],
    );
  return rows.filter(({ since, lasts }) => since !== null && lasts === true);
}

function keysOf(endpoints: readonly EndpointKey[]): [string[], string[]] {
  return [
    endpoints.map(({ project_id }) => project_id),
    endpoints.map(({ endpoint_id }) => endpoint_id),
  ];
}

/** Skips endpoints that another agent has warned of. */
async function warn(
  control: Pool,
  endpoints: readonly EndpointKey[],
  isMailed: boolean,
): Promise<void> {
  await control.query(
    `with due as (
       select o.project_id, o.endpoint_id, days, note ${LASTING} where warned_at is null and since <= now() - days * interval '1 day' + ${NOTICE}
       order by 1, 2 for update of o
     ),
     warned as (
       update endpoint_outages o set warned_at = now() from due where o.project_id = due.project_id and o.endpoint_id = due.endpoint_id
       returning o.*, days, note
     )
     insert into notifications (id, kind, project_id, subject, facts, ended_at, status, next_attempt_at)
     select note, 'endpoint_disabling', project_id, endpoint_id::text,
       jsonb_build_object('since', ${iso('since')}, 'disable_after_days', days,
         'disabled_at', ${iso(`greatest(since + days * interval '1 day', now() + ${NOTICE})`)}), now(), ${waiting('$4')}
     from warned where ${heard('$4', 'warned.project_id', '= any ($1::uuid[])')}`,
    [...keysOf(endpoints), endpoints.map(() => newId()), isMailed],
  );
}

async function disable(
  control: Pool,
  endpoints: readonly EndpointKey[],
  isMailed: boolean,
): Promise<DisabledEndpoint[]> {
  const { rows: due } = await control.query<DisabledEndpoint>(
    `select o.project_id, o.endpoint_id, since, days ${LASTING} where since <= now() - days * interval '1 day' and warned_at <= now() - ${NOTICE}`,
    [...keysOf(endpoints), []],
  );
  const disabled = [];
  for (const it of due) {
    const { project_id: projectId, endpoint_id: endpointId, since, days } = it;
    const reason = `${INACTIVE_REASONS.failing}${days} days.`;
    const facts = { since: since.toISOString(), disable_after_days: days };
    if (await deactivateEndpoint(control, projectId, endpointId, reason, facts, isMailed))
      disabled.push(it);
  }
  return disabled;
}

function iso(time: string): string {
  return `to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
}
