import { randomBytes } from 'node:crypto';
import {
  context,
  SpanKind,
  SpanStatusCode,
  trace,
  type Link,
  type Span,
  type SpanContext,
  type SpanOptions,
  type Tracer,
} from '@opentelemetry/api';
import { VERSION } from '../process/version.js';

export interface SpanRow {
  readonly kind: 'internal' | 'client' | 'producer' | 'consumer';
  /** Names without `gateway.` are OpenTelemetry semantic conventions. */
  readonly attributes: readonly string[];
}

/** In pipeline order. `scripts/docs/spans.mjs` says what they and their attributes mean. */
// prettier-ignore
export const spans = {
  'ingest.message': { kind: 'consumer',
    attributes: [
      'gateway.project', 'gateway.source', 'gateway.coordinates', 'gateway.outcome',
      'messaging.system', 'messaging.operation.name', 'messaging.operation.type', 'messaging.message.body.size',
    ] },
  'ingest.throttle': { kind: 'internal',
    attributes: ['gateway.project', 'gateway.source'] },
  'ingest.transform': { kind: 'internal',
    attributes: ['gateway.project', 'gateway.source', 'gateway.outcome', 'gateway.code', 'error.type'] },
  'event.creation.success': { kind: 'producer',
    attributes: ['gateway.project', 'gateway.source', 'gateway.event', 'gateway.event_type'] },
  'event.creation.error': { kind: 'internal',
    attributes: ['gateway.project', 'gateway.source', 'gateway.coordinates', 'gateway.event_type', 'gateway.code', 'error.type'] },
  'dynamic.event.creation.success': { kind: 'producer',
    attributes: ['gateway.project', 'gateway.source', 'gateway.event', 'gateway.event_type'] },
  'dynamic.event.creation.error': { kind: 'internal',
    attributes: ['gateway.project', 'gateway.source', 'gateway.coordinates', 'gateway.event_type', 'gateway.code', 'error.type'] },
  'event.routing': { kind: 'consumer',
    attributes: ['gateway.project', 'gateway.event', 'gateway.event_type', 'gateway.queue', 'gateway.outcome', 'gateway.deliveries', 'error.type'] },
  'dynamic.event.subscription.matching.error': { kind: 'internal',
    attributes: ['gateway.project', 'gateway.event', 'gateway.event_type', 'gateway.queue', 'gateway.outcome', 'error.type'] },
  meta_event_delivery: { kind: 'client',
    attributes: [
      'gateway.project', 'gateway.event', 'gateway.event_type', 'gateway.event_delivery', 'gateway.endpoint', 'gateway.attempt',
      'gateway.outcome', 'http.request.method', 'http.response.status_code', 'server.address', 'server.port', 'error.type',
    ] },
} as const satisfies Readonly<Record<string, SpanRow>>;

export type SpanName = keyof typeof spans;

export type SpanAttributes<Name extends SpanName> = Partial<
  Record<(typeof spans)[Name]['attributes'][number], string | number>
>;

/** `dynamic`: its endpoints are found by matching subscriptions. */
export function creationSpan(dynamic: boolean) {
  return dynamic ? 'dynamic.event.creation.success' : 'event.creation.success';
}

export function creationErrorSpan(dynamic: boolean) {
  return dynamic ? 'dynamic.event.creation.error' : 'event.creation.error';
}

interface SpanStart {
  /** Epoch milliseconds. */
  readonly startedAtMs: number;
  /** A span of this process, or a span context from headers. Undefined starts a new trace. */
  readonly parent?: OpenSpan | SpanContext | undefined;
  readonly links?: readonly SpanContext[];
}

interface SpanEnd<Name extends SpanName> {
  readonly attributes: SpanAttributes<Name>;
  /** Epoch milliseconds. */
  readonly endedAtMs: number;
  readonly error?: SpanError | undefined;
}

/** Strings must not quote a message, function or endpoint. */
export interface SpanError {
  readonly type: string;
  readonly sentence: string;
  /** Another span of the trace already records the exception. */
  readonly told?: boolean;
}

/** Exported when it ends. */
export interface OpenSpan<Name extends SpanName = SpanName> {
  readonly name: Name;
  readonly span: Span;
  readonly context: SpanContext;
  /** If false, the span is dropped, and callers need not build its attributes. */
  readonly recording: boolean;
}

export type SpanTracer = ReturnType<typeof openSpanTracer>;

const { INTERNAL: internal, CLIENT: client, PRODUCER: producer, CONSUMER: consumer } = SpanKind;
const KINDS = { internal, client, producer, consumer };

let guarded: <T>(work: () => T) => T = (work) => work();
let failed: (error: unknown) => void = () => undefined;

/** Wraps the tracer plugin's code and receives its errors. */
export function guardTracer(run: typeof guarded, tell: typeof failed): void {
  guarded = run;
  failed = tell;
}

/** Replaces a span of a failing tracer; records nothing. */
function lostSpan<Name extends SpanName>(name: Name, parent: SpanStart['parent']): OpenSpan<Name> {
  const given = parent && 'span' in parent ? parent.context : parent;
  const context: SpanContext = given ?? {
    traceId: randomBytes(16).toString('hex'),
    spanId: randomBytes(8).toString('hex'),
    traceFlags: 0,
  };
  return { name, span: trace.wrapSpanContext(context), context, recording: false };
}

/** Never throws. Call it after the tracer plugin has started. */
export function openSpanTracer() {
  let tracer: Tracer;
  const open = <Name extends SpanName>(
    name: Name,
    { startedAtMs, parent, links }: SpanStart,
  ): OpenSpan<Name> => {
    tracer ??= trace.getTracer('gateway', VERSION);
    const options: SpanOptions = { kind: KINDS[spans[name].kind], startTime: startedAtMs };
    if (links !== undefined) options.links = links.map((it): Link => ({ context: it }));
    // The active context is empty, but some tracers find parents only in their own contexts.
    const from = context.active();
    const span = tracer.startSpan(
      name,
      options,
      parent === undefined
        ? from
        : 'span' in parent
          ? trace.setSpan(from, parent.span)
          : trace.setSpanContext(from, parent),
    );
    const made = span.spanContext();
    if (typeof made.traceId !== 'string' || typeof made.spanId !== 'string')
      throw new Error('the tracer made a span without an id');
    return { name, span, context: made, recording: span.isRecording() };
  };
  return {
    start<Name extends SpanName>(name: Name, given: SpanStart): OpenSpan<Name> {
      try {
        return guarded(() => open(name, given));
      } catch (error) {
        failed(error);
        return lostSpan(name, given.parent);
      }
    },
  };
}

/** Never throws. Callers should check `recording` before they build the attributes. */
export function endSpan<Name extends SpanName>(
  { span }: OpenSpan<Name>,
  { attributes, endedAtMs, error }: SpanEnd<Name>,
): void {
  try {
    guarded(() => {
      span.setAttributes(attributes);
      if (error) {
        const { type, sentence, told } = error;
        span.setAttribute('error.type', type);
        span.setStatus({ code: SpanStatusCode.ERROR, message: sentence });
        if (!told) span.recordException({ name: type, message: sentence }, endedAtMs);
      }
      span.end(endedAtMs);
    });
  } catch (thrown) {
    failed(thrown);
  }
}
