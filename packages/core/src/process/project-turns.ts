interface OwnerTurns {
  running: number;
  readonly waiting: (() => void)[];
}

/**
 * Limits the concurrent work of each owner, such as a project. Further work waits in order,
 * independently of other owners.
 */
export class ProjectTurns {
  readonly #owners = new Map<string, OwnerTurns>();
  readonly #onIdle: (() => void)[] = [];

  constructor(private readonly most = 1) {}

  waitingOf(owner: string): number {
    return this.#owners.get(owner)?.waiting.length ?? 0;
  }

  /** Call the returned function once, when the work ends. */
  async take(owner: string): Promise<() => void> {
    let its = this.#owners.get(owner);
    if (!its) this.#owners.set(owner, (its = { running: 0, waiting: [] }));
    const { waiting } = its;
    if (its.running < this.most) its.running++;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    return () => this.#release(owner);
  }

  /** Settles like `work`. */
  async run<Result>(owner: string, work: () => Promise<Result>): Promise<Result> {
    const release = await this.take(owner);
    try {
      return await work();
    } finally {
      release();
    }
  }

  /** Resolves when no work is running or waiting. */
  async idle(): Promise<void> {
    if (this.#owners.size > 0) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  #release(owner: string): void {
    const its = this.#owners.get(owner)!;
    const next = its.waiting.shift();
    // The next work takes over the slot, so `running` stays the same.
    if (next) return next();
    if (--its.running === 0) this.#owners.delete(owner);
    if (this.#owners.size === 0) for (const idle of this.#onIdle.splice(0)) idle();
  }
}
