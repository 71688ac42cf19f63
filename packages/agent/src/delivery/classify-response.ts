import { newId } from '@gateway/core/events';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { HeldDelivery } from '../model/delivery.js';
import type { Endpoint } from '../config/config-cache.js';
import { nextAttemptInMs, retryAfterSeconds } from './retry-schedule.js';
import type { Answer } from '../request/sender.js';

/** What an answer makes of the delivery. */
export function judge(
  endpoint: Endpoint,
  delivery: HeldDelivery,
  answer: Answer,
  { requestedAtMs, durationMs }: { readonly requestedAtMs: number; readonly durationMs: number },
): AttemptRecord {
  const number = delivery.attempts + 1;
  const delivered = answer.failure === null && answer.status !== null && answer.status >= 200 && answer.status < 300;
  const failure = delivered ? null : (answer.failure ?? { class: 'status' as const, message: `The endpoint answered ${answer.status}.` });
  const gone = answer.status === 410;
  const dueInMs =
    delivered || gone
      ? null
      : nextAttemptInMs(endpoint.strategy, number, retryAfterSeconds(answer.headers['retry-after'], requestedAtMs + durationMs));
  return {
    projectId: delivery.projectId,
    id: delivery.id,
    occurredAtMs: delivery.occurredAtMs,
    attemptId: newId(requestedAtMs),
    endpointId: delivery.endpointId,
    number,
    requestedAtMs,
    durationMs: Math.round(durationMs),
    url: endpoint.url,
    httpStatus: answer.status,
    errorClass: failure?.class ?? null,
    error: failure?.message ?? null,
    responseHeaders: answer.status === null ? null : JSON.stringify(answer.headers),
    responseBody: answer.body,
    status: delivered ? 'success' : dueInMs === null ? 'failure' : 'retry',
    dueInMs,
    reason:
      delivered || dueInMs !== null
        ? null
        : gone
          ? 'The endpoint answered 410 Gone and was deactivated.'
          : `No retry is left after attempt ${number}. ${failure?.message ?? ''}`.trim(),
    agentId: delivery.agentId,
    traceparent: null,
  };
}
