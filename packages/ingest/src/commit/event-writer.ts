import {
  backoffMs,
  type OngoingFailure,
  type TokenBuckets,
  workOfEvents,
} from '@gateway/core/process';
import { Stage } from '@gateway/core/queue';
import { rejectsContent } from '@gateway/store/postgres';
import type { ReadyMessage } from '../message/ready-message.js';
import { databaseRefused } from '../validate/reject-codes.js';
import { BatchCommitter, type BatchCommitterOptions } from './batch-committer.js';
import { quarantineFields } from './debug-log.js';

export interface EventWriterOptions extends BatchCommitterOptions {
  readonly pace: TokenBuckets;
  readonly committers: number;
}

/**
 * How long a project waits before a commit while there is no room for its deliveries, or it uses
 * most of its share. Deliveries committed without room are written again when claimed, which slows
 * down the next commit.
 */
const BUSY_MS = 250;
/** A message that a fence of its project refused is tried again after this time. */
const REFUSED_MS = 500;
/** The interval at which waiting projects are checked. Their messages accumulate meanwhile. */
const LOOK_MS = 20;
/**
 * The maximum bytes of a commit, except for a single larger message: other projects wait for it.
 * Writing them to the socket takes 1 or 2 ms.
 */
const BATCH_BYTES = 1024 * 1024;
/**
 * A message that takes more of a commit, by its events or bytes, is large. Large messages share
 * commits, and leave a committer free, so that small ones do not wait for them.
 */
const LARGE_SHARE = 1 / 10;

/**
 * Commits accumulated messages in micro-batches, without waiting for a batch to fill. Projects take
 * turns.
 */
export class EventWriter {
  readonly #stage: Stage<ReadyMessage>;
  readonly #committer: BatchCommitter;
  readonly #busySinceMs = new Map<string, number>();
  readonly #failed = new WeakSet<ReadyMessage>();
  readonly #largeSize: number;

