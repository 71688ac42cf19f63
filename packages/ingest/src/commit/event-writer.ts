import {
  backoffMs,
  type OngoingFailure,
  type ProjectPace,
  workOfEvents,
} from '@gateway/core/process';
import { Stage } from '@gateway/core/queue';
import { rejectsContent } from '@gateway/store/postgres';
import type { ReadyMessage } from '../message/ready-message.js';
import { databaseRefused } from '../message/reject-codes.js';
import { BatchCommitter, type BatchCommitterOptions } from './batch-committer.js';
import { quarantineFields } from './debug-log.js';

export interface EventWriterOptions extends BatchCommitterOptions {
  readonly pace: ProjectPace;
  /** Concurrent commits. */
  readonly committers: number;
}

/** A commit waits for capacity until nothing was recorded for this long; queues then route it. */
const PATIENCE_MS = 500;
/**
 * A project that holds most of its share commits at this interval, or once it holds less.
 * Deliveries committed without capacity are written again when claimed, which takes the capacity of
 * the next commit.
 */
const BUSY_MS = 250;
/** Interval of checks on waiting projects; messages accumulate meanwhile. */
const LOOK_MS = 20;
/** Content of a commit, unless one message exceeds it: its few parameters have limited lengths. */
const BATCH_BYTES = 4 * 1024 * 1024;

/** Bytes or events of a large message. Large ones share commits, so small ones need not wait. */
const LARGE_BYTES = 64 * 1024;
const LARGE_EVENTS = 100;
/** Content of large messages in a commit, unless one exceeds it; 1 or 2 ms of socket writes. */
const LARGE_BATCH_BYTES = 1024 * 1024;

interface WaitingMessage {
  readonly message: ReadyMessage;
  /** The weight in a commit: commits are short even if a function makes many events. */
  readonly size: number;
  readonly isLarge: boolean;
  /** When its project's pace admits it, on the monotonic clock; 0: immediately. */
  readonly dueAtMs: number;
  /** Whether its commit routes, decided when the commit is first tried. */
  hasRoom: boolean | undefined;
}

/**
 * Commits micro-batches of accumulated messages, projects in turn, without waiting to fill them.
 */
export class EventWriter {
  readonly #stage: Stage<WaitingMessage>;
  readonly #committer: BatchCommitter;
  /** Start of the time without a commit for each busy project, on the monotonic clock. */
  readonly #busySinceMs = new Map<string, number>();
  readonly #failed = new WeakSet<ReadyMessage>();

