import { backoffMs, type Log } from '@gateway/core';
import { recordAttempts, type AttemptRecord, type Database } from '@gateway/store';

const BATCH_MAX = 500;
/**
 * The endpoint has its request already, so a moment's wait costs nobody latency and makes batches; what is lost with a kill in this
 * moment is sent twice.
 */
const LINGER_MS = 8;

/** Writes attempts in batches, and tries again for as long as Postgres is away. */
export class Recorder {
  readonly #database: Database;
  readonly #log: Log;
  readonly #onRecorded: (attempts: readonly AttemptRecord[]) => void;
  readonly #writers: number;
  #waiting: AttemptRecord[] = [];
  #writing = 0;
  #timer: NodeJS.Timeout | undefined;
  #idle: (() => void)[] = [];
  #stopped = false;
  failingSince: Date | null = null;

  constructor({
    database,
    log,
    writers,
    onRecorded,
  }: {
    database: Database;
    log: Log;
    /** Statements under way at a time. */
    writers: number;
    onRecorded: (attempts: readonly AttemptRecord[]) => void;
  }) {
    this.#database = database;
    this.#log = log;
    this.#writers = writers;
    this.#onRecorded = onRecorded;
  }

  push(attempt: AttemptRecord): void {
    this.#waiting.push(attempt);
    if (this.#waiting.length >= BATCH_MAX) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), LINGER_MS);
  }

  /** Resolves when everything that was pushed is written. */
  async settled(): Promise<void> {
    while (this.#waiting.length > 0 || this.#writing > 0) {
      this.#flush();
      await new Promise<void>((resolve) => this.#idle.push(resolve));
    }
  }

  /** Gives up what could not be written: its deliveries are recovered by another agent. */
  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#waiting.length > 0 && this.#writing < this.#writers) {
      const batch = this.#waiting.splice(0, BATCH_MAX);
      this.#writing++;
      void this.#write(batch).then(() => {
        this.#writing--;
        this.#onRecorded(batch);
        if (this.#waiting.length >= BATCH_MAX) this.#flush();
        else if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#flush(), LINGER_MS);
        if (this.#idle.length > 0) for (const wake of this.#idle.splice(0)) wake();
      });
    }
  }

  async #write(batch: readonly AttemptRecord[]): Promise<void> {
    for (let failures = 1; !this.#stopped; failures++) {
      try {
        await recordAttempts(this.#database.pool, batch);
        this.failingSince = null;
        return;
      } catch (error) {
        this.failingSince ??= new Date();
        this.#log.warn({ err: error, attempts: batch.length }, 'Delivery attempts could not be recorded; trying again.');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(failures, { capMs: 5_000 })));
      }
    }
  }
}
