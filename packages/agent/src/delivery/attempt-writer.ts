import type { Log } from '@gateway/core/logging';
import { backoffMs } from '@gateway/core/process';
import { recordAttempts, type AttemptRecord } from '@gateway/store/deliveries';
import { rejectsContent, type Database } from '@gateway/store/postgres';
import type { Measure } from '../telemetry/measure.js';
import { attemptFields } from '../telemetry/debug-log.js';

const BATCH_MAX = 500;
/**
 * The endpoint has its request already, so a moment's wait costs nobody latency and makes batches; what is lost with a kill in this
 * moment is sent twice.
 */
const LINGER_MS = 8;

/** Writes attempts in batches, and tries again for as long as Postgres is away. What Postgres refuses for its content is written without it. */
export class AttemptWriter {
  readonly #database: Database;
  readonly #log: Log;
  readonly #onRecorded: (attempts: readonly AttemptRecord[]) => void;
  readonly #measure: Measure | undefined;
  readonly #writers: number;
  #waiting: AttemptRecord[] = [];
  #writing = 0;
  #timer: NodeJS.Timeout | undefined;
  #idle: (() => void)[] = [];
  #stopped = false;
  /** Attempts that were stripped already. */
  readonly #bare = new WeakSet<AttemptRecord>();
  failingSince: Date | null = null;

  constructor({
    database,
    log,
    writers,
    onRecorded,
    measure,
  }: {
    database: Database;
    log: Log;
    /** Statements under way at a time. */
    writers: number;
    onRecorded: (attempts: readonly AttemptRecord[]) => void;
    measure?: Measure | undefined;
  }) {
    this.#database = database;
    this.#log = log;
    this.#writers = writers;
    this.#onRecorded = onRecorded;
    this.#measure = measure;
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

  /** What is reported as recorded may not be: its deliveries are recovered by another agent. */
  get stopped(): boolean {
    return this.#stopped;
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
        const startedAtMs = this.#measure ? performance.now() : 0;
        await recordAttempts(this.#database.pool, batch);
        this.#measure?.step('record', startedAtMs);
        this.#measure?.batch('record', batch.length);
        this.failingSince = null;
        return;
      } catch (error) {
        if (rejectsContent(error)) return this.#writeApart(batch, error as Error);
        this.failingSince ??= new Date();
        this.#log.warn({ error, attempts: batch.length }, 'Delivery attempts could not be recorded; trying again.');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(failures, { capMs: 5_000 })));
      }
    }
  }

  /** Splits a batch that Postgres refuses until the offender stands alone, which is then recorded without what may offend. */
  async #writeApart(batch: readonly AttemptRecord[], error: Error): Promise<void> {
    const [only] = batch;
    if (batch.length > 1) {
      const half = batch.length >> 1;
      await this.#write(batch.slice(0, half));
      await this.#write(batch.slice(half));
    } else if (only && !this.#bare.has(only)) {
      const bare = bareAttempt(only, error);
      this.#bare.add(bare);
      this.#log.error(
        { error, ...attemptFields(only) },
        'Postgres refuses a delivery attempt as it is; it is recorded without its details, and its delivery has ended.',
      );
      await this.#write([bare]);
    } else {
      this.#log.error({ error, ...(only && attemptFields(only)) }, 'A delivery attempt cannot be recorded.');
    }
  }
}

/** An attempt without what an endpoint or its settings put into it. */
function bareAttempt(attempt: AttemptRecord, error: Error): AttemptRecord {
  const delivered = attempt.status === 'success';
  return {
    ...attempt,
    number: Math.min(attempt.number, 32_767),
    error: null,
    responseHeaders: null,
    responseBody: null,
    status: delivered ? 'success' : 'failure',
    dueInMs: null,
    reason: delivered
      ? null
      : `The attempt could not be recorded as it was: ${error.message}. The retry policy of the endpoint may be at fault.`,
  };
}
