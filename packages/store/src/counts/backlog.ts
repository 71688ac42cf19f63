import type pg from 'pg';
import { PROJECT, type TimeSteps } from './activity.js';
import { withAdvisoryLock } from '../postgres/advisory-lock.js';

/** Beyond, the minute stays without a sample. */
const COUNT_MS = 5_000;

/**
 * Once a minute, in one process. Reads the index entries of unfinished events and deliveries. Takes
 * an advisory lock.
 */
export async function sampleBacklog(pool: pg.Pool, signal?: AbortSignal): Promise<void> {
  const { rowCount } = await pool.query({
    name: 'is-backlog-sampled',
    text: `select from backlog_samples where project_id = '${PROJECT}' and at = ${MINUTE}`,
  });
  if (rowCount) return;
  const work = async (client: pg.PoolClient) => {
    await client.query(`begin; set local statement_timeout = ${COUNT_MS}`);
    await client.query({ name: 'sample-backlog', text: SAMPLE });
    await client.query('commit');
  };
  await withAdvisoryLock(pool, 'gateway.backlog', work, signal);
}

const MINUTE = `date_bin('1 minute', now(), 'epoch')`;
const SAMPLE = `
  with c as materialized (
    select project_id, count(*) as events, 0 as deliveries from events where status = 'pending' group by 1
    union all
    select project_id, 0, count(*) from event_deliveries where status in ('scheduled', 'retry') and (next_attempt_at < 'infinity' or next_attempt_at is null) group by 1
    union all
    select '${PROJECT}', 0, 0
  )
  insert into backlog_samples (project_id, at, pending_events, waiting_deliveries)
  select project_id, ${MINUTE}, sum(events), sum(deliveries) from c group by project_id
  on conflict do nothing`;

export interface BacklogStep {
  readonly at: Date;
  readonly pending_events: number;
  readonly waiting_deliveries: number;
}

/** The peak of each step, oldest first. Omits steps without a sample. No lock. */
export async function readBacklog(
  pool: pg.Pool,
  projectId: string,
  { from, to, stepSeconds }: TimeSteps,
): Promise<BacklogStep[]> {
  const most = (column: string) => `max(coalesce(p.${column}, 0))::float8 as ${column}`;
  const { rows } = await pool.query<BacklogStep>({
    name: 'read-backlog',
    text: `select date_bin(make_interval(secs => $4), m.at, 'epoch') as at, ${most('pending_events')}, ${most('waiting_deliveries')}
           from backlog_samples m left join backlog_samples p on p.project_id = $1 and p.at = m.at and p.at >= $2 and p.at <= $3
           where m.project_id = '${PROJECT}' and m.at >= $2 and m.at <= $3 group by 1 order by 1`,
    values: [projectId, from, to, stepSeconds],
  });
  return rows;
}
