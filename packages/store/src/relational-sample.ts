import type pg from 'pg';
import { API_SOURCE } from '@gateway/core';
import { foldCounts } from './counts.js';
import { fitCounts, OTHER, type Count } from './fit-counts.js';

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

/** Counts that one statement brings, the largest; what is beyond them comes as one count per project and status. */
const COUNTS_MAX = 10_000;

interface Counting {
  /** Selects the labels, the count, and the age where there is one. */
  readonly groups: string;
  /** How many labels there are. */
  readonly labels: number;
  /** What tells counts apart, as it is stored: ids are compared faster than their texts. */
  readonly order: string;
  /** The label that says a status; the first is the project. */
  readonly status: number;
  readonly hasAge: boolean;
}

const AGE = 'greatest(0, extract(epoch from now() - min(occurred_at)))::float8';

/*
 * What is not over is read by the partial indexes that hold nothing else, with its rows; what is over is read from the counts. No history, and no lock.
 */
export const COUNTINGS = {
  'pending-events': {
    groups: `select project_id, coalesce(source_id::text, '${API_SOURCE}'), 'pending', count(*)::float8 as n, ${AGE} from events where status = 'pending' group by project_id, source_id`,
    order: 'project_id, source_id',
    labels: 3,
    status: 3,
    hasAge: true,
  },
  'finished-events': {
    groups: 'select project_id, source, status::text, n::float8 from event_counts where n > 0',
    order: 'project_id, source, status',
    labels: 3,
    status: 3,
    hasAge: false,
  },
  'unfinished-deliveries': {
    groups: `select project_id, endpoint_id::text, case when event_type is null then '' else coalesce(source_id::text, '${API_SOURCE}') end, coalesce(event_type, ''), status::text, count(*)::float8 as n, ${AGE}
      from (select project_id, endpoint_id, source_id, event_type, status, occurred_at from event_deliveries where status in ('scheduled', 'retry')
            union all
            select project_id, endpoint_id, source_id, event_type, status, occurred_at from event_deliveries where status = 'processing') d
      group by project_id, endpoint_id, source_id, event_type, status`,
    order: 'project_id, endpoint_id, source_id, event_type, status',
    labels: 5,
    status: 5,
    hasAge: true,
  },
  'finished-deliveries': {
    groups: 'select project_id, endpoint_id::text, source, event_type, status::text, n::float8 from event_delivery_counts where n > 0',
    order: 'project_id, endpoint_id, source, event_type, status',
    labels: 5,
    status: 5,
    hasAge: false,
  },
  attempts: {
    groups: `select project_id, endpoint_id::text, case when delivered then 'success' else 'failure' end, case when http_status = 0 then 'none' else http_status::text end, n::float8
      from delivery_attempt_counts where n > 0`,
    order: 'project_id, endpoint_id, delivered, http_status',
    labels: 4,
    status: 3,
    hasAge: false,
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
    readLargest<Row>(client, { name, ...COUNTINGS[name], query_timeout: timeoutMs + 1_000 });
  const events = [...(await read<EventCount>('pending-events')), ...(await read<EventCount>('finished-events'))];
  const deliveries = [...(await read<DeliveryCount>('unfinished-deliveries')), ...(await read<DeliveryCount>('finished-deliveries'))];
  const attempts = await read<AttemptCount>('attempts');
  const fit = {
    events: fitCounts(events, { max: countsMax, status: 2 }),
    deliveries: fitCounts(deliveries, { max: countsMax, status: 4 }),
    attempts: fitCounts(attempts, { max: countsMax, status: 2 }),
  };
  return {
    events: fit.events.counts,
    deliveries: fit.deliveries.counts,
    attempts: fit.attempts.counts,
    hidden: { events: fit.events.hidden, deliveries: fit.deliveries.hidden, attempts: fit.attempts.hidden },
    projects: await readNames(client, new Set(fit.deliveries.counts.map(([project]) => project).filter((project) => project !== OTHER))),
  };
}

/** The largest counts, and the others together. */
async function readLargest<Row extends Count>(
  client: pg.PoolClient,
  { name, groups, labels, order, status, hasAge, query_timeout }: Counting & { readonly name: string; readonly query_timeout: number },
): Promise<Row[]> {
  const ordered = `${groups} order by n desc, ${order}`;
  // The type of a query does not know that each may have a limit of its own.
  const query = { name: `sample-${name}`, text: `${ordered} limit ${COUNTS_MAX + 1}`, rowMode: 'array' as const, query_timeout };
  const { rows } = await client.query<unknown[]>(query);
  const counted = rows.map((row) => (hasAge ? row : [...row, null]));
  if (counted.length <= COUNTS_MAX) return counted as unknown[] as Row[];
  const columns = Array.from({ length: labels }, (_, k) => `l${k + 1}`);
  const shown = columns.map((column, k) => (k === 0 || k + 1 === status ? column : `'${OTHER}'`));
  const restQuery = {
    text: `select ${shown.join(', ')}, sum(n), ${hasAge ? 'max(age)' : 'null'}
           from (${ordered} offset ${COUNTS_MAX}) r(${[...columns, 'n', ...(hasAge ? ['age'] : [])].join(', ')}) group by l1, l${status}`,
    rowMode: 'array' as const,
    query_timeout,
  };
  const { rows: rest } = await client.query<unknown[]>(restQuery);
  return [...counted.slice(0, COUNTS_MAX), ...rest] as unknown[] as Row[];
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
