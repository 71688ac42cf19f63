import { Type } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import { findEvent, replayEvents, replaySelected } from '@gateway/store/events';
import {
  findEventDelivery,
  resendEventDelivery,
  retryDeliveries,
  type EventDeliveryRow,
} from '@gateway/store/deliveries';
import { found, projectRoute, type Route } from '../api/route.js';
import { Time, timeRange } from '../http/list-query.js';
import { described, Id, named, nullable, object, oneOf, optional, Word } from '../http/schema.js';

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
const ReplayQuery = object({
  ...batchQuery,
  force,
  ...optional({ event_type: Word, sourceId: Id, status: oneOf(['processed', 'failed']) }),
});
const Replay = named(
  'BatchReplay',
  object({ count: Type.Integer(), dry_run: Type.Boolean(), next: Next }),
);

const RetryQuery = object({
  ...batchQuery,
  ...optional({
    status: oneOf(['failure', 'discarded', 'success'], { default: 'failure' }),
    endpointId: Id,
    eventId: Id,
    event_type: Word,
  }),
});
const Retry = named(
  'BatchRetry',
  object({
    due: Type.Integer({ description: 'Sent again now.' }),
    held: Type.Integer({ description: 'Sent again when their paused endpoint is activated.' }),
    left: Type.Integer({ description: 'Left alone: their endpoint is inactive or deleted.' }),
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
        after,
        dry_run: dryRun = false,
        force,
      } = query;
      const filter = { ...timeRange(query), eventType, sourceId, status, after };
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
    'Sends the selected deliveries again: those that failed, or of another status. Works for up to 10 s; `next` says where to go on.',
    { query: RetryQuery, data: Retry, name: 'batchRetry', portal: 'any' },
    async ({ database: { pool }, project, query, ownerId }) => {
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
      const data = {
        due: 0,
        held: 0,
        left: 0,
        progress: 0,
        dry_run: dryRun,
        next: null as string | null,
      };
      const until = performance.now() + WORK_MS;
      for await (const { tallies, done, next } of retryDeliveries(pool, selection, { dryRun })) {
        for (const { outcome, count } of tallies)
          data[outcome === 'due' || outcome === 'held' ? outcome : 'left'] += count;
        data.progress = done;
        if (next === undefined) continue;
        data.next = next;
        if (performance.now() > until) break;
      }
      const count = data.due + data.held;
      return {
        message: `${count} event deliveries ${dryRun ? 'would be' : 'are'} sent again`,
        data,
      };
    },
  ),
  projectRoute(
    'POST /eventdeliveries/forceresend',
    `Sends up to ${RESEND_MAX} deliveries again, delivered ones included, with a result for each.`,
    { body: Resend, data: Resent, name: 'forceResend' },
    async ({ database: { pool }, project, body }) => {
      const content: { uid: string; error: string | null }[] = [];
      for (const uid of new Set(body.ids)) {
        const error = refusal(await findEventDelivery(pool, project.id, uid), true);
        const isResent =
          error === undefined && (await resendEventDelivery(pool, project.id, uid, RESENT));
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

/** The statuses in which a delivery can be sent again, `success` only if forced. */
export const RESENT = ['success', 'failure', 'discarded'] as const;
export const CHANGED = 'the event delivery has just changed its status';

/** Returns why a delivery cannot be sent again, with a fix, or undefined if it can. */
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
  if (status === 'failure' || status === 'discarded') return undefined;
  if (status !== 'success')
    return {
      sentence: `the event delivery is ${status}: it will be attempted without this`,
      fix: 'wait for the attempt',
    };
  return isForced
    ? undefined
    : {
        sentence: 'the event delivery was delivered already',
        fix: 'add ?force=true to send it again',
      };
}
