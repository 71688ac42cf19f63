import {
  readActivity,
  readBacklog,
  readEndpointActivity,
  readLatencies,
  readSummary,
  SUMMARY_MAX,
  WAITING_MAX,
} from '@gateway/store/counts';
import { GatewayError } from '@gateway/core/errors';
import { endpointIdsOfOwner } from '@gateway/store/config';
import { readHealthReport } from '../explain/report.js';
import { SEVERITIES } from '../explain/table.js';
import {
  described,
  Id,
  int,
  invalid,
  namedObject,
  nullable,
  object,
  oneOf,
  projectRoute,
  string,
  timeQuery,
  timeRange,
  Timestamp,
  Type,
  type ProjectCall,
  type Route,
  type Static,
  type TObject,
} from '../api/vocabulary.js';

const HOUR_MS = 3_600_000;
const RANGE_MS = 6 * HOUR_MS;
const RANGE_MAX_MS = 8 * 24 * HOUR_MS;

const counts = (...statuses: string[]) =>
  object(Object.fromEntries(statuses.map((status) => [status, int()])));
const Milliseconds = Type.Number({ description: 'Latency in milliseconds.' });
const Activity = namedObject('Activity', {
  step_seconds: int('Length of a time step: 60, 600 or 3600, depending on the range.'),
  content: Type.Array(
    object({
      at: Timestamp,
      events: counts('processed', 'failed'),
      deliveries: counts('success', 'failure', 'discarded'),
      attempts: counts('success', 'failure'),
    }),
    { description: 'Time steps, oldest first. Steps without any result are omitted.' },
  ),
  latency_ms: Type.Array(
    object({ at: Timestamp, p50: Milliseconds, p95: Milliseconds, p99: Milliseconds }),
    {
      description:
        'Latency from the message to the first response, by the time of the message, from a sample of successful deliveries. Empty for an endpoint.',
    },
  ),
  backlog: Type.Array(
    object({
      at: Timestamp,
      pending_events: int(),
      waiting_deliveries: int('Without those held for paused endpoints.'),
    }),
    {
      description:
        'The largest backlog of each step. Agents count it once a minute; steps without a count are left out. Empty for an endpoint.',
    },
  ),
});
const Count = int(`Count, up to ${SUMMARY_MAX}.`);
const Summary = namedObject('Summary', {
  pending_events: Count,
  oldest_pending_seconds: nullable(Type.Number()),
  waiting_deliveries: Count,
  held_deliveries: Count,
  processing_deliveries: Count,
  quarantined_messages: Count,
  endpoints: counts('active', 'paused', 'inactive'),
  sources: counts('running', 'paused', 'disabled'),
  latency_ms: nullable(
    object(
      { p50: Milliseconds, p95: Milliseconds, p99: Milliseconds, deliveries: int() },
      {
        description:
          'Latency from the message to the first response, over the last 1,000 successful deliveries; null before the first.',
      },
    ),
  ),
});

const Sentence = string('Human-readable sentence. Programs should read `code`.');
const HealthReport = namedObject('HealthReport', {
  state: oneOf(
    [...SEVERITIES, 'idle', 'ok'],
    'The highest severity of the findings. `idle`: the project has not received anything yet. `ok`: everything is known and works.',
  ),
  sentence: Sentence,
  at: Timestamp,
  findings: Type.Array(
    object({
      code: string(),
      severity: oneOf(SEVERITIES),
      count: Count,
      since: nullable(Timestamp, 'When it began; null if unknown.'),
      sentence: Sentence,
      page: string(
        'Dashboard page to fix it on, relative to the project; `/instance` is relative to the dashboard.',
      ),
      action: string('Label of the link to the page.'),
    }),
    { description: 'Problems and unknown states, most severe first.' },
  ),
  failing_endpoints: Type.Array(
    object({
      uid: Id,
      name: string(),
      state: oneOf(
        ['open', 'failing', 'partly'],
        '`open`: the circuit breaker is not closed. `failing`: at least half of the requests failed. `partly`: fewer failed.',
      ),
      breaker_until: nullable(
        Timestamp,
        'Earliest time of the next request while the breaker is open.',
      ),
      requests: counts('success', 'failure'),
      since: described(Timestamp, 'Start of the period in which requests are counted.'),
      waiting_deliveries: int(`Waiting deliveries, counted up to ${WAITING_MAX}.`),
      reason: nullable(string(), 'Why the latest unsuccessful delivery failed or waits.'),
    }),
    { description: 'Up to ten endpoints per state, those with the most failed requests first.' },
  ),
});

