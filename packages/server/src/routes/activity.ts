import { Type, type Static, type TObject } from '@sinclair/typebox';
import {
  readActivity,
  readEndpointActivity,
  readLatencies,
  readSummary,
  SUMMARY_MAX,
} from '@gateway/store/counts/activity';
import { WAITING_MAX } from '@gateway/store/counts/health';
import { GatewayError } from '@gateway/core/errors';
import { ownedAmong } from '@gateway/store/config';
import { projectRoute, type ProjectCall, type Route } from '../api/route.js';
import { SEVERITIES } from '../health/findings.js';
import { readHealthReport } from '../health/report.js';
import { timeQuery, timeRange } from '../http/list-query.js';
import {
  described,
  Id,
  invalid,
  named,
  nullable,
  object,
  oneOf,
  Timestamp,
} from '../http/schema.js';

const HOUR_MS = 3_600_000;
const RANGE_MS = 6 * HOUR_MS;
const RANGE_MAX_MS = 8 * 24 * HOUR_MS;

const counts = (...statuses: string[]) =>
  object(Object.fromEntries(statuses.map((status) => [status, Type.Integer()])));
const Milliseconds = Type.Number({ description: 'Milliseconds.' });
const Activity = named(
  'Activity',
  object({
    step_seconds: Type.Integer({ description: 'Length of a step: 60, 600 or 3600, by the range.' }),
    content: Type.Array(
      object({
        at: Timestamp,
        events: counts('processed', 'failed'),
        deliveries: counts('success', 'failure', 'discarded'),
        attempts: counts('success', 'failure'),
      }),
      { description: 'Oldest first; steps in which nothing ended are left out.' },
    ),
    latency_ms: Type.Array(
      object({ at: Timestamp, p50: Milliseconds, p95: Milliseconds, p99: Milliseconds }),
      {
        description:
          'From the message to the first answer, by the time of the message, of a sample of the deliveries that succeeded. Empty for an endpoint.',
      },
    ),
  }),
);
const Count = Type.Integer({ description: `Counted up to ${SUMMARY_MAX}.` });
const Summary = named(
  'Summary',
  object({
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
        { p50: Milliseconds, p95: Milliseconds, p99: Milliseconds, deliveries: Type.Integer() },
        {
          description:
            'From the message to the first answer, of the last 1,000 deliveries that succeeded; null before the first.',
        },
      ),
    ),
  }),
);

const Sentence = Type.String({ description: 'A sentence for people; programs read the code.' });
const HealthReport = named(
  'HealthReport',
  object({
    state: oneOf([...SEVERITIES, 'idle', 'ok'], {
      description:
        'The worst severity of a finding. `idle`: nothing has ever come. `ok`: everything is known and good.',
    }),
    sentence: Sentence,
    at: Timestamp,
    findings: Type.Array(
      object({
        code: Type.String(),
        severity: oneOf(SEVERITIES),
        count: Count,
        since: nullable(Timestamp, 'When it began; null when that is not known.'),
        sentence: Sentence,
        page: Type.String({
          description:
            'The page of the dashboard to fix it on, below the project; `/instance` is below the dashboard.',
        }),
        action: Type.String({ description: 'The text of the link.' }),
      }),
      { description: 'What is wrong or unknown, in order of harm.' },
    ),
    failing_endpoints: Type.Array(
      object({
        uid: Id,
        name: Type.String(),
        state: oneOf(['open', 'failing', 'partly'], {
          description:
            '`open`: its circuit breaker is not closed. `failing`: at least half of its requests failed; `partly`: fewer.',
        }),
        breaker_until: nullable(Timestamp, 'The earliest next request while the breaker is open.'),
        requests: counts('success', 'failure'),
        since: described(Timestamp, 'The start of the time that requests are counted in.'),
        waiting_deliveries: Type.Integer({ description: `Counted up to ${WAITING_MAX}.` }),
        reason: nullable(Type.String(), 'Why its newest unsuccessful delivery failed or waits.'),
      }),
      { description: 'Ten of each state, those with most failed requests first.' },
    ),
  }),
);

const ActivityQuery = object({ ...timeQuery, endpointId: Type.Optional(Id) });
const EndpointsQuery = object({
  ...timeQuery,
  endpointId: Type.Array(Id, { minItems: 1, maxItems: 100 }),
});
const EndpointActivity = named(
  'EndpointActivity',
  object({
    content: Type.Array(object({ endpoint_id: Id, attempts: counts('success', 'failure') }), {
      description: 'Endpoints without an attempt are left out.',
    }),
  }),
);

export const activityRoutes: readonly Route[] = [
  projectRoute(
    'GET /summary',
    'Shows what is the matter in a project: what waits, what is held, quarantined or disabled, and how long deliveries take.',
    { data: Summary, name: 'get' },
    async ({ database, project }) => ({
      message: 'summary',
      data: await readSummary(database.pool, project.id),
    }),
  ),
  projectRoute(
    'GET /health',
    'Shows whether a project is healthy: what fails, waits, stands still or cannot be known, since when, and where to fix it.',
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
    'Shows how many events, deliveries and attempts ended when, of the project or of an endpoint, in the last seven days.',
    { query: ActivityQuery, data: Activity, name: 'get', portal: 'any' },
    async (call) => {
      const { database, project, query, ownerId } = call;
      const { from, to } = rangeOf(query);
      if (ownerId !== undefined && query.endpointId === undefined)
        throw invalid('endpointId', 'is needed: a portal link sees the activity of one endpoint');
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
      const [content, latency] = await Promise.all([
        readActivity(database.pool, project.id, { ...steps, endpointId }),
        endpointId === undefined ? readLatencies(database.pool, project.id, steps) : [],
      ]);
      const data = { step_seconds: stepSeconds, content, latency_ms: latency };
      return { message: 'activity', data };
    },
  ),
  projectRoute(
    'GET /activity/endpoints',
    'Counts the attempts at each of some endpoints. Counted by ten minutes.',
    { query: EndpointsQuery, data: EndpointActivity, name: 'endpoints', portal: 'any' },
    async (call) => {
      const { database, project, query } = call;
      const endpointIds = await visible(call, query.endpointId);
      const rows = await readEndpointActivity(database.pool, project.id, {
        endpointIds,
        ...rangeOf(query),
      });
      const content = rows.map(({ endpoint_id, ...attempts }) => ({ endpoint_id, attempts }));
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
    : ownedAmong(database.pool, project.id, ownerId, endpointIds);
}

function rangeOf(query: Static<TObject<typeof timeQuery>>): { from: Date; to: Date } {
  const { to = new Date(), from = new Date(to.getTime() - RANGE_MS) } = timeRange(query);
  const rangeMs = to.getTime() - from.getTime();
  if (rangeMs < 0 || rangeMs > RANGE_MAX_MS)
    throw invalid(
      'startDate',
      'must be before endDate, by at most eight days: activity is kept for seven',
    );
  return { from, to };
}
