import type pg from 'pg';
import { API_SOURCE, OTHER } from '@gateway/core/metrics/series';
import type { Querier } from '../postgres/connection.js';
import { applyCountDeltas } from './count-deltas.js';

export type EventCount = readonly [
  project: string,
  source: string,
  status: string,
  n: number,
  age: number | null,
];
export type DeliveryCount = readonly [
  project: string,
  endpoint: string,
  source: string,
  type: string,
  status: string,
  n: number,
  age: number | null,
];
export type AttemptCount = readonly [
  project: string,
  endpoint: string,
  status: string,
  httpStatus: string,
  n: number,
  age: null,
];

/** Parked keys, or the deliveries that wait behind them. */
export type ParkedCount = readonly [
  project: string,
  endpoint: string,
  status: 'keys' | 'deliveries',
  n: number,
  age: number | null,
];

/** At one moment. Ages are in seconds, and null for finished rows. */
export interface QueueSample {
  readonly events: readonly EventCount[];
  readonly deliveries: readonly DeliveryCount[];
  readonly attempts: readonly AttemptCount[];
  /** Undefined if an older version took the sample. */
  readonly parked?: readonly ParkedCount[];
  readonly hidden: Readonly<
    Record<'events' | 'deliveries' | 'attempts', number> & { parked?: number }
  >;
  readonly projects: Readonly<
    Record<string, readonly [name: string, organisationId: string, organisation: string]>
  >;
}

const DELIVERY_LABELS = ['project_id', 'endpoint_id', 'source', 'type', 'status'] as const;

const unfinishedDeliveries = (where: string) => ({
  labels: DELIVERY_LABELS,
  groups: `select project_id, endpoint_id, case when event_type is null then '' else coalesce(source_id::text, '${API_SOURCE}') end as source,
      coalesce(event_type, '') as type, status, count(*) as n, min(occurred_at) as oldest
    from event_deliveries where ${where} group by project_id, endpoint_id, source_id, event_type, status`,
});

/**
 * `oldest` is the time of the oldest unfinished row. Unfinished rows have partial indexes. No
 * locks.
 */
export const COUNTINGS = {
  'pending-events': {
    labels: ['project_id', 'source', 'status'],
    groups: `select project_id, coalesce(source_id::text, '${API_SOURCE}') as source, status, count(*) as n, min(occurred_at) as oldest
      from events where status = 'pending' group by project_id, source_id, status`,
  },
  'finished-events': {
    labels: ['project_id', 'source', 'status'],
    groups:
      'select project_id, source, status, n, null::timestamptz as oldest from event_counts where n > 0',
  },
  'waiting-deliveries': unfinishedDeliveries(`status in ('scheduled', 'retry')`),
  'parked-keys': {
    labels: ['project_id', 'endpoint_id', 'status'],
    groups: `select project_id, endpoint_id, 'keys' as status, count(*) as n, min(parked_at) as oldest
      from ordered_keys where parked_at is not null group by project_id, endpoint_id
      union all
      select project_id, endpoint_id, 'deliveries', count(*), null
      from ordered_keys k join ordered_deliveries q using (project_id, endpoint_id, order_key)
      where k.parked_at is not null and q.delivery_id <> k.delivery_id group by project_id, endpoint_id`,
  },
  'processing-deliveries': unfinishedDeliveries(`status = 'processing'`),
  'finished-deliveries': {
    labels: DELIVERY_LABELS,
    groups: `select project_id, endpoint_id, source, event_type as type, status, n, null::timestamptz as oldest from event_delivery_counts where n > 0`,
  },
  attempts: {
    labels: ['project_id', 'endpoint_id', 'status', 'http_status'],
    groups: `select project_id, endpoint_id, case when delivered then 'success' else 'failure' end as status,
        case when http_status = 0 then 'none' else http_status::text end as http_status, n, null::timestamptz as oldest
      from delivery_attempt_counts where n > 0`,
  },
} as const;

/** `of` is the number of counts in a sum, or 0 for a single count. */
type Counted = [...labels: string[], n: number, age: number | null, of: number];

/** The $1 largest counts, and the rest summed by project and status. */
function largest({ labels, groups }: (typeof COUNTINGS)[keyof typeof COUNTINGS]): string {
  const age = (oldest: string) =>
    `case when ${oldest} is not null then greatest(0, date_part('epoch', now() - ${oldest})) end`;
  const summed = labels.map((label) =>
    label === 'project_id' || label === 'status' ? `${label}::text` : `'${OTHER}'`,
  );
  const ties = labels
    .slice(1)
    .map((label) => (/_id|status/.test(label) ? label : `${label} collate "C"`));
  return `with c as materialized (select * from (${groups}) g order by n desc, ${ties.join(', ')}, project_id)
    (select ${labels.map((label) => `${label}::text`).join(', ')}, n::float8, ${age('oldest')}, 0 from c limit $1::int)
    union all
    (select ${summed.join(', ')}, sum(n)::float8, ${age('min(oldest)')}, count(*)::int from (select * from c offset $1::int) c group by project_id, status)`;
}

/** One in this many label sets is reserved for sums. */
const SUMS_SHARE = 10;

/**
 * Keeps the first counts, up to `max`, and sums the rest by project and status or, with too many
 * projects, by status alone: an export of 1,000 label sets takes milliseconds. `status` is the
 * index of the status in a row.
 */
