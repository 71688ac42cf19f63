import { clampTime, eventId, messageDigest, travellingHeaders } from '@gateway/core/events';
import { inSlices } from '@gateway/core/process';
import type { Handle, Message, Outcome } from '@gateway/plugin';
import { keptParts, type KeptMessage } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import { TokenBuckets, type TokenBucketsOptions } from '../flow-control/rate-limits.js';
import type { AgentContext } from '../config/agent-context.js';
import type { EventWriter, ReadyMessage } from '../commit/event-writer.js';
import type { ReadyEvent } from '../model/delivery.js';
import { unknownEventType, type IngestSource, type Rejection } from '../model/ingest.js';
import { ProjectQueues } from '../model/project-queues.js';
import type { MessageTrace } from '../telemetry/trace-message.js';
import { checkNesting, decodeMessage, type IngestMessage, parseIngestMessage } from './parse-message.js';
import type { Transformed, Transformer } from './transformer.js';

export interface PipelineOptions extends Pick<AgentContext, 'measure' | 'tracing'> {
  readonly throttle: Pick<Throttle, 'unlimited' | 'take'>;
  readonly transformer: Transformer;
  readonly eventWriter: Pick<EventWriter, 'push'>;
  readonly maxMessageBytes: number;
  /** False for an event type that the project rejects. */
  readonly accepts?: (projectId: string, eventType: string) => boolean;
}

/** Messages handled in one turn of the event loop at most, so that deliveries go on in between; fewer when they are large. */
const TURN_MAX = 100;

/** Takes the messages of sources at the ingest rate, projects in turn, transforms and parses them, and passes them to the event writer. */
export class Pipeline {
  readonly #stop = new AbortController();
  readonly #waiting = new ProjectQueues<IncomingMessage>();
  #running = false;

  constructor(private readonly options: PipelineOptions) {}

  /** The `handle` of a source: `current` gives the source as it is when a message comes. */
  handle(current: () => IngestSource): Handle {
    return (message) =>
      new Promise((resolve) => {
        const incoming = new IncomingMessage(current(), message, this.options, resolve);
        if (this.#stop.signal.aborted) return incoming.settle('later');
        this.#waiting.push(incoming);
        if (!this.#running) void this.#run();
      });
  }

  /** Settles what has not passed the throttle as `later`; the rest goes on to its commit. */
  stop(): void {
    this.#stop.abort();
    for (const incoming of this.#waiting.take(Infinity)) incoming.settle('later');
  }

  async #run(): Promise<void> {
    const { throttle, measure } = this.options;
    this.#running = true;
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.size > 0) {
      const wanted = Math.min(this.#waiting.size, TURN_MAX);
      const granted = throttle.unlimited ? wanted : await throttle.take(wanted, this.#stop.signal);
      if (granted === 0) break;
      const passing = this.#waiting.take(granted);
      measure?.step('throttle', passing[0]?.receivedAtMs ?? performance.now());
      await inSlices(this.#passAll(passing));
      if (this.#waiting.size > 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#running = false;
  }

  *#passAll(passing: readonly IncomingMessage[]): Generator<void, void> {
    for (const incoming of passing) {
      if (!this.options.throttle.unlimited) incoming.trace?.throttled();
      this.#pass(incoming);
      yield;
    }
  }

  #pass(incoming: IncomingMessage): void {
    const { source, message, trace } = incoming;
    const { bodyFunction } = source;
    const { maxMessageBytes, transformer } = this.options;
    const text = decodeMessage(message.body, maxMessageBytes);
    if (typeof text === 'string') {
      if (bodyFunction === null) return this.#accept(incoming, [parseIngestMessage(text)]);
      const tooDeep = checkNesting(text);
      if (tooDeep) return this.#reject(incoming, tooDeep);
    } else if (bodyFunction === null || text.code !== 'not_utf8') return this.#reject(incoming, text);
    trace?.transforming();
    transformer.push(source, bodyFunction, typeof text === 'string' ? text : message.body, (transformed) =>
      this.#transformed(incoming, transformed),
    );
  }

  #transformed(incoming: IncomingMessage, transformed: Transformed): Promise<void> | void {
    if (transformed.kind === 'changed') {
      incoming.source = transformed.source;
      return this.#pass(incoming);
    }
    incoming.trace?.transformed(transformed.kind, transformed.kind === 'refused' ? transformed.rejection.code : undefined);
    switch (transformed.kind) {
      case 'messages': {
        const settled = incoming.whenSettled();
        this.#accept(incoming, transformed.messages);
        return settled;
      }
      case 'dropped':
        return incoming.settle('dropped');
      case 'refused':
        return this.#reject(incoming, transformed.rejection);
      case 'stopped':
        return incoming.settle('later');
    }
  }

  #accept(incoming: IncomingMessage, messages: readonly (IngestMessage | Rejection)[]): void {
    if (messages.length === 0) return incoming.settle('dropped');
    incoming.accept(messages);
    this.options.eventWriter.push(incoming);
  }

  #reject(incoming: IncomingMessage, rejection: Rejection): void {
    incoming.reject(rejection);
    this.options.eventWriter.push(incoming);
  }
}

/** A message from its source until it is settled. It gets either events or a rejection, and is then committed. */
export class IncomingMessage implements ReadyMessage {
  readonly trace: MessageTrace | undefined;
  /** When its source handed it over, by the monotonic clock; 0 if metrics are off. */
  readonly receivedAtMs: number;
  events: readonly ReadyEvent[] = [];
  quarantined: QuarantinedMessage | null = null;
  kept: KeptMessage | null = null;
  #messageDigest: string | undefined;
  #onSettled: (() => void) | undefined;

