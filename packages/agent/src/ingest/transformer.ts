import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import type { Sandbox, TransformResult } from '@gateway/sandbox';
import { createHash } from 'node:crypto';
import type { IngestSource } from '../model/ingest-source.js';
import type { Measure } from '../telemetry/measure.js';
import { parseTransformOutput, type IngestMessage } from './parse-message.js';
import { isOverrun, type Overruns } from './overruns.js';
import { rejectCodes, type Rejection, type RejectCode } from '../model/reject-codes.js';

/** What the user's function made of a message. */
export type Transformed =
  | { readonly kind: 'messages'; readonly messages: readonly (IngestMessage | Rejection)[] }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly refusal: Rejection }
  /** The sandbox was closed or the source paused meanwhile: nothing is decided. */
  | { readonly kind: 'stopped' }
  /** The source has another function by now, or none: nothing is decided. This is the source as it is. */
  | { readonly kind: 'changed'; readonly source: IngestSource };

interface Call {
  readonly payload: string;
  readonly done: (transformed: Transformed) => void;
}

interface EndpointQueue {
  readonly source: IngestSource;
  readonly text: string;
  calls: Call[];
  batches: number;
  scheduled: boolean;
  /** Nothing is run until it is known whether the source is paused. */
  held: boolean;
  /** What becomes of its calls when nothing is decided any more, because the source is paused or changed. */
  over: Transformed | undefined;
}

export interface TransformerOptions {
  readonly sandbox: Pick<Sandbox, 'run'> & Partial<Pick<Sandbox, 'cancel'>>;
  readonly log: Log;
  readonly measure?: Measure | undefined;
  /** Counts overruns; with `pause`, what to do about them. */
  readonly overruns?: Overruns;
  /**
   * Is asked to pause a source whose function overruns again and again; what it has not decided waits meanwhile. True: the source is
   * paused, and `letGo` will be called. False: it is not, for example because its function was changed, and the messages go on.
   */
  readonly pause?: (source: IngestSource, functionText: string, reason: string) => Promise<boolean>;
}

const STOPPED: Transformed = { kind: 'stopped' };

/** Calls in one batch to the sandbox. */
const BATCH_MAX = 256;
/** Batches of one source under way: enough that a child works while the results of the last batch are read. */
const BATCHES_MAX = 2;

/** Runs messages of sources with a function through the sandbox, in batches of what has piled up per source. */
export class Transformer {
  readonly #options: TransformerOptions;
  readonly #lanes = new Map<string, EndpointQueue>();
  readonly #keys = new WeakMap<IngestSource, string>();
  readonly #gone = new WeakSet<IngestSource>();
  readonly #changed = new WeakMap<IngestSource, IngestSource>();
  #stopped = false;

  constructor(options: TransformerOptions) {
    this.#options = options;
  }

