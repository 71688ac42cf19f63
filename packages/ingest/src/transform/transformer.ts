import { createHash } from 'node:crypto';
import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import { Stage } from '@gateway/core/queue';
import { type Payload, type Sandbox, takesMessage, type TransformResult } from '@gateway/sandbox';
import type { IngestMeasure } from '../message/telemetry.js';
import type { IngestSource } from '../message/ingest-source.js';
import type { Rejection } from '../validate/reject-codes.js';
import { isOverrun, type Overruns } from './overruns.js';

export type Transformed =
  /** JSON texts. */
  | { readonly kind: 'results'; readonly results: readonly string[] }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly rejection: Rejection }
  /**
   * The sandbox closed, the source was paused, or functions cannot be run and callers wait. The
   * message is still undecided.
   */
  | { readonly kind: 'stopped'; readonly error?: unknown }
  /**
   * The function was changed or removed. The message is still undecided; `source` is the current
   * source.
   */
  | { readonly kind: 'changed'; readonly source: IngestSource };

/**
 * The output counts toward the project's limit until the promise resolves. `called` is undefined if
 * the function was not.
 */
type OnTransformed = (transformed: Transformed, called?: TransformResult) => Promise<void> | void;

/** A message whose function may take it. */
export interface Argument {
  /** JSON of its second argument. */
  readonly argument: string;
}

interface FunctionCall {
  readonly payload: Payload;
  readonly message: Argument | undefined;
  readonly done: OnTransformed;
  isDecided: boolean;
}

interface CallQueue {
  readonly key: string;
  readonly source: IngestSource;
  readonly text: string;
  readonly takesMessage: boolean;
  readonly stage: Stage<FunctionCall>;
  /** For the next call, estimated from recent outputs. */
  outputBytes: number;
  /**
   * For every undecided call after the source is paused or its function changes. Undefined until
   * then.
   */
  ended: Transformed | undefined;
}

export interface TransformerOptions {
  readonly log: Pick<Log, 'warn'>;
  readonly measure?: Pick<IngestMeasure, 'transformed' | 'overran'> | undefined;
  readonly sandbox: Pick<Sandbox, 'run'> & Partial<Pick<Sandbox, 'cancel'>>;
  /** Callers wait: if functions cannot be run, calls end as `stopped` with the error. */
  readonly isAwaited?: boolean;
  /** If there are too many, `pause` is called. */
  readonly overruns?: Overruns;
  /** For a source whose function overruns. Call `abandon` once the source is paused. */
  readonly pause?: (projectId: string, sourceId: string, reason: string) => Promise<void>;
  /** Messages keep their order, so batches follow each other. */
  readonly isOrdered?: (projectId: string) => boolean;
}

const STOPPED: Transformed = { kind: 'stopped' };

const BATCH_MAX = 256;
/** Concurrent batches per source. One is processed while the results of the other are read. */
const BATCHES_MAX = 2;
/**
 * Expected output per batch. If a message creates a thousand events, a batch has one or two
 * messages.
 */
const BATCH_OUTPUT_BYTES = 1024 * 1024;
/** No call starts while a project's uncommitted output is larger: enough for two commits. */
const OUTPUT_BYTES_MAX = 8 * 1024 * 1024;
/** Per event, in addition to its JSON text. */
const EVENT_BYTES = 500;
const FIRST_OUTPUT_BYTES = BATCH_OUTPUT_BYTES / 16;

/** Functions of sources run on batches of accumulated messages. */
export class Transformer {
  readonly #queues = new Map<string, CallQueue>();
  readonly #keys = new WeakMap<IngestSource, string>();
  readonly #abandoned = new WeakSet<IngestSource>();
  readonly #changed = new WeakMap<IngestSource, IngestSource>();
  readonly #held = new Map<string, number>();
  #stopped = false;

  constructor(private readonly options: TransformerOptions) {}

