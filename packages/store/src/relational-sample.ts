import type pg from 'pg';
import { API_SOURCE, OTHER } from '@gateway/core';
import { foldCounts } from './counts.js';
import { fitCounts, type Count, type Reading } from './fit-counts.js';

/** What the queue series of Postgres show. Ages are of the moment of the sample, in seconds; null: what is counted is over. */
export interface RelationalSample {
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
  /** Selects the labels, the count, and the age. */
  readonly groups: string;
  /** How many labels there are. */
  readonly labels: number;
  /** What tells counts apart, as it is stored: ids are compared faster than their texts, which therefore have other names. */
  readonly order: string;
  /** The label that says a status, from 1; the first is the project. */
  readonly status: number;
}

const AGE = 'greatest(0, extract(epoch from now() - min(occurred_at)))::float8 as age';
const NO_AGE = 'null::float8 as age';

/*
 * What is not over is read by the partial indexes that hold nothing else, with its rows; what is over is read from the counts. No history, and no lock.
 */
export const COUNTINGS = {
  'pending-events': {
    groups: `select project_id, coalesce(source_id::text, '${API_SOURCE}') as source, 'pending' as state, count(*)::float8 as n, ${AGE} from events where status = 'pending' group by project_id, source_id`,
    order: 'project_id, source_id',
    labels: 3,
    status: 3,
  },
  'finished-events': {
    groups: `select project_id, source, status::text as state, n::float8, ${NO_AGE} from event_counts where n > 0`,
    order: 'project_id, source, status',
    labels: 3,
    status: 3,
  },
  'unfinished-deliveries': {
    groups: `select project_id, endpoint_id::text as endpoint, case when event_type is null then '' else coalesce(source_id::text, '${API_SOURCE}') end as source, coalesce(event_type, '') as type, status::text as state, count(*)::float8 as n, ${AGE}
      from event_deliveries where status in ('scheduled', 'retry') or status = 'processing'
      group by project_id, endpoint_id, source_id, event_type, status`,
    order: 'project_id, endpoint_id, source_id, event_type, status',
    labels: 5,
    status: 5,
  },
  'finished-deliveries': {
    groups: `select project_id, endpoint_id::text as endpoint, source, event_type, status::text as state, n::float8, ${NO_AGE} from event_delivery_counts where n > 0`,
    order: 'project_id, endpoint_id, source, event_type, status',
    labels: 5,
    status: 5,
  },
  attempts: {
    groups: `select project_id, endpoint_id::text as endpoint, case when delivered then 'success' else 'failure' end as state, case when http_status = 0 then 'none' else http_status::text end as http, n::float8, ${NO_AGE}
      from delivery_attempt_counts where n > 0`,
    order: 'project_id, endpoint_id, delivered, http_status',
    labels: 4,
    status: 3,
  },
} as const satisfies Readonly<Record<string, Counting>>;

/**
 * Takes a sample: one moment, seen by all its statements, with everything that was committed before it. Cost: an index entry and a row for each event and
 * delivery that is not over, and the counts of what is over.
 *
 * @param client in a transaction that is `repeatable read`, under `COUNTS_LOCK`
 * @param timeoutMs after which the server ends a statement; the client waits a second longer
 * @param countsMax how many counts a series may show: what is not over comes first, and the larger before the smaller
 */
export async function readRelationalSample(
  client: pg.PoolClient,
  { timeoutMs, countsMax }: { timeoutMs: number; countsMax: number },
): Promise<RelationalSample> {
  await foldCounts(client);
  const read = <Row extends Count>(name: keyof typeof COUNTINGS) =>
    readLargest<Row>(client, { name, ...COUNTINGS[name], countsMax, query_timeout: timeoutMs + 1_000 });
  const fit = <Row extends Count>(readings: readonly Reading<Row>[], status: number) =>
    fitCounts({ counts: readings.flatMap(({ counts }) => counts), sums: readings.flatMap(({ sums }) => sums) }, { max: countsMax, status });
  const events = fit([await read<EventCount>('pending-events'), await read<EventCount>('finished-events')], 2);
  const deliveries = fit([await read<DeliveryCount>('unfinished-deliveries'), await read<DeliveryCount>('finished-deliveries')], 4);
  const attempts = fit([await read<AttemptCount>('attempts')], 2);
  return {
    events: events.counts,
    deliveries: deliveries.counts,
    attempts: attempts.counts,
    hidden: { events: events.hidden, deliveries: deliveries.hidden, attempts: attempts.hidden },
    projects: await readNames(client, new Set(deliveries.counts.map(([project]) => project).filter((project) => project !== OTHER))),
  };
}

/** The largest counts, as many as may be shown, and sums of the others by project and status: the rest of a long list would cost more than counting it. */
async function readLargest<Row extends Count>(
  client: pg.PoolClient,
  { name, groups, labels, order, status, countsMax, query_timeout }: Counting & { name: string; countsMax: number; query_timeout: number },
): Promise<Reading<Row>> {
  const columns = Array.from({ length: labels }, (_, k) => `l${k + 1}`);
  const summed = columns.map((column, k) => (k === 0 || k + 1 === status ? column : `'${OTHER}'`));
  // The type of a query does not know that each may have a limit of its own.
  const query = {
    name: `sample-${name}`,
    text: `with c(${columns.join(', ')}, n, age) as materialized (${groups} order by n desc, ${order})
           (select ${columns.join(', ')}, n, age, 1 as counts from c limit $1::int)
           union all
           (select ${summed.join(', ')}, sum(n), max(age), count(*)::int from (select * from c offset $1::int) c group by l1, l${status})`,
    values: [countsMax],
    rowMode: 'array' as const,
    query_timeout,
  };
  const { rows } = await client.query<[...unknown[], counts: number]>(query);
  const counts: Row[] = [];
  const sums: { count: Row; of: number }[] = [];
  for (const row of rows) {
    const of = row.pop() as number;
    if (counts.length < countsMax) counts.push(row as unknown as Row);
    else sums.push({ count: row as unknown as Row, of });
  }
  return { counts, sums };
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
