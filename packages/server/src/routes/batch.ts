import { Type } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import { routingOutcomes, type RoutingOutcome } from '@gateway/core/routing';
import { findEvent, replayEvents, replaySelected } from '@gateway/store/events';
import {
  findEventDelivery,
  resendEventDelivery,
  retryDeliveries,
  type EventDeliveryRow,
  type EventDeliveryStatus,
  type RetrySelection,
  type RetryTally,
} from '@gateway/store/deliveries';
import { found, projectRoute, type ProjectCall, type Route } from '../api/route.js';
import { searchOf, textQuery, Time, timeRange } from '../http/list-query.js';
import {
  described,
  Id,
  invalid,
  named,
  nullable,
  object,
  oneOf,
  optional,
  Timestamp,
  Word,
} from '../http/schema.js';
import { probeNow, readBreakersNow, type Breakers } from './endpoints/breakers.js';

/**
 * The time that a request works before it returns the position where the next one continues.
 * Shorter than proxy timeouts.
 */
export const WORK_MS = 10_000;
const RESEND_MAX = 200;

export const batchQuery = {
  startDate: Time,
  ...optional({
    endDate: Time,
    dry_run: Type.Boolean({ description: 'Counts, and changes nothing.' }),
    after: described(Id, '`next` of the last answer, to go on from there.'),
  }),
};
export const Next = nullable(
  Type.String({ description: 'Give it as `after` to go on; null when all is done.' }),
);

const force = Type.Optional(
  Type.Boolean({
    description:
      'Endpoints that have a delivery get another one by each matching subscription that has made none.',
  }),
);
const UNROUTED = (Object.keys(routingOutcomes) as RoutingOutcome[]).filter((it) => it !== 'routed');
export const Outcomes = Type.Array(oneOf(UNROUTED), {
  description:
    'Selects events that reached no endpoint, by why. Not beside sourceId, event_type or status.',
});