  /** Ends undecided and all later calls as `stopped`. */
  stop(): void {
    this.#stopped = true;
    for (const queue of this.#queues.values()) this.#end(queue, STOPPED);
  }

  /** A paused or stopped source's undecided and later messages stay with their broker. */
  abandon(source: IngestSource): void {
    this.#abandoned.add(source);
    for (const queue of this.#queues.values())
      if (queue.source.id === source.id) this.#end(queue, STOPPED);
  }

  /** The new function applies to messages that are neither decided nor being processed. */
  change(before: IngestSource, after: IngestSource): void {
    this.#changed.set(before, after);
    for (const queue of this.#queues.values())
      if (queue.source === before) this.#end(queue, { kind: 'changed', source: after });
  }

  /**
   * @param payload the text, or the bytes if not UTF-8
   * @param message its argument is read only if the function takes one
   */
  push(
    source: IngestSource,
    functionText: string,
    payload: Payload,
    done: OnTransformed,
    message?: Argument,
  ): void {
    if (this.#stopped || this.#abandoned.has(source)) return void done(STOPPED);
    const changed = this.#changed.get(source);
    if (changed) return void done({ kind: 'changed', source: changed });
    let key = this.#keys.get(source);
    if (!key)
      this.#keys.set(
        source,
        (key = `${source.id}:${createHash('sha256').update(functionText).digest('base64url')}`),
      );
    const queue = this.#queues.get(key) ?? this.#open(key, source, functionText);
    queue.stage.push({ payload, message, done, isDecided: false });
  }

  #open(key: string, source: IngestSource, text: string): CallQueue {
    const stage = new Stage<FunctionCall>({
      concurrency: BATCHES_MAX,
      capacity: BATCH_OUTPUT_BYTES,
      sizeOf: () => Math.max(BATCH_OUTPUT_BYTES / BATCH_MAX, queue.outputBytes),
      gate: (_, underWay) =>
        this.#hasRoom(source) &&
        (underWay.size === 0 || !this.options.isOrdered?.(source.projectId))
          ? 0
          : Infinity,
      work: (calls) => this.#run(queue, calls),
      // No process can be started. This reveals nothing about the messages, so they wait.
      failed: (error, calls) => {
        if (!queue.ended)
          this.options.log.warn(
            { error, messages: undecided(calls).length },
            'Cannot run transform functions; their messages wait.',
          );
      },
      backoffMs,
      ended: (_, left) => {
        for (const call of undecided(left)) void call.done(queue.ended ?? STOPPED);
        if (!stage.isIdle || this.#queues.get(key) !== queue) return;
        this.#queues.delete(key);
        this.options.overruns?.idle(source);
      },
    });
    const queue: CallQueue = {
      key,
      source,
      text,
      takesMessage: takesMessage(text),
      stage,
      outputBytes: FIRST_OUTPUT_BYTES,
      ended: undefined,
    };
    this.#queues.set(key, queue);
    return queue;
  }

  async #run(queue: CallQueue, calls: readonly FunctionCall[]): Promise<void> {
    try {
      await this.#call(queue, undecided(calls));
    } catch (error) {
      if (!this.options.isAwaited) throw error;
      for (const call of undecided(calls)) {
        call.isDecided = true;
        void call.done({ kind: 'stopped', error });
      }
    }
  }

  async #call(queue: CallQueue, calls: readonly FunctionCall[]): Promise<void> {
    const { sandbox, measure } = this.options;
    const { key, text, source } = queue;
    const startedAtMs = measure ? performance.now() : 0;
    const open = new Set(calls);
    let isCancelled = false;
    let largest = 1;
    const decide = (call: FunctionCall, result: TransformResult): void => {
      // Also runs after the queue has ended. Results are used, but calls that continued after being
      // cancelled are only counted.
      if (!open.delete(call)) return;
      this.#count(queue, result);
      if (isCancelled) return;
      call.isDecided = true;
      const held = call.done(transformed(result), result);
      largest = Math.max(largest, bytesOf(result));
      if (held) this.#hold(source, bytesOf(result), held);
    };
    try {
      const payloads = calls.map((call) => call.payload);
      const fn = { key, text, project: source.projectId };
      const results = await sandbox.run(
        fn,
        payloads,
        (index, result) => decide(calls[index]!, result),
        queue.takesMessage ? calls.map(({ message }) => message?.argument ?? '{}') : undefined,
      );
      for (const [index, result] of results.entries()) decide(calls[index]!, result);
      measure?.transformed(source, calls.length, startedAtMs);
      queue.outputBytes = Math.max(largest, queue.outputBytes / 2);
    } finally {
      isCancelled = true;
    }
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
      for (const queue of this.#queues.values())
        if (queue.source.projectId === projectId) queue.stage.wake();
    });
  }

  #count({ source }: CallQueue, result: TransformResult): void {
    const { overruns, pause, measure } = this.options;
    if (measure && isOverrun(result)) measure.overran(source);
    const found = pause && overruns?.count(source, result);
    if (!found || result.kind !== 'refused') return;
    for (const id of found.sourceIds)
      this.#pause(source.projectId, id, `${found.happened}; the last one: ${result.reason}`);
  }

  #pause(projectId: string, sourceId: string, reason: string): void {
    const { log, pause } = this.options;
    void pause?.(projectId, sourceId, reason).catch((error: unknown) =>
      log.warn(
        { error, source_id: sourceId },
        'Could not pause a source whose function keeps overrunning; it continues.',
      ),
    );
  }

  #end(queue: CallQueue, ended: Transformed): void {
    queue.ended = ended;
    this.#queues.delete(queue.key);
    this.options.overruns?.idle(queue.source);
    queue.stage.stop();
    // After a change of the function, only waiting calls are cancelled: cancelling a running call
    // would end its process.
    this.options.sandbox.cancel?.(queue.key, ended.kind === 'changed' ? 'waiting' : 'all');
  }
}

function undecided(calls: readonly FunctionCall[]): FunctionCall[] {
  return calls.filter(({ isDecided }) => !isDecided);
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
      return {
        kind: 'refused',
        rejection: { code: `transform_${result.code}`, reason: result.reason },
      };
  }
}
