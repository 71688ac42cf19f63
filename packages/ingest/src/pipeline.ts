import { inSlices, type LoopShares, type ProjectPace, ProjectQueues, ProjectTurns, workOfEvents } from '@gateway/core/process';
import type { Handle } from '@gateway/plugin';
import type { IngestMeasure } from './message/ingest-measure.js';
import type { IngestSource } from './message/ingest-source.js';
import { checkNesting, decodeMessage, type IngestMessage, parseIngestMessage, parseTransformOutput } from './message/parse-message.js';
import type { ReadyMessage } from './message/ready-message.js';
import type { Rejection } from './message/reject-codes.js';
import { SourceMessage, type SourceMessageOptions } from './message/source-message.js';
import type { Transformed, Transformer } from './transform/transformer.js';

export interface PipelineOptions extends SourceMessageOptions {
  /** The ingest rate. */
  readonly throttle: {
    readonly unlimited: boolean;
    /** Resolves with how many of the wanted messages may pass now: at least one, or 0 when the signal aborts. */
    take(wanted: number, signal: AbortSignal): Promise<number>;
  };
  readonly transformer: Pick<Transformer, 'push'>;
  /** Gets each message that is not dropped. */
  readonly eventWriter: { push(message: ReadyMessage): void };
  readonly maxMessageBytes: number;
  /** Messages of a project that is over its share wait before anything is done for them. */
  readonly pace: ProjectPace;
  readonly loopShares: LoopShares;
  readonly measure?: Pick<IngestMeasure, 'step' | 'settled'> | undefined;
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
  readonly #waiting = new ProjectQueues<SourceMessage>();
  #running = false;
  #wake: (() => void) | undefined;
  /** Results that are parsed in steps wait for each other: each of many at a time would take its part of every turn of the event loop. */
  readonly #parsing = new ProjectTurns();

  constructor(private readonly options: PipelineOptions) {}

  /** The `handle` of a source: `current` gives the source as it is when a message comes. */
  handle(current: () => IngestSource): Handle {
    return (message) =>
      new Promise((resolve) => {
        const incoming = new SourceMessage(current(), message, this.options, resolve);
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

  #mayPass(incoming: SourceMessage): boolean {
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

  *#passAll(passing: readonly SourceMessage[]): Generator<void, void> {
    const { loopShares } = this.options;
    for (const incoming of passing) {
      if (!this.options.throttle.unlimited) incoming.trace?.throttled();
      loopShares.run(incoming.projectId, () => this.#pass(incoming));
      yield;
    }
  }

  #pass(incoming: SourceMessage): void {
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

  #transformed(incoming: SourceMessage, transformed: Transformed): Promise<void> | void {
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

  #parse(incoming: SourceMessage, results: readonly string[]): void {
    if (results.length === 0) return incoming.settle('dropped');
    const characters = results.reduce((sum, { length }) => sum + length, 0);
    if (results.length <= RESULTS_AT_ONCE && characters <= CHARACTERS_AT_ONCE)
      return this.#acceptAll(incoming, results.map(parseTransformOutput));
    const { projectId } = incoming;
    const steps = this.#acceptInSteps(incoming, results);
    void this.#parsing.run(projectId, () => this.options.loopShares.runInSlices(projectId, steps));
  }

  #acceptAll(incoming: SourceMessage, messages: readonly (IngestMessage | Rejection)[]): void {
    for (const message of messages) if (!incoming.accept(message, messages.length)) break;
    this.options.eventWriter.push(incoming);
  }

  *#acceptInSteps(incoming: SourceMessage, results: readonly string[]): Generator<void, void> {
    for (const result of results) {
      if (!incoming.accept(parseTransformOutput(result), results.length)) break;
      yield;
    }
    this.options.eventWriter.push(incoming);
  }

  #reject(incoming: SourceMessage, rejection: Rejection): void {
    incoming.reject(rejection);
    this.options.eventWriter.push(incoming);
  }
}
