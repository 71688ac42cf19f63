import { failAgain, latestOf, type OngoingFailure } from '../process/health.js';
import { FairQueue } from './fair-queue.js';

export interface StageOptions<Item> {
  /** Batches in progress, at most. */
  readonly concurrency: number;
  /** The maximum sum of `sizeOf` in a batch. A larger item forms a batch by itself. */
  readonly capacity: number;
  /** Called when a batch is taken. Default: 1. */
  readonly sizeOf?: (item: Item) => number;
  /** Owners take turns. By default, all items have the same owner. */
  readonly ownerOf?: (item: Item) => string;
  /**
   * Waits for other items, unless this many are already waiting. Default: until the end of the
   * current turn of the event loop.
   */
  readonly linger?: { readonly ms: number; readonly items: number };
  /** Whether an item may join the batch that begins with `first`. Default: true. */
  readonly together?: (first: Item, item: Item) => boolean;
  /**
   * Called with an owner's next fitting item whenever the stage takes items. Returns 0 to take the
   * item, or the milliseconds until the next call; Infinity waits for `wake`. Default: takes every
   * item.
   */
  readonly gate?: (item: Item, underWay: ReadonlySet<readonly Item[]>) => number;
  /** A rejection fails all the items, which are retried if `backoffMs` is set. */
  readonly work: (items: readonly Item[]) => Promise<void>;
  /**
   * Called before the retry.
   * @param isFirst whether no other batch is failing
   */
  readonly failed?: (error: unknown, items: readonly Item[], isFirst: boolean) => void;
  /** Without it, `work` must not fail: an unexpected error ends the process. */
  readonly backoffMs?: (failures: number) => number;
  /** Whether the items themselves cause the error, so that a retry is useless. Default: false. */
  readonly refuses?: (error: unknown) => boolean;
  /** Replaces an item refused on its own; undefined (the default) drops it. */
  readonly replace?: (item: Item, error: Error) => Item | undefined;
  /**
   * Receives each item once, when the work of its batch ends, or at `stop` if it is still waiting.
   * @param left the items, or their replacements, that were not processed because of `stop`
   */
  readonly ended?: (items: readonly Item[], left: readonly Item[]) => void;
}

/**
 * Processes the items of a queue in batches. An item is in one of these states:
 *
 * - **Waiting** behind other items of its owner. At the end of the turn in which it was pushed, or
 *   after `linger`, the stage takes one item per owner in turn, if it fits in the batch
 *   (`capacity`, `together`) and passes `gate`, until no items remain or `concurrency` batches are
 *   in progress. It also takes items when a batch ends, on `wake`, and after the gate's delay. It
 *   neither polls nor waits for a batch to fill.
 * - **Under way** while `work` runs. If a dependency is unavailable, the batch backs off, is
 *   retried, and keeps its slot. A batch refused for its content is halved until the faulty item is
 *   alone, which is then replaced or dropped.
 * - **Ended** when it is done, dropped or left. `ended` is called once.
 *
 * `stop` immediately leaves waiting and failing items, and any item pushed later. Running work is
 * not cancelled; `settled` resolves when it has ended. An item costs one push and one turn in the
 * queue, but no promise.
 */
export class Stage<Item> {
  readonly #queue = new FairQueue<Item>();
  /** Batches being retried, oldest first. */
  readonly #failing = new Map<readonly Item[], OngoingFailure>();
  readonly #waits = new Set<() => void>();
  readonly #underWay = new Set<readonly Item[]>();
  #isTaking = false;
  #lingering: NodeJS.Timeout | undefined;
  #askingAgain: NodeJS.Timeout | undefined;
  #isStopped = false;
  #listeners: (() => void)[] = [];

  constructor(private readonly options: StageOptions<Item>) {}

