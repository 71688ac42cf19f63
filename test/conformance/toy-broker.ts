import { randomUUID } from 'node:crypto';

export interface Stored {
  readonly number: number;
  readonly at: number;
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * An in-memory queue for deliberately broken plugins: a reader locks a message until it
 * acknowledges it or gives it back.
 */
export class ToyQueue {
  readonly name = randomUUID();
  readonly #stored = new Map<number, Stored>();
  /** Reader and expiry of locks, by number. */
  readonly #locked = new Map<number, { readonly reader: string; until: number }>();
  #next = 0;
  #away = false;
  readonly #waiting = new Set<() => void>();

  get isUntouched(): boolean {
    return this.#next === 0;
  }

  get unacknowledged(): number {
    return this.#stored.size;
  }

  get waiting(): number {
    const now = Date.now();
    return [...this.#stored.keys()].filter(
      (number) => (this.#locked.get(number)?.until ?? 0) <= now,
    ).length;
  }

  get isAway(): boolean {
    return this.#away;
  }

  set isAway(away: boolean) {
    this.#away = away;
    this.#wake();
  }

  send(body: Uint8Array, headers: Readonly<Record<string, string>>): void {
    const number = this.#next++;
    this.#stored.set(number, { number, at: Date.now(), body, headers });
    this.#wake();
  }

  /**
   * Locks up to `most` messages for `LEASE_MS`, oldest first; waits for one until the signal
   * aborts. Rejects while the broker is away.
   */
  async receive(reader: string, most: number, signal: AbortSignal): Promise<Stored[]> {
    for (;;) {
      this.#mustBeThere();
      const now = Date.now();
      const free = [...this.#stored.values()]
        .filter(({ number }) => (this.#locked.get(number)?.until ?? 0) <= now)
        .slice(0, most);
      for (const { number } of free) this.#locked.set(number, { reader, until: now + LEASE_MS });
      if (free.length > 0 || signal.aborted) return free;
      await this.#news(signal);
    }
  }

  /** Makes the locks of this reader permanent. */
  keepFor(dead: string): void {
    for (const lock of this.#locked.values()) if (lock.reader === dead) lock.until = Infinity;
  }

  extend(number: number): void {
    this.#mustBeThere();
    const lock = this.#locked.get(number);
    if (lock) lock.until = Date.now() + LEASE_MS;
  }

  acknowledge(number: number): void {
    this.#mustBeThere();
    this.#stored.delete(number);
    this.#locked.delete(number);
  }

  giveBack(number: number): void {
    this.#mustBeThere();
    this.#locked.delete(number);
    this.#wake();
  }

  /** Keeps a message locked forever. */
  lose(number: number): void {
    this.#locked.set(number, { reader: '', until: Infinity });
  }

  skipTo(first: number): void {
    for (const number of this.#stored.keys()) if (number < first) this.#stored.delete(number);
  }

  #mustBeThere(): void {
    if (this.#away) throw new Error('the toy broker is away');
  }

  #news(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#waiting.delete(done);
        resolve();
      };
      // Locks expire.
      const timer = setTimeout(done, LEASE_MS / 2);
      signal.addEventListener('abort', done);
      this.#waiting.add(done);
    });
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** The duration of a lock in milliseconds. */
export const LEASE_MS = 400;

/** The broker: queues by name, and one password. */
export const queues = new Map<string, ToyQueue>();
export const PASSWORD = 'the-toy-password';
