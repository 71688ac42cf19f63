import { ROOT_CONTEXT, SpanStatusCode, TraceFlags, trace, type Attributes, type Context } from '@opentelemetry/api';
import { VERSION } from './version.js';

/** The spans of the data plane. */
export const spans = {
  'event.creation.success': 'An event was created by its source, endpoint or owner id.',
  'event.creation.error': 'An event could not be created.',
  'dynamic.event.creation.success': 'An event was created whose endpoints are found by matching subscriptions.',
  'dynamic.event.creation.error': 'An event whose endpoints are found by matching subscriptions could not be created.',
  'dynamic.event.subscription.matching.error': 'Matching an event with subscriptions failed.',
  meta_event_delivery: 'A delivery attempt.',
} as const satisfies Readonly<Record<string, string>>;

export type SpanName = keyof typeof spans;

export interface SpanFields {
  readonly attributes?: Attributes;
  /** Epoch milliseconds. */
  readonly startedAt: number;
  /** Epoch milliseconds; now without one. */
  readonly endedAt?: number;
  /** The span failed with this. */
  readonly error?: unknown;
  /** W3C trace context that the message came with; the span becomes its child. */
  readonly traceparent?: string | undefined;
}

/**
 * Emits a span that is over already. Without a tracer this costs next to nothing.
 *
 * @returns the `traceparent` that what follows should carry: of this span when it is recorded, else the one that came
 */
export function emitSpan(name: SpanName, { attributes, startedAt, endedAt, error, traceparent }: SpanFields): string | undefined {
  const tracer = trace.getTracer('gateway', VERSION);
  const span = tracer.startSpan(name, { startTime: startedAt, ...(attributes ? { attributes } : {}) }, contextOf(traceparent));
  if (!span.isRecording()) return traceparent;
  if (error !== undefined) {
    span.setStatus({ code: SpanStatusCode.ERROR, message: error instanceof Error ? error.message : 'failed' });
    if (error instanceof Error) span.recordException(error, endedAt);
  }
  span.end(endedAt);
  const { traceId, spanId, traceFlags } = span.spanContext();
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

// https://www.w3.org/TR/trace-context/#traceparent-header
const TRACEPARENT = /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/;

function contextOf(traceparent: string | undefined): Context {
  const [, traceId, spanId, flags] = (traceparent && TRACEPARENT.exec(traceparent)) || [];
  if (!traceId || !spanId || !flags) return ROOT_CONTEXT;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags: parseInt(flags, 16) & TraceFlags.SAMPLED, isRemote: true });
}
