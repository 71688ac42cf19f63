import {
  clampTime,
  eventId,
  isPossibleTime,
  messageArgument,
  messageDigest,
  messageOf,
  storedMessage,
  travellingHeaders,
} from '@gateway/core/events';
import type { TokenBuckets } from '@gateway/core/process';
import type { Message, Outcome } from '@gateway/plugin';
import type { TransformResult } from '@gateway/sandbox';
import {
  type EventContent,
  keptParts,
  type KeptMessage,
  type NewEvent,
} from '@gateway/store/events';
import type { Decoded } from '../decode/text.js';
import { type Rejection, unknownEventType } from '../validate/reject-codes.js';
import type { IngestSource } from './ingest-source.js';
import { ReadyMessage, type Settle } from './ready-message.js';
import type { IngestMeasure, MessageTrace } from './telemetry.js';

export interface SourceMessageOptions {
  readonly pace: Pick<TokenBuckets, 'add'>;
  readonly accepts?: (projectId: string, eventType: string) => boolean;
  readonly measure?: Pick<IngestMeasure, 'settled'> | undefined;
  readonly tracing?: { received(source: IngestSource, message: Message): MessageTrace } | undefined;
}

/** From its delivery by the source until it is settled. Has either events or a rejection. */
export class SourceMessage extends ReadyMessage {
  readonly trace: MessageTrace | undefined;
  /** When the source delivered the message, on the monotonic clock; 0 if metrics are off. */
  readonly receivedAtMs: number;
  override events: NewEvent[] = [];
  occurredAtMs: number;
  /** The results of the function, or the decoded message, that the events are made of. */
  texts: readonly Decoded[] = [];
  /** Undefined unless its caller waits for a message whose function ran. */
  called: TransformResult | undefined;
  prepared: ((message: SourceMessage) => void) | undefined;
  /** It was settled as `later` because one before it was, although it is still worked on. */
  isLeft = false;
  #messageDigest: string | undefined;
  #storedMessage: string | null | undefined;
  #onSettled: (() => void) | undefined;

  /**
   * @param source the current source, whose function may change before it runs
   * @param settled called exactly once, with the outcome
   */
  constructor(
    public source: IngestSource,
    readonly message: Message,
    private readonly options: SourceMessageOptions,
    settled: Settle,
  ) {
    super(source.projectId, [], settled);
    this.trace = options.tracing?.received(source, message);
    this.receivedAtMs = options.measure ? performance.now() : 0;
    this.occurredAtMs = clampTime(message.timestamp);
    this.isUndated = !isPossibleTime(message.timestamp, Date.now());
  }

