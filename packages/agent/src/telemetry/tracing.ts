import type { ActivatedPlugins } from '@gateway/core/plugins';
import {
  endSpan,
  formatTraceparent,
  isSampled,
  type OpenSpan,
  type SpanAttributes,
  openSpanTracer,
  parseTraceparent,
  type SpanError,
  type SpanTracer,
  traceContextOf,
} from '@gateway/core/tracing';
import type { Message } from '@gateway/plugin';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { AttemptTrace, InFlightDelivery } from '../model/delivery.js';
import type { FailureClass } from '../model/destination.js';
import type { IngestSource } from '@gateway/ingest/message/ingest-source';
import { routingTrace } from './trace-routing.js';
import { MessageTrace } from '@gateway/ingest/message/telemetry';

/** Records the spans of messages and propagates their trace context. */
export type Tracing = NonNullable<ReturnType<typeof tracing>>;

/** Returns the tracing of an agent, or undefined if no tracer plugin is active. */
export function tracing({ tracer: active }: Pick<ActivatedPlugins, 'tracer'>) {
  if (!active) return undefined;
  const tracer = openSpanTracer();
  return {
    received: (source: IngestSource, message: Message) => new MessageTrace(tracer, source, message),
    routing: routingTrace(tracer),
    /** Starts the trace of an attempt, or returns undefined to propagate the context unchanged. */
    attempting: (delivery: InFlightDelivery) => startAttempt(tracer, delivery),
  };
}

/**
 * Starts the span of an attempt, a child of the event's creation that links to the previous
 * attempt. Returns undefined if the trace is not recorded. An API event without a trace context
 * starts a trace; for an event of a source, the agent that read it has decided whether it is
 * traced.
 */
function startAttempt(
  tracer: SpanTracer,
  {
    headers,
    sourceId,
    traceparent: before,
  }: Pick<InFlightDelivery, 'headers' | 'sourceId' | 'traceparent'>,
): AttemptTrace | undefined {
  const { traceparent } = headers;
  // Fast path: an untraced event, the common case, is recognised without parsing.
  if (
    traceparent === undefined
      ? sourceId !== null && before === null
      : traceparent.length === 55 && traceparent.endsWith('-00')
  )
    return undefined;
  const previous = parseTraceparent(before);
  const parent = traceContextOf(headers) ?? previous;
  if (parent && !isSampled(parent)) return attemptTrace(parent);
  const span = tracer.start('meta_event_delivery', {
    startedAtMs: Date.now(),
    parent,
    ...(previous ? { links: [previous] } : {}),
  });
  return attemptTrace(span.context, span.recording ? span : undefined);
}

function attemptTrace(context: OpenSpan['context'], span?: AttemptTrace['span']): AttemptTrace {
  return {
    traceparent: formatTraceparent(context),
    tracestate: context.traceState?.serialize(),
    span,
  };
}

/** Ends the span of an attempt now, with the attributes of the request and any error. */
export function endAttempt(
  span: OpenSpan<'meta_event_delivery'>,
  delivery: InFlightDelivery,
  attempt: AttemptRecord,
  ofTarget: SpanAttributes<'meta_event_delivery'>,
): void {
  endSpan(span, {
    attributes: { ...attributesOf(delivery, attempt), ...ofTarget },
    endedAtMs: Date.now(),
    error: attemptError(attempt),
  });
}

function attributesOf(delivery: InFlightDelivery, attempt: AttemptRecord) {
  return {
    'gateway.project': delivery.projectId,
    'gateway.event': delivery.eventId,
    'gateway.event_type': delivery.eventType,
    'gateway.event_delivery': delivery.id,
    'gateway.endpoint': delivery.endpointId,
    'gateway.attempt': attempt.number,
    'gateway.outcome': attempt.status,
  };
}

/**
 * The error sentences of spans, used because the failure's own message may quote the endpoint or a
 * proxy.
 */
const SENTENCES: Readonly<Record<Exclude<FailureClass, 'status'>, string>> = {
  dns: 'The name of the endpoint was not found.',
  connect: 'The endpoint could not be connected to.',
  refused_address: 'The address of the endpoint is not allowed.',
  proxy: 'The proxy did not let the request through.',
  tls: 'No secure connection to the endpoint could be made.',
  timeout: 'The endpoint did not answer in time.',
  reset: 'The endpoint closed the connection.',
  protocol: 'What the endpoint answered is not HTTP.',
  unsendable: 'The request could not be made.',
  function: 'The function of the subscription failed.',
};

function attemptError({ errorClass, code }: AttemptRecord): SpanError | undefined {
  if (errorClass === null) return undefined;
  if (errorClass === 'status')
    return { type: String(code), sentence: `The endpoint answered ${code}.` };
  return {
    type: errorClass,
    sentence: SENTENCES[errorClass as keyof typeof SENTENCES] ?? 'The attempt failed.',
  };
}
