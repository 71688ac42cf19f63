import type pg from 'pg';
import { API_SOURCE, OTHER } from '@gateway/core/metrics';
import { applyCountDeltas } from './apply-deltas.js';
import { limitSeries, type Count, type Reading } from './limit-series.js';

/** The queue series of Postgres. Ages are as of the sample, in seconds; null for finished rows. */
export interface QueueSample {
  readonly events: readonly EventCount[];
  readonly deliveries: readonly DeliveryCount[];
  readonly attempts: readonly AttemptCount[];
  /** How many counts of each list are only part of a sum. */
  readonly hidden: Readonly<Record<'events' | 'deliveries' | 'attempts', number>>;
  /** Names of the projects in the lists, by id. */
  readonly projects: Readonly<Record<string, readonly [name: string, organisationId: string, organisation: string]>>;
}

export type EventCount = readonly [project: string, source: string, status: string, n: number, age: number | null];
export type DeliveryCount = readonly [
  project: string,
  endpoint: string,
  source: string,
  type: string,
  status: string,
  n: number,
  age: number | null,
];
export type AttemptCount = readonly [project: string, endpoint: string, status: string, httpStatus: string, n: number, age: null];

interface Counting {
  /** Selects the stored columns that distinguish counts, the count `n` and, for unfinished rows, the time of the `oldest`. */
  readonly groups: string;
  /** Expressions of the labels, evaluated only for the counts that are shown. */
  readonly labels: readonly [project: string, ...others: string[]];
  /** Index of the status label. */
  readonly status: number;
  /** Order of equal counts, most selective column first. */
  readonly ties: string;
  readonly isFinished: boolean;
}

function unfinishedDeliveries(where: string) {
  return {
    groups: `select project_id, endpoint_id, source_id, event_type, status, count(*) as n, min(occurred_at) as oldest
      from event_deliveries where ${where} group by project_id, endpoint_id, source_id, event_type, status`,
    labels: [
      'project_id',
      'endpoint_id::text',
      `case when event_type is null then '' else coalesce(source_id::text, '${API_SOURCE}') end`,
      `coalesce(event_type, '')`,
      'status',
    ],
    status: 4,
    ties: 'endpoint_id, source_id, event_type, status, project_id',
    isFinished: false,
  } as const satisfies Counting;
}

/* Unfinished rows are counted through the partial indexes that contain only them; finished ones are read from the counts. No locks. */
export const COUNTINGS = {
  'pending-events': {
    groups: `select project_id, source_id, count(*) as n, min(occurred_at) as oldest from events where status = 'pending' group by project_id, source_id`,
    labels: ['project_id', `coalesce(source_id::text, '${API_SOURCE}')`, `'pending'`],
    status: 2,
    ties: 'source_id, project_id',
    isFinished: false,
  },
  'finished-events': {
    groups: 'select project_id, source, status, n from event_counts where n > 0',
    labels: ['project_id', 'source', 'status'],
    status: 2,
    ties: 'source, status, project_id',
    isFinished: true,
  },
  'waiting-deliveries': unfinishedDeliveries(`status in ('scheduled', 'retry')`),
  'processing-deliveries': unfinishedDeliveries(`status = 'processing'`),
  'finished-deliveries': {
    groups: 'select project_id, endpoint_id, source, event_type, status, n from event_delivery_counts where n > 0',
    labels: ['project_id', 'endpoint_id::text', 'source', 'event_type', 'status'],
    status: 4,
    ties: 'endpoint_id, source, event_type, status, project_id',
    isFinished: true,
  },
  attempts: {
    groups: 'select project_id, endpoint_id, delivered, http_status, n from delivery_attempt_counts where n > 0',
    labels: [
      'project_id',
      'endpoint_id::text',
      `case when delivered then 'success' else 'failure' end`,
      `case when http_status = 0 then 'none' else http_status::text end`,
    ],
    status: 2,
    ties: 'endpoint_id, delivered, http_status, project_id',
    isFinished: true,
  },
} as const satisfies Readonly<Record<string, Counting>>;

/**
 * Takes a sample of one snapshot. Cost: an index entry and a row per unfinished event and delivery, plus the counts of finished ones.
 *
 * @param client in a `repeatable read` transaction, under `COUNTS_LOCK`
 * @param beside a connection with the same snapshot, which counts waiting deliveries in parallel, or `client`
 * @param timeoutMs statement timeout; the client waits a second longer
 * @param countsMax maximum counts per series: unfinished before finished, larger before smaller
 */
