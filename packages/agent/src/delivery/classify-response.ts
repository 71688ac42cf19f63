import { newId } from '@gateway/core/events';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { Endpoint } from '../config/config-cache.js';
import type { HeldDelivery } from '../model/delivery.js';
import type { Answer } from '../request/sender.js';
import { nextAttemptInMs, retryAfterSeconds } from './retry-schedule.js';

/** The record of an attempt: what the answer means for its delivery. */
export function classifyResponse(
  {
    endpoint,
    delivery,
    trace,
  }: { readonly endpoint: Endpoint; readonly delivery: HeldDelivery; readonly trace?: { readonly traceparent: string } | undefined },
  answer: Answer,
  requestedAtMs: number,
  durationMs: number,
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
    traceparent: trace?.traceparent ?? null,
  };
}