  /**
   * @param source as it is now: its function may change before it has run
   * @param settled is called exactly once, with the outcome
   */
  constructor(
    public source: IngestSource,
    readonly message: Message,
    private readonly options: PipelineOptions,
    private readonly settled: (outcome: Outcome) => void,
  ) {
    this.trace = options.tracing?.received(source, message);
    this.receivedAtMs = options.measure ? performance.now() : 0;
  }

  get projectId(): string {
    return this.source.projectId;
  }

  whenSettled(): Promise<void> {
    return new Promise((resolve) => (this.#onSettled = resolve));
  }

  settle(outcome: Outcome): void {
    this.options.measure?.settled(this.source, outcome, this.receivedAtMs);
    this.trace?.settled(outcome);
    this.settled(outcome);
    this.#onSettled?.();
  }

  /** Makes the events of the parsed messages. One that is rejected rejects all: a decision about half of a message would be hard to explain. */
  accept(parsed: readonly (IngestMessage | Rejection)[]): void {
    const events: (ReadyEvent & { readonly headers: Record<string, string> })[] = [];
    for (const [ordinal, one] of parsed.entries()) {
      const refusal = this.#refusalOf(one);
      if (refusal) {
        const reason = parsed.length === 1 ? refusal.reason : `Result ${ordinal + 1} of ${parsed.length}: ${refusal.reason}`;
        return this.reject({ code: refusal.code, reason });
      }
      events.push(this.#event(one as IngestMessage, ordinal));
    }
    if (this.trace) for (const event of events) this.trace.creating(event);
    this.events = events;
    if (this.source.keepsMessages) this.kept = this.#keep();
  }

  #keep(): KeptMessage {
    const { source, message } = this;
    const occurredAtMs = clampTime(message.timestamp);
    const id = eventId(source.id, message.coordinates, occurredAtMs);
    return { projectId: source.projectId, id, occurredAtMs, digest: this.#digest, ...keptParts(message) };
  }

  #refusalOf(one: IngestMessage | Rejection): Rejection | undefined {
    if ('code' in one) return one;
    return this.options.accepts?.(this.projectId, one.eventType) === false ? unknownEventType(one.eventType) : undefined;
  }

  reject({ code, reason }: Rejection): void {
    const { source, message } = this;
    const occurredAtMs = clampTime(message.timestamp);
    this.events = [];
    this.kept = null;
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

  distinguish(ids: ReadonlySet<string>): void {
    const { source, message } = this;
    const occurredAtMs = clampTime(message.timestamp);
    const idOf = (ordinal: number) => eventId(source.id, message.coordinates, occurredAtMs, ordinal, this.#digest);
    this.events = this.events.flatMap((event, ordinal) => (ids.has(event.id) ? [{ ...event, id: idOf(ordinal) }] : []));
    if (this.quarantined) this.quarantined = { ...this.quarantined, id: idOf(0) };
    if (this.kept) this.kept = { ...this.kept, id: idOf(0) };
  }

  /** Computed once: a message may become several events. */
  get #digest(): string {
    return (this.#messageDigest ??= messageDigest(this.message.body));
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
      digest: this.#digest,
      eventType: parsed.eventType,
      messageType: parsed.messageType,
      endpointId: parsed.endpointId,
      ownerId: parsed.ownerId,
      idempotencyKey: parsed.idempotencyKey,
      headers: travellingHeaders(message.headers, parsed.customHeaders),
      notes: parsed.notes,
      data: parsed.data,
    };
  }
}

export interface ThrottleOptions extends TokenBucketsOptions, Pick<AgentContext, 'log'> {
  /** Messages a second; 0: unlimited. */
  readonly ratePerSecond: number;
}

/** The ingest rate of the whole instance. All agents take from one bucket in KV; while KV is away each keeps to its share. It delays messages, and loses none. */
export class Throttle {
  readonly #buckets: TokenBuckets;

  constructor(private readonly options: ThrottleOptions) {
    this.#buckets = new TokenBuckets(options);
  }

  get unlimited(): boolean {
    return this.options.ratePerSecond === 0;
  }

  /** Waits until at least one of the wanted messages may pass, and resolves with how many; 0 if the signal aborts. */
  async take(wanted: number, signal: AbortSignal): Promise<number> {
    const { log, ratePerSecond } = this.options;
    if (this.unlimited) return wanted;
    const warn = (error: unknown) => log.warn({ error }, 'KV is away: this agent keeps to its own share of instance_ingest_rate.');
    while (!signal.aborted) {
      const { granted, waitMs } = await this.#buckets.take('ingest', ratePerSecond, wanted, ratePerSecond, warn);
      if (granted > 0) return granted;
      await new Promise<void>((resolve) => setTimeout(resolve, Math.min(Math.max(waitMs, 5), 250)));
    }
    return 0;
  }
}
