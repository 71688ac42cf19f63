import { backoffMs, type Log } from '@gateway/core';
import type { Sandbox, TransformResult } from '@gateway/sandbox';
import { createHash } from 'node:crypto';
import type { IntakeSource } from './intake-source.js';
import type { Measure } from './measure.js';
import { parseTransformOutput, type IngestMessage } from './ingest-message.js';
import { refusals, type Refusal, type RefusalCode } from './refusals.js';

/** What the user's function made of a message. */
export type Transformed =
  | { readonly kind: 'messages'; readonly messages: readonly (IngestMessage | Refusal)[] }
  | { readonly kind: 'dropped' }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** The sandbox was closed meanwhile: nothing is decided. */
  | { readonly kind: 'stopped' };

interface Call {
  readonly payload: string;
  readonly done: (transformed: Transformed) => void;
}

/** Calls in one batch to the sandbox. */
const BATCH_MAX = 256;
/** Batches of one source under way: enough that a child works while the results of the last batch are read. */
const BATCHES_MAX = 2;

/** Runs messages of sources with a function through the sandbox, in batches of what has piled up per source. */
export class Transformer {
  readonly #sandbox: Pick<Sandbox, 'run'>;
  readonly #log: Log;
  readonly #measure: Measure | undefined;
  readonly #lanes = new Map<string, { calls: Call[]; batches: number; scheduled: boolean }>();
  readonly #keys = new WeakMap<IntakeSource, string>();
  #stopped = false;

  constructor({ sandbox, log, measure }: { sandbox: Pick<Sandbox, 'run'>; log: Log; measure?: Measure | undefined }) {
    this.#sandbox = sandbox;
    this.#log = log;
    this.#measure = measure;
  }

  /** Decides nothing more: what cannot be run at once stays with its broker. */
  stop(): void {
    this.#stopped = true;
  }

  /** @param text the message; handed to the function parsed when it is JSON, else as a string */
  push(source: IntakeSource, functionText: string, text: string, done: (transformed: Transformed) => void): void {
    let key = this.#keys.get(source);
    if (!key) this.#keys.set(source, (key = `${source.id}:${createHash('sha256').update(functionText).digest('base64url')}`));
    let lane = this.#lanes.get(key);
    if (!lane) this.#lanes.set(key, (lane = { calls: [], batches: 0, scheduled: false }));
    lane.calls.push({ payload: isJson(text) ? text : JSON.stringify(text), done });
    this.#schedule(key, source, functionText);
  }

  #schedule(key: string, source: IntakeSource, text: string): void {
    const lane = this.#lanes.get(key);
    if (!lane || lane.scheduled) return;
    lane.scheduled = true;
    setImmediate(() => {
      lane.scheduled = false;
      while (lane.calls.length > 0 && lane.batches < BATCHES_MAX) {
        const calls = lane.calls.splice(0, BATCH_MAX);
        lane.batches++;
        void this.#run(key, source, text, calls).finally(() => {
          lane.batches--;
          if (lane.calls.length > 0) this.#schedule(key, source, text);
          else if (lane.batches === 0) this.#lanes.delete(key);
        });
      }
    });
  }

  /** A sandbox that cannot run (no process to be had) says nothing about the messages: they wait and are tried again. */
  async #run(key: string, source: IntakeSource, text: string, calls: readonly Call[]): Promise<void> {
    for (let failures = 1; !this.#stopped; failures++) {
      const startedAtMs = this.#measure ? performance.now() : 0;
      try {
        const results = await this.#sandbox.run(
          { key, text },
          calls.map((call) => call.payload),
        );
        this.#measure?.transformed(source, calls.length, startedAtMs);
        for (const [k, call] of calls.entries()) call.done(transformed(results[k] as TransformResult));
        return;
      } catch (error) {
        if (this.#stopped) break;
        this.#log.warn({ error, messages: calls.length }, 'Transform functions cannot be run now; their messages wait.');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(failures)));
      }
    }
    for (const call of calls) call.done({ kind: 'stopped' });
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
      return { kind: 'refused', refusal: { code: code in refusals ? (code as RefusalCode) : 'transform_threw', reason: result.reason } };
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
