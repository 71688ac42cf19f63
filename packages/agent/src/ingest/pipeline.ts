import { clampTime, eventId } from '@gateway/core/events';
import type { Handle, Message, Outcome } from '@gateway/plugin';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { EventWriter, ReadyEvent, ReadyMessage } from '../commit/event-writer.js';
import { travellingHeaders } from '@gateway/core/events';
import { checkNesting, decodeMessage, parseIngestMessage, type IngestMessage } from './parse-message.js';
import type { Rejection } from '../model/reject-codes.js';
import type { IngestSource } from '../model/ingest-source.js';
import type { Measure } from '../telemetry/measure.js';
import type { Throttle } from './throttle.js';
import type { MessageTrace } from '../telemetry/trace-message.js';
import type { Tracing } from '../telemetry/tracing.js';
import type { Transformer, Transformed } from './transformer.js';

/** A message on its way from its broker to the commit. */
export interface IncomingMessage {
  readonly source: IngestSource;
  readonly message: Message;
  /** When its source handed it over, by the monotonic clock; 0 while that is not measured. */
  readonly receivedAtMs: number;
  readonly settle: (outcome: Outcome) => void;
  readonly trace: MessageTrace | undefined;
}

export interface PipelineOptions {
  readonly throttle: Pick<Throttle, 'unlimited' | 'take'>;
  readonly transformer: Transformer;
  readonly eventWriter: Pick<EventWriter, 'push'>;
  readonly maxMessageBytes: number;
  readonly measure?: Pick<Measure, 'settled' | 'step'> | undefined;
  readonly tracing?: Pick<Tracing, 'received'> | undefined;
}

/** Messages looked at in one turn of the event loop, so that sending goes on in between. */
const TURN_MAX = 100;

/** The first half of the way: throttle → transform → validate → accept. */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #stop = new AbortController();
  #waiting: IncomingMessage[] = [];
  #running = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** The `handle` of a source: `current` gives the source as it is at the moment of each message. */
  handle(current: () => IngestSource): Handle {
    return (message) =>
      new Promise((resolve) => {
        const source = current();
        const { measure, tracing } = this.#options;
        const trace = tracing?.received(source, message);
        const receivedAtMs = measure ? performance.now() : 0;
        const settle = (outcome: Outcome) => {
          measure?.settled(source, outcome, receivedAtMs);
          trace?.settled(outcome);
          resolve(outcome);
        };
        if (this.#stop.signal.aborted) return settle('later');
        this.#waiting.push({ source, message, receivedAtMs, settle, trace });
        if (!this.#running) void this.#run();
      });
  }

  /** Settles what has not passed the throttle as `later`; what has passed goes on to its commit. */
  stop(): void {
    this.#stop.abort();
    for (const incoming of this.#waiting.splice(0)) incoming.settle('later');
  }

  async #run(): Promise<void> {
    this.#running = true;
    // Whatever the plugin hands over in this turn is there before the first batch is taken.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const wanted = Math.min(this.#waiting.length, TURN_MAX);
      const granted = this.#options.throttle.unlimited ? wanted : await this.#options.throttle.take(wanted, this.#stop.signal);
      if (granted === 0) break;
      // The one that has waited longest stands for its batch.
      this.#options.measure?.step('throttle', this.#waiting[0]?.receivedAtMs ?? performance.now());
      for (const incoming of this.#waiting.splice(0, granted)) {
        if (!this.#options.throttle.unlimited) incoming.trace?.throttled();
        this.#pass(incoming);
      }
      if (this.#waiting.length > 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#running = false;
  }

  #pass(incoming: IncomingMessage): void {
    const { source, message } = incoming;
    const text = decodeMessage(message.body, this.#options.maxMessageBytes);
    if (typeof text !== 'string') this.#refuse(incoming, text);
    else if (source.bodyFunction === null) this.#accept(incoming, [parseIngestMessage(text)]);
    else {
      const tooDeep = checkNesting(text);
      if (tooDeep) this.#refuse(incoming, tooDeep);
      else {
        incoming.trace?.transforming();
        this.#options.transformer.push(source, source.bodyFunction, text, (transformed) => this.#transformed(incoming, transformed));
      }
    }
  }

  #transformed(incoming: IncomingMessage, transformed: Transformed): void {
    if (transformed.kind === 'changed') return this.#pass({ ...incoming, source: transformed.source });
    incoming.trace?.transformed(transformed);
    switch (transformed.kind) {
      case 'messages':
        return this.#accept(incoming, transformed.messages);
      case 'dropped':
        return incoming.settle('dropped');
      case 'refused':
        return this.#refuse(incoming, transformed.refusal);
      case 'stopped':
        return incoming.settle('later');
    }
  }

  /** One bad event among several of a message refuses the message: half of a decision would be hard to explain. */
  #accept(incoming: IncomingMessage, messages: readonly (IngestMessage | Rejection)[]): void {
    const events: ReturnType<typeof readyEvent>[] = [];
    for (const [ordinal, message] of messages.entries()) {
      if ('code' in message)
        return this.#refuse(
          incoming,
          messages.length === 1 ? message : { ...message, reason: `Result ${ordinal + 1} of ${messages.length}: ${message.reason}` },
        );
      events.push(readyEvent(incoming, message, ordinal));
    }
    if (events.length === 0) return incoming.settle('dropped');
    if (incoming.trace) for (const event of events) incoming.trace.creating(event);
    this.#options.eventWriter.push({ events, quarantined: null, ...this.#ends(incoming) });
  }

  #refuse(incoming: IncomingMessage, refusal: Rejection): void {
    this.#options.eventWriter.push({ events: [], quarantined: quarantinedMessage(incoming, refusal), ...this.#ends(incoming) });
  }

  #ends(incoming: IncomingMessage): Pick<ReadyMessage, 'refuse' | 'settle' | 'trace'> {
    const { settle, trace } = incoming;
    return { refuse: (reason) => quarantinedMessage(incoming, { code: 'database_refused', reason }), settle, trace };
  }
}

function readyEvent(
  { source, message }: IncomingMessage,
  ingest: IngestMessage,
  ordinal: number,
): ReadyEvent & { readonly headers: Record<string, string> } {
  const occurredAtMs = clampTime(message.timestamp);
  return {
    projectId: source.projectId,
    id: eventId(source.id, message.coordinates, occurredAtMs, ordinal),
    occurredAtMs,
    sourceId: source.id,
    coordinates: message.coordinates,
    eventType: ingest.eventType,
    messageType: ingest.messageType,
    endpointId: ingest.endpointId,
    ownerId: ingest.ownerId,
    idempotencyKey: ingest.idempotencyKey,
    headers: travellingHeaders(message.headers, ingest.customHeaders),
    data: ingest.data,
  };
}

function quarantinedMessage({ source, message }: IncomingMessage, refusal: Rejection): QuarantinedMessage {
  const occurredAtMs = clampTime(message.timestamp);
  return {
    projectId: source.projectId,
    id: eventId(source.id, message.coordinates, occurredAtMs),
    sourceId: source.id,
    occurredAtMs,
    coordinates: message.coordinates,
    code: refusal.code,
    reason: refusal.reason,
    headers: JSON.stringify(message.headers),
    raw: message.body,
  };
}
