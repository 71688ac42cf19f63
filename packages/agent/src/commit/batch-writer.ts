import { backoffMs } from '@gateway/core/process';
import { rejectsContent } from '@gateway/store/postgres';

export interface BatchWriterOptions<Item, Context> {
  readonly write: (batch: readonly Item[], context: Context) => Promise<void>;
  /** What to write in place of an item that Postgres refuses by itself; undefined: the item is given up. */
  readonly replace: (item: Item, error: Error) => Item | undefined;
  /** A batch could not be written and is tried again. `isFirst`: no other batch is failing. */
  readonly onFailure: (error: unknown, batch: readonly Item[], isFirst: boolean) => void;
  readonly backoff: NonNullable<Parameters<typeof backoffMs>[1]>;
}

export interface BatchFailure {
  readonly since: Date;
  error: unknown;
}

/** Writes batches: retries while Postgres is away, and splits a batch that Postgres refuses for its content until the offender stands alone. */
export class BatchWriter<Item, Context = undefined> {
  readonly #failing = new Set<BatchFailure>();
  #stopped = false;

  constructor(private readonly options: BatchWriterOptions<Item, Context>) {}

  /** The oldest batch that is being retried; undefined when none is. */
  get failing(): BatchFailure | undefined {
    const [oldest] = this.#failing;
    return oldest;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Ends the retries. A statement that is running is not cancelled. */
  stop(): void {
    this.#stopped = true;
  }

  /** Resolves when every item is written or given up, with the items that `stop` left unwritten. @param context is passed to `write` */
  async write(batch: readonly Item[], context: Context): Promise<readonly Item[]> {
    const result = await this.#writeUntilAnswered(batch, context);
    if (result === 'written') return [];
    if (result === 'stopped') return batch;
    const [only] = batch;
    if (batch.length > 1) {
      const half = batch.length >> 1;
      return [...(await this.write(batch.slice(0, half), context)), ...(await this.write(batch.slice(half), context))];
    }
    const replacement = only && this.options.replace(only, result);
    return replacement === undefined ? [] : this.write([replacement], context);
  }

  async #writeUntilAnswered(batch: readonly Item[], context: Context): Promise<'written' | 'stopped' | Error> {
    const { write, onFailure, backoff } = this.options;
    let failing: BatchFailure | undefined;
    try {
      for (let failures = 1; !this.#stopped; failures++) {
        try {
          await write(batch, context);
          return 'written';
        } catch (error) {
          if (rejectsContent(error)) return error as Error;
          onFailure(error, batch, this.#failing.size === 0);
          if (failing) failing.error = error;
          else this.#failing.add((failing = { since: new Date(), error }));
          await new Promise((resolve) => setTimeout(resolve, backoffMs(failures, backoff)));
        }
      }
      return 'stopped';
    } finally {
      if (failing) this.#failing.delete(failing);
    }
  }
}