  whenSettled(): Promise<void> {
    return new Promise((resolve) => (this.#onSettled = resolve));
  }

  override settle(outcome: Outcome, creationOf?: Parameters<Settle>[1]): void {
    if (outcome === 'dropped') this.options.pace.add(this.projectId, -this.counted);
    this.options.measure?.settled(this.source, outcome, this.receivedAtMs);
    // The message's span ends last, after those of its events.
    if (creationOf && this.trace) {
      const created = this.events.filter((event) => !creationOf(event).duplicate);
      this.trace.committed(this.quarantined, new Set(created.map(({ id }) => id)));
    }
    this.trace?.settled(outcome);
    super.settle(outcome, creationOf);
    this.#onSettled?.();
  }

  /**
   * Called for what each of `texts` says. If an event is rejected, rejects the whole message and
   * returns false, because a partial decision would be hard to explain.
   */
  accept(parsed: EventContent | Rejection): boolean {
    const { events, trace } = this;
    const count = this.texts.length;
    const refusal = this.#refusalOf(parsed);
    if (refusal) {
      this.reject({
        code: refusal.code,
        reason:
          count === 1
            ? refusal.reason
            : `Result ${events.length + 1} of ${count}: ${refusal.reason}`,
      });
      return false;
    }
    events.push(this.#event(parsed as EventContent, events.length));
    if (events.length < count) return true;
    if (trace) for (const event of events) trace.creating(event);
    if (this.source.keepsMessages) this.kept = this.#keep();
    return true;
  }

  #keep(): KeptMessage {
    const { source, message, occurredAtMs } = this;
    return {
      projectId: source.projectId,
      id: this.#id(),
      occurredAtMs,
      digest: this.#digest,
      ...keptParts(message),
    };
  }

  #refusalOf(one: EventContent | Rejection): Rejection | undefined {
    if ('code' in one) return one;
    return this.options.accepts?.(this.projectId, one.eventType) === false
      ? unknownEventType(one.eventType)
      : undefined;
  }

  override reject(rejection: Rejection): void {
    super.reject(rejection);
    const { source, message, occurredAtMs } = this;
    this.kept = null;
    this.quarantined = {
      projectId: source.projectId,
      id: this.#id(),
      sourceId: source.id,
      occurredAtMs,
      coordinates: message.coordinates,
      ...rejection,
      headers: JSON.stringify(message.headers),
      message: this.#stored,
      raw: message.body,
    };
  }

  override date(arrivedAtMs: number | undefined): void {
    this.isUndated = false;
    if (arrivedAtMs === undefined) return;
    this.occurredAtMs = arrivedAtMs;
    const { timestamp } = this.message;
    const note =
      timestamp > 0
        ? `its broker gives the message the impossible time of ${timestamp} ms after 1970, so the time of its arrival is used`
        : 'its broker gives the message no time, so the time of its arrival is used';
    const dated = { id: this.#id(), occurredAtMs: arrivedAtMs };
    this.events = this.events.map((event, ordinal) => {
      const notes = JSON.stringify([...(JSON.parse(event.notes ?? '[]') as string[]), note]);
      return { ...event, id: this.#id(ordinal), occurredAtMs: arrivedAtMs, notes };
    });
    if (this.quarantined)
      this.quarantined = {
        ...this.quarantined,
        ...dated,
        reason: `${this.quarantined.reason} Note: ${note}.`,
      };
    if (this.kept) this.kept = { ...this.kept, ...dated };
  }

  #id(ordinal?: number): string {
    return eventId(this.source.id, this.message.coordinates, this.occurredAtMs, ordinal);
  }

  override distinguish(ids: ReadonlySet<string>): void {
    const { source, message, occurredAtMs } = this;
    const idOf = (ordinal: number) =>
      eventId(source.id, message.coordinates, occurredAtMs, ordinal, this.#digest);
    this.events = this.events.flatMap((event, ordinal) =>
      ids.has(event.id) ? [{ ...event, id: idOf(ordinal) }] : [],
    );
    if (this.quarantined) this.quarantined = { ...this.quarantined, id: idOf(0) };
    if (this.kept) this.kept = { ...this.kept, id: idOf(0) };
  }

  /** For a function that takes the message. */
  get argument(): string {
    const { source, message, occurredAtMs } = this;
    const { coordinates, headers } = message;
    const whole = messageOf({
      sourceId: source.id,
      coordinates,
      occurredAtMs,
      message: this.#stored,
    });
    return messageArgument(whole, headers);
  }

  get #stored(): string | null {
    if (this.#storedMessage === undefined) this.#storedMessage = storedMessage(this.message);
    return this.#storedMessage;
  }

  get #digest(): string {
    return (this.#messageDigest ??= messageDigest(this.message.body));
  }

  /** Two sources of a project can use the same keys, so a key includes the source's id. */
  #keyOf(ordinal: number): string | null {
    const { idempotencyKey: key } = this.message;
    if (!key) return null;
    return `${this.source.id}:${key}${ordinal === 0 ? '' : `:${ordinal}`}`;
  }

  #event(
    content: EventContent,
    ordinal: number,
  ): NewEvent & { readonly headers: Record<string, string> } {
    const { source, message, occurredAtMs } = this;
    return {
      projectId: source.projectId,
      id: this.#id(ordinal),
      occurredAtMs,
      sourceId: source.id,
      coordinates: message.coordinates,
      digest: this.#digest,
      eventType: content.eventType,
      messageType: content.messageType,
      endpointId: content.endpointId,
      ownerId: content.ownerId,
      idempotencyKey: content.idempotencyKey ?? this.#keyOf(ordinal),
      headers: travellingHeaders(message.headers, content.headers),
      message: this.#stored,
      notes: content.notes,
      data: content.data,
      status: 'pending',
      outcome: null,
    };
  }
}
