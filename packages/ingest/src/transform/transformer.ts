import { createHash } from 'node:crypto';
import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import type { Payload, Sandbox, TransformResult } from '@gateway/sandbox';
import type { IngestMeasure } from '../message/ingest-measure.js';
import type { IngestSource } from '../message/ingest-source.js';
import type { Rejection } from '../message/reject-codes.js';
import { isOverrun, type Overruns } from './overruns.js';

export type Transformed =
  /** What the function returned, as JSON texts. */
  | { readonly kind: 'results'; readonly results: readonly string[] }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly rejection: Rejection }
  /** The sandbox was closed or the source paused meanwhile: nothing is decided. */
  | { readonly kind: 'stopped' }
  /** The source has another function by now, or none: nothing is decided. This is the source as it is. */
  | { readonly kind: 'changed'; readonly source: IngestSource };

/** Gets the result of one call. May return a promise: the output is held until it resolves, and counts towards what its project may hold. */
type Done = (transformed: Transformed) => Promise<void> | void;

interface Call {
  readonly payload: Payload;
  readonly done: Done;
}

interface CallQueue {
  readonly key: string;
  readonly source: IngestSource;
  readonly text: string;
  calls: Call[];
  batches: number;
  /** What the next call may put out, by the largest output lately. */
  outputBytes: number;
  isScheduled: boolean;
  /** Nothing runs until it is known whether the source is paused. */
  isHeld: boolean;
  /** The result of all its calls, once the source is paused or has another function. */
  ended: Transformed | undefined;
}

export interface TransformerOptions {
  readonly log: Pick<Log, 'warn'>;
  readonly measure?: Pick<IngestMeasure, 'transformed' | 'overran'> | undefined;
  readonly sandbox: Pick<Sandbox, 'run'> & Partial<Pick<Sandbox, 'cancel'>>;
  /** Counts overruns; with `pause`, what to do about them. */
  readonly overruns?: Overruns;
  /** Pauses a source whose functions overrun. True: it is paused, and `abandon` will be called; false: it is not, and its messages go on. */
  readonly pause?: (projectId: string, sourceId: string, reason: string) => Promise<boolean>;
}

const STOPPED: Transformed = { kind: 'stopped' };

const BATCH_MAX = 256;
/** Batches of one source under way: enough that a child works while the results of the last batch are read. */
const BATCHES_MAX = 2;
/** Expected output of a batch. A function that makes a thousand events of each message runs for one or two messages at a time. */
const BATCH_OUTPUT_BYTES = 1024 * 1024;
/** Output of the functions of a project that waits for its commit; above it no further call begins. As much as two commits take. */
const OUTPUT_BYTES_MAX = 8 * 1024 * 1024;
/** What an event takes beside its JSON. */
const EVENT_BYTES = 500;
const FIRST_OUTPUT_BYTES = BATCH_OUTPUT_BYTES / 16;

/** Runs the functions of sources in the sandbox, in batches of the messages that have piled up per source. */
export class Transformer {
  readonly #queues = new Map<string, CallQueue>();
  readonly #keys = new WeakMap<IngestSource, string>();
  readonly #abandoned = new WeakSet<IngestSource>();
  readonly #changed = new WeakMap<IngestSource, IngestSource>();
  /** Bytes of output that are held, by project. */
  readonly #held = new Map<string, number>();
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

