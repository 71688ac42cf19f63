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

  /** The owners for which something waits. */
  get owners(): Iterable<string> {
    return this.#queues.keys();
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
    const taken: Item[] = [];
    // An owner that has more goes behind the others, where this loop meets it again.
    for (const [owner, queue] of this.#queues) {
      let fit: boolean | 'full' = taken.length >= most ? 'full' : fits(queue.items[queue.head]!);
      if (fit === 'full') break;
      if (!fit) continue;
      this.#queues.delete(owner);
      do {
        taken.push(queue.items[queue.head++]!);
        // An owner that is alone has the next turn, too.
        if (this.#queues.size > 0 || queue.head === queue.items.length) break;
        fit = taken.length >= most ? 'full' : fits(queue.items[queue.head]!);
      } while (fit === true);
      if (queue.head < queue.items.length)
        this.#queues.set(owner, queue.head < GONE_MAX ? queue : { items: queue.items.slice(queue.head), head: 0 });
      if (fit !== true) break;
    }
    this.#size -= taken.length;
    return taken;
  }
}
