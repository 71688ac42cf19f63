import { AsyncLocalStorage } from 'node:async_hooks';

const MEGABYTE = 1024 * 1024;
/** Decompressed bytes that a source may hold, and those of a batch: far more than any producer means to send; a few kilobytes can hold gigabytes. */
export const SOURCE_MAX_BYTES = 64 * MEGABYTE;
/** The same of all sources of this process. */
const AGENT_MAX_BYTES = 256 * MEGABYTE;
/** What a source may hold although the others hold all that the process may: they may stand still for long. */
const SOURCE_MIN_BYTES = 4 * MEGABYTE;

let ofAgent = 0;

/** The decompressed bytes that a source holds: those of each fetch until the next one of the same member from the same broker. */
export class SourceMemory {
  #bytes = 0;

  get room(): number {
    const inAgent = Math.max(AGENT_MAX_BYTES - ofAgent, SOURCE_MIN_BYTES - this.#bytes);
    return Math.max(0, Math.min(SOURCE_MAX_BYTES - this.#bytes, inAgent));
  }

  /** Adds bytes, or gives them back if there are less than none. */
  add(bytes: number): void {
    this.#bytes += bytes;
    ofAgent += bytes;
  }
}

/** The memory of one fetch of a member. */
export class FetchMemory {
  #bytes = 0;

  constructor(private readonly source: SourceMemory) {}

  get room(): number {
    return this.source.room;
  }

  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  take(bytes: number): void {
    this.#bytes += bytes;
    this.source.add(bytes);
  }

  release(): void {
    this.source.add(-this.#bytes);
    this.#bytes = 0;
  }
}

/** The fetch whose answer is being decoded: kafkajs calls codecs without telling for whom. */
export const currentFetch = new AsyncLocalStorage<FetchMemory>();
