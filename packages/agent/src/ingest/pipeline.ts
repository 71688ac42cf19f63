import type { Handle } from '@gateway/plugin';
import type { EventWriter } from '../commit/event-writer.js';
import type { IngestSource } from '../model/ingest-source.js';
import type { Rejection } from '../model/reject-codes.js';
import type { Measure } from '../telemetry/measure.js';
import type { Tracing } from '../telemetry/tracing.js';
import { IncomingMessage } from './incoming-message.js';
import { checkNesting, decodeMessage, parseIngestMessage, type IngestMessage } from './parse-message.js';
import type { Throttle } from './throttle.js';
import type { Transformed, Transformer } from './transformer.js';

export interface PipelineOptions {
  readonly throttle: Pick<Throttle, 'unlimited' | 'take'>;
  readonly transformer: Transformer;
  readonly eventWriter: Pick<EventWriter, 'push'>;
  readonly maxMessageBytes: number;
  readonly measure?: Pick<Measure, 'settled' | 'step'> | undefined;
  readonly tracing?: Pick<Tracing, 'received'> | undefined;
}

/** Messages handled in one turn of the event loop, so that deliveries go on in between. */
const TURN_MAX = 100;

/** Takes messages from their source to the event writer: throttle, transform, parse. */
export class Pipeline {
  readonly #options: PipelineOptions;
  readonly #stop = new AbortController();
  #waiting: IncomingMessage[] = [];
  #running = false;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** The `handle` of a source: `current` gives the source as it is when a message comes. */
  handle(current: () => IngestSource): Handle {
    return (message) =>
      new Promise((resolve) => {
        const { measure, tracing } = this.#options;
        const source = current();
        const incoming = new IncomingMessage(source, message, { measure, trace: tracing?.received(source, message) }, resolve);
        if (this.#stop.signal.aborted) return incoming.settle('later');
        this.#waiting.push(incoming);
        if (!this.#running) void this.#run();
      });
  }

  /** Settles what has not passed the throttle as `later`; the rest goes on to its commit. */
  stop(): void {
    this.#stop.abort();
    for (const incoming of this.#waiting.splice(0)) incoming.settle('later');
  }

  async #run(): Promise<void> {
    const { throttle, measure } = this.#options;
    this.#running = true;
    // Waits for whatever the plugin hands over in this turn.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0) {
      const wanted = Math.min(this.#waiting.length, TURN_MAX);
      const granted = throttle.unlimited ? wanted : await throttle.take(wanted, this.#stop.signal);
      if (granted === 0) break;
      // The message that has waited longest stands for its batch.
      measure?.step('throttle', this.#waiting[0]?.receivedAtMs ?? performance.now());
      for (const incoming of this.#waiting.splice(0, granted)) {
        if (!throttle.unlimited) incoming.trace?.throttled();
        this.#pass(incoming);
      }
      if (this.#waiting.length > 0) await new Promise((resolve) => setImmediate(resolve));
    }
    this.#running = false;
  }

  #pass(incoming: IncomingMessage): void {
    const { source, message, trace } = incoming;
    const { maxMessageBytes, transformer } = this.#options;
    const text = decodeMessage(message.body, maxMessageBytes);
    if (typeof text !== 'string') return this.#reject(incoming, text);
    if (source.bodyFunction === null) return this.#accept(incoming, [parseIngestMessage(text)]);
    const tooDeep = checkNesting(text);
    if (tooDeep) return this.#reject(incoming, tooDeep);
    trace?.transforming();
    transformer.push(source, source.bodyFunction, text, (transformed) => this.#transformed(incoming, transformed));
  }

  #transformed(incoming: IncomingMessage, transformed: Transformed): void {
    if (transformed.kind === 'changed') {
      incoming.source = transformed.source;
      return this.#pass(incoming);
    }
    incoming.trace?.transformed(transformed.kind, transformed.kind === 'refused' ? transformed.rejection.code : undefined);
    switch (transformed.kind) {
      case 'messages':
        return this.#accept(incoming, transformed.messages);
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
    this.#options.eventWriter.push(incoming);
  }

  #reject(incoming: IncomingMessage, rejection: Rejection): void {
    incoming.reject(rejection);
    this.#options.eventWriter.push(incoming);
  }
}