export async function readQueueSample(
  client: pg.PoolClient,
  beside: pg.PoolClient,
  { timeoutMs, countsMax }: { timeoutMs: number; countsMax: number },
): Promise<QueueSample> {
  const read = <Row extends Count>(on: pg.PoolClient, name: keyof typeof COUNTINGS, max = countsMax) =>
    readLargest<Row>(on, { name, ...COUNTINGS[name], max, query_timeout: timeoutMs + 1_000 });
  const limit = <Row extends Count>(readings: readonly Reading<Row>[], status: number) => limitSeries(readings, { max: countsMax, status });
  const readWaiting = () => read<DeliveryCount>(beside, 'waiting-deliveries');
  const readRest = async () => {
    await applyCountDeltas(client);
    const processing = await read<DeliveryCount>(client, 'processing-deliveries');
    return {
      processing,
      // Finished deliveries fill what unfinished ones leave.
      finished: await read<DeliveryCount>(client, 'finished-deliveries', countsMax - processing.counts.length),
      attempts: limit([await read<AttemptCount>(client, 'attempts')], 2),
      events: limit([await read<EventCount>(client, 'pending-events'), await read<EventCount>(client, 'finished-events')], 2),
    };
  };
  const [waiting, { processing, finished, attempts, events }] =
    beside === client ? [await readWaiting(), await readRest()] : await Promise.all([readWaiting(), readRest()]);
  const deliveries = limit([largestFirst(waiting, processing), finished], 4);
  return {
    events: events.counts,
    deliveries: deliveries.counts,
    attempts: attempts.counts,
    hidden: { events: events.hidden, deliveries: deliveries.hidden, attempts: attempts.hidden },
    projects: await readNames(client, new Set(deliveries.counts.map(([project]) => project).filter((project) => project !== OTHER))),
  };
}

function largestFirst(one: Reading<DeliveryCount>, other: Reading<DeliveryCount>): Reading<DeliveryCount> {
  const counts = [...one.counts, ...other.counts].sort(([, , , , , a], [, , , , , b]) => b - a);
  return { counts, sums: [...one.sums, ...other.sums] };
}

/** Reads the largest `max` counts, and the rest as sums by project and status. */
async function readLargest<Row extends Count>(
  client: pg.PoolClient,
  { name, max, query_timeout, ...counting }: Counting & { name: string; max: number; query_timeout: number },
): Promise<Reading<Row>> {
  // node-postgres accepts query_timeout per query; its types do not list it.
  const query = { name: `sample-${name}`, text: largest(counting), values: [max], rowMode: 'array' as const, query_timeout };
  const { rows } = await client.query<[...unknown[], counts: number]>(query);
  const counts: Row[] = [];
  const sums: { count: Row; of: number }[] = [];
  for (const row of rows) {
    const of = row.pop() as number;
    if (counts.length < max) counts.push(row as unknown as Row);
    else sums.push({ count: row as unknown as Row, of });
  }
  return { counts, sums };
}

function largest({ groups, labels, status, ties, isFinished }: Counting): string {
  const age = (oldest: string) => (isFinished ? 'null::float8' : `greatest(0, date_part('epoch', now() - ${oldest}))`);
  const summed = labels.map((label, k) => (k === 0 || k === status ? label : `'${OTHER}'`));
  return `with c as materialized (${groups} order by n desc, ${ties})
    (select ${labels.join(', ')}, n::float8, ${age('oldest')}, 1 from c limit $1::int)
    union all
    (select ${summed.join(', ')}, sum(n)::float8, ${age('min(oldest)')}, count(*)::int from (select * from c offset $1::int) c group by 1, ${status + 1})`;
}

async function readNames(client: pg.PoolClient, projects: ReadonlySet<string>): Promise<QueueSample['projects']> {
  const { rows } = await client.query<[id: string, name: string, organisationId: string, organisation: string]>({
    name: 'sample-names',
    text: `select p.id, p.name, o.id, o.name from projects p join organisations o on o.id = p.organisation_id where p.id = any ($1::uuid[])`,
    values: [[...projects]],
    rowMode: 'array',
  });
  return Object.fromEntries(rows.map(([id, ...names]) => [id, names]));
}
