import { clampTime, eventId, isPossibleTime, messageDigest, travellingHeaders } from '@gateway/core/events';
import { inSlices, type LoopShares, type ProjectPace, ProjectQueues, ProjectTurns, workOfEvents } from '@gateway/core/process';
import type { Handle, Message, Outcome } from '@gateway/plugin';
import { keptParts, type KeptMessage } from '@gateway/store/events';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import { TokenBuckets, type TokenBucketsOptions } from '../flow-control/rate-limits.js';
import type { AgentContext } from '../config/agent-context.js';
import type { EventWriter, ReadyMessage } from '../commit/event-writer.js';
import type { ReadyEvent } from '../model/delivery.js';
import { unknownEventType, type IngestSource, type Rejection } from '../model/ingest.js';
import type { MessageTrace } from '../telemetry/trace-message.js';
import { checkNesting, decodeMessage, type IngestMessage, parseIngestMessage, parseTransformOutput } from './parse-message.js';
import type { Transformed, Transformer } from './transformer.js';

export interface PipelineOptions extends Pick<AgentContext, 'measure' | 'tracing'> {
  readonly throttle: Pick<Throttle, 'unlimited' | 'take'>;
  readonly transformer: Transformer;
  readonly eventWriter: Pick<EventWriter, 'push'>;
  readonly maxMessageBytes: number;
  /** Messages of a project that is over its share wait before anything is done for them. */
  readonly pace: ProjectPace;
  readonly loopShares: LoopShares;
  /** False for an event type that the project rejects. */
  readonly accepts?: (projectId: string, eventType: string) => boolean;
}

/** Messages handled in one turn of the event loop at most, and their bytes unless one has more, so that deliveries go on in between. */
const TURN_MAX = 100;
const TURN_BYTES_MAX = 64 * 1024;
/** How often projects that wait for their pace are looked at. */
const LOOK_MS = 10;

/** Results of a function, and their characters, that are parsed at once: a fraction of a millisecond. */
const RESULTS_AT_ONCE = 16;
const CHARACTERS_AT_ONCE = 64 * 1024;

/** Takes the messages of sources at the ingest rate, projects in turn, transforms and parses them, and passes them to the event writer. */
export class Pipeline {
  readonly #stop = new AbortController();
  readonly #waiting = new ProjectQueues<IncomingMessage>();
  #running = false;
  #wake: (() => void) | undefined;
  /** Results that are parsed in steps wait for each other: each of many at a time would take its part of every turn of the event loop. */
  readonly #parsing = new ProjectTurns();

  constructor(private readonly options: PipelineOptions) {}