  /** Decides nothing more: what has no result stays with its broker. */
  stop(): void {
    this.#stopped = true;
    for (const [key, lane] of this.#lanes) this.#end(key, lane, STOPPED);
  }

  /** A source is paused: what its function has not decided stays with its broker, and so does what is still pushed for it. */
  letGo(source: IngestSource): void {
    this.#gone.add(source);
    for (const [key, lane] of this.#lanes) if (lane.source.id === source.id) this.#end(key, lane, STOPPED);
  }

  /** A source has another function: what the former one has not decided, and is not running at this moment, is for the new one. */
  change(before: IngestSource, after: IngestSource): void {
    this.#changed.set(before, after);
    for (const [key, lane] of this.#lanes) if (lane.source === before) this.#end(key, lane, { kind: 'changed', source: after });
  }

  /** @param text the message; handed to the function parsed when it is JSON, else as a string */
  push(source: IngestSource, functionText: string, text: string, done: (transformed: Transformed) => void): void {
    if (this.#gone.has(source)) return done(STOPPED);
    const changed = this.#changed.get(source);
    if (changed) return done({ kind: 'changed', source: changed });
    let key = this.#keys.get(source);
    if (!key) this.#keys.set(source, (key = `${source.id}:${createHash('sha256').update(functionText).digest('base64url')}`));
    let lane = this.#lanes.get(key);
    if (!lane) {
      lane = { source, text: functionText, calls: [], batches: 0, scheduled: false, held: false, over: undefined };
      this.#lanes.set(key, lane);
    }
    lane.calls.push({ payload: isJson(text) ? text : JSON.stringify(text), done });
    this.#schedule(key, lane);
  }

  #schedule(key: string, lane: EndpointQueue): void {
    if (lane.scheduled) return;
    lane.scheduled = true;
    setImmediate(() => {
      lane.scheduled = false;
      while (lane.calls.length > 0 && lane.batches < BATCHES_MAX && !lane.held) {
        const calls = lane.calls.splice(0, BATCH_MAX);
        lane.batches++;
        void this.#run(key, lane, calls).finally(() => {
          lane.batches--;
          if (lane.calls.length > 0) this.#schedule(key, lane);
          else if (lane.batches === 0 && !lane.held && this.#lanes.get(key) === lane) {
            this.#lanes.delete(key);
            this.#options.overruns?.idle(key);
          }
        });
      }
    });
  }

  /** A sandbox that cannot run (no process to be had) says nothing about the messages: they wait and are tried again. */
  async #run(key: string, lane: EndpointQueue, calls: readonly Call[]): Promise<void> {
    const { sandbox, measure, log } = this.#options;
    let left = [...calls];
    for (let failures = 1; !this.#stopped && !lane.over; failures++) {
      const startedAtMs = measure ? performance.now() : 0;
      const asked = left;
      const open = new Set(asked);
      const decide = (call: Call, result: TransformResult): void => {
        // Also after the end of the lane: a result that is there is used.
        if (!open.delete(call)) return;
        this.#count(key, lane, result);
        call.done(transformed(result));
      };
      try {
        const payloads = asked.map((call) => call.payload);
        const results = await sandbox.run({ key, text: lane.text }, payloads, (index, result) => decide(asked[index]!, result));
        for (const [index, result] of results.entries()) decide(asked[index]!, result);
        measure?.transformed(lane.source, asked.length, startedAtMs);
        return;
      } catch (error) {
        left = [...open];
        if (this.#stopped || lane.over) break;
        if (lane.held) {
          lane.calls.unshift(...left);
          return;
        }
        log.warn({ error, messages: left.length }, 'Transform functions cannot be run now; their messages wait.');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(failures)));
      }
    }
    for (const call of left) call.done(lane.over ?? STOPPED);
  }

  #count(key: string, lane: EndpointQueue, result: TransformResult): void {
    const { overruns, pause, measure, sandbox } = this.#options;
    if (measure && isOverrun(result)) measure.overran(lane.source);
    if (lane.held || lane.over || !pause) return;
    const happened = overruns?.count(key, result);
    if (happened === undefined || result.kind !== 'refused') return;
    lane.held = true;
    sandbox.cancel?.(key);
    void this.#pause(key, lane, `${happened}; of the last one: ${result.reason}`);
  }

  async #pause(key: string, lane: EndpointQueue, reason: string): Promise<void> {
    const isPaused = await this.#options.pause?.(lane.source, lane.text, reason).catch((error: unknown) => {
      this.#options.log.warn({ error, source_id: lane.source.id }, 'A source that overruns could not be paused; its function goes on.');
      return false;
    });
    if (isPaused) return;
    lane.held = false;
    this.#schedule(key, lane);
  }

  #end(key: string, lane: EndpointQueue, over: Transformed): void {
    lane.over = over;
    this.#lanes.delete(key);
    this.#options.overruns?.forget(key);
    for (const call of lane.calls.splice(0)) call.done(over);
    // A function that was good until somebody wrote a better one is not worth a process.
    this.#options.sandbox.cancel?.(key, over.kind === 'changed' ? 'waiting' : 'all');
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
    case 'refused': {
      const code = `transform_${result.code}`;
      return { kind: 'refused', refusal: { code: code in rejectCodes ? (code as RejectCode) : 'transform_threw', reason: result.reason } };
    }
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
