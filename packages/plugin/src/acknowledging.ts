export interface BatchOptions {
  /**
   * The maximum number of entries per batch, unlimited by default. A full batch is sent without
   * waiting.
   */
  readonly most?: number;
  /**
   * The time that an entry waits for others. By default, until the end of the event-loop turn, so
   * that messages of one commit share a batch.
   */
  readonly afterMs?: number;
  readonly atOnce?: number;
}

/**
 * Acknowledges messages in batches. A batch takes all entries that accumulated during earlier ones,
 * which gives low latency under low load and full batches under high load. `send` must not reject:
 * it retries, logs the entries that it drops, or adds them again.
 */
export class Batches<Entry> {
  readonly #send: (entries: Entry[]) => Promise<void>;
  readonly #options: Required<BatchOptions>;
  readonly #waiting = new Set<Entry>();
  #sending = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  readonly #onIdle: (() => void)[] = [];

  constructor(
    send: (entries: Entry[]) => Promise<void>,
    { most = Infinity, afterMs = 0, atOnce = 1 }: BatchOptions = {},
  ) {
    this.#send = send;
    this.#options = { most, afterMs, atOnce };
  }

  /**
   * Adds an entry unless it is already waiting. `afterMs` overrides the delay, such as for a retry.
   */
  add(entry: Entry, afterMs = this.#options.afterMs): void {
    if (this.#isClosed) return;
    this.#waiting.add(entry);
    if (this.#waiting.size >= this.#options.most) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), afterMs);
  }

  /** Sends the waiting entries now, or when a running batch ends. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#sending < this.#options.atOnce && this.#waiting.size > 0) {
      this.#sending++;
      void this.#send(this.#take()).finally(() => {
        this.#sending--;
        // If a timer is set, the entries wait for it.
        if (!this.#timer) this.flush();
      });
    }
    if (this.#isIdle) for (const idle of this.#onIdle.splice(0)) idle();
  }

  /** Resolves when all entries have been sent. */
  async idle(): Promise<void> {
    if (!this.#isIdle) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  /** Drops the waiting entries and all later ones. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.clear();
    this.flush();
  }

  get #isIdle(): boolean {
    return this.#waiting.size === 0 && this.#sending === 0;
  }

  #take(): Entry[] {
    const entries: Entry[] = [];
    for (const entry of this.#waiting) {
      if (entries.length >= this.#options.most) break;
      entries.push(entry);
      this.#waiting.delete(entry);
    }
    return entries;
  }
}

/**
 * Tracks the settled prefix of a partition. Positions are opened in order and settled in any order.
 * A broker that acknowledges by offset may only receive `through`, the last position up to which
 * all have settled.
 */
export class SettledPrefix<Position> {
  /** Positions after the prefix, oldest first. */
  readonly #open: { position: Position; settled: boolean }[] = [];
  #head = 0;
  #through: Position | undefined;

  /** Opens the next position. Call the returned function once the position is settled. */
  open(position: Position): () => void {
    const entry = { position, settled: false };
    this.#open.push(entry);
    return () => {
      entry.settled = true;
      this.#advance();
    };
  }

  /** The number of positions that are unsettled, or settled after an unsettled one. */
  get size(): number {
    return this.#open.length - this.#head;
  }

  /** The last position of the prefix, or undefined if empty. */
  get through(): Position | undefined {
    return this.#through;
  }

  #advance(): void {
    while (this.#open[this.#head]?.settled) {
      this.#through = this.#open[this.#head]?.position;
      this.#head++;
    }
    // Remove positions in blocks, which keeps the total cost linear.
    if (this.#head > 1024 || this.#head === this.#open.length) {
      this.#open.splice(0, this.#head);
      this.#head = 0;
    }
  }
}
