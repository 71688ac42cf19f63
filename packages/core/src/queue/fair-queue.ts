/** A queue's array is trimmed after this many removals, to release memory. */
const GONE_MAX = 1024;

interface OwnerQueue<Item> {
  readonly items: Item[];
  head: number;
}

/**
 * Owners, such as projects, take turns, so that none waits behind another's backlog. Items of an
 * owner keep their order.
 */
export class FairQueue<Item> {
  /** In turn order. Owners without items have no entry. */
  readonly #queues = new Map<string, OwnerQueue<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

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
   * Removes up to `most` items, one per owner in turn.
   * @param fits decides whether to take an owner's next item: true takes it, false skips the owner,
   *   which keeps its turn, and `full` ends the call
   */
  take(most: number, fits: (item: Item) => boolean | 'full' = () => true): Item[] {
    let taken: Item[] = [];
    // An owner with more items moves to the end of the map, where this loop reaches it again.
    for (const [owner, queue] of this.#queues) {
      const { items, head } = queue;
      let fit = taken.length < most ? fits(items[head]!) : 'full';
      if (fit === 'full') break;
      if (!fit) continue;
      this.#queues.delete(owner);
      let end = head + 1;
      // The only owner with items gets all remaining turns.
      if (this.#queues.size === 0)
        while (
          end < items.length &&
          (fit = taken.length + end - head < most ? fits(items[end]!) : 'full') === true
        )
          end++;
      if (taken.length > 0) for (let n = head; n < end; n++) taken.push(items[n]!);
      else taken = end === items.length && head === 0 ? items : items.slice(head, end);
      queue.head = end;
      if (end < items.length)
        this.#queues.set(owner, end < GONE_MAX ? queue : { items: items.slice(end), head: 0 });
      if (fit !== true) break;
    }
    this.#size -= taken.length;
    return taken;
  }
}
