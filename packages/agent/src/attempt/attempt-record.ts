import { isOperational, newId } from '@gateway/core/events';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { Outgoing, Attempted } from '../model/destination.js';
import { nextAttemptInMs, retriesAtOnce } from './retry-schedule.js';

export interface Attempt extends Outgoing {
  /** The output of the subscription's function, or undefined if no function ran. */
  readonly transformedData: string | undefined;
}

export function attemptRecord(
  { endpoint: { strategy }, delivery, trace, transformedData }: Attempt,
  sent: Attempted,
): AttemptRecord {
  const { outcome, detail, sentAtMs } = sent;
  const number = delivery.attempts + 1;
  const dueInMs =
    outcome !== 'retry'
      ? null
      : sent.mayRetryAtOnce && retriesAtOnce(strategy, number)
        ? 0
        : nextAttemptInMs(strategy, number, sent.afterSeconds);
  return {
    projectId: delivery.projectId,
    id: delivery.id,
    occurredAtMs: delivery.occurredAtMs,
    attemptId: newId(sentAtMs),
    endpointId: delivery.endpointId,
    number,
    requestedAtMs: sentAtMs,
    durationMs: Math.round(sent.durationMs),
    target: sent.target,
    code: sent.code,
    errorClass: sent.failure,
    detail,
    responseHeaders: sent.headers && JSON.stringify(sent.headers),
    responseBody: sent.body,
    status: outcome === 'delivered' ? 'success' : dueInMs === null ? 'failure' : 'retry',
    dueInMs,
    reason: dueInMs === null ? endReason(outcome, number, detail) : null,
    agentId: delivery.agentId,
    traceparent: trace?.traceparent ?? null,
    transformedData,
    isUp: sent.isUp,
    isGone: outcome === 'gone',
    isOperational: isOperational(delivery.eventType),
  };
}

function endReason(
  outcome: Attempted['outcome'],
  number: number,
  detail: string | null,
): string | null {
  switch (outcome) {
    case 'delivered':
      return null;
    case 'gone':
      return 'The endpoint answered 410 Gone and was deactivated.';
    case 'failed':
      return `The endpoint will never take it. ${detail ?? ''}`.trim();
    case 'retry':
      return `No retry is left after attempt ${number}. ${detail ?? ''}`.trim();
  }
}
