interface Owner {
  running: number;
  readonly waiting: (() => void)[];
}

/** A window per project, or per other owner: so much of its work runs at a time. The rest waits in order, and that of other owners runs beside it. */
export class ProjectTurns {
  /** Those with work. */
  readonly #owners = new Map<string, Owner>();
  readonly #onIdle: (() => void)[] = [];

  constructor(private readonly most = 1) {}

  /** How much work of an owner waits. */
  waitingOf(owner: string): number {
    return this.#owners.get(owner)?.waiting.length ?? 0;
  }

  /** Resolves when work of the owner may begin, with what ends it: call it once. */
  async take(owner: string): Promise<() => void> {
    let its = this.#owners.get(owner);
    if (!its) this.#owners.set(owner, (its = { running: 0, waiting: [] }));
    const { waiting } = its;
    if (its.running < this.most) its.running++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    return () => this.#release(owner);
  }

  /** Runs work of the owner when it may begin. Resolves and rejects as `work`. */
  async run<Result>(owner: string, work: () => Promise<Result>): Promise<Result> {
    const release = await this.take(owner);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Resolves when no work runs or waits. */
  async idle(): Promise<void> {
    if (this.#owners.size > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #release(owner: string): void {
    const its = this.#owners.get(owner)!;
    const next = its.waiting.shift();
    // Its place goes on to the next.
    if (next) return next();
    if (--its.running === 0) this.#owners.delete(owner);
    if (this.#owners.size === 0) for (const idle of this.#onIdle.splice(0)) idle();
  }
}
