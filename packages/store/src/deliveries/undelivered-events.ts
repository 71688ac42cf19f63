import type pg from 'pg';
import { timeOfId } from '@gateway/core/events';

/** Returns which events, of one project, some of the endpoints have yet to get. */
export async function undeliveredEvents(
  pool: pg.Pool,
  projectId: string,
  { eventIds, endpointIds }: { eventIds: readonly string[]; endpointIds: readonly string[] },
): Promise<ReadonlySet<string>> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'undelivered-events',
    text: `select distinct e.id from unnest($2::uuid[], $3::timestamptz[]) e(id, occurred_at)
           join event_deliveries d on d.project_id = $1 and d.occurred_at = e.occurred_at and d.event_id = e.id
           where d.endpoint_id = any ($4::uuid[]) and d.status in ('scheduled', 'processing', 'retry')`,
    values: [projectId, eventIds, eventIds.map((id) => new Date(timeOfId(id))), endpointIds],
  });
  return new Set(rows.map(({ id }) => id));
}
