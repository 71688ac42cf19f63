import { GatewayError } from '@gateway/core/errors';
import { routingOutcomes, type RoutingOutcome } from '@gateway/core/routing';
import { findEvent, replayEvents, replaySelected } from '@gateway/store/events';
import {
  batchQuery,
  boolean,
  found,
  Id,
  int,
  invalid,
  namedObject,
  Next,
  object,
  oneOf,
  optional,
  projectRoute,
  searchOf,
  textQuery,
  timeRange,
  Type,
  Word,
  WORK_MS,
  type Route,
} from '../../api/vocabulary.js';

const force = Type.Optional(
  boolean(
    'Also creates a delivery for each matching subscription that has none, to endpoints that already have a delivery.',
  ),
);
const UNROUTED = (Object.keys(routingOutcomes) as RoutingOutcome[]).filter((it) => it !== 'routed');
export const Outcomes = Type.Array(oneOf(UNROUTED), {
  description:
    'Selects events that reached no endpoint, by outcome. Cannot be combined with `sourceId`, `event_type` or `status`.',
});

/** The index for `outcome` covers only the time. */
export function assertAlone(query: {
  readonly outcome?: readonly RoutingOutcome[];
  readonly sourceId?: string;
  readonly event_type?: string;
  readonly status?: string;
}): void {
  const other = (['sourceId', 'event_type', 'status'] as const).find((it) => query[it]);
  if (query.outcome?.length && other)
    throw invalid('outcome', `cannot be combined with ${other}: select by one of them`);
}

const ReplayQuery = object({
  ...batchQuery,
  force,
  ...textQuery,
  ...optional({
    event_type: Word,
    sourceId: Id,
    status: oneOf(['processed', 'failed']),
    outcome: Outcomes,
  }),
});
const Replay = namedObject('BatchReplay', {
  count: int(),
  dry_run: boolean(),
  next: Next,
});
const Replayed = namedObject('ReplayedEvent', { uid: Id });

export const replayRoutes: readonly Route[] = [
  projectRoute(
    'PUT /events/:id/replay',
    'Routes an event again with the current subscriptions. Only endpoints without a delivery of the event get one.',
    { query: object({ force }), data: Replayed },
    async ({ planes, project, id, query, signalPending }) => {
      found(await findEvent(planes.data, project.id, id), 'event', id);
      const events = await replayEvents(planes.data, project.id, [id], query);
      if (events.length === 0)
        throw new GatewayError('conflict', {
          sentence: 'the event is pending and will be routed',
          fix: 'wait for it to be routed',
        });
      signalPending(events, planes.shard);
      return { message: 'event is replayed', data: { uid: id } };
    },
  ),
  projectRoute(
    'POST /events/batchreplay',
    'Replays the selected events, oldest first. Runs for up to 10 s; if `next` is not null, continue with it as `after`.',
    { query: ReplayQuery, data: Replay, name: 'batchReplay', isLong: true },
    async ({ planes, project, query, signalPending }) => {
      const {
        event_type: eventType,
        sourceId,
        status,
        outcome: outcomes,
        after,
        dry_run: dryRun = false,
        force,
      } = query;
      assertAlone(query);
      const filter = {
        ...timeRange(query),
        after,
        eventType,
        sourceId,
        status,
        outcomes,
        search: searchOf(query),
      };
      let [count, next] = [0, null as string | null];
      const until = performance.now() + WORK_MS;
      for await (const step of replaySelected(planes, project.id, filter, { dryRun, force })) {
        count += step.count;
        next = step.next;
        signalPending(step.replayed, planes.shard);
        if (next !== null && performance.now() > until) break;
      }
      return {
        message: `${count} events ${dryRun ? 'would be' : 'are'} replayed`,
        data: { count, dry_run: dryRun, next },
      };
    },
  ),
];
