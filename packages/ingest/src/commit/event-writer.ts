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
/** The interval at which messages are tried again that a fence of their project refused. */
const REFUSED_MS = 500;
/** The interval at which waiting projects are checked. Their messages accumulate meanwhile. */
const LOOK_MS = 20;
/**
 * The maximum bytes of a commit, except for a single larger message: other projects wait for it.
 * Writing them to the socket takes 1 or 2 ms.
 */
const BATCH_BYTES = 1024 * 1024;

/**
 * A message with more bytes or events is large. Large messages share commits, and leave a committer
 * free, so that small ones do not wait for them.
 */
const LARGE_BYTES = 64 * 1024;
const LARGE_EVENTS = 100;

/**
 * Commits accumulated messages in micro-batches, without waiting for a batch to fill. Projects take
 * turns.
 */
export class EventWriter {
  readonly #stage: Stage<ReadyMessage>;
  readonly #committer: BatchCommitter;
  readonly #busySinceMs = new Map<string, number>();
  readonly #failed = new WeakSet<ReadyMessage>();

  constructor(private readonly options: EventWriterOptions) {
    const { config, committers, router, log } = options;
    this.#committer = new BatchCommitter(options);
    this.#stage = new Stage<ReadyMessage>({
      concurrency: committers,
      capacity: config.ingest.batch_size,
      sizeOf: ({ size }) => size,
      // Others of the project do not wait behind those that wait for its history.
      ownerOf: ({ projectId, isRefused }) => (isRefused ? `${projectId} refused` : projectId),
      together: (first, { isLarge }) => first.isLarge === isLarge,
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
    const { projectId, events, counted, isRefused, failed } = message;
    const batchSize = this.options.config.ingest.batch_size;
    const [rows, bytes] = [Math.max(1, events.length), bytesOf(message)];
    const work = isRefused ? 0 : Math.max(0, workOfEvents(rows, bytes) - counted);
    const waitMs = this.options.pace.add(projectId, work);
    // The pace has already admitted a message whose caller waits.
    const dueInMs = isRefused ? REFUSED_MS : failed ? 0 : waitMs;
    message.dueAtMs = dueInMs > 0 ? performance.now() + dueInMs : 0;
    message.isLarge = bytes > LARGE_BYTES || rows > LARGE_EVENTS;
    message.size = Math.max(rows, (bytes * batchSize) / BATCH_BYTES);
    this.#stage.push(message);
  }

  /** Stops committing and settles uncommitted messages as `later`: the broker keeps them. */
  stop(): void {
    this.#stage.stop();
  }

  #waitMs(
    { projectId, dueAtMs, isLarge }: ReadyMessage,
    underWay: ReadonlySet<readonly ReadyMessage[]>,
  ): number {
    const { committers, router } = this.options;
    if (isLarge) {
      let large = 0;
      for (const [first] of underWay) if (first!.isLarge) large++;
      if (large >= Math.max(1, committers - 1)) return Infinity;
    }
    const isBusy = router.isBusy(projectId);
    if (!isBusy && this.#busySinceMs.size > 0) this.#busySinceMs.delete(projectId);
    if (!isBusy && dueAtMs === 0) return 0;
    const nowMs = performance.now();
    if (isBusy) {
      const sinceMs = this.#busySinceMs.get(projectId) ?? nowMs;
      this.#busySinceMs.set(projectId, sinceMs);
      if (nowMs - sinceMs < BUSY_MS) return LOOK_MS;
    }
    return dueAtMs > nowMs ? Math.max(LOOK_MS, dueAtMs - nowMs) : 0;
  }

  /** Commits messages. On failure, the messages whose callers wait fail too. */
  async #commit(given: readonly ReadyMessage[]): Promise<void> {
    for (const { projectId } of given) this.#busySinceMs.delete(projectId);
    const messages =
      this.#stage.failing === undefined
        ? given
        : given.filter((message) => !this.#failed.has(message));
    try {
      for (const message of await this.#committer.commit(messages)) this.push(message);
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
    bytes += event.data.length + (event.notes?.length ?? 0);
    for (const name in event.headers) bytes += event.headers[name]?.length ?? 0;
  }
  return bytes;
}
