import type { Querier } from '../postgres/connection.js';
import { opaqueUnless } from '../postgres/columns.js';
import { isSame, REF, type EventRef } from './event-ref.js';

/**
 * For messages without a usable broker time: their first arrival by id, in epoch milliseconds of
 * the Postgres clock. Omits ids stored by an earlier version, which keep their time. Locks the rows
 * in sorted order.
 */
export async function firstArrivals(
  pool: Querier,
  messages: readonly EventRef[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query<{ id: string; ms: number }>({
    name: 'first-arrivals',
    text: `with unknown as materialized (
             select distinct project_id, id from (${REF.select()}) u
             where not exists (select from events e where ${isSame('e', 'u')})
               and not exists (select from quarantined_messages q where q.project_id = u.project_id and q.id = u.id)
           )
           insert into message_arrivals (project_id, id) select project_id, id from unknown order by 1, 2
           on conflict (project_id, id) do update set arrived_at = message_arrivals.arrived_at
           returning id, (extract(epoch from arrived_at) * 1000)::float8 as ms`,
    values: REF.texts(messages),
  });
  return new Map(rows.map(({ id, ms }) => [id, ms]));
}

/**
 * The CTE `dated` selects from the CTE `u` the messages that were dated by arrival before: a broker
 * time too far in the future on arrival may be valid on redelivery. The table of arrivals is nearly
 * always empty, which is checked once per statement.
 */
export const DATED_BY_ARRIVAL = `dated as materialized (
    select a.id from u join message_arrivals a on a.project_id = u.project_id and a.id = u.id
    where (select exists (select from message_arrivals))
  )`;

export const NOT_DATED_BY_ARRIVAL = opaqueUnless('u.id in (select id from dated)');