const ActivityQuery = object({ ...timeQuery, endpointId: Type.Optional(Id) });
const EndpointsQuery = object({
  ...timeQuery,
  endpointId: Type.Array(Id, { minItems: 1, maxItems: 100 }),
});
const EndpointActivity = namedObject('EndpointActivity', {
  content: Type.Array(
    object({
      endpoint_id: Id,
      attempts: counts('success', 'failure'),
      last_attempt_at: described(Timestamp, 'The start of the ten minutes of the newest attempt.'),
    }),
    {
      description: 'Counts by endpoint. Endpoints without attempts are omitted.',
    },
  ),
});

export const activityRoutes: readonly Route[] = [
  projectRoute(
    'GET /summary',
    'Summarises a project: what waits, is held, quarantined or disabled, and the latency of deliveries.',
    { data: Summary, name: 'get' },
    async ({ read, project }) => ({
      message: 'summary',
      data: await read((planes) => readSummary(planes, project.id)),
    }),
  ),
  projectRoute(
    'GET /health',
    'Shows whether a project is healthy: what fails, waits, has stopped or is unknown, since when, and where to fix it.',
    { data: HealthReport, name: 'get' },
    async (call) => {
      const { failingEndpoints, ...report } = await readHealthReport(call);
      const failing_endpoints = failingEndpoints.map(
        ({ id, kind, breaker, success, failure, waiting, ...it }) => ({
          uid: id,
          ...it,
          state: kind,
          breaker_until: breaker?.until ?? null,
          requests: { success, failure },
          waiting_deliveries: waiting,
        }),
      );
      return { message: report.sentence, data: { ...report, failing_endpoints } };
    },
  ),
  projectRoute(
    'GET /activity',
    'Counts the events, deliveries and attempts that finished in each time step of up to seven days, for a project or an endpoint.',
    { query: ActivityQuery, data: Activity, name: 'get', portal: 'any' },
    async (call) => {
      const { read, project, query, ownerId } = call;
      const { from, to } = rangeOf(query);
      if (ownerId !== undefined && query.endpointId === undefined)
        throw invalid(
          'endpointId',
          'is required: a portal link can read the activity of one endpoint',
        );
      if (query.endpointId !== undefined && (await visible(call, [query.endpointId])).length === 0)
        throw new GatewayError('not_found', { thing: 'endpoint', id: query.endpointId });
      const rangeMs = to.getTime() - from.getTime();
      // At most 360, 288 or 192 steps. Endpoint activity is counted per ten minutes, so its steps
      // cannot be shorter.
      const stepSeconds =
        rangeMs <= RANGE_MS && query.endpointId === undefined
          ? 60
          : rangeMs <= 48 * HOUR_MS
            ? 600
            : 3600;
      const { endpointId } = query;
      const steps = { from, to, stepSeconds };
      const isOfProject = endpointId === undefined;
      const [content, latencies, backlog] = await read(({ data }) =>
        Promise.all([
          readActivity(data, project.id, { ...steps, endpointId }),
          isOfProject ? readLatencies(data, project.id, steps) : [],
          isOfProject ? readBacklog(data, project.id, steps) : [],
        ]),
      );
      const data = { step_seconds: stepSeconds, content, latency_ms: latencies, backlog };
      return { message: 'activity', data };
    },
  ),
  projectRoute(
    'GET /activity/endpoints',
    'Counts the attempts of each given endpoint, in steps of ten minutes.',
    { query: EndpointsQuery, data: EndpointActivity, name: 'endpoints', portal: 'any' },
    async (call) => {
      const { read, project, query } = call;
      const endpointIds = await visible(call, query.endpointId);
      const range = { endpointIds, ...rangeOf(query) };
      const rows = await read(({ data }) => readEndpointActivity(data, project.id, range));
      const content = rows.map(({ endpoint_id, last_at, ...attempts }) => ({
        endpoint_id,
        attempts,
        last_attempt_at: last_at,
      }));
      return { message: 'activity', data: { content } };
    },
  ),
];

function visible(
  { database, project, ownerId }: ProjectCall,
  endpointIds: readonly string[],
): Promise<readonly string[]> {
  return ownerId === undefined
    ? Promise.resolve(endpointIds)
    : endpointIdsOfOwner(database.pool, project.id, ownerId, endpointIds);
}

function rangeOf(query: Static<TObject<typeof timeQuery>>): { from: Date; to: Date } {
  const { to = new Date(), from = new Date(to.getTime() - RANGE_MS) } = timeRange(query);
  const rangeMs = to.getTime() - from.getTime();
  if (rangeMs < 0 || rangeMs > RANGE_MAX_MS)
    throw invalid(
      'startDate',
      'must be at most eight days before endDate: activity is kept for seven days',
    );
  return { from, to };
}
