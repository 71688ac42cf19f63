import type { Querier } from '../postgres/connection.js';
import { batchRows, batchTexts } from '../postgres/columns.js';
import { OCCURRED_AT, REF, type EventRef } from './event-ref.js';

/**
 * For messages without a usable broker time: their first arrival by message id, in epoch
 * milliseconds of the Postgres clock. Omits ids stored by an earlier version, which keep their
 * time. Locks the messages' rows in sorted order.
 */
export async function firstArrivals(
  pool: Querier,
  messages: readonly EventRef[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query<{ id: string; ms: number }>({
    name: 'first-arrivals',
    text: `with unknown as materialized (
             select distinct project, message
             from (select projectId::uuid as project, id::uuid as message, ${OCCURRED_AT} as occurred_at from ${batchRows(REF)}) u
             where not exists (select from events e where e.project_id = u.project and e.id = u.message and e.occurred_at = u.occurred_at)
               and not exists (select from quarantined_messages q where q.project_id = u.project and q.id = u.message)
           )
           insert into message_arrivals (project_id, id)
           select project, message from unknown order by 1, 2
           on conflict (project_id, id) do update set arrived_at = message_arrivals.arrived_at
           returning id, (extract(epoch from arrived_at) * 1000)::float8 as ms`,
    values: batchTexts(messages, REF),
  });
  return new Map(rows.map(({ id, ms }) => [id, ms]));
}

/**
 * The CTE `dated` selects from the CTE `u`, which has `project` and `message`, the messages that were
 * dated by arrival before: a broker time too far in the future on arrival may be valid on redelivery.
 * The table of arrivals is nearly always empty, which is checked once per statement.
 */
export const DATED_BY_ARRIVAL = `dated as materialized (
    select a.id from u join message_arrivals a on a.project_id = u.project and a.id = u.message
    where (select exists (select from message_arrivals))
  )`;

/** The SQL condition is true if `u.message` is not in the CTE `dated`. */
export const NOT_DATED_BY_ARRIVAL = `case when u.message in (select id from dated) then false else true end`;
