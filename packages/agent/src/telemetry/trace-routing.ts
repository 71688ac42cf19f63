import {
  endSpan,
  isSampled,
  parseTraceparent,
  type SpanName,
  type SpanTracer,
} from '@gateway/core/tracing';
import { needsMatching, type RoutingOutcome, routingOutcomes } from '@gateway/core/routing';
import type { NewEventDelivery, PendingEvent } from '@gateway/store/events';
import type { QueueName } from '@gateway/store/kv';

export interface Routing {
  readonly by: QueueName | 'reconciler';
  /** In epoch milliseconds by event id. */
  readonly since: ReadonlyMap<string, number>;
}

type CommittedDeliveries = {
  readonly deliveries: readonly Pick<NewEventDelivery, 'id' | 'eventId'>[];
  readonly added: ReadonlySet<string>;
};

/** For events routed from the queues. Events without a trace context have no span. */
export function routingTrace(tracer: SpanTracer) {
  function begin<Name extends SpanName>(
    name: Name,
    { id, headers }: PendingEvent,
    { since }: Routing,
    nowMs: number,
  ) {
    const parent = parseTraceparent(traceparentIn(headers));
    if (!parent || !isSampled(parent)) return undefined;
    // The KV clock may be ahead, so the span's start is capped at the current time.
    const span = tracer.start(name, {
      startedAtMs: Math.min(since.get(id) ?? nowMs, nowMs),
      parent,
    });
    return span.recording ? span : undefined;
  }
  return {
    passedOn(events: readonly PendingEvent[], routing: Routing): void {
      const nowMs = Date.now();
      for (const event of events) {
        const span = begin('event.routing', event, routing, nowMs);
        if (span)
          endSpan(span, {
            attributes: { ...attributesOf(event, routing), 'gateway.outcome': 'passed_on' },
            endedAtMs: nowMs,
          });
      }
    },
    routed(
      routes: readonly {
        event: PendingEvent;
        outcome: RoutingOutcome;
        targets: readonly unknown[];
      }[],
      committed: CommittedDeliveries,
      routing: Routing,
    ): void {
      const nowMs = Date.now();
      let counts: ReadonlyMap<string, number> | undefined;
      for (const { event, outcome, targets } of routes) {
        const { status, sentence } = routingOutcomes[outcome];
        const isFailed = status === 'failed';
        const name =
          isFailed && needsMatching(event)
            ? 'dynamic.event.subscription.matching.error'
            : 'event.routing';
        const span = begin(name, event, routing, nowMs);
        if (!span) continue;
        counts ??= countAdded(committed);
        const made = counts.get(event.id) ?? 0;
        // Another agent routed the event first. A span that is never ended is not exported.
        if (made === 0 && targets.length > 0) continue;
        endSpan(span, {
          attributes: {
            ...attributesOf(event, routing),
            'gateway.outcome': outcome,
            ...(name === 'event.routing' && { 'gateway.deliveries': made }),
          },
          endedAtMs: nowMs,
          error: isFailed ? { type: outcome, sentence } : undefined,
        });
      }
    },
    failed(events: readonly PendingEvent[], routing: Routing, error: unknown): void {
      const nowMs = Date.now();
      const why = {
        type: classOf(error),
        sentence: 'The route could not be made or stored; it is tried again.',
      };
      for (const event of events) {
        if (!needsMatching(event)) continue;
        const span = begin('dynamic.event.subscription.matching.error', event, routing, nowMs);
        if (span)
          endSpan(span, {
            attributes: { ...attributesOf(event, routing), 'gateway.outcome': 'pending' },
            endedAtMs: nowMs,
            error: why,
          });
      }
    },
  };
}

function countAdded({ deliveries, added }: CommittedDeliveries): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { id, eventId } of deliveries)
    if (added.has(id)) counts.set(eventId, (counts.get(eventId) ?? 0) + 1);
  return counts;
}

/**
 * Does not parse the JSON. Quotes in values are escaped, so the pattern cannot match inside a
 * value.
 */
function traceparentIn(headers: string): string | undefined {
  return /"traceparent":"([^"\\]*)"/.exec(headers)?.[1];
}

function attributesOf(event: PendingEvent, { by }: Routing) {
  return {
    'gateway.project': event.projectId,
    'gateway.event': event.id,
    'gateway.event_type': event.eventType,
    'gateway.queue': by,
  };
}

/** The code or name, because the message may quote a row. */
function classOf(error: unknown): string {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: unknown };
  return typeof code === 'string' ? code : typeof name === 'string' ? name : 'Error';
}
