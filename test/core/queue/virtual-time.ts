/** Time that only passes in `run`. Replaces the process' timers between `begin` and `end`. */
export class VirtualTime {
  nowMs = 0;
  /** Pending timers and immediates. */
  readonly #due = new Map<
    number,
    { readonly atMs: number; readonly isImmediate: boolean; readonly call: () => void }
  >();
  #last = 0;
  #real: Pick<typeof globalThis, 'setTimeout' | 'clearTimeout' | 'setImmediate'> | undefined;

  begin(): void {
    const { setTimeout, clearTimeout, setImmediate } = globalThis;
    this.#real = { setTimeout, clearTimeout, setImmediate };
    globalThis.setTimeout = ((call: () => void, ms = 0) => this.#add(call, ms, false)) as never;
    globalThis.setImmediate = ((call: () => void) => this.#add(call, 0, true)) as never;
    globalThis.clearTimeout = ((id?: number) =>
      void (id !== undefined && this.#due.delete(id))) as never;
  }

  end(): void {
    Object.assign(globalThis, this.#real);
  }

  get pending(): number {
    return this.#due.size;
  }

  get immediates(): number {
    return [...this.#due.values()].filter(({ isImmediate }) => isImmediate).length;
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.#add(resolve, ms, false));
  }

  /** Runs due callbacks, earliest first, until none remains or `isOver`. */
  async run(isOver: () => boolean = () => false): Promise<void> {
    for (;;) {
      await new Promise<void>((resolve) => this.#real!.setImmediate(resolve));
      const [first] = [...this.#due].sort(([, a], [, b]) => a.atMs - b.atMs);
      if (!first || isOver()) return;
      this.nowMs = Math.max(this.nowMs, first[1].atMs);
      this.#due.delete(first[0]);
      first[1].call();
    }
  }

  #add(call: () => void, ms: number, isImmediate: boolean): number {
    this.#due.set(++this.#last, { atMs: this.nowMs + ms, isImmediate, call });
    return this.#last;
  }
}
