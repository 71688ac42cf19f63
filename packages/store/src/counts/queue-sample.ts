import type pg from 'pg';
import { API_SOURCE, OTHER } from '@gateway/core/metrics';
import { applyCountDeltas } from './apply-deltas.js';
import { limitSeries, type Count, type Reading } from './limit-series.js';

/** What the queue series of Postgres show. Ages are of the moment of the sample, in seconds; null: what is counted is over. */
export interface QueueSample {
  readonly events: readonly EventCount[];
  readonly deliveries: readonly DeliveryCount[];
  readonly attempts: readonly AttemptCount[];
  /** How many counts are not told apart in each list. */
  readonly hidden: Readonly<Record<'events' | 'deliveries' | 'attempts', number>>;
  /** Of the projects that are named above, by their ids: name, id of the organisation, name of the organisation. */
  readonly projects: Readonly<Record<string, ProjectNames>>;
}

export type EventCount = readonly [project: string, source: string, status: string, n: number, age: number | null];
export type DeliveryCount = readonly [
  project: string,
  endpoint: string,
  source: string,
  eventType: string,
  status: string,
  n: number,
  age: number | null,
];
export type AttemptCount = readonly [project: string, endpoint: string, status: string, httpStatus: string, n: number, age: null];
export type ProjectNames = readonly [name: string, organisationId: string, organisation: string];

interface Counting {
  /** Selects what tells counts apart, as it is stored; the count `n`; and, where it is not over, the `oldest` that is counted. */
  readonly groups: string;
  /** What the labels are made of: texts of ids are made for the counts that are shown, and for no others. */
  readonly labels: readonly [project: string, ...others: string[]];
  /** Which of the labels, from 0, is a status. */
  readonly status: number;
  /** What comes first of counts that are equal. Stored ids are compared faster than their texts, and the one that differs most comes first. */
  readonly ties: string;
  readonly isOver: boolean;
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
    isOver: false,
  } as const satisfies Counting;
}

/*
 * What is not over is read by the partial indexes that hold nothing else, with its rows; what is over is read from the counts. No history, and no lock.
 */
export const COUNTINGS = {
  'pending-events': {
    groups: `select project_id, source_id, count(*) as n, min(occurred_at) as oldest from events where status = 'pending' group by project_id, source_id`,
    labels: ['project_id', `coalesce(source_id::text, '${API_SOURCE}')`, `'pending'`],
    status: 2,
    ties: 'source_id, project_id',
    isOver: false,
  },
  'finished-events': {
    groups: 'select project_id, source, status, n from event_counts where n > 0',
    labels: ['project_id', 'source', 'status'],
    status: 2,
    ties: 'source, status, project_id',
    isOver: true,
  },
  'waiting-deliveries': unfinishedDeliveries(`status in ('scheduled', 'retry')`),
  'deliveries-under-way': unfinishedDeliveries(`status = 'processing'`),
  'finished-deliveries': {
    groups: 'select project_id, endpoint_id, source, event_type, status, n from event_delivery_counts where n > 0',
    labels: ['project_id', 'endpoint_id::text', 'source', 'event_type', 'status'],
    status: 4,
    ties: 'endpoint_id, source, event_type, status, project_id',
    isOver: true,
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
    isOver: true,
  },
} as const satisfies Readonly<Record<string, Counting>>;

/**
 * Takes a sample: one moment, seen by all its statements, with everything that was committed before it. Cost: an index entry and a row for each event and
 * delivery that is not over, and the counts of what is over.
 *
 * @param client in a transaction that is `repeatable read`, under `COUNTS_LOCK`
 * @param beside what reads beside it: another connection that sees the same snapshot, so that a second processor counts the deliveries that wait, or the same
 * @param timeoutMs after which the server ends a statement; the client waits a second longer
 * @param countsMax how many counts a series may show: what is not over comes first, and the larger before the smaller
 */
export async function readQueueSample(
  client: pg.PoolClient,
  beside: pg.PoolClient,
  { timeoutMs, countsMax }: { timeoutMs: number; countsMax: number },
): Promise<QueueSample> {
  const read = <Row extends Count>(on: pg.PoolClient, name: keyof typeof COUNTINGS, max = countsMax) =>
    readLargest<Row>(on, { name, ...COUNTINGS[name], max, query_timeout: timeoutMs + 1_000 });
  const fit = <Row extends Count>(readings: readonly Reading<Row>[], status: number) =>
    limitSeries(
      { counts: readings.flatMap(({ counts }) => counts), sums: readings.flatMap(({ sums }) => sums) },
      { max: countsMax, status },
    );
  const readRoutingBacklog = () => read<DeliveryCount>(beside, 'waiting-deliveries');
  const readRest = async () => {
    await applyCountDeltas(client);
    const underWay = await read<DeliveryCount>(client, 'deliveries-under-way');
    return {
      underWay,
      // What is over is shown where what is not over leaves room.
      finished: await read<DeliveryCount>(client, 'finished-deliveries', countsMax - underWay.counts.length),
      attempts: fit([await read<AttemptCount>(client, 'attempts')], 2),
      events: fit([await read<EventCount>(client, 'pending-events'), await read<EventCount>(client, 'finished-events')], 2),
    };
  };
  const [waiting, { underWay, finished, attempts, events }] =
    beside === client ? [await readRoutingBacklog(), await readRest()] : await Promise.all([readRoutingBacklog(), readRest()]);
  const deliveries = fit([largestFirst(waiting, underWay), finished], 4);
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

/** The largest counts, as many as may be shown, and sums of the others by project and status: the rest of a long list would cost more than counting it. */
async function readLargest<Row extends Count>(
  client: pg.PoolClient,
  { name, max, query_timeout, ...counting }: Counting & { name: string; max: number; query_timeout: number },
): Promise<Reading<Row>> {
  // The type of a query does not know that each may have a limit of its own.
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

function largest({ groups, labels, status, ties, isOver }: Counting): string {
  const age = (oldest: string) => (isOver ? 'null::float8' : `greatest(0, date_part('epoch', now() - ${oldest}))`);
  const summed = labels.map((label, k) => (k === 0 || k === status ? label : `'${OTHER}'`));
  return `with c as materialized (${groups} order by n desc, ${ties})
    (select ${labels.join(', ')}, n::float8, ${age('oldest')}, 1 from c limit $1::int)
    union all
    (select ${summed.join(', ')}, sum(n)::float8, ${age('min(oldest)')}, count(*)::int from (select * from c offset $1::int) c group by 1, ${status + 1})`;
}

async function readNames(client: pg.PoolClient, projects: ReadonlySet<string>): Promise<Record<string, ProjectNames>> {
  const { rows } = await client.query<{ id: string; name: string; organisation_id: string; organisation: string }>({
    name: 'sample-names',
    text: `select p.id, p.name, o.id as organisation_id, o.name as organisation from projects p join organisations o on o.id = p.organisation_id
           where p.id = any ($1::uuid[])`,
    values: [[...projects]],
  });
  return Object.fromEntries(
    rows.map(({ id, name, organisation_id: organisationId, organisation }) => [id, [name, organisationId, organisation]]),
  );
}
