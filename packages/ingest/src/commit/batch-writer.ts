import { backoffMs, failAgain, type Failing, latestOf } from '@gateway/core/process';
import { rejectsContent } from '@gateway/store/postgres';

export interface BatchWriterOptions<Item, Context> {
  readonly write: (batch: readonly Item[], context: Context) => Promise<void>;
  /** What to write in place of an item that Postgres refuses by itself; undefined: the item is given up. */
  readonly replace: (item: Item, error: Error) => Item | undefined;
  /** A batch could not be written and is tried again. `isFirst`: no other batch is failing. */
  readonly onFailure: (error: unknown, batch: readonly Item[], isFirst: boolean) => void;
  readonly backoff: NonNullable<Parameters<typeof backoffMs>[1]>;
}

/** Writes batches: retries while Postgres is away, and splits a batch that Postgres refuses for its content until the offender stands alone. */
export class BatchWriter<Item, Context = undefined> {
  /** What each batch that is being retried failed with, the oldest first. */
  readonly #failing = new Map<readonly Item[], Failing>();
  #stopped = false;

  constructor(private readonly options: BatchWriterOptions<Item, Context>) {}

  /** When the oldest batch that is being retried first failed, and the latest error of any. Undefined when none is. */
  get failing(): Failing | undefined {
    const all = [...this.#failing.values()];
    return all[0] && { ...latestOf(all)!, since: all[0].since };
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
    try {
      for (let failures = 1; !this.#stopped; failures++) {
        try {
          await write(batch, context);
          return 'written';
        } catch (error) {
          if (rejectsContent(error)) return error as Error;
          onFailure(error, batch, this.#failing.size === 0);
          this.#failing.set(batch, failAgain(this.#failing.get(batch), error));
          await new Promise((resolve) => setTimeout(resolve, backoffMs(failures, backoff)));
        }
      }
      return 'stopped';
    } finally {
      this.#failing.delete(batch);
    }
  }
}
