import type pg from 'pg';
import { sharesTime } from '../events/event-ref.js';
import type { ArchivedEvent } from './archive.js';
import { idsOfDay, type Partitions } from './partitions.js';

export interface ExpiredEvents {
  readonly projectId: string;
  readonly day: string;
  readonly partitions: Partitions;
}

/*
 * A page is encoded at once, which must not hold up the event loop. Sizes come from the headers of
 * stored values, without reading them. An event may have thousands of deliveries.
 */
const PAGE_EVENTS = 500;
const PAGE_BYTES = 512 * 1024;
const DELIVERY_BYTES = 350;

/**
 * With their deliveries, in pages, by id. With `since`, only events that were accepted, or got a
 * delivery, since then. No lock.
 */
export async function* readExpiredEvents(
  client: Pick<pg.PoolClient, 'query'>,
  { projectId, day, partitions }: ExpiredEvents,
  since: Date | null,
): AsyncGenerator<ArchivedEvent[]> {
  const [first, until] = idsOfDay(day);
  const text = pageStatement(partitions, since !== null);
  for (let after = first; ;) {
    const { rows } = await client.query<ArchivedEvent>(text, [
      projectId,
      after,
      until,
      ...(since ? [since] : []),
    ]);
    if (rows.length === 0) return;
    yield rows;
    after = rows.at(-1)!.id;
  }
}

/**
 * $1 project, $2 id before the page, $3 upper bound of ids, $4 the time since which events changed.
 * Primary key probes find deliveries and attempts.
 */
export function pageStatement({ suffix, within }: Partitions, isPartial: boolean): string {
  const deliveriesOf = (event: string) => `event_deliveries${suffix} d
         where d.project_id = $1 and ${sharesTime('d.id', `${event}.id`)} ${within('d')}
           and d.occurred_at = ${event}.occurred_at and d.event_id = ${event}.id`;
  const changed = `and (t.accepted_at >= $4 or exists (select from ${deliveriesOf('t')} and d.created_at >= $4))`;
  return `
    with page as materialized (
      select id, occurred_at, sum(size) over (order by id) - size as bytes_before
        from (select id, occurred_at, octet_length(data) + octet_length(headers) + coalesce(octet_length(message), 0) + ${DELIVERY_BYTES} * (select count(*) from ${deliveriesOf('t')}) as size
                from events${suffix} t
               where project_id = $1 and id > $2 and id <= $3 ${within('t')} ${isPartial ? changed : ''}
               order by id limit ${PAGE_EVENTS}) e)
    select e.id, e.occurred_at, e.accepted_at, e.source_id, e.coordinates, e.event_type, e.message_type, e.endpoint_id, e.owner_id,
           e.idempotency_key, e.status, e.outcome, e.headers, e.message, e.notes, e.data, coalesce(of_event.deliveries, '[]') as deliveries
      from page join events${suffix} e on e.project_id = $1 and e.id = page.id and e.occurred_at = page.occurred_at ${within('e')}
      left join lateral (
        select json_agg(json_build_object('id', d.id, 'endpoint_id', d.endpoint_id, 'subscription_id', d.subscription_id,
                 'status', d.status, 'attempts', d.attempts, 'reason', d.reason, 'updated_at', d.updated_at,
                 'http_status', last.http_status, 'error', last.error) order by d.id)::text as deliveries
          from (select * from ${deliveriesOf('e')}) d
          left join lateral (
            select http_status, error from delivery_attempts${suffix} a
             where a.project_id = $1 and a.event_delivery_id = d.id and a.occurred_at = d.occurred_at ${within('a')}
             order by a.id desc limit 1) last on true) of_event on true
     where page.bytes_before < ${PAGE_BYTES}
     order by e.id`;
}

/** Whether rows of the day are unfinished or newer. Reads them until it finds one. No lock. */
export async function someRowsStay(
  client: Pick<pg.PoolClient, 'query'>,
  { projectId, day, partitions: { suffix, within } }: ExpiredEvents,
  before: Date,
): Promise<boolean> {
  const ofDay = `project_id = $1 and id > $2 and id <= $3 ${within('t')}`;
  const { rows } = await client.query<{ stay: boolean }>(
    `select exists (select from events${suffix} t where ${ofDay} and (status = 'pending' or accepted_at >= $4))
         or exists (select from event_deliveries${suffix} t where ${ofDay} and (status in ('scheduled', 'retry', 'processing') or created_at >= $4)) as stay`,
    [projectId, ...idsOfDay(day), before],
  );
  return rows[0]!.stay;
}
