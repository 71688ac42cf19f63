/** Items gone from the front of a queue when its array is cut. */
const GONE_MAX = 1024;

interface Queue<Item> {
  readonly items: Item[];
  /** Where the first that waits is. */
  head: number;
}

/** A queue per project, or per other owner. Owners take turns, so that none waits behind the backlog of another; each keeps its order. */
export class ProjectQueues<Item extends { readonly projectId: string }> {
  /** Of projects for which something waits, in the order of their turns. */
  readonly #queues = new Map<string, Queue<Item>>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** Those for which something waits. */
  get projects(): Iterable<string> {
    return this.#queues.keys();
  }

  /** How many items of a project wait. */
  sizeOf(projectId: string): number {
    const queue = this.#queues.get(projectId);
    return queue ? queue.items.length - queue.head : 0;
  }

  push(item: Item): void {
    const queue = this.#queues.get(item.projectId);
    if (queue) queue.items.push(item);
    else this.#queues.set(item.projectId, { items: [item], head: 0 });
    this.#size++;
  }

  /** Removes and returns up to `most` items, one of each project in turn. One that does not fit keeps its place. */
  take(most: number, fits: (item: Item) => boolean = () => true): Item[] {
    const taken: Item[] = [];
    // A project that has more goes behind the others, where this loop meets it again.
    for (const [projectId, queue] of this.#queues) {
      const item = queue.items[queue.head];
      if (item === undefined || taken.length >= most) break;
      if (!fits(item)) continue;
      taken.push(item);
      this.#queues.delete(projectId);
      if (++queue.head === queue.items.length) continue;
      this.#queues.set(projectId, queue.head < GONE_MAX ? queue : { items: queue.items.slice(queue.head), head: 0 });
    }
    this.#size -= taken.length;
    return taken;
  }
}
