import {
  type LoopShares,
  ProjectTurns,
  type TokenBuckets,
  workOfEvents,
} from '@gateway/core/process';
import { Stage } from '@gateway/core/queue';
import type { Message, Outcome } from '@gateway/plugin';
import type { EventContent } from '@gateway/store/events';
import { decode } from './decode/decode.js';
import type { SourceCodec } from './decode/source-codec.js';
import type { Decoded, DecodedMessage } from './decode/text.js';
import type { IngestMeasure } from './message/telemetry.js';
import { ArrivalOrder } from './message/arrival-order.js';
import type { IngestSource } from './message/ingest-source.js';
import { closing, type ReadyMessage } from './message/ready-message.js';
import { SourceMessage, type SourceMessageOptions } from './message/source-message.js';
import type { Transformed, Transformer } from './transform/transformer.js';
import {
  checkNesting,
  parseIngestMessage,
  parseTransformOutput,
} from './validate/parse-message.js';
import { readingFailed, type Rejection } from './validate/reject-codes.js';

interface PipelineOptions extends SourceMessageOptions {
  readonly throttle: {
    readonly unlimited: boolean;
    /** At least 1, or 0 on abort. */
    take(wanted: number, signal: AbortSignal): Promise<number>;
  };
  readonly transformer: Pick<Transformer, 'push'>;
  readonly eventWriter: { push(message: ReadyMessage): void };
  readonly maxMessageBytes: number;
  /** Messages of a project over its pace wait before any work is done for them. */
  readonly pace: TokenBuckets;
  readonly loopShares: LoopShares;
  /** Its messages keep their order. */
  readonly isOrdered?: (projectId: string) => boolean;
  readonly measure?: Pick<IngestMeasure, 'step' | 'settled'> | undefined;
}

/** Per event-loop turn, except for a single larger message. Parsing them takes up to 2 ms. */
const TURN_BYTES_MAX = 64 * 1024;
/** Enforced by a minimum size of `MESSAGE_BYTES`. */
const TURN_MAX = 100;
const MESSAGE_BYTES = Math.floor(TURN_BYTES_MAX / TURN_MAX);
/** Projects waiting for their pace are checked at this interval. */
const LOOK_MS = 10;

/**
 * Function results, and their characters, that are parsed without yielding. Parsing them takes well
 * under 1 ms.
 */
const RESULTS_AT_ONCE = 16;
const CHARACTERS_AT_ONCE = 64 * 1024;

type Parse = (text: string, contentType?: string) => EventContent | Rejection;

/**
 * The way of a message to its commit: decode, transform, validate; then `eventWriter` routes and
 * commits its events. Projects take turns.
 */
export class Pipeline {
  readonly #stage: Stage<SourceMessage>;
  readonly #stop = new AbortController();
  /**
   * Granted by the throttle. Grants left unused because of a project's pace go to the next
   * messages.
   */
  #granted = 0;
  #isAsking = false;
  /** One multi-step parse at a time, because each takes part of every event-loop turn. */
  readonly #parsing = new ProjectTurns();
  readonly #order = new ArrivalOrder((message) => this.options.eventWriter.push(message));