  /** The `handle` of a source: `current` gives the source as it is when a message comes. */
  handle(current: () => IngestSource): Handle {
    return (message) =>
      new Promise((resolve) => {
        const incoming = new IncomingMessage(current(), message, this.options, resolve);
        if (this.#stop.signal.aborted) return incoming.settle('later');
        this.#waiting.push(incoming);
        if (!this.#running) void this.#run();
        else this.#wake?.();
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
    // What the throttle grants and the pace of projects leaves is for those that come next.
    let granted = 0;
    while (this.#waiting.size > 0) {
      const wanted = Math.min(this.#waiting.size, TURN_MAX);
      if (throttle.unlimited) granted = wanted;
      else if (granted === 0) granted = await throttle.take(wanted, this.#stop.signal);
      if (granted === 0) break;
      let bytes = 0;
      const passing = this.#waiting.take(granted, (incoming) => {
        const { byteLength } = incoming.message.body;
        if ((bytes > 0 && bytes + byteLength > TURN_BYTES_MAX) || !this.#mayPass(incoming)) return false;
        bytes += byteLength;
        return true;
      });
      granted -= passing.length;
      if (passing.length === 0) {
        await this.#anotherMessage();
        continue;
      }
      measure?.step('throttle', passing[0]!.receivedAtMs);
      await inSlices(this.#passAll(passing));
      if (this.#waiting.size > 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#running = false;
  }

  #mayPass(incoming: IncomingMessage): boolean {
    const { pace, loopShares } = this.options;
    const { projectId, message } = incoming;
    if (pace.isOver(projectId) || loopShares.isOver(projectId)) return false;
    incoming.counted = workOfEvents(1, message.body.byteLength);
    pace.add(projectId, incoming.counted);
    return true;
  }

  /** Resolves when a message comes, or a project may be within its pace again. */
  #anotherMessage(): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, LOOK_MS);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  *#passAll(passing: readonly IncomingMessage[]): Generator<void, void> {
    const { loopShares } = this.options;
    for (const incoming of passing) {
      if (!this.options.throttle.unlimited) incoming.trace?.throttled();
      loopShares.run(incoming.projectId, () => this.#pass(incoming));
      yield;
    }
  }

  #pass(incoming: IncomingMessage): void {
    const { source, message, trace } = incoming;
    const { bodyFunction } = source;
    const { maxMessageBytes, transformer } = this.options;
    const text = decodeMessage(message.body, maxMessageBytes);
    if (typeof text === 'string') {
      if (bodyFunction === null) return this.#acceptAll(incoming, [parseIngestMessage(text)]);
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
      case 'results': {
        const settled = incoming.whenSettled();
        this.#parse(incoming, transformed.results);
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

  #parse(incoming: IncomingMessage, results: readonly string[]): void {
    if (results.length === 0) return incoming.settle('dropped');
    const characters = results.reduce((sum, { length }) => sum + length, 0);
    if (results.length <= RESULTS_AT_ONCE && characters <= CHARACTERS_AT_ONCE)
      return this.#acceptAll(incoming, results.map(parseTransformOutput));
    const { projectId } = incoming;
    const steps = this.#acceptInSteps(incoming, results);
    void this.#parsing.run(projectId, () => this.options.loopShares.runInSlices(projectId, steps));
  }

  #acceptAll(incoming: IncomingMessage, messages: readonly (IngestMessage | Rejection)[]): void {
    for (const message of messages) if (!incoming.accept(message, messages.length)) break;
    this.options.eventWriter.push(incoming);
  }

  *#acceptInSteps(incoming: IncomingMessage, results: readonly string[]): Generator<void, void> {
    for (const result of results) {
      if (!incoming.accept(parseTransformOutput(result), results.length)) break;
      yield;
    }
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
  events: ReadyEvent[] = [];
  quarantined: QuarantinedMessage | null = null;
  kept: KeptMessage | null = null;
  counted = 0;
  occurredAtMs: number;
  isUndated: boolean;
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
    this.occurredAtMs = clampTime(message.timestamp);
    this.isUndated = !isPossibleTime(message.timestamp, Date.now());
  }

  get projectId(): string {
    return this.source.projectId;
  }

  whenSettled(): Promise<void> {
    return new Promise((resolve) => (this.#onSettled = resolve));
  }

  settle(outcome: Outcome): void {
    if (outcome === 'dropped') this.options.pace.add(this.projectId, -this.counted);
    this.options.measure?.settled(this.source, outcome, this.receivedAtMs);
    this.trace?.settled(outcome);
    this.settled(outcome);
    this.#onSettled?.();
  }

  /**
   * Makes the event of the next of `count` parsed messages. False when it is rejected, and all with it: a decision about half of a message would be hard to
   * explain.
   */
  accept(parsed: IngestMessage | Rejection, count: number): boolean {
    const { events, trace } = this;
    const refusal = this.#refusalOf(parsed);
    if (refusal) {
      this.reject({
        code: refusal.code,
        reason: count === 1 ? refusal.reason : `Result ${events.length + 1} of ${count}: ${refusal.reason}`,
      });
      return false;
    }
    events.push(this.#event(parsed as IngestMessage, events.length));
    if (events.length < count) return true;
    if (trace) for (const event of events) trace.creating(event);
    if (this.source.keepsMessages) this.kept = this.#keep();
    return true;
  }

  #keep(): KeptMessage {
    const { source, message, occurredAtMs } = this;
    return { projectId: source.projectId, id: this.#id(), occurredAtMs, digest: this.#digest, ...keptParts(message) };
  }

  #refusalOf(one: IngestMessage | Rejection): Rejection | undefined {
    if ('code' in one) return one;
    return this.options.accepts?.(this.projectId, one.eventType) === false ? unknownEventType(one.eventType) : undefined;
  }

  reject({ code, reason }: Rejection): void {
    const { source, message, occurredAtMs } = this;
    this.events = [];
    this.kept = null;
    this.quarantined = {
      projectId: source.projectId,
      id: this.#id(),
      sourceId: source.id,
      occurredAtMs,
      coordinates: message.coordinates,
      code,
      reason,
      headers: JSON.stringify(message.headers),
      raw: message.body,
    };
  }

  date(arrivedAtMs: number | undefined): void {
    this.isUndated = false;
    if (arrivedAtMs === undefined) return;
    this.occurredAtMs = arrivedAtMs;
    const { timestamp } = this.message;
    const note =
      timestamp > 0
        ? `its broker dates the message ${timestamp} ms after 1970, which cannot be, so its arrival dates it`
        : 'its broker gives the message no time, so its arrival dates it';
    const dated = { id: this.#id(), occurredAtMs: arrivedAtMs };
    this.events = this.events.map((event, ordinal) => {
      const notes = JSON.stringify([...(JSON.parse(event.notes ?? '[]') as string[]), note]);
      return { ...event, id: this.#id(ordinal), occurredAtMs: arrivedAtMs, notes };
    });
    if (this.quarantined) this.quarantined = { ...this.quarantined, ...dated, reason: `${this.quarantined.reason} Note: ${note}.` };
    if (this.kept) this.kept = { ...this.kept, ...dated };
  }

  #id(ordinal?: number): string {
    return eventId(this.source.id, this.message.coordinates, this.occurredAtMs, ordinal);
  }

  distinguish(ids: ReadonlySet<string>): void {
    const { source, message, occurredAtMs } = this;
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
    const { source, message, occurredAtMs } = this;
    return {
      projectId: source.projectId,
      id: this.#id(ordinal),
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
