export interface BatchOptions {
  /** Entries of a batch at most; any number by default. A full batch does not wait. */
  readonly most?: number;
  /** How long an entry waits for others, in milliseconds. 0, the default, is the end of this turn: messages that settle in one commit share a batch. */
  readonly afterMs?: number;
  /** Batches under way at a time; one by default. */
  readonly atOnce?: number;
}

/**
 * Acknowledges in batches: a batch takes what has piled up while others were under way, so an idle broker is told at once, and a busy one by full batches.
 * `send` must not reject: it retries, logs what it gives up, or adds it again.
 */
export class Batches<Entry> {
  readonly #send: (entries: Entry[]) => Promise<void>;
  readonly #options: Required<BatchOptions>;
  /** In the order of `add`, each once. */
  readonly #waiting = new Set<Entry>();
  #sending = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  readonly #onIdle: (() => void)[] = [];

  constructor(send: (entries: Entry[]) => Promise<void>, { most = Infinity, afterMs = 0, atOnce = 1 }: BatchOptions = {}) {
    this.#send = send;
    this.#options = { most, afterMs, atOnce };
  }

  /** Adds an entry, if it does not wait already. `afterMs` is for one that must wait longer, such as one to be tried again. */
  add(entry: Entry, afterMs = this.#options.afterMs): void {
    if (this.#isClosed) return;
    this.#waiting.add(entry);
    if (this.#waiting.size >= this.#options.most) this.flush();
    else this.#timer ??= setTimeout(() => this.flush(), afterMs);
  }

  /** Sends what waits without waiting longer: now, or when a batch under way has ended. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#sending < this.#options.atOnce && this.#waiting.size > 0) {
      this.#sending++;
      void this.#send(this.#take()).finally(() => {
        this.#sending--;
        // Entries with a timer wait for it.
        if (!this.#timer) this.flush();
      });
    }
    if (this.#isIdle) for (const idle of this.#onIdle.splice(0)) idle();
  }

  /** Resolves when everything that was added is sent. */
  async idle(): Promise<void> {
    if (!this.#isIdle) await new Promise<void>((resolve) => this.#onIdle.push(resolve));
  }

  /** Drops what waits, and what is added from now on. */
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
 * The settled prefix of a partition: positions are opened in order and settled in any order; `through` is the last position
 * up to which everything has settled. A broker that acknowledges by offset may be told only that position.
 */
export class SettledPrefix<Position> {
  /** Opened and not yet part of the prefix, oldest first. */
  readonly #open: { position: Position; settled: boolean }[] = [];
  #head = 0;
  #through: Position | undefined;

  /** Opens the next position; call the returned function when it settles. */
  open(position: Position): () => void {
    const entry = { position, settled: false };
    this.#open.push(entry);
    return () => {
      entry.settled = true;
      this.#advance();
    };
  }

  /** Open positions: unsettled, or settled behind an unsettled one. */
  get size(): number {
    return this.#open.length - this.#head;
  }

  /** The last position of the settled prefix; undefined while nothing has settled. */
  get through(): Position | undefined {
    return this.#through;
  }

  #advance(): void {
    while (this.#open[this.#head]?.settled) {
      this.#through = this.#open[this.#head]?.position;
      this.#head++;
    }
    // Dropping the settled head in blocks keeps this linear.
    if (this.#head > 1024 || this.#head === this.#open.length) {
      this.#open.splice(0, this.#head);
      this.#head = 0;
    }
  }
}