  /** @param payload the message: its text, or its bytes when they are not UTF-8 */
  push(source: IngestSource, functionText: string, payload: Payload, done: Done): void {
    if (this.#abandoned.has(source)) return void done(STOPPED);
    const changed = this.#changed.get(source);
    if (changed) return void done({ kind: 'changed', source: changed });
    let key = this.#keys.get(source);
    if (!key) this.#keys.set(source, (key = `${source.id}:${createHash('sha256').update(functionText).digest('base64url')}`));
    let queue = this.#queues.get(key);
    if (!queue) {
      queue = {
        key,
        source,
        text: functionText,
        calls: [],
        batches: 0,
        outputBytes: FIRST_OUTPUT_BYTES,
        isScheduled: false,
        isHeld: false,
        ended: undefined,
      };
      this.#queues.set(key, queue);
    }
    queue.calls.push({ payload, done });
    this.#schedule(queue);
  }

  #schedule(queue: CallQueue): void {
    if (queue.isScheduled) return;
    queue.isScheduled = true;
    setImmediate(() => {
      queue.isScheduled = false;
      while (queue.calls.length > 0 && queue.batches < BATCHES_MAX && !queue.isHeld && this.#hasRoom(queue.source)) {
        queue.batches++;
        const most = Math.max(1, Math.min(BATCH_MAX, Math.floor(BATCH_OUTPUT_BYTES / queue.outputBytes)));
        void this.#run(queue, queue.calls.splice(0, most)).finally(() => {
          queue.batches--;
          if (queue.calls.length > 0) this.#schedule(queue);
          else if (queue.batches === 0 && !queue.isHeld && this.#queues.get(queue.key) === queue) {
            this.#queues.delete(queue.key);
            this.options.overruns?.idle(queue.source);
          }
        });
      }
    });
  }

  /** If the sandbox cannot run (no process can be started), the messages wait and are tried again: it says nothing about them. */
  async #run(queue: CallQueue, calls: readonly Call[]): Promise<void> {
    const { sandbox, measure, log } = this.options;
    const { key, text, source } = queue;
    const fn = { key, text, project: source.projectId };
    let left = [...calls];
    for (let failures = 1; !this.#stopped && !queue.ended; failures++) {
      const startedAtMs = measure ? performance.now() : 0;
      const asked = left;
      const open = new Set(asked);
      let isWithdrawn = false;
      let largest = 1;
      const decide = (call: Call, result: TransformResult): void => {
        // Also after the end of the queue: a result that is there is used, and a call that ran on is counted.
        if (!open.delete(call)) return;
        this.#count(queue, result);
        if (isWithdrawn) return;
        const held = call.done(transformed(result));
        largest = Math.max(largest, bytesOf(result));
        if (held) this.#hold(queue.source, bytesOf(result), held);
      };
      try {
        const payloads = asked.map((call) => call.payload);
        const results = await sandbox.run(fn, payloads, (index, result) => decide(asked[index]!, result));
        for (const [index, result] of results.entries()) decide(asked[index]!, result);
        measure?.transformed(queue.source, asked.length, startedAtMs);
        queue.outputBytes = Math.max(largest, queue.outputBytes / 2);
        return;
      } catch (error) {
        left = [...open];
        isWithdrawn = true;
        if (this.#stopped || queue.ended) break;
        if (queue.isHeld) {
          queue.calls.unshift(...left);
          return;
        }
        log.warn({ error, messages: left.length }, 'Transform functions cannot be run now; their messages wait.');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(failures)));
      }
    }
    for (const call of left) void call.done(queue.ended ?? STOPPED);
  }

  #hasRoom({ projectId }: IngestSource): boolean {
    return (this.#held.get(projectId) ?? 0) < OUTPUT_BYTES_MAX;
  }

  #hold(source: IngestSource, bytes: number, held: Promise<void>): void {
    const { projectId } = source;
    this.#held.set(projectId, (this.#held.get(projectId) ?? 0) + bytes);
    void held.then(() => {
      const hadRoom = this.#hasRoom(source);
      const left = this.#held.get(projectId)! - bytes;
      if (left > 0) this.#held.set(projectId, left);
      else this.#held.delete(projectId);
      if (hadRoom || !this.#hasRoom(source)) return;
      for (const queue of this.#queues.values()) if (queue.source.projectId === projectId) this.#schedule(queue);
    });
  }

  #count({ source }: CallQueue, result: TransformResult): void {
    const { overruns, pause, measure } = this.options;
    if (measure && isOverrun(result)) measure.overran(source);
    const found = pause && overruns?.count(source, result);
    if (!found || result.kind !== 'refused') return;
    for (const id of found.sourceIds) void this.#pause(source.projectId, id, `${found.happened}; of the last one: ${result.reason}`);
  }

  async #pause(projectId: string, sourceId: string, reason: string): Promise<void> {
    const { log, pause, sandbox } = this.options;
    const held = [...this.#queues.values()].filter(({ source, isHeld }) => source.id === sourceId && !isHeld);
    for (const queue of held) {
      queue.isHeld = true;
      sandbox.cancel?.(queue.key);
    }
    const isPaused = await pause?.(projectId, sourceId, reason).catch((error: unknown) => {
      log.warn({ error, source_id: sourceId }, 'A source that overruns could not be paused; its function goes on.');
      return false;
    });
    if (isPaused) return;
    for (const queue of held) {
      queue.isHeld = false;
      this.#schedule(queue);
    }
  }

  #end(queue: CallQueue, ended: Transformed): void {
    queue.ended = ended;
    this.#queues.delete(queue.key);
    this.options.overruns?.idle(queue.source);
    for (const call of queue.calls.splice(0)) void call.done(ended);
    // A function that was good until it was replaced does not cost its process.
    this.options.sandbox.cancel?.(queue.key, ended.kind === 'changed' ? 'waiting' : 'all');
  }
}

function bytesOf(result: TransformResult): number {
  switch (result.kind) {
    case 'object':
      return result.json.length + EVENT_BYTES;
    case 'array':
      return result.items.reduce((sum, item) => sum + item.length + EVENT_BYTES, 0);
    default:
      return 0;
  }
}

function transformed(result: TransformResult): Transformed {
  switch (result.kind) {
    case 'object':
      return { kind: 'results', results: [result.json] };
    case 'array':
      return { kind: 'results', results: result.items };
    case 'dropped':
      return { kind: 'dropped' };
    case 'refused':
      return { kind: 'refused', rejection: { code: `transform_${result.code}`, reason: result.reason } };
  }
}
