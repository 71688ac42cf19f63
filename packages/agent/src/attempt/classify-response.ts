import { isOperational, newId } from '@gateway/core/events';
import type { Endpoint } from '@gateway/ingest/routing/project';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { HeldDelivery } from '../model/delivery.js';
import type { RequestResult } from '../request/sender.js';
import type { AttemptTrace } from '../telemetry/tracing.js';
import { nextAttemptInMs, retriesAtOnce, retryAfterSeconds } from './retry-schedule.js';

export interface Attempt {
  readonly endpoint: Endpoint;
  readonly delivery: HeldDelivery;
  readonly trace: AttemptTrace | undefined;
  /** The output of the subscription's function, or undefined if no function ran. */
  readonly transformedData: string | undefined;
}

/** Classifies a result as success, retry or failure, and returns the record of the attempt. */
export function classifyResponse(
  { endpoint, delivery, trace, transformedData }: Attempt,
  answer: RequestResult,
  requestedAtMs: number,
  durationMs: number,
): AttemptRecord {
  const number = delivery.attempts + 1;
  const delivered =
    answer.failure === null &&
    answer.status !== null &&
    answer.status >= 200 &&
    answer.status < 300;
  const message = `The endpoint answered ${answer.status}. ${answer.remark ?? ''}`.trim();
  const failure = delivered ? null : (answer.failure ?? { class: 'status' as const, message });
  const gone = answer.status === 410;
  const dueInMs =
    delivered || gone
      ? null
      : retriesAtOnce(answer, endpoint.strategy, number)
        ? 0
        : nextAttemptInMs(
            endpoint.strategy,
            number,
            retryAfterSeconds(answer.headers['retry-after'], requestedAtMs + durationMs),
          );
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
    error: failure?.message ?? answer.remark ?? null,
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
    transformedData,
    isOperational: isOperational(delivery.eventType),
  };
}
