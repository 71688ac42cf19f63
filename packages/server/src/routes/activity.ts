import { Type, type Static, type TObject } from '@sinclair/typebox';
import {
  readActivity,
  readEndpointActivity,
  readSummary,
  SUMMARY_MAX,
} from '@gateway/store/counts/activity';
import { GatewayError } from '@gateway/core/errors';
import { ownedAmong } from '@gateway/store/config';
import { projectRoute, type ProjectCall, type Route } from '../api/route.js';
import { timeQuery, timeRange } from '../http/list-query.js';
import { Id, invalid, named, nullable, object, Timestamp } from '../http/schema.js';

const HOUR_MS = 3_600_000;
const RANGE_MS = 6 * HOUR_MS;
const RANGE_MAX_MS = 8 * 24 * HOUR_MS;

const counts = (...statuses: string[]) =>
  object(Object.fromEntries(statuses.map((status) => [status, Type.Integer()])));
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
  }),
);
const Count = Type.Integer({ description: `Counted up to ${SUMMARY_MAX}.` });
const Milliseconds = Type.Number({ description: 'Milliseconds.' });
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
      const content = await readActivity(database.pool, project.id, {
        endpointId: query.endpointId,
        from,
        to,
        stepSeconds,
      });
      return { message: 'activity', data: { step_seconds: stepSeconds, content } };
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
