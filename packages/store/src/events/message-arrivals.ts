import type { Querier } from '../postgres/connection.js';
import { batchRows, batchTexts } from '../postgres/columns.js';
import { OCCURRED_AT, REF, type EventRef } from './event-ref.js';

/**
 * Returns when messages without a usable broker time first arrived, by message id, in epoch
 * milliseconds of the Postgres clock. Omits ids stored by an earlier version, which keep their
 * time. Locks the messages' rows in sorted order.
 */
export async function firstArrivals(
  pool: Querier,
  messages: readonly EventRef[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query<{ id: string; ms: number }>({
    name: 'first-arrivals',
    text: `insert into message_arrivals (project_id, id)
           select distinct project, message
             from (select projectId::uuid as project, id::uuid as message, ${OCCURRED_AT} as occurred_at from ${batchRows(REF)}) u
            where not exists (select from events e where e.project_id = u.project and e.id = u.message and e.occurred_at = u.occurred_at)
              and not exists (select from quarantined_messages q where q.project_id = u.project and q.id = u.message)
            order by 1, 2
           on conflict (project_id, id) do update set arrived_at = message_arrivals.arrived_at
           returning id, (extract(epoch from arrived_at) * 1000)::float8 as ms`,
    values: batchTexts(messages, REF),
  });
  return new Map(rows.map(({ id, ms }) => [id, ms]));
}

/**
 * Returns the SQL condition that a message id derived from the broker time was not previously dated
 * by arrival: a broker time too far in the future on arrival may be valid on redelivery. The table
 * of arrivals is nearly always empty, which is checked once per statement.
 */
export function notDatedByArrival(project: string, id: string): string {
  return `case when (select not exists (select from message_arrivals)) then true
               else not exists (select from message_arrivals a where a.project_id = ${project} and a.id = ${id}) end`;
}
