import type { ActivatedPlugins } from '@gateway/core/plugins';
import { openSpanTracer } from '@gateway/core/tracing';
import type { Message } from '@gateway/plugin';
import type { HeldDelivery } from '../model/delivery.js';
import type { IngestSource } from '../model/ingest-source.js';
import { startAttempt, type AttemptTrace } from './trace-attempt.js';
import { MessageTrace } from './trace-message.js';
import { routingTrace, type RoutingTrace } from './trace-routing.js';

/** The spans of a message, and the trace context that it carries on. */
export interface Tracing {
  received(source: IngestSource, message: Message): MessageTrace;
  readonly routing: RoutingTrace;
  /** A request is about to be made. Undefined: the trace context of the event goes with it as it is. */
  attempting(delivery: HeldDelivery): AttemptTrace | undefined;
}

/** Undefined without an active tracer. */
export function tracing({ tracer: active }: Pick<ActivatedPlugins, 'tracer'>): Tracing | undefined {
  if (!active) return undefined;
  const tracer = openSpanTracer();
  return {
    received: (source, message) => new MessageTrace(tracer, source, message),
    routing: routingTrace(tracer),
    attempting: (delivery) => startAttempt(tracer, delivery),
  };
}
