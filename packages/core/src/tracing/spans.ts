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

/** Names without `gateway.` are OpenTelemetry semantic conventions. */
export interface SpanAttribute {
  readonly meaning: string;
  /** Undefined means always. */
  readonly when?: string;
}

// prettier-ignore
export const spanAttributes = {
  'gateway.project': { meaning: 'Id of the project.' },
  'gateway.source': { meaning: 'Id of the source.', when: 'the event came from a source' },
  'gateway.coordinates': { meaning: 'Position of the message at its broker: topic, partition and offset in Kafka, the message id in SQS.', when: 'the event came from a source' },
  'gateway.event': { meaning: 'Id of the event.' },
  'gateway.event_type': { meaning: 'Event type.', when: 'the message could be parsed' },
  'gateway.event_delivery': { meaning: 'Id of the event delivery.' },
  'gateway.endpoint': { meaning: 'Id of the endpoint.' },
  'gateway.attempt': { meaning: 'Number of the attempt, from 1.' },
  'gateway.outcome': { meaning: 'The outcome. A message: `accepted`, `duplicate`, `dropped` or `quarantined`. A transform: `messages`, `dropped` or `refused`. Routing: `passed_on` to the other queue, `pending` after a failure, or [the outcome of the event](errors.md#outcomes-of-events). An attempt: the status of its delivery, `success`, `retry` or `failure`.' },
  'gateway.code': { meaning: 'Reason code of a quarantined message or an API error.', when: 'the reason has a code' },
  'gateway.queue': { meaning: 'The queue: `create-event`, `match-subscriptions`, or `reconciler` for an event whose signal was lost.' },
  'gateway.deliveries': { meaning: 'Number of event deliveries created.', when: 'the event was not passed on to the other queue' },
  'messaging.system': { meaning: 'The broker: `kafka`, `aws_sqs`, or the name of another source plugin.' },
  'messaging.operation.name': { meaning: '`process`.' },
  'messaging.operation.type': { meaning: '`process`.' },
  'messaging.message.body.size': { meaning: 'Bytes of the message.' },
  'http.request.method': { meaning: '`POST`.' },
  'http.response.status_code': { meaning: 'HTTP status of the response.', when: 'there was a response' },
  'server.address': { meaning: 'Host of the endpoint. The rest of its URL may be a secret and is omitted.', when: 'the URL can be read' },
  'server.port': { meaning: 'Port of the endpoint.', when: 'the URL can be read' },
  'error.type': { meaning: 'A quarantine code, an outcome, the HTTP status or error class of an attempt, or an error code of Postgres or the API.', when: 'the span failed' },
} as const satisfies Readonly<Record<string, SpanAttribute>>;

type SpanAttributeName = keyof typeof spanAttributes;

export interface SpanRow {
  readonly kind: 'internal' | 'client' | 'producer' | 'consumer';
  readonly summary: string;
  readonly attributes: readonly SpanAttributeName[];
}

/** In pipeline order. */
// prettier-ignore
export const spans = {
  'ingest.message': { kind: 'consumer',
    summary: 'A message, from reading to settling. Child of the producer\'s span, or the root of a new trace. A message that returns to its broker has no span.',
    attributes: ['gateway.project', 'gateway.source', 'gateway.coordinates', 'gateway.outcome', 'messaging.system', 'messaging.operation.name', 'messaging.operation.type', 'messaging.message.body.size'] },
  'ingest.throttle': { kind: 'internal',
    summary: 'The wait of a message for the ingest rate (`instance_ingest_rate`). No span at a rate of 0 or for waits under a millisecond.',
    attributes: ['gateway.project', 'gateway.source'] },
  'ingest.transform': { kind: 'internal',
    summary: 'A run of the transform function of the source, including the wait for the sandbox.',
    attributes: ['gateway.project', 'gateway.source', 'gateway.outcome', 'gateway.code', 'error.type'] },
  'event.creation.success': { kind: 'producer',
    summary: 'Creation of an event by source, endpoint id or owner id, or as a broadcast, until its commit. Parent of all later spans.',
    attributes: ['gateway.project', 'gateway.source', 'gateway.event', 'gateway.event_type'] },
  'event.creation.error': { kind: 'internal',
    summary: 'An event could not be created: its message was quarantined, or the API rejected it.',
    attributes: ['gateway.project', 'gateway.source', 'gateway.coordinates', 'gateway.event_type', 'gateway.code', 'error.type'] },
  'dynamic.event.creation.success': { kind: 'producer',
    summary: 'Creation of an event whose endpoints are found by matching subscriptions, until its commit. Parent of all later spans.',
    attributes: ['gateway.project', 'gateway.source', 'gateway.event', 'gateway.event_type'] },
  'dynamic.event.creation.error': { kind: 'internal',
    summary: 'An event whose endpoints are found by matching subscriptions could not be created.',
    attributes: ['gateway.project', 'gateway.source', 'gateway.coordinates', 'gateway.event_type', 'gateway.code', 'error.type'] },
  'event.routing': { kind: 'consumer',
    summary: 'An event in a queue, from its commit (or the previous queue) to the commit of its deliveries. An event routed by the agent that accepted it has no span.',
    attributes: ['gateway.project', 'gateway.event', 'gateway.event_type', 'gateway.queue', 'gateway.outcome', 'gateway.deliveries', 'error.type'] },
  'dynamic.event.subscription.matching.error': { kind: 'internal',
    summary: 'Matching an event with subscriptions failed.',
    attributes: ['gateway.project', 'gateway.event', 'gateway.event_type', 'gateway.queue', 'gateway.outcome', 'error.type'] },
  meta_event_delivery: { kind: 'client',
    summary: 'A delivery attempt. The `traceparent` header of its request refers to this span. A later attempt links to the previous one.',
    attributes: [
      'gateway.project', 'gateway.event', 'gateway.event_type', 'gateway.event_delivery', 'gateway.endpoint', 'gateway.attempt', 'gateway.outcome',
      'http.request.method', 'http.response.status_code', 'server.address', 'server.port', 'error.type',
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
