import { context, SpanKind, SpanStatusCode, trace, type Link, type Span, type SpanContext, type SpanOptions } from '@opentelemetry/api';
import { spans, type SpanAttributes, type SpanName } from './spans.js';
import { VERSION } from '../process/version.js';

export interface SpanStart {
  /** Epoch milliseconds. */
  readonly startedAtMs: number;
  /** An open span of this process, or one from headers; without it a new trace starts. */
  readonly parent?: OpenSpan | SpanContext | undefined;
  /** Earlier spans that led to this one. */
  readonly links?: readonly SpanContext[];
}

export interface SpanEnd<Name extends SpanName> {
  readonly attributes: SpanAttributes<Name>;
  /** Epoch milliseconds. */
  readonly endedAtMs: number;
  readonly error?: SpanError | undefined;
}

/** Why a span failed. Neither text may quote a message, a function or an endpoint. */
export interface SpanError {
  /** A short class of errors. */
  readonly type: string;
  readonly sentence: string;
  /** Another span of the trace records the exception. */
  readonly told?: boolean;
}

/** A started span. A span that is never ended is never sent. */
export interface OpenSpan<Name extends SpanName = SpanName> {
  readonly name: Name;
  readonly span: Span;
  readonly context: SpanContext;
  /** False: the span is dropped, so skip its attributes. */
  readonly recording: boolean;
}

export type SpanTracer = ReturnType<typeof openSpanTracer>;

const { INTERNAL: internal, CLIENT: client, PRODUCER: producer, CONSUMER: consumer } = SpanKind;
const KINDS = { internal, client, producer, consumer };

/** Call after the tracer plugin has started. */
export function openSpanTracer() {
  const tracer = trace.getTracer('gateway', VERSION);
  return {
    start<Name extends SpanName>(name: Name, { startedAtMs, parent, links }: SpanStart): OpenSpan<Name> {
      const options: SpanOptions = { kind: KINDS[spans[name].kind], startTime: startedAtMs };
      if (links !== undefined) options.links = links.map((it): Link => ({ context: it }));
      // The active context is empty, but some tracers know parents only by contexts of their own.
      const from = context.active();
      const span = tracer.startSpan(
        name,
        options,
        parent === undefined ? from : 'span' in parent ? trace.setSpan(from, parent.span) : trace.setSpanContext(from, parent),
      );
      return { name, span, context: span.spanContext(), recording: span.isRecording() };
    },
  };
}

/** Ends a span. Check `recording` before building its attributes. */
export function endSpan<Name extends SpanName>({ span }: OpenSpan<Name>, { attributes, endedAtMs, error }: SpanEnd<Name>): void {
  span.setAttributes(attributes);
  if (error) {
    span.setAttribute('error.type', error.type);
    span.setStatus({ code: SpanStatusCode.ERROR, message: error.sentence });
    if (!error.told) span.recordException({ name: error.type, message: error.sentence }, endedAtMs);
  }
  span.end(endedAtMs);
}
