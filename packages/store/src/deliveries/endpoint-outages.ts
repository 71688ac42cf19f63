import type pg from 'pg';
import { newId } from '@gateway/core/events';
import { deactivateEndpoint, heard, waiting } from '../config/index.js';
import { INACTIVE_REASONS } from './stored-reasons.js';

/** The failed attempts of the last week, below which an endpoint is not disabled. */
const ATTEMPTS_MIN = 10;
/** The time between the warning and the end, at most half of the days. */
const NOTICE = `least(interval '1 day', days * interval '12 hours')`;

const ATTEMPTS = `activity a where a.project_id = o.project_id and a.endpoint_id = o.endpoint_id and a.kind = 'attempt'`;
/** Outages with the days of their project, whose endpoint was tried often enough and lately. */
const LASTING = `(
  select o.*, (p.config ->> 'disable_after_days')::int as days from endpoint_outages o join projects p on p.id = o.project_id
  where (select sum(n) from ${ATTEMPTS} and a.status = 'failure' and a.at >= o.since) >= ${ATTEMPTS_MIN}
    and exists (select from ${ATTEMPTS} and a.status = 'failure' and a.at > now() - interval '1 day'))`;

export interface DisabledEndpoint {
  readonly project_id: string;
  readonly endpoint_id: string;
  readonly since: Date;
  readonly days: number;
}

/**
 * Disables the endpoints of projects with `disable_after_days` that have only failed for so long,
 * and warns before. Counts from the first failure after the last success or change of the endpoint,
 * by the activity of each endpoint, not by its deliveries. Returns the disabled ones. Safe to run
 * in several agents at once.
 */
export async function disableFailingEndpoints(
  pool: pg.Pool,
  isMailed: boolean,
): Promise<DisabledEndpoint[]> {
  await pool.query(
    `delete from endpoint_outages o where exists (select from ${ATTEMPTS} and a.status = 'success' and a.at >= o.since)
       or not exists (
         select from endpoints e join projects p on p.id = e.project_id
         where e.project_id = o.project_id and e.id = o.endpoint_id and e.status = 'active' and e.updated_at <= o.since
           and e.deleted_at is null and p.deleted_at is null and p.config ->> 'disable_after_days' is not null)`,
  );
  await pool.query(
    `insert into endpoint_outages (project_id, endpoint_id, since)
     select o.project_id, o.endpoint_id, greatest(f.since, o.updated_at) from (
       select e.project_id, e.id as endpoint_id, e.updated_at from projects p join endpoints e on e.project_id = p.id
       where p.config ->> 'disable_after_days' is not null and p.deleted_at is null and e.status = 'active' and e.deleted_at is null) o,
       lateral (select min(a.at) as since from ${ATTEMPTS} and a.status = 'failure' and a.at > o.updated_at - interval '10 minutes'
         and a.at > coalesce((select max(a.at) from ${ATTEMPTS} and a.status = 'success'), '-infinity')) f
     where f.since is not null
     on conflict do nothing`,
  );
  const { rows: warned } = await pool.query<{ project_id: string; endpoint_id: string }>(
    `select project_id, endpoint_id from ${LASTING} o where warned_at is null and since <= now() - days * interval '1 day' + ${NOTICE}`,
  );
  for (const { project_id: projectId, endpoint_id: endpointId } of warned)
    await pool.query(
      `with o as (
         update endpoint_outages set warned_at = now() where project_id = $1 and endpoint_id = $2 and warned_at is null returning *
       ),
       d as (select o.*, (p.config ->> 'disable_after_days')::int as days from o join projects p on p.id = o.project_id)
       insert into notifications (id, kind, project_id, subject, facts, ended_at, status, next_attempt_at)
       select $3, 'endpoint_disabling', project_id, endpoint_id::text,
         jsonb_build_object('since', ${iso('since')}, 'disable_after_days', days,
           'disabled_at', ${iso(`greatest(since + days * interval '1 day', now() + ${NOTICE})`)}), now(), ${waiting('$4')}
       from d where ${heard('$4', '$1')}`,
      [projectId, endpointId, newId(), isMailed],
    );
  const { rows: due } = await pool.query<DisabledEndpoint>(
    `select project_id, endpoint_id, since, days from ${LASTING} o
     where since <= now() - days * interval '1 day' and warned_at <= now() - ${NOTICE}`,
  );
  const disabled = [];
  for (const it of due) {
    const { project_id: projectId, endpoint_id: endpointId, since, days } = it;
    const reason = `${INACTIVE_REASONS.failing}${days} days.`;
    const facts = { since: since.toISOString(), disable_after_days: days };
    if (await deactivateEndpoint(pool, projectId, endpointId, reason, facts, isMailed))
      disabled.push(it);
  }
  return disabled;
}

function iso(time: string): string {
  return `to_char(${time} at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
}
