import { AsyncLocalStorage } from 'node:async_hooks';

const MEGABYTE = 1024 * 1024;
/**
 * Decompressed, per source and therefore per batch. Far above real batches, but a few compressed
 * kilobytes may expand to gigabytes.
 */
export const SOURCE_MAX_BYTES = 64 * MEGABYTE;
/** Decompressed, of all sources in the process. */
const AGENT_MAX_BYTES = 256 * MEGABYTE;
/** Always available to a source, even if stalled sources exhaust the limit of the process. */
const SOURCE_MIN_BYTES = 4 * MEGABYTE;

let ofAgent = 0;

/** Decompressed bytes of a fetch count until the member's next fetch from the same broker. */
export class SourceMemory {
  #bytes = 0;

  get room(): number {
    const inAgent = Math.max(AGENT_MAX_BYTES - ofAgent, SOURCE_MIN_BYTES - this.#bytes);
    return Math.max(0, Math.min(SOURCE_MAX_BYTES - this.#bytes, inAgent));
  }

  /** A negative number releases bytes. */
  add(bytes: number): void {
    this.#bytes += bytes;
    ofAgent += bytes;
  }
}

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

/**
 * The fetch being decoded. Kept in the async context, because kafkajs does not pass it to codecs.
 */
export const currentFetch = new AsyncLocalStorage<FetchMemory>();
