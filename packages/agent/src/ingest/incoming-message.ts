import { clampTime, eventId, travellingHeaders } from '@gateway/core/events';
import type { Message, Outcome } from '@gateway/plugin';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { ReadyMessage } from '../commit/event-writer.js';
import type { ReadyEvent } from '../model/delivery.js';
import type { IngestSource } from '../model/ingest-source.js';
import type { Rejection } from '../model/reject-codes.js';
import type { Measure } from '../telemetry/measure.js';
import type { MessageTrace } from '../telemetry/trace-message.js';
import type { IngestMessage } from './parse-message.js';

/** A message from its source until it is settled. It gets either events or a rejection, and is then committed. */
export class IncomingMessage implements ReadyMessage {
  /** As it is now: its function may change before it has run. */
  source: IngestSource;
  readonly message: Message;
  readonly trace: MessageTrace | undefined;
  /** When its source handed it over, by the monotonic clock; 0 if metrics are off. */
  readonly receivedAtMs: number;
  events: readonly ReadyEvent[] = [];
  quarantined: QuarantinedMessage | null = null;
  readonly #measure: Pick<Measure, 'settled'> | undefined;
  readonly #settled: (outcome: Outcome) => void;

  /** @param settled is called exactly once, with the outcome */
  constructor(
    source: IngestSource,
    message: Message,
    { measure, trace }: { readonly measure: Pick<Measure, 'settled'> | undefined; readonly trace: MessageTrace | undefined },
    settled: (outcome: Outcome) => void,
  ) {
    this.source = source;
    this.message = message;
    this.trace = trace;
    this.receivedAtMs = measure ? performance.now() : 0;
    this.#measure = measure;
    this.#settled = settled;
  }

  settle(outcome: Outcome): void {
    this.#measure?.settled(this.source, outcome, this.receivedAtMs);
    this.trace?.settled(outcome);
    this.#settled(outcome);
  }

  /** Makes the events of the parsed messages. One that is rejected rejects all: a decision about half of a message would be hard to explain. */
  accept(parsed: readonly (IngestMessage | Rejection)[]): void {
    const events: (ReadyEvent & { readonly headers: Record<string, string> })[] = [];
    for (const [ordinal, one] of parsed.entries()) {
      if ('code' in one) {
        const reason = parsed.length === 1 ? one.reason : `Result ${ordinal + 1} of ${parsed.length}: ${one.reason}`;
        return this.reject({ code: one.code, reason });
      }
      events.push(this.#event(one, ordinal));
    }
    if (this.trace) for (const event of events) this.trace.creating(event);
    this.events = events;
  }

  reject({ code, reason }: Rejection): void {
    const { source, message } = this;
    const occurredAtMs = clampTime(message.timestamp);
    this.events = [];
    this.quarantined = {
      projectId: source.projectId,
      id: eventId(source.id, message.coordinates, occurredAtMs),
      sourceId: source.id,
      occurredAtMs,
      coordinates: message.coordinates,
      code,
      reason,
      headers: JSON.stringify(message.headers),
      raw: message.body,
    };
  }

  #event(parsed: IngestMessage, ordinal: number): ReadyEvent & { readonly headers: Record<string, string> } {
    const { source, message } = this;
    const occurredAtMs = clampTime(message.timestamp);
    return {
      projectId: source.projectId,
      id: eventId(source.id, message.coordinates, occurredAtMs, ordinal),
      occurredAtMs,
      sourceId: source.id,
      coordinates: message.coordinates,
      eventType: parsed.eventType,
      messageType: parsed.messageType,
      endpointId: parsed.endpointId,
      ownerId: parsed.ownerId,
      idempotencyKey: parsed.idempotencyKey,
      headers: travellingHeaders(message.headers, parsed.customHeaders),
      data: parsed.data,
    };
  }
}