  /** The start of the oldest failure and the latest error of any batch. */
  get failing(): OngoingFailure | undefined {
    const all = [...this.#failing.values()];
    return all[0] && { ...latestOf(all)!, since: all[0].since };
  }

  /** Batches being retried occupy all slots. */
  get isStuck(): boolean {
    return this.#failing.size >= this.options.concurrency;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  get isIdle(): boolean {
    return this.#queue.size === 0 && this.#underWay.size === 0;
  }

  get waiting(): number {
    return this.#queue.size;
  }

  waitingOf(owner: string): number {
    return this.#queue.sizeOf(owner);
  }

  push(item: Item): void {
    const { ownerOf, ended } = this.options;
    if (this.#isStopped) return ended?.([item], [item]);
    this.#queue.push(ownerOf === undefined ? '' : ownerOf(item), item);
    this.wake();
  }

  /** Calls the gate again, as if an item had been pushed. */
  wake(): void {
    const { concurrency, linger } = this.options;
    if (linger && this.#queue.size < linger.items) {
      if (this.#queue.size > 0) this.#lingering ??= setTimeout(this.#take, linger.ms);
      return;
    }
    if (this.#isTaking || this.#underWay.size >= concurrency || this.#queue.size === 0) return;
    if (linger) return this.#take();
    this.#isTaking = true;
    setImmediate(this.#take);
  }

  /** Resolves when the stage is idle. Until then, items do not linger. */
  async settled(): Promise<void> {
    while (!this.isIdle) {
      this.#take();
      if (!this.isIdle) await new Promise<void>((resolve) => this.#listeners.push(resolve));
    }
  }

  stop(): void {
    this.#isStopped = true;
    this.#clearTimers();
    const left = this.#queue.take(Infinity);
    if (left.length > 0) this.options.ended?.(left, left);
    for (const end of this.#waits) end();
    this.#tell();
  }

  readonly #take = (): void => {
    const { concurrency } = this.options;
    this.#isTaking = false;
    this.#clearTimers();
    while (this.#underWay.size < concurrency && this.#queue.size > 0) {
      const batch = this.#next();
      if (batch.length === 0) break;
      void this.#run(batch);
    }
  };

  /**
   * If the gate blocks all items, a timer triggers the next attempt after the gate's delay, because
   * there may be no batch in progress whose end would do so.
   */
  #next(): Item[] {
    const { capacity, sizeOf, together, gate } = this.options;
    let [first, sum, againInMs]: [Item | undefined, number, number] = [undefined, 0, Infinity];
    const batch = this.#queue.take(Infinity, (item) => {
      if (sum >= capacity) return 'full';
      const size = sizeOf === undefined ? 1 : sizeOf(item);
      if (first !== undefined && (sum + size > capacity || together?.(first, item) === false))
        return false;
      const waitMs = gate === undefined ? 0 : gate(item, this.#underWay);
      if (waitMs > 0) {
        againInMs = Math.min(againInMs, waitMs);
        return false;
      }
      first ??= item;
      sum += size;
      return true;
    });
    if (batch.length === 0 && againInMs < Infinity)
      this.#askingAgain = setTimeout(this.#take, againInMs);
    return batch;
  }

  async #run(batch: readonly Item[]): Promise<void> {
    this.#underWay.add(batch);
    const left: Item[] = [];
    try {
      await this.#work(batch, left);
    } finally {
      this.#underWay.delete(batch);
      this.options.ended?.(batch, left);
      this.wake();
      this.#tell();
    }
  }

  async #work(items: readonly Item[], left: Item[]): Promise<void> {
    const answer = await this.#workUntilAnswered(items);
    if (answer === 'done') return;
    if (answer === 'stopped') return void left.push(...items);
    if (items.length > 1) {
      const half = items.length >> 1;
      await this.#work(items.slice(0, half), left);
      return this.#work(items.slice(half), left);
    }
    const replacement = this.#replacementOf(items[0]!, answer, left);
    if (replacement !== undefined) await this.#work([replacement], left);
  }

  #replacementOf(item: Item, error: Error, left: Item[]): Item | undefined {
    try {
      return this.options.replace?.(item, error);
    } catch (defect) {
      // A bug in `replace` affects only this item.
      this.options.failed?.(defect, [item], this.#failing.size === 0);
      left.push(item);
      return undefined;
    }
  }

  /** @returns the error if the items are refused */
  async #workUntilAnswered(items: readonly Item[]): Promise<'done' | 'stopped' | Error> {
    const { work, failed, refuses, backoffMs } = this.options;
    try {
      for (let failures = 1; !this.#isStopped; failures++) {
        try {
          await work(items);
          return 'done';
        } catch (error) {
          if (refuses?.(error)) return error as Error;
          if (backoffMs === undefined) throw error;
          failed?.(error, items, this.#failing.size === 0);
          this.#failing.set(items, failAgain(this.#failing.get(items), error));
          if (!this.#isStopped) await this.#wait(backoffMs(failures));
        }
      }
      return 'stopped';
    } finally {
      this.#failing.delete(items);
    }
  }

  #wait(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#waits.delete(end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      this.#waits.add(end);
    });
  }

  #clearTimers(): void {
    clearTimeout(this.#lingering);
    clearTimeout(this.#askingAgain);
    this.#lingering = this.#askingAgain = undefined;
  }

  #tell(): void {
    if (this.#listeners.length > 0) for (const wake of this.#listeners.splice(0)) wake();
  }
}