function limitSeries<Count extends readonly unknown[]>(
  rows: readonly Counted[],
  max: number,
  status: number,
): { counts: readonly Count[]; hidden: number } {
  const ofOf = (row: Counted) => row.at(-1) as number;
  const whole = rows.filter((row) => ofOf(row) === 0);
  const sums = rows.filter((row) => ofOf(row) !== 0);
  const isAll = whole.length <= max && sums.length === 0;
  const kept = isAll ? whole : whole.slice(0, max - Math.ceil(max / SUMS_SHARE));
  const others = [...whole.slice(kept.length), ...sums];
  const summed = (...labels: number[]) =>
    addUp(
      others.map((row) =>
        row.slice(0, -1).map((it, k) => (k >= row.length - 3 || labels.includes(k) ? it : OTHER)),
      ),
    );
  const byProject = summed(0, status);
  const counts: readonly unknown[] = [
    ...kept.map((row) => row.slice(0, -1)),
    ...(kept.length + byProject.length <= max ? byProject : summed(status)),
  ];
  return {
    counts: counts as readonly Count[],
    hidden: others.reduce((total, row) => total + Math.max(1, ofOf(row)), 0),
  };
}

/** Adds counts with equal labels, with the age of the oldest. A count ends with its number and age. */
export function addUp<Count extends readonly unknown[]>(counts: readonly Count[]): Count[] {
  const sums = new Map<string, Count>();
  for (const count of counts) {
    const labels = count.slice(0, -2);
    const key = labels.join('\n');
    const [n, age] = count.slice(-2) as [number, number | null];
    const [sum, oldest] = (sums.get(key)?.slice(-2) ?? [0, null]) as [number, number | null];
    const ages = [age, oldest].filter((it) => it !== null);
    const max = ages.length > 0 ? Math.max(...ages) : null;
    sums.set(key, [...labels, sum + n, max] as readonly unknown[] as Count);
  }
  return [...sums.values()];
}

/**
 * In a `repeatable read` transaction under `COUNTS_LOCK`. `beside` counts what waits: `client`
 * itself, or in parallel a connection with the same snapshot or to a replica. Reads an index entry
 * and a row for each unfinished event and delivery, plus the finished counts. Unfinished deliveries
 * take precedence over finished ones, and larger counts over smaller ones.
 */
export async function readQueueSample(
  client: pg.PoolClient,
  beside: pg.PoolClient,
  { control, timeoutMs, countsMax }: { control: Querier; timeoutMs: number; countsMax: number },
): Promise<QueueSample> {
  const read = async (on: pg.PoolClient, name: keyof typeof COUNTINGS, max = countsMax) => {
    const { rows } = await on.query<Counted>({
      name: `sample-${name}`,
      text: largest(COUNTINGS[name]),
      values: [max],
      rowMode: 'array',
      // A second longer than Postgres, which normally cancels the query first.
      query_timeout: timeoutMs + 1_000,
    });
    return rows;
  };
  const readRest = async () => {
    await applyCountDeltas(client);
    const processing = await read(client, 'processing-deliveries');
    // Limit finished deliveries to the number of counts left over by deliveries in processing.
    const finished = await read(
      client,
      'finished-deliveries',
      Math.max(0, countsMax - processing.length),
    );
    const attempts = limitSeries<AttemptCount>(await read(client, 'attempts'), countsMax, 2);
    return { processing, finished, attempts, done: await read(client, 'finished-events') };
  };
  const readWaiting = async () => ({
    pending: await read(beside, 'pending-events'),
    waiting: await read(beside, 'waiting-deliveries'),
    parkedKeys: await read(beside, 'parked-keys'),
  });
  const reading = readWaiting();
  const resting = beside === client ? reading.then(readRest) : readRest();
  // After a failure the caller uses `client` again, so both must have ended.
  await Promise.allSettled([reading, resting]);
  const [{ pending, waiting, parkedKeys }, { processing, finished, attempts, done }] =
    await Promise.all([reading, resting]);
  const events = limitSeries<EventCount>([...pending, ...done], countsMax, 2);
  const unfinished = [...waiting, ...processing].sort(
    (a, b) => (b[5] as number) - (a[5] as number),
  );
  const deliveries = limitSeries<DeliveryCount>([...unfinished, ...finished], countsMax, 4);
  const parked = limitSeries<ParkedCount>(parkedKeys, countsMax, 2);
  const { rows: named } = await control.query<
    [id: string, name: string, organisationId: string, organisation: string]
  >({
    name: 'sample-names',
    text: `select p.id, p.name, o.id, o.name from projects p join organisations o on o.id = p.organisation_id where p.id = any ($1::uuid[])`,
    values: [
      [...new Set(deliveries.counts.map(([project]) => project))].filter(
        (project) => project !== OTHER,
      ),
    ],
    rowMode: 'array',
  });
  return {
    events: events.counts,
    deliveries: deliveries.counts,
    attempts: attempts.counts,
    parked: parked.counts,
    hidden: {
      events: events.hidden,
      deliveries: deliveries.hidden,
      attempts: attempts.hidden,
      parked: parked.hidden,
    },
    projects: Object.fromEntries(named.map(([id, ...names]) => [id, names])),
  };
}