  constructor(private readonly options: EventWriterOptions) {
    const { config, committers, router, log } = options;
    this.#committer = new BatchCommitter(options);
    this.#largeSize = Math.max(1, LARGE_SHARE * config.ingest.batch_size);
    this.#stage = new Stage<ReadyMessage>({
      concurrency: committers,
      capacity: config.ingest.batch_size,
      sizeOf: ({ size }) => size,
      ownerOf: ({ projectId }) => projectId,
      together: (first, message) => this.#isLarge(first) === this.#isLarge(message),
      gate: (message, underWay) => this.#waitMs(message, underWay),
      work: (messages) => this.#commit(messages),
      // Health logs the state of Postgres; this one warning states the consequence.
      failed: (error, { length: messages }, isFirst) =>
        log[isFirst ? 'warn' : 'debug'](
          { error, messages },
          'Messages could not be committed; they stay unacknowledged and are tried again.',
        ),
      backoffMs: (failures) => backoffMs(failures, { baseMs: 50, capMs: 2_000 }),
      refuses: rejectsContent,
      replace: (message, error) => this.#quarantine(message, error),
      ended: (_, left) => {
        for (const message of left) message.settle('later');
      },
    });
    router.onRecorded(() => {
      if (this.#busySinceMs.size > 0) this.#stage.wake();
    });
  }

  get failing(): OngoingFailure | undefined {
    return this.#stage.failing;
  }

  /**
   * Queues a message and returns immediately. It is settled after its commit, which is retried
   * until the writer stops. While all commits fail, a message with `failed` fails immediately: its
   * caller must not wait for Postgres.
   */
  push(message: ReadyMessage): void {
    if (message.failed && this.#stage.isStuck) return message.failed(this.failing?.error);
    const { projectId, events, counted, failed } = message;
    const { config, pace } = this.options;
    const [rows, bytes] = [Math.max(1, events.length), bytesOf(message)];
    message.counted = Math.max(counted, workOfEvents(rows, bytes));
    const waitMs = message.counted > counted ? pace.add(projectId, message.counted - counted) : 0;
    // The pace has already admitted a message whose caller waits.
    message.dueAtMs = waitMs > 0 && !failed ? performance.now() + waitMs : 0;
    message.size = Math.max(rows, (bytes * config.ingest.batch_size) / BATCH_BYTES);
    this.#stage.push(message);
  }

  /** Stops committing and settles uncommitted messages as `later`: the broker keeps them. */
  stop(): void {
    this.#stage.stop();
  }

  #isLarge({ size }: ReadyMessage): boolean {
    return size > this.#largeSize;
  }

  #waitMs(message: ReadyMessage, underWay: ReadonlySet<readonly ReadyMessage[]>): number {
    const { committers, router } = this.options;
    const { projectId } = message;
    if (this.#isLarge(message)) {
      let large = 0;
      for (const [first] of underWay) if (this.#isLarge(first!)) large++;
      if (large >= Math.max(1, committers - 1)) return Infinity;
    }
    if (router.isOrdered(projectId)) {
      // In the order of arrival: one commit at a time, and no event is left to be routed later.
      for (const batch of underWay)
        if (batch.some((it) => it.projectId === projectId)) return Infinity;
      // Its caller must not wait for the configuration, which may be away with Postgres.
      if (!message.failed && router.mustWait(projectId)) return LOOK_MS;
    }
    const isBusy = router.isBusy(projectId);
    if (!isBusy && this.#busySinceMs.size > 0) this.#busySinceMs.delete(projectId);
    if (!isBusy && message.dueAtMs === 0) return 0;
    const nowMs = performance.now();
    if (isBusy) {
      const sinceMs = this.#busySinceMs.get(projectId) ?? nowMs;
      this.#busySinceMs.set(projectId, sinceMs);
      if (nowMs - sinceMs < BUSY_MS) return LOOK_MS;
    }
    return message.dueAtMs > nowMs ? Math.max(LOOK_MS, message.dueAtMs - nowMs) : 0;
  }

  /** Commits messages. On failure, the messages whose callers wait fail too. */
  async #commit(given: readonly ReadyMessage[]): Promise<void> {
    for (const { projectId } of given) this.#busySinceMs.delete(projectId);
    const messages =
      this.#stage.failing === undefined
        ? given
        : given.filter((message) => !this.#failed.has(message));
    try {
      const { again, refused } = await this.#committer.commit(messages);
      for (const message of again) this.push(message);
      // Outside the queue, so that others of their projects do not wait behind them.
      if (refused.length > 0)
        setTimeout(() => refused.forEach((message) => this.push(message)), REFUSED_MS);
    } catch (error) {
      if (rejectsContent(error)) throw error;
      const called = messages.filter(({ failed }) => failed !== undefined);
      for (const message of called) {
        this.#failed.add(message);
        message.failed!(error);
      }
      if (called.length < messages.length) throw error;
    }
  }

  /** Quarantines a message that Postgres refuses. Refused even then, it stays with its broker. */
  #quarantine(message: ReadyMessage, error: Error): ReadyMessage | undefined {
    if (message.quarantined === null) {
      message.reject(databaseRefused(error));
      return message;
    }
    this.options.log.error(
      { error, ...quarantineFields(message.quarantined) },
      'Could neither accept nor quarantine a message; it stays unacknowledged.',
    );
    message.settle('later');
    return undefined;
  }
}

/** The events and, if quarantined or kept, the message itself. */
function bytesOf({ events, quarantined, kept }: ReadyMessage): number {
  let bytes = quarantined?.raw.byteLength ?? kept?.raw?.byteLength ?? 0;
  for (const event of events) {
    bytes += event.data.length + (event.message?.length ?? 0) + (event.notes?.length ?? 0);
    for (const name in event.headers) bytes += event.headers[name]?.length ?? 0;
  }
  return bytes;
}
