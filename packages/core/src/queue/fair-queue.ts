/** Items gone from the front of a queue when its array is cut. */
const GONE_MAX = 1024;

interface Waiting<Item> {
  readonly items: Item[];
  /** Where the first that waits is. */
  head: number;
}

/** A queue per owner, such as a project. Owners take turns, so that none waits behind the backlog of another; each keeps its order. */
export class FairQueue<Item> {
  /** By owner, in the order of their turns. Owners for which nothing waits have no entry. */
  readonly #queues = new Map<string, Waiting<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** How many items of an owner wait. */
  sizeOf(owner: string): number {
    const queue = this.#queues.get(owner);
    return queue ? queue.items.length - queue.head : 0;
  }

  push(owner: string, item: Item): void {
    const queue = this.#queues.get(owner);
    if (queue) queue.items.push(item);
    else this.#queues.set(owner, { items: [item], head: 0 });
    this.#size++;
  }

  /**
   * Removes and returns up to `most` items, one of each owner in turn.
   *
   * @param fits is asked for the next item of an owner: true takes it, false leaves the owner its turn, `full` ends the call
   */
  take(most: number, fits: (item: Item) => boolean | 'full' = () => true): Item[] {
    let taken: Item[] = [];
    // An owner that has more goes behind the others, where this loop meets it again.
    for (const [owner, queue] of this.#queues) {
      const { items, head } = queue;
      let fit = taken.length < most ? fits(items[head]!) : 'full';
      if (fit === 'full') break;
      if (!fit) continue;
      this.#queues.delete(owner);
      let end = head + 1;
      // An owner that is alone has the next turns, too.
      if (this.#queues.size === 0)
        while (end < items.length && (fit = taken.length + end - head < most ? fits(items[end]!) : 'full') === true) end++;
      if (taken.length > 0) for (let n = head; n < end; n++) taken.push(items[n]!);
      else taken = end === items.length && head === 0 ? items : items.slice(head, end);
      queue.head = end;
      if (end < items.length) this.#queues.set(owner, end < GONE_MAX ? queue : { items: items.slice(end), head: 0 });
      if (fit !== true) break;
    }
    this.#size -= taken.length;
    return taken;
  }
}
