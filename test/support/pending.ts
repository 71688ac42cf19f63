import type { Database } from './database.js';

/** The maximum number of deliveries per event, which share the cost of its creation. */
const PER_EVENT = 1_000;

/**
 * Inserts due deliveries with two statements, with an event of about 1 KB per thousand. Agents are
 * not notified; they find the deliveries at their next poll.
 *
 * @param count rounded up to whole thousands
 */
export async function makePending(
  db: Pick<Database, 'rows'>,
  endpointId: string,
  count: number,
): Promise<void> {
  const id = (n: string) =>
    `(lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '80008' || lpad(to_hex(${n}), 15, '0'))::uuid`;
  const events = Math.ceil(count / PER_EVENT);
  const [endpoint] = await db.rows<{ project_id: string }>(
    'select project_id from endpoints where id = $1',
    [endpointId],
  );
  const projectId = endpoint!.project_id;
  await db.rows(
    `insert into events (project_id, id, occurred_at, coordinates, event_type, status, outcome, headers, data)
     select $1, ${id('n')}, at, 'pending/' || n, 'order.paid', 'processed', 'routed', '{}', json_build_object('pending', n, 'note', repeat('x', 900))::text
     from (select n, date_trunc('milliseconds', now()) as at from generate_series(1, $2::int) n) u`,
    [projectId, events],
  );
  await db.rows(
    `insert into event_deliveries (project_id, id, occurred_at, event_id, endpoint_id, event_type, status, next_attempt_at)
     select e.project_id, (left(replace(e.id::text, '-', ''), 12) || '80009' || lpad(to_hex(n * ${PER_EVENT}::bigint + k), 15, '0'))::uuid, e.occurred_at, e.id, $2, e.event_type, 'scheduled', now()
     from (select e.*, row_number() over () as n from events e where e.project_id = $1 and e.coordinates like 'pending/%') e cross join generate_series(0, ${PER_EVENT - 1}) k`,
    [projectId, endpointId],
  );
}
