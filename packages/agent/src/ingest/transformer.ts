import type { Config } from '@gateway/core/config';
import { backoffMs } from '@gateway/core/process';
import type { Sandbox, SandboxLimits, TransformResult } from '@gateway/sandbox';
import { createHash } from 'node:crypto';
import type { AgentContext } from '../config/agent-context.js';
import { type IngestSource, type Rejection } from '../model/ingest.js';
import { type IngestMessage, parseTransformOutput } from './parse-message.js';
import { isOverrun, type Overruns } from './pause-sources.js';

export type Transformed =
  | { readonly kind: 'messages'; readonly messages: readonly (IngestMessage | Rejection)[] }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly rejection: Rejection }
  /** The sandbox was closed or the source paused meanwhile: nothing is decided. */
  | { readonly kind: 'stopped' }
  /** The source has another function by now, or none: nothing is decided. This is the source as it is. */
  | { readonly kind: 'changed'; readonly source: IngestSource };

interface Call {
  readonly payload: string;
  readonly done: (transformed: Transformed) => void;
}

interface CallQueue {
  readonly key: string;
  readonly source: IngestSource;
  readonly text: string;
  calls: Call[];
  batches: number;
  isScheduled: boolean;
  /** Nothing runs until it is known whether the source is paused. */
  isHeld: boolean;
  /** The result of all its calls, once the source is paused or has another function. */
  ended: Transformed | undefined;
}

export interface TransformerOptions extends Pick<AgentContext, 'log' | 'measure'> {
  readonly sandbox: Pick<Sandbox, 'run'> & Partial<Pick<Sandbox, 'cancel'>>;
  /** Counts overruns; with `pause`, what to do about them. */
  readonly overruns?: Overruns;
  /** Pauses a source whose function overruns. True: it is paused, and `abandon` will be called; false: it is not, and its messages go on. */
  readonly pause?: (source: IngestSource, functionText: string, reason: string) => Promise<boolean>;
}

const STOPPED: Transformed = { kind: 'stopped' };

const BATCH_MAX = 256;
/** Batches of one source under way: enough that a child works while the results of the last batch are read. */
const BATCHES_MAX = 2;

/** Runs the functions of sources in the sandbox, in batches of the messages that have piled up per source. */
export class Transformer {
  readonly #queues = new Map<string, CallQueue>();
  readonly #keys = new WeakMap<IngestSource, string>();
  readonly #abandoned = new WeakSet<IngestSource>();
  readonly #changed = new WeakMap<IngestSource, IngestSource>();
  #stopped = false;

  constructor(private readonly options: TransformerOptions) {}

