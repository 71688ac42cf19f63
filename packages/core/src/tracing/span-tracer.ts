import { context, SpanKind, SpanStatusCode, trace, type Link, type Span, type SpanContext, type SpanOptions } from '@opentelemetry/api';
import { spans, type SpanAttributes, type SpanKindName, type SpanName } from './spans.js';
import { VERSION } from '../process/version.js';

export interface SpanStart {
  /** Epoch milliseconds. */
  readonly startedAtMs: number;
  /** A span of this process that is under way, or one that headers told of; a new trace without one. */
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

/** Why a span failed. Neither text may quote what a message, a function or an endpoint said. */
export interface SpanError {
  /** A class of errors, as short as a code. */
  readonly type: string;
  readonly sentence: string;
  /** True: another span of the trace records it as an exception, so that it is reported once. */
  readonly told?: boolean;
}

/** A span that was started. One that is never ended is never sent. */
export interface OpenSpan<Name extends SpanName = SpanName> {
  readonly name: Name;
  readonly span: Span;
  readonly context: SpanContext;
  /** False: nobody will see it, so nothing is worth being told to it. */
  readonly recording: boolean;
}

/** Starts spans with the active tracer of the process. */
export interface SpanTracer {
  start<Name extends SpanName>(name: Name, start: SpanStart): OpenSpan<Name>;
}

const KINDS: Readonly<Record<SpanKindName, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

/** To be called when the tracer plugin is active. */
export function openSpanTracer(): SpanTracer {
  const tracer = trace.getTracer('gateway', VERSION);
  return {
    start(name, { startedAtMs, parent, links }) {
      const options: SpanOptions = { kind: KINDS[spans[name].kind], startTime: startedAtMs };
      if (links !== undefined) options.links = links.map((it): Link => ({ context: it }));
      // The active context is empty here; it is asked for because some tracers know parents only by contexts of their own.
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

/** Ends a span with its attributes. Check `recording` first, so that nothing is made for a span that nobody sees. */
export function endSpan<Name extends SpanName>({ span }: OpenSpan<Name>, { attributes, endedAtMs, error }: SpanEnd<Name>): void {
  span.setAttributes(attributes);
  if (error) {
    span.setAttribute('error.type', error.type);
    span.setStatus({ code: SpanStatusCode.ERROR, message: error.sentence });
    if (!error.told) span.recordException({ name: error.type, message: error.sentence }, endedAtMs);
  }
  span.end(endedAtMs);
}