/** Requires that `outcome` is the only filter beside the time, because its index has no other. */
export function assertAlone(query: {
  readonly outcome?: readonly RoutingOutcome[];
  readonly sourceId?: string;
  readonly event_type?: string;
  readonly status?: string;
}): void {
  const other = (['sourceId', 'event_type', 'status'] as const).find((it) => query[it]);
  if (query.outcome?.length && other)
    throw invalid('outcome', `does not belong beside ${other}: select by one of them`);
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
const Replay = named(
  'BatchReplay',
  object({ count: Type.Integer(), dry_run: Type.Boolean(), next: Next }),
);

const RetryQuery = object({
  ...batchQuery,
  ...optional({
    status: oneOf(['failure', 'discarded', 'success', 'retry', 'scheduled'], {
      default: 'failure',
    }),
    endpointId: Id,
    eventId: Id,
    event_type: Word,
  }),
});
export const Retry = named(
  'BatchRetry',
  object({
    due: Type.Integer({ description: 'Sent now.' }),
    held: Type.Integer({ description: 'Sent again when their paused endpoint is activated.' }),
    left: Type.Integer({
      description:
        'Left alone: their endpoint is inactive or deleted, or they are due or held already.',
    }),
    behind_breakers: Type.Array(
      object({
        endpoint_id: Id,
        endpoint_name: nullable(Type.String()),
        count: Type.Integer(),
        until: nullable(Timestamp, 'The earliest next request to it.'),
      }),
      {
        description:
          'Endpoints whose circuit breaker is open, with how many of the due deliveries wait for it.',
      },
    ),
    progress: Type.Number({ description: 'From 0 to 1, by time.' }),
    dry_run: Type.Boolean(),
    next: Next,
  }),
);

const Resend = named(
  'Resend',
  object({ ids: Type.Array(Id, { minItems: 1, maxItems: RESEND_MAX }) }),
);
const Resent = named(
  'Resent',
  object({
    resent: Type.Integer(),
    content: Type.Array(
      object({
        uid: Id,
        error: nullable(Type.String({ description: 'Why it is not sent again.' })),
      }),
    ),
  }),
);
const Replayed = named('ReplayedEvent', object({ uid: Id }));

export const batchRoutes: readonly Route[] = [
  projectRoute(
    'PUT /events/:id/replay',
    'Routes an event again by the subscriptions of now: endpoints that have no delivery of it get one.',
    { query: object({ force }), data: Replayed },
    async ({ database: { pool }, project, id, query, signalPending }) => {
      const events = await replayEvents(pool, project.id, [id], query);
      if (events.length === 0) {
        found(await findEvent(pool, project.id, id), 'event', id);
        throw new GatewayError('conflict', {
          sentence: 'the event is pending: it is routed without this',
          fix: 'wait for it to be routed',
        });
      }
      signalPending(events);
      return { message: 'event is routed again', data: { uid: id } };
    },
  ),
  projectRoute(
    'POST /events/batchreplay',
    'Routes the selected events again, oldest first, as the replay of one does. Works for up to 10 s; `next` says where to go on.',
    { query: ReplayQuery, data: Replay, name: 'batchReplay' },
    async ({ database: { pool }, project, query, signalPending }) => {
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
        eventType,
        sourceId,
        status,
        outcomes,
        after,
        search: searchOf(query),
      };
      let [count, next] = [0, null as string | null];
      const until = performance.now() + WORK_MS;
      for await (const step of replaySelected(pool, project.id, filter, { dryRun, force })) {
        count += step.count;
        next = step.next;
        signalPending(step.replayed);
        if (performance.now() > until) break;
      }
      return {
        message: `${count} events ${dryRun ? 'would be' : 'are'} routed again`,
        data: { count, dry_run: dryRun, next },
      };
    },
  ),
  projectRoute(
    'POST /eventdeliveries/batchretry',
    'Sends the selected deliveries now: those that failed, or of another status, such as those that wait for their next attempt. With `endpointId`, one probes an open circuit breaker. Works for up to 10 s; `next` says where to go on.',
    { query: RetryQuery, data: Retry, name: 'batchRetry', portal: 'any' },
    async (call) => {
      const { project, query, ownerId } = call;
      const {
        status = 'failure',
        endpointId,
        eventId,
        event_type: eventType,
        after,
        dry_run: dryRun = false,
      } = query;
      const { from = new Date(0), to } = timeRange(query);
      const selection = {
        status,
        from,
        to,
        after,
        endpointId,
        ownerId,
        eventId,
        eventType,
        projects: [project],
      };
      const data = await retryFor10s(call, selection, { dryRun });
      const waiting = data.behind_breakers.reduce((sum, it) => sum + it.count, 0);
      const rest = waiting > 0 ? `; ${waiting} of them wait for an open circuit breaker` : '';
      return {
        message: `${data.due + data.held} event deliveries ${dryRun ? 'would be' : 'are'} ${waiting > 0 ? 'queued' : 'sent again'}${rest}`,
        data,
      };
    },
  ),
  projectRoute(
    'POST /eventdeliveries/forceresend',
    `Sends up to ${RESEND_MAX} deliveries now, delivered and waiting ones included, with a result for each.`,
    { body: Resend, data: Resent, name: 'forceResend' },
    async (call) => {
      const { database, project, body } = call;
      const content: { uid: string; error: string | null }[] = [];
      for (const uid of new Set(body.ids)) {
        const delivery = await findEventDelivery(database.pool, project.id, uid);
        const error = refusal(delivery, true);
        const isResent = !error && (await sendNow(call, delivery!, RESENT)).isDue;
        content.push({ uid, error: isResent ? null : (error?.sentence ?? CHANGED) });
      }
      const resent = content.filter(({ error }) => error === null).length;
      return {
        message: `${resent} of ${content.length} event deliveries are sent again`,
        data: { resent, content },
      };
    },
  ),
];

interface BehindBreaker {
  readonly endpoint_id: string;
  readonly endpoint_name: string | null;
  readonly count: number;
  readonly until: Date | null;
}