  /** Ends calls that have no result as `stopped`, and those that are pushed later. */
  stop(): void {
    this.#stopped = true;
    for (const queue of this.#queues.values()) this.#end(queue, STOPPED);
  }

  /** A source is paused or stopped: its messages without a result stay with their broker, and so does what is still pushed for it. */
  abandon(source: IngestSource): void {
    this.#abandoned.add(source);
    for (const queue of this.#queues.values()) if (queue.source.id === source.id) this.#end(queue, STOPPED);
  }

  /** A source has another function, which gets the messages that the former one has not decided and is not running. */
  change(before: IngestSource, after: IngestSource): void {
    this.#changed.set(before, after);
    for (const queue of this.#queues.values()) if (queue.source === before) this.#end(queue, { kind: 'changed', source: after });
  }

  /** @param text the message; the function gets it parsed if it is JSON, else as a string */
  push(source: IngestSource, functionText: string, text: string, done: (transformed: Transformed) => void): void {
    if (this.#abandoned.has(source)) return done(STOPPED);
    const changed = this.#changed.get(source);
    if (changed) return done({ kind: 'changed', source: changed });
    let key = this.#keys.get(source);
    if (!key) this.#keys.set(source, (key = `${source.id}:${createHash('sha256').update(functionText).digest('base64url')}`));
    let queue = this.#queues.get(key);
    if (!queue) {
      queue = { key, source, text: functionText, calls: [], batches: 0, isScheduled: false, isHeld: false, ended: undefined };
      this.#queues.set(key, queue);
    }
    queue.calls.push({ payload: text, done });
    this.#schedule(queue);
  }

  #schedule(queue: CallQueue): void {
    if (queue.isScheduled) return;
    queue.isScheduled = true;
    setImmediate(() => {
      queue.isScheduled = false;
      while (queue.calls.length > 0 && queue.batches < BATCHES_MAX && !queue.isHeld) {
        queue.batches++;
        void this.#run(queue, queue.calls.splice(0, BATCH_MAX)).finally(() => {
          queue.batches--;
          if (queue.calls.length > 0) this.#schedule(queue);
          else if (queue.batches === 0 && !queue.isHeld && this.#queues.get(queue.key) === queue) {
            this.#queues.delete(queue.key);
            this.options.overruns?.idle(queue.key);
          }
        });
      }
    });
  }

  /** If the sandbox cannot run (no process can be started), the messages wait and are tried again: it says nothing about them. */
  async #run(queue: CallQueue, calls: readonly Call[]): Promise<void> {
    const { sandbox, measure, log } = this.options;
    const { key, text } = queue;
    let left = [...calls];
    for (let failures = 1; !this.#stopped && !queue.ended; failures++) {
      const startedAtMs = measure ? performance.now() : 0;
      const asked = left;
      const open = new Set(asked);
      const decide = (call: Call, result: TransformResult): void => {
        // Also after the end of the queue: a result that is there is used.
        if (!open.delete(call)) return;
        this.#count(queue, result);
        call.done(transformed(result));
      };
      try {
        const payloads = asked.map((call) => call.payload);
        const results = await sandbox.run({ key, text }, payloads, (index, result) => decide(asked[index]!, result));
        for (const [index, result] of results.entries()) decide(asked[index]!, result);
        measure?.transformed(queue.source, asked.length, startedAtMs);
        return;
      } catch (error) {
        left = [...open];
        if (this.#stopped || queue.ended) break;
        if (queue.isHeld) {
          queue.calls.unshift(...left);
          return;
        }
        log.warn({ error, messages: left.length }, 'Transform functions cannot be run now; their messages wait.');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(failures)));
      }
    }
    for (const call of left) call.done(queue.ended ?? STOPPED);
  }

  #count(queue: CallQueue, result: TransformResult): void {
    const { overruns, pause, measure, sandbox } = this.options;
    if (measure && isOverrun(result)) measure.overran(queue.source);
    if (queue.isHeld || queue.ended || !pause) return;
    const happened = overruns?.count(queue.key, result);
    if (happened === undefined || result.kind !== 'refused') return;
    queue.isHeld = true;
    sandbox.cancel?.(queue.key);
    void this.#pause(queue, `${happened}; of the last one: ${result.reason}`);
  }

  async #pause(queue: CallQueue, reason: string): Promise<void> {
    const isPaused = await this.options.pause?.(queue.source, queue.text, reason).catch((error: unknown) => {
      const fields = { error, source_id: queue.source.id };
      this.options.log.warn(fields, 'A source that overruns could not be paused; its function goes on.');
      return false;
    });
    if (isPaused) return;
    queue.isHeld = false;
    this.#schedule(queue);
  }

  #end(queue: CallQueue, ended: Transformed): void {
    queue.ended = ended;
    this.#queues.delete(queue.key);
    this.options.overruns?.forget(queue.key);
    for (const call of queue.calls.splice(0)) call.done(ended);
    // A function that was good until it was replaced does not cost its process.
    this.options.sandbox.cancel?.(queue.key, ended.kind === 'changed' ? 'waiting' : 'all');
  }
}

function transformed(result: TransformResult): Transformed {
  switch (result.kind) {
    case 'object':
      return { kind: 'messages', messages: [parseTransformOutput(result.json)] };
    case 'array':
      return { kind: 'messages', messages: result.items.map(parseTransformOutput) };
    case 'dropped':
      return { kind: 'dropped' };
    case 'refused':
      return { kind: 'refused', rejection: { code: `transform_${result.code}`, reason: result.reason } };
  }
}

/** Returns the settings `transform.*` as limits: milliseconds, megabytes of heap, bytes of output. */
export function sandboxLimits({ transform }: Pick<Config, 'transform'>): SandboxLimits {
  return {
    deadlineMs: transform.deadline_ms,
    memoryMb: transform.memory_mb,
    maxOutputBytes: transform.max_output_bytes,
    processes: transform.processes,
  };
}
