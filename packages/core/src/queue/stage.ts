import { failAgain, latestOf, type Failing } from '../process/failing.js';
import { FairQueue } from './fair-queue.js';

export interface StageOptions<Item> {
  /** Batches under way at a time. */
  readonly concurrency: number;
  /** The sum of `sizeOf` in a batch at most. An item that alone is larger is a batch of its own. */
  readonly capacity: number;
  /** 1 by default. Asked when a batch is taken. */
  readonly sizeOf?: (item: Item) => number;
  /** Owners take turns. One owner by default. */
  readonly ownerOf?: (item: Item) => string;
  /** Items wait so long for others, unless so many wait. By default they wait for the end of this turn of the event loop. */
  readonly linger?: { readonly ms: number; readonly items: number };
  /** Whether an item may be in one batch with the first one of it. True by default. */
  readonly together?: (first: Item, item: Item) => boolean;
  /**
   * Asked for the next item of each owner, when there is place for it in a batch. Returns 0 to take it, or after how many milliseconds to ask again; Infinity: when
   * `wake` is called. It is also asked whenever the stage takes for another reason. Open by default.
   * @param underWay the batches that are being worked on
   */
  readonly gate?: (item: Item, underWay: ReadonlySet<readonly Item[]>) => number;
  /** Does the work of a batch, or of a part of it. A rejection is a failure of all its items, and with `backoffMs` the work is repeated. */
  readonly work: (items: readonly Item[]) => Promise<void>;
  /** The work failed, and is going to be repeated. @param isFirst no other batch is failing */
  readonly failed?: (error: unknown, items: readonly Item[], isFirst: boolean) => void;
  /** Milliseconds before the work is repeated, after so many failures of a batch. By default work must not fail: that ends the process, as any defect does. */
  readonly backoffMs?: (failures: number) => number;
  /** Whether an error is about what the items are, so that to repeat them is of no use. Never by default. */
  readonly refuses?: (error: unknown) => boolean;
  /** What to work on in place of an item that is refused by itself, for its error; undefined gives the item up, as does the default. */
  readonly replace?: (item: Item, error: Error) => Item | undefined;
  /**
   * Called once for each item that was pushed: with a batch when its work has ended, or with those that wait when the stage is stopped.
   * @param left the ones of them, or their replacements, that `stop` left undone
   */
  readonly ended?: (items: readonly Item[], left: readonly Item[]) => void;
}

/**
 * A queue whose items are worked on in batches. An item is always in one of these states:
 *
 * - **Waiting**, behind those of its owner. At the end of the turn of the event loop in which it was pushed, or after `linger`, the stage takes: one item of each
 *   owner in turn, as many as a batch holds (`capacity`, `together`) and `gate` lets pass, until nothing is left or `concurrency` batches are under way. It takes
 *   again when a batch ends, when `wake` is called, and when a gate said so; it does not poll, and it does not wait for a batch to fill.
 * - **Under way**: `work` runs. While it fails, because what it depends on is away, the batch backs off and is repeated, and keeps its place among `concurrency`.
 *   A batch that is refused for its content is halved until the one that is at fault stands alone, which is then replaced or given up.
 * - **Ended**: done, given up, or left. `ended` is told, once.
 *
 * `stop` leaves what waits and what fails, at once, and whatever is pushed later. Work that is under way is not cancelled: `settled` resolves when it has ended.
 * Cost per item: one push, one turn in the queue, and no promise.
 */
export class Stage<Item> {
  readonly #queue = new FairQueue<Item>();
  /** What each batch that is being repeated failed with, the oldest first. */
  readonly #failing = new Map<readonly Item[], Failing>();
  /** Each ends the wait of a batch that is to be repeated. */
  readonly #waits = new Set<() => void>();
  readonly #underWay = new Set<readonly Item[]>();
  #isTaking = false;
  #lingering: NodeJS.Timeout | undefined;
  #askingAgain: NodeJS.Timeout | undefined;
  #isStopped = false;
  #listeners: (() => void)[] = [];

  constructor(private readonly options: StageOptions<Item>) {}

  /** Since when the oldest batch that is being repeated has failed, and the latest error of any; undefined when none is. */
  get failing(): Failing | undefined {
    const all = [...this.#failing.values()];
    return all[0] && { ...latestOf(all)!, since: all[0].since };
  }

  /** True while every batch under way is being repeated, and there is no place for another. */
  get isStuck(): boolean {
    return this.#failing.size >= this.options.concurrency;
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  /** True when no item waits and no batch is under way. */
  get isIdle(): boolean {
    return this.#queue.size === 0 && this.#underWay.size === 0;
  }

  /** How many items wait. */
  get waiting(): number {
    return this.#queue.size;
  }

  /** How many items of an owner wait. */
  waitingOf(owner: string): number {
    return this.#queue.sizeOf(owner);
  }

  /** Returns at once. */
  push(item: Item): void {
    const { ownerOf, ended } = this.options;
    if (this.#isStopped) return ended?.([item], [item]);
    this.#queue.push(ownerOf === undefined ? '' : ownerOf(item), item);
    this.wake();
  }

  /** Lets the stage take as after a push, so that the gate is asked again. */
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

  /** Resolves when the stage is idle. Nothing lingers meanwhile. */
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

  /** Takes a batch. If the gate lets nothing pass, it is asked again when it said so: the end of a batch asks too, but there may be none. */
  #next(): Item[] {
    const { capacity, sizeOf, together, gate } = this.options;
    let [first, sum, againInMs]: [Item | undefined, number, number] = [undefined, 0, Infinity];
    const batch = this.#queue.take(Infinity, (item) => {
      if (sum >= capacity) return 'full';
      const size = sizeOf === undefined ? 1 : sizeOf(item);
      if (first !== undefined && (sum + size > capacity || together?.(first, item) === false)) return false;
      const waitMs = gate === undefined ? 0 : gate(item, this.#underWay);
      if (waitMs > 0) {
        againInMs = Math.min(againInMs, waitMs);
        return false;
      }
      first ??= item;
      sum += size;
      return true;
    });
    if (batch.length === 0 && againInMs < Infinity) this.#askingAgain = setTimeout(this.#take, againInMs);
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
      // A defect of the stage's owner costs this item, and no other.
      this.options.failed?.(defect, [item], this.#failing.size === 0);
      left.push(item);
      return undefined;
    }
  }

  /** @returns the error for which the items are refused, or what became of them */
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