  constructor(private readonly options: EventWriterOptions) {
    const { config, committers, router, log } = options;
    this.#committer = new BatchCommitter(options);
    this.#stage = new Stage<WaitingMessage>({
      concurrency: committers,
      capacity: config.ingest.batch_size,
      sizeOf: ({ size }) => size,
      ownerOf: ({ message }) => message.projectId,
      together: (first, { isLarge }) => first.isLarge === isLarge,
      gate: (waiting, underWay) => this.#waitMs(waiting, underWay),
      work: (waiting) => this.#commitWaiting(waiting),
      // Health logs the state of Postgres; one line here states the consequence.
      failed: (error, { length: messages }, isFirst) =>
        log[isFirst ? 'warn' : 'debug'](
          { error, messages },
          'Messages could not be committed; they stay unacknowledged and are tried again.',
        ),
      backoffMs: (failures) => backoffMs(failures, { baseMs: 50, capMs: 2_000 }),
      refuses: rejectsContent,
      replace: (waiting, error) =>
        this.#quarantineRefused(waiting.message, error) ? waiting : undefined,
      ended: (_, left) => {
        for (const { message } of left) message.settle('later');
      },
    });
    router.onRecorded(() => {
      if (this.#busySinceMs.size > 0) this.#stage.wake();
    });
  }

  /** See `Stage.failing`. */
  get failing(): OngoingFailure | undefined {
    return this.#stage.failing;
  }

  /**
   * Returns immediately. The message is settled after its commit, which is retried until the writer
   * stops. A message with `failed` fails immediately while all commits fail: its caller must not
   * wait for Postgres.
   */
  push(message: ReadyMessage): void {
    if (message.failed && this.#stage.isStuck) return message.failed(this.failing?.error);
    const { projectId, events } = message;
    const batchSize = this.options.config.ingest.batch_size;
    const [rows, bytes] = [Math.max(1, events.length), bytesOf(message)];
    const waitMs = this.options.pace.add(
      projectId,
      Math.max(0, workOfEvents(rows, bytes) - (message.counted ?? 0)),
    );
    const isLarge = bytes > LARGE_BYTES || rows > LARGE_EVENTS;
    const size = Math.max(rows, (bytes * batchSize) / (isLarge ? LARGE_BATCH_BYTES : BATCH_BYTES));
    // The pace has already admitted a message whose caller waits.
    const dueAtMs = waitMs > 0 && !message.failed ? performance.now() + waitMs : 0;
    this.#stage.push({ message, size, isLarge, dueAtMs, hasRoom: undefined });
  }

  /** Settles uncommitted messages as `later`: the broker keeps them. */
  stop(): void {
    this.#stage.stop();
  }

  /** Milliseconds until a commit. One committer is reserved for small messages. */
  #waitMs(
    { message, isLarge, dueAtMs }: WaitingMessage,
    underWay: ReadonlySet<readonly WaitingMessage[]>,
  ): number {
    const { committers, router } = this.options;
    if (isLarge && committers > 1) {
      let large = 0;
      for (const [first] of underWay) if (first!.isLarge) large++;
      if (large >= committers - 1) return Infinity;
    }
    const isBusy = router.isBusy(message.projectId);
    if (!isBusy && this.#busySinceMs.size > 0) this.#busySinceMs.delete(message.projectId);
    if (!isBusy && dueAtMs === 0) return 0;
    const nowMs = performance.now();
    if (isBusy) {
      const sinceMs = this.#busySinceMs.get(message.projectId) ?? nowMs;
      this.#busySinceMs.set(message.projectId, sinceMs);
      if (nowMs - sinceMs < BUSY_MS) return LOOK_MS;
    }
    return dueAtMs > nowMs ? Math.max(LOOK_MS, dueAtMs - nowMs) : 0;
  }

  async #commitWaiting(waiting: readonly WaitingMessage[]): Promise<void> {
    const { config, router } = this.options;
    for (const { message } of waiting) this.#busySinceMs.delete(message.projectId);
    let { hasRoom } = waiting[0]!;
    if (hasRoom === undefined) {
      hasRoom =
        config.ingest.inline_routing && (router.hasRoom || (await router.waitForRoom(PATIENCE_MS)));
      for (const one of waiting) one.hasRoom = hasRoom;
    }
    await this.#commit(
      waiting.map(({ message }) => message),
      hasRoom,
    );
  }

  /** @returns false: the message is given up */
  #quarantineRefused(message: ReadyMessage, error: Error): boolean {
    if (message.quarantined === null) {
      message.reject(databaseRefused(error));
      return true;
    }
    const fields = quarantineFields(message.quarantined);
    this.options.log.error(
      { error, ...fields },
      'A message can be neither accepted nor quarantined; it stays unacknowledged.',
    );
    message.settle('later');
    return false;
  }

  /** @param hasRoom false leaves the events to the queues */
  async #commit(given: readonly ReadyMessage[], hasRoom: boolean): Promise<void> {
    const messages = given.filter((message) => !this.#failed.has(message));
    try {
      for (const message of await this.#committer.commit(messages, hasRoom)) this.push(message);
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
}

/** Bytes committed for a message: its events, or itself when quarantined or kept. */
function bytesOf({ events, quarantined, kept }: ReadyMessage): number {
  let bytes = quarantined?.raw.byteLength ?? kept?.raw?.byteLength ?? 0;
  for (const event of events) {
    bytes += event.data.length + (event.notes?.length ?? 0);
    for (const name in event.headers) bytes += event.headers[name]?.length ?? 0;
  }
  return bytes;
}