  constructor(private readonly options: PipelineOptions) {
    this.#stage = new Stage<SourceMessage>({
      concurrency: 1,
      capacity: TURN_BYTES_MAX,
      sizeOf: ({ message }) => Math.max(MESSAGE_BYTES, message.body.byteLength),
      ownerOf: ({ projectId }) => projectId,
      gate: (incoming) => this.#waitMs(incoming),
      work: (passing) => {
        options.measure?.step('throttle', passing[0]!.receivedAtMs);
        for (const incoming of passing) {
          if (!options.throttle.unlimited) incoming.trace?.throttled();
          if (options.isOrdered?.(incoming.projectId) && !incoming.prepared)
            this.#order.enter(incoming);
          options.loopShares.run(incoming.projectId, () => this.#decode(incoming));
        }
        return Promise.resolve();
      },
      ended: (_, left) => {
        for (const incoming of left) incoming.settle('later');
      },
    });
  }

  /** `current` is called per message and returns the source at that time. */
  handle(current: () => IngestSource): (message: Message) => Promise<Outcome> {
    return (message) =>
      new Promise((resolve) =>
        this.#stage.push(new SourceMessage(current(), message, this.options, resolve)),
      );
  }

  /**
   * For a caller that waits and commits the message itself. Rejects if its function cannot be run.
   * A message that its function dropped has neither events nor a rejection.
   */
  prepare(source: IngestSource, message: Message): Promise<SourceMessage> {
    return new Promise((resolve, reject) => {
      const incoming = new SourceMessage(source, message, this.options, (outcome) =>
        outcome === 'dropped' ? resolve(incoming) : reject(closing()),
      );
      incoming.failed = reject;
      incoming.prepared = resolve;
      this.#stage.push(incoming);
    });
  }

  /** Messages that have not passed the throttle are settled as `later`. The others continue. */
  stop(): void {
    this.#stop.abort();
    this.#stage.stop();
  }

  #waitMs(incoming: SourceMessage): number {
    const { pace, loopShares, throttle } = this.options;
    const { projectId, message } = incoming;
    if (!throttle.unlimited && this.#granted === 0) {
      if (!this.#isAsking) void this.#askThrottle();
      return Infinity;
    }
    if (pace.isOver(projectId) || loopShares.isOver(projectId)) return LOOK_MS;
    if (!throttle.unlimited) this.#granted--;
    incoming.counted = workOfEvents(1, message.body.byteLength);
    pace.add(projectId, incoming.counted);
    return 0;
  }

  async #askThrottle(): Promise<void> {
    this.#isAsking = true;
    // Messages that pass in this turn must leave the queue first, so that they are not counted as
    // waiting.
    await Promise.resolve();
    this.#granted = await this.options.throttle.take(
      Math.min(this.#stage.waiting, TURN_MAX),
      this.#stop.signal,
    );
    this.#isAsking = false;
    this.#stage.wake();
  }

  #decode(incoming: SourceMessage): void {
    const { projectId, source, message } = incoming;
    const { maxMessageBytes, loopShares } = this.options;
    const maxBytes = source.maxMessageBytes ?? maxMessageBytes;
    if (source.codec) return this.#decodeBy(source.codec, incoming, maxBytes);
    const decoded = decode(message, maxBytes);
    if (typeof decoded !== 'object' || !('then' in decoded))
      return this.#transform(incoming, decoded);
    void decoded.then((it) => loopShares.run(projectId, () => this.#transform(incoming, it)));
  }

  #decodeBy(codec: SourceCodec, incoming: SourceMessage, maxBytes: number): void {
    const run = <T>(work: () => T) => this.options.loopShares.run(incoming.projectId, work);
    const isAwaited = incoming.prepared !== undefined;
    const decoded = codec.decode(incoming.message, { maxBytes, run, isAwaited });
    if (!(decoded instanceof Promise)) return this.#transform(incoming, decoded);
    void decoded.then(
      (it) =>
        it === undefined ? incoming.settle('later') : run(() => this.#transform(incoming, it)),
      (error: unknown) => incoming.failed!(error),
    );
  }

  #transform(incoming: SourceMessage, given: DecodedMessage): void {
    const { source, message, trace } = incoming;
    const { bodyFunction } = source;
    if (bodyFunction === null)
      return Array.isArray(given)
        ? this.#parse(incoming, given as readonly string[], parseIngestMessage)
        : this.#acceptAll(incoming, [given as Decoded], parseIngestMessage);
    const decoded = Array.isArray(given) ? `[${given.join(',')}]` : (given as Decoded);
    const refused = typeof decoded === 'string' ? checkNesting(decoded) : decoded;
    if (refused && refused.code !== 'not_utf8') return this.#reject(incoming, refused);
    trace?.transforming();
    this.options.transformer.push(
      source,
      bodyFunction,
      typeof decoded === 'string' ? decoded : message.body,
      (transformed, called) => {
        if (incoming.prepared) incoming.called = called;
        return this.#transformed(incoming, given, transformed);
      },
      incoming,
    );
  }

  #transformed(
    incoming: SourceMessage,
    decoded: DecodedMessage,
    transformed: Transformed,
  ): Promise<void> | void {
    if (incoming.isLeft) return;
    if (transformed.kind === 'changed') {
      incoming.source = transformed.source;
      return this.#transform(incoming, decoded);
    }
    incoming.trace?.transformed(
      transformed.kind,
      transformed.kind === 'refused' ? transformed.rejection.code : undefined,
    );
    switch (transformed.kind) {
      case 'results': {
        const settled = incoming.prepared ? undefined : incoming.whenSettled();
        this.#parse(incoming, transformed.results, parseTransformOutput);
        return settled;
      }
      case 'dropped':
        this.#order.leave(incoming);
        return incoming.settle('dropped');
      case 'refused':
        return this.#reject(incoming, transformed.rejection);
      case 'stopped':
        for (const behind of this.#order.cut(incoming)) {
          behind.isLeft = true;
          behind.settle('later');
        }
        return incoming.failed && transformed.error !== undefined
          ? incoming.failed(transformed.error)
          : incoming.settle('later');
    }
  }

  #parse(incoming: SourceMessage, results: readonly string[], parse: Parse): void {
    if (results.length === 0) {
      this.#order.leave(incoming);
      return incoming.settle('dropped');
    }
    const characters = results.reduce((sum, { length }) => sum + length, 0);
    if (results.length <= RESULTS_AT_ONCE && characters <= CHARACTERS_AT_ONCE)
      return this.#acceptAll(incoming, results, parse);
    const steps = this.#acceptInSteps(incoming, results, parse);
    const { projectId } = incoming;
    void this.#parsing.run(projectId, () => this.options.loopShares.runInSlices(projectId, steps));
  }

  #acceptAll(incoming: SourceMessage, texts: readonly Decoded[], parse: Parse): void {
    incoming.texts = texts;
    for (const text of texts) if (!this.#accept(incoming, text, parse)) break;
    this.#pass(incoming);
  }

  *#acceptInSteps(
    incoming: SourceMessage,
    results: readonly string[],
    parse: Parse,
  ): Generator<void, void> {
    incoming.texts = results;
    for (const result of results) {
      if (!this.#accept(incoming, result, parse)) break;
      yield;
    }
    this.#pass(incoming);
  }

  /**
   * A defect quarantines the message, because throwing it would end the process, which would then
   * receive the message again.
   */
  #accept(incoming: SourceMessage, text: Decoded, parse: Parse): boolean {
    try {
      const { contentType } = incoming.message;
      return incoming.accept(typeof text === 'string' ? parse(text, contentType) : text);
    } catch (defect) {
      incoming.reject(readingFailed(defect));
      return false;
    }
  }

  #reject(incoming: SourceMessage, rejection: Rejection): void {
    incoming.reject(rejection);
    this.#pass(incoming);
  }

  #pass(incoming: SourceMessage): void {
    if (!incoming.prepared) return incoming.isLeft ? undefined : this.#order.ready(incoming);
    // Its commit counts it, because nothing else did.
    incoming.counted = 0;
    incoming.prepared(incoming);
  }
}
