import type { Database } from '../../support/database.js';
import { SIDE } from './side-endpoints.js';

export interface EventRow {
  readonly id: string;
  readonly source_id: string;
  readonly coordinates: string;
  readonly status: 'pending' | 'processed' | 'failed';
  readonly n: number;
}

export interface DeliveryRow {
  readonly id: string;
  readonly event_id: string;
  readonly status: 'scheduled' | 'processing' | 'retry' | 'success' | 'failure' | 'discarded';
  /** The number of recoveries from an agent that was dead, or seemed dead. */
  readonly recovered: number;
}

export interface AttemptRow {
  readonly delivery_id: string;
  readonly requested_at_ms: number;
  readonly duration_ms: number;
  readonly http_status: number | null;
  /** False if the attempt made the delivery a success. */
  readonly failed: boolean;
}

export interface QuarantinedRow {
  readonly source_id: string;
  readonly coordinates: string;
  readonly raw: Buffer;
}

export interface Ledger {
  readonly events: readonly EventRow[];
  readonly deliveries: readonly DeliveryRow[];
  readonly attempts: readonly AttemptRow[];
  readonly quarantined: readonly QuarantinedRow[];
  /** Ids of deliveries claimed by an agent that is no longer alive. */
  readonly pastLease: readonly string[];
  /** Ids of events pending for so long that they must have been forgotten. */
  readonly unrouted: readonly string[];
  /** Ids of deliveries due for so long that they must have been forgotten. */
  readonly overdue: readonly string[];
  /** Ids of deliveries that wait for a deleted endpoint, or are held without a paused endpoint. */
  readonly leftBehind: readonly string[];
  /** Counts that differ from the number of rows, in words. */
  readonly miscounted: readonly string[];
  /** The longest response timeout of an endpoint. */
  readonly timeoutMs: number;
}

/** The control plane and the shards. A gateway without other shards has one database. */
export interface Databases {
  readonly rows: Database['rows'];
  readonly shards: readonly Database['rows'][];
}

/** Work that has waited longer, in an idle gateway without faults, is forgotten. */
const FORGOTTEN = `interval '10 seconds'`;

interface Endpoint {
  readonly id: string;
  readonly isSide: boolean;
  readonly isPaused: boolean;
  readonly isDeleted: boolean;
  readonly timeout_ms: number;
}

/** Reads the endpoints from the control plane, and the rows of all shards. */
export async function readLedger({ rows, shards }: Databases): Promise<Ledger> {
  const endpoints = await rows<Endpoint>(
    `select id, name = '${SIDE}' as "isSide", status = 'paused' as "isPaused", deleted_at is not null as "isDeleted", timeout_ms from endpoints`,
  );
  const ledgers = await Promise.all(shards.map((shard) => readShard(shard, endpoints)));
  const all = <Key extends keyof ShardLedger>(key: Key) =>
    ledgers.flatMap((ledger): readonly unknown[] => ledger[key]) as unknown as ShardLedger[Key];
  return {
    events: all('events'),
    deliveries: all('deliveries'),
    attempts: all('attempts'),
    quarantined: all('quarantined'),
    pastLease: all('pastLease'),
    unrouted: all('unrouted'),
    overdue: all('overdue'),
    leftBehind: all('leftBehind'),
    miscounted: all('miscounted'),
    timeoutMs: Math.max(0, ...endpoints.map(({ timeout_ms: ms }) => ms)),
  };
}

type ShardLedger = Omit<Ledger, 'timeoutMs'>;

async function readShard(
  rows: Database['rows'],
  endpoints: readonly Endpoint[],
): Promise<ShardLedger> {
  const idsWhere = (is: (endpoint: Endpoint) => boolean) => [
    endpoints.filter(is).map(({ id }) => id),
  ];
  // Only the receivers of the other endpoints write a journal.
  const side = idsWhere(({ isSide }) => isSide);
  const ids = async (sql: string, values: readonly unknown[] = []) =>
    (await rows<{ id: string }>(sql, values)).map(({ id }) => id);
  return {
    events: await rows<EventRow>(
      `select id, source_id, coordinates, status, (data::json ->> 'n')::int as n from events where source_id is not null order by coordinates`,
    ),
    deliveries: await rows<DeliveryRow>(
      `select id, event_id, status, recovered from event_deliveries where endpoint_id <> all ($1::uuid[])`,
      side,
    ),
    attempts: await rows<AttemptRow>(
      `select event_delivery_id as delivery_id, (extract(epoch from requested_at) * 1000)::float8 as requested_at_ms, duration_ms, http_status, error_class is not null as failed
       from delivery_attempts where endpoint_id <> all ($1::uuid[]) order by requested_at`,
      side,
    ),
    quarantined: await rows<QuarantinedRow>(
      'select source_id, coordinates, raw from quarantined_messages order by coordinates',
    ),
    pastLease: await ids(
      `select id from event_deliveries d
       where status = 'processing' and not exists (select from agents a where a.id = d.claimed_by and a.expires_at > now())`,
    ),
    unrouted: await ids(
      `select id from events where status = 'pending' and accepted_at < now() - ${FORGOTTEN}`,
    ),
    overdue: await ids(
      `select id from event_deliveries where status in ('scheduled', 'retry') and next_attempt_at < now() - ${FORGOTTEN}`,
    ),
    leftBehind: await ids(
      `select id from event_deliveries
       where status in ('scheduled', 'retry') and (endpoint_id = any ($1::uuid[]) or (next_attempt_at = 'infinity' and endpoint_id <> all ($2::uuid[])))`,
      [...idsWhere(({ isDeleted }) => isDeleted), ...idsWhere(({ isPaused }) => isPaused)],
    ),
    miscounted: await readMiscounted(rows),
  };
}

/**
 * A single statement, for a consistent snapshot of rows and counts. Changes not yet folded into the
 * counts are in count_changes.
 */
async function readMiscounted(rows: Database['rows']): Promise<string[]> {
  const found = await rows<{ what: string; counted: string; there: string }>(`
    with counted as (
      select 'events ' || status as what, n from event_counts
      union all select 'deliveries ' || status, n from event_delivery_counts
      union all select case when delivered then 'attempts success' else 'attempts failure' end || ' ' || http_status, n from delivery_attempt_counts
      union all select case when u.http is not null then 'attempts ' || u.status || ' ' || u.http
                            when u.endpoint is null then 'events ' || u.status else 'deliveries ' || u.status end, u.n
                from count_changes c, unnest(c.endpoints, c.statuses, c.http_statuses, c.changes) u(endpoint, status, http, n)
    ),
    there as (
      select 'events ' || status as what, 1 as n from events where status <> 'pending'
      union all select 'deliveries ' || status, 1 from event_deliveries where status in ('success', 'failure', 'discarded')
      union all select case when error_class is null then 'attempts success' else 'attempts failure' end || ' ' || coalesce(http_status, 0), 1
                from delivery_attempts
    )
    select what, coalesce(c.n, 0)::text as counted, coalesce(t.n, 0)::text as there
    from (select what, sum(n) as n from counted group by what) c full join (select what, sum(n) as n from there group by what) t using (what)
    where coalesce(c.n, 0) <> coalesce(t.n, 0) order by what`);
  return found.map(({ what, counted, there }) => `${what}: ${counted} counted, ${there} there`);
}
