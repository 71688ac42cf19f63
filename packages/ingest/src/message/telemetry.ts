import { needsMatching } from '@gateway/core/routing';
import {
  carryTrace,
  creationErrorSpan,
  creationSpan,
  dropTrace,
  endSpan,
  isSampled,
  type OpenSpan,
  type SpanError,
  type SpanTracer,
  traceContextOf,
} from '@gateway/core/tracing';
import type { Message, Outcome } from '@gateway/plugin';
import type { NewEvent } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { IngestSource } from './ingest-source.js';
import { type RejectCode, rejectCodes } from '../validate/reject-codes.js';

/** Times are on the monotonic clock. */
export interface IngestMeasure {
  step(name: 'throttle' | 'route' | 'commit', sinceMs: number, untilMs?: number): void;
  batch(name: 'route' | 'commit', size: number): void;
  transformed(source: IngestSource, size: number, sinceMs: number): void;
  overran(source: IngestSource): void;
  quarantined(messages: readonly QuarantinedMessage[]): void;
  settled(source: IngestSource, outcome: Outcome, receivedAtMs: number): void;
}

/** These differ from the source type: https://opentelemetry.io/docs/specs/semconv/messaging/ */
const SYSTEMS: Readonly<Record<string, string>> = { sqs: 'aws_sqs' };

type CreationSpan = OpenSpan<ReturnType<typeof creationSpan>>;
type TracedEvent = Pick<NewEvent, 'id' | 'eventType' | 'messageType' | 'endpointId' | 'ownerId'> & {
  readonly headers: Record<string, string>;
};
/** A span or, if not recorded, the trace context of the message's producer. */
type Root =
  | { readonly open: OpenSpan<'ingest.message'> }
  | { readonly open?: undefined; readonly passedOn?: OpenSpan['context'] };
/** The trace would start here but is not recorded, and so not propagated. */
const UNRECORDED: Root = {};

/**
 * Spans start once the message is decided: its trace context may be unknown before, and a message
 * returned to its broker leaves no trace.
 */
export class MessageTrace {
  readonly #receivedAtMs = Date.now();
  #throttledUntilMs: number | undefined;
  #transformingAtMs: number | undefined;
  #transform:
    | { readonly endedAtMs: number; readonly outcome: string; readonly code: string | undefined }
    | undefined;
  #root: Root | undefined;
  #creations: { readonly span: CreationSpan; readonly event: TracedEvent }[] | undefined;

  constructor(
    private readonly tracer: SpanTracer,
    private readonly source: IngestSource,
    private readonly message: Message,
  ) {}

  throttled(): void {
    this.#throttledUntilMs = Date.now();
  }

  transforming(): void {
    this.#transformingAtMs = Date.now();
  }

  transformed(outcome: string, code: string | undefined): void {
    this.#transform = { endedAtMs: Date.now(), outcome, code };
  }

  /** Adds the trace context to the headers of an event about to be committed. */
  creating(event: TracedEvent): void {
    const { headers } = event;
    const root = this.#started(headers);
    const { open } = root;
    if (!open) return root.passedOn ? carryTrace(headers, root.passedOn) : dropTrace(headers);
    const span = this.tracer.start(creationSpan(needsMatching(event)), {
      startedAtMs: Date.now(),
      parent: open,
    });
    carryTrace(headers, span.context);
    (this.#creations ??= []).push({ span, event });
  }

  /** Called after the commit. Spans of duplicates are never ended and so never exported. */
  committed(quarantined: QuarantinedMessage | null, created: ReadonlySet<string>): void {
    if (quarantined) return this.#refused(quarantined);
    if (!this.#creations) return;
    const endedAtMs = Date.now();
    for (const { span, event } of this.#creations) {
      if (!created.has(event.id)) continue;
      endSpan(span, {
        attributes: {
          ...this.#place(),
          'gateway.event': event.id,
          'gateway.event_type': event.eventType,
        },
        endedAtMs,
      });
    }
  }

  settled(outcome: Outcome): void {
    if (outcome === 'later') return;
    const { open } = this.#started();
    if (!open) return;
    this.#steps(open);
    const { type } = this.source;
    const attributes = {
      ...this.#place(),
      'gateway.coordinates': this.message.coordinates,
      'gateway.outcome': outcome,
      ...(type !== undefined && { 'messaging.system': SYSTEMS[type] ?? type }),
      'messaging.operation.name': 'process',
      'messaging.operation.type': 'process',
      'messaging.message.body.size': this.message.body.byteLength,
    };
    endSpan(open, { attributes, endedAtMs: Date.now() });
  }

  #refused({ code }: QuarantinedMessage): void {
    const { open } = this.#started();
    if (!open) return;
    const event = this.#creations?.[0]?.event;
    const name = creationErrorSpan(event !== undefined && needsMatching(event));
    const span = this.tracer.start(name, { startedAtMs: this.#receivedAtMs, parent: open });
    const attributes = {
      ...this.#place(),
      'gateway.coordinates': this.message.coordinates,
      ...(event && { 'gateway.event_type': event.eventType }),
      'gateway.code': code,
    };
    endSpan(span, { attributes, endedAtMs: Date.now(), error: refusalError(code) });
  }

  /** @param headers may contain the trace context of a producer that sends no message headers */
  #started(headers?: Readonly<Record<string, string>>): Root {
    if (this.#root) return this.#root;
    const parent = traceContextOf(this.message.headers) ?? (headers && traceContextOf(headers));
    if (parent && !isSampled(parent)) return (this.#root = { passedOn: parent });
    const open = this.tracer.start('ingest.message', { startedAtMs: this.#receivedAtMs, parent });
    if (open.recording) return (this.#root = { open });
    return (this.#root = parent ? { passedOn: open.context } : UNRECORDED);
  }

  #steps(parent: OpenSpan): void {
    const attributes = this.#place();
    if (this.#throttledUntilMs !== undefined && this.#throttledUntilMs > this.#receivedAtMs) {
      const span = this.tracer.start('ingest.throttle', {
        startedAtMs: this.#receivedAtMs,
        parent,
      });
      endSpan(span, { attributes, endedAtMs: this.#throttledUntilMs });
    }
    if (this.#transformingAtMs === undefined || !this.#transform) return;
    const { endedAtMs, outcome, code } = this.#transform;
    const span = this.tracer.start('ingest.transform', {
      startedAtMs: this.#transformingAtMs,
      parent,
    });
    endSpan(span, {
      attributes: {
        ...attributes,
        'gateway.outcome': outcome,
        ...(code === undefined ? {} : { 'gateway.code': code }),
      },
      endedAtMs,
      ...(code === undefined ? {} : { error: { ...refusalError(code), told: true } }),
    });
  }

  #place() {
    return { 'gateway.project': this.source.projectId, 'gateway.source': this.source.id };
  }
}

/** Without the reason, which may quote the function or the message. */
function refusalError(code: string): SpanError {
  return { type: code, sentence: rejectCodes[code as RejectCode] ?? 'The message was refused.' };
}