/** Returns the open breakers that deliveries wait for. Without KV, none is known. */
function behindBreakers(due: readonly RetryTally[], breakers: Breakers): BehindBreaker[] {
  const found = new Map<string, BehindBreaker>();
  for (const { endpointId, endpointName, count } of due) {
    const breaker = breakers.of(endpointId);
    if (!breaker || breaker.state === 'closed') continue;
    found.set(endpointId, {
      endpoint_id: endpointId,
      endpoint_name: endpointName,
      count: (found.get(endpointId)?.count ?? 0) + count,
      until: breaker.until,
    });
  }
  return [...found.values()];
}

/**
 * Makes selected deliveries due for up to 10 s, with counts of the outcomes. With an endpoint, one
 * of them probes an open circuit breaker.
 */
export async function retryFor10s(
  call: ProjectCall,
  selection: RetrySelection,
  { dryRun }: { dryRun: boolean },
) {
  const { endpointId } = selection;
  const dueInMs = dryRun || endpointId === undefined ? 0 : await probeNow(call, endpointId);
  const data = {
    due: 0,
    held: 0,
    left: 0,
    behind_breakers: [] as BehindBreaker[],
    progress: 0,
    dry_run: dryRun,
    next: null as string | null,
  };
  const due: RetryTally[] = [];
  const until = performance.now() + WORK_MS;
  const steps = retryDeliveries(call.database.pool, selection, { dryRun, dueInMs });
  for await (const { tallies, done, next } of steps) {
    for (const tally of tallies) {
      const { outcome, count } = tally;
      data[outcome === 'due' || outcome === 'held' ? outcome : 'left'] += count;
      if (outcome === 'due') due.push(tally);
    }
    data.progress = done;
    if (next === undefined) continue;
    data.next = next;
    if (performance.now() > until) break;
  }
  data.behind_breakers = behindBreakers(due, await readBreakersNow(call.kv));
  return data;
}

/**
 * The statuses in which a delivery can be sent now, `success` only if forced. In the last two it
 * waits for its next attempt.
 */
export const RESENT = ['success', 'failure', 'discarded', 'scheduled', 'retry'] as const;

/**
 * Makes a delivery due, unless it has just left the statuses in `from`. If the circuit breaker of
 * its endpoint is open, the delivery is its probe.
 */
export async function sendNow(
  call: ProjectCall,
  { id, project_id, endpoint_id }: EventDeliveryRow,
  from: readonly EventDeliveryStatus[],
): Promise<{ readonly isDue: boolean; readonly isProbe: boolean }> {
  const dueInMs = await probeNow(call, endpoint_id);
  const isDue = await resendEventDelivery(call.database.pool, project_id, id, from, dueInMs);
  return { isDue, isProbe: dueInMs > 0 };
}

export const CHANGED = 'the event delivery has just changed its status';

/** Returns why a delivery cannot be sent now, with a fix, or undefined if it can. */
export function refusal(
  delivery: EventDeliveryRow | undefined,
  isForced: boolean,
): { sentence: string; fix: string } | undefined {
  if (!delivery)
    return { sentence: 'there is no such event delivery in this project', fix: 'check the id' };
  const { status, endpoint_status } = delivery;
  if (endpoint_status === 'deleted')
    return { sentence: 'its endpoint was deleted', fix: 'send the event to another endpoint' };
  if (endpoint_status === 'inactive')
    return { sentence: 'its endpoint is inactive', fix: 'activate the endpoint first' };
  if (status === 'processing')
    return { sentence: 'an agent is sending the event delivery', fix: 'wait for the attempt' };
  if (endpoint_status === 'paused' && (status === 'scheduled' || status === 'retry'))
    return {
      sentence: 'its endpoint is paused, and holds it',
      fix: 'activate the endpoint: what is held is sent then',
    };
  return isForced || status !== 'success'
    ? undefined
    : {
        sentence: 'the event delivery was delivered already',
        fix: 'add ?force=true to send it again',
      };
}
