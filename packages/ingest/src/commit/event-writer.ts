import { type OngoingFailure, type TokenBuckets, workOfEvents } from '@gateway/core/process';
import { Stage } from '@gateway/core/queue';
import { rejectsContent } from '@gateway/store/postgres';
import type { ReadyMessage } from '../message/ready-message.js';
import { BatchCommitter, type BatchCommitterOptions } from './batch-committer.js';
import { retrying } from './retrying.js';

export interface EventWriterOptions extends BatchCommitterOptions {
  readonly pace: TokenBuckets;
  /** The maximum number of concurrent commits. */
  readonly committers: number;
  /** Returns the maximum number of these that commit small messages. By default all. */
  readonly smallCommitters?: (() => number) | undefined;
}

/**
 * A commit waits for capacity until no attempt has been recorded for this long. Its events are then
 * left to the queues.
 */
const PATIENCE_MS = 500;
/**
 * How long a project that uses most of its share waits before each commit, unless its usage drops
 * earlier. Deliveries committed without capacity are written again when claimed, which slows down
 * the next commit.
 */
const BUSY_MS = 250;
/** The interval at which messages are tried again that a fence of their project refused. */
const REFUSED_MS = 500;
/** The interval at which waiting projects are checked. Their messages accumulate meanwhile. */
const LOOK_MS = 20;
/**
 * The maximum bytes of a commit, except for a single larger message, because a commit has few
 * parameters and their lengths are limited.
 */
const BATCH_BYTES = 4 * 1024 * 1024;

/**
 * A message with more bytes or events is large. Large messages share commits, so that small ones do
 * not wait for them.
 */
const LARGE_BYTES = 64 * 1024;
const LARGE_EVENTS = 100;
/**
 * The maximum bytes of a commit of large messages, except for a single larger one. Writing them to
 * the socket takes 1 or 2 ms.
 */
const LARGE_BATCH_BYTES = 1024 * 1024;

interface WaitingMessage {
  readonly message: ReadyMessage;
  /**
   * The share of a commit's capacity that the message takes, by its events or bytes. Keeps commits
   * short even if a function creates many events.
   */
  readonly size: number;
  readonly isLarge: boolean;
  /** When the message may be committed, on the monotonic clock; 0 if immediately. */
  readonly dueAtMs: number;
  /** Whether a fence has refused the message, which may be in the history that is being moved. */
  readonly isRefused: boolean;
  /** Whether the commit routes the message's events. Undefined until the first try. */
  hasRoom: boolean | undefined;
}

/**
 * Commits accumulated messages in micro-batches, without waiting for a batch to fill. Projects take
 * turns.
 */
export class EventWriter {
  readonly #stage: Stage<WaitingMessage>;
  readonly #committer: BatchCommitter;
  /** When each busy project began to wait for a commit, on the monotonic clock. */
  readonly #busySinceMs = new Map<string, number>();
  readonly #failed = new WeakSet<ReadyMessage>();

  constructor(private readonly options: EventWriterOptions) {
    const { config, committers, router, log } = options;
    this.#committer = new BatchCommitter(options);
    this.#stage = new Stage<WaitingMessage>({
      concurrency: committers,
      capacity: config.ingest.batch_size,
      sizeOf: ({ size }) => size,
      // Others of the project do not wait behind those that wait for its history.
      ownerOf: ({ message, isRefused }) => message.projectId + (isRefused ? ' refused' : ''),
      together: (first, { isLarge }) => first.isLarge === isLarge,
      gate: (waiting, underWay) => this.#waitMs(waiting, underWay),
      work: (waiting) => this.#commitWaiting(waiting),
      // Health logs the state of Postgres; this one warning states the consequence.
      failed: (error, { length: messages }, isFirst) =>
        log[isFirst ? 'warn' : 'debug'](
          { error, messages },
          'Messages could not be committed; they stay unacknowledged and are tried again.',
        ),
      ...retrying(log),
      ended: (_, left) => {
        for (const { message } of left) message.settle('later');
      },
    });
    router.onRecorded(() => {
      if (this.#busySinceMs.size > 0) this.#stage.wake();
    });
  }

  /** The ongoing failure to commit, if any. */
  get failing(): OngoingFailure | undefined {
    return this.#stage.failing;
  }

  /**
   * Queues a message and returns immediately. It is settled after its commit, which is retried
   * until the writer stops. While all commits fail, a message with `failed` fails immediately: its
   * caller must not wait for Postgres.
   */
  push(message: ReadyMessage): void {
    this.#enqueue(message);
  }

  /** Stops committing and settles uncommitted messages as `later`: the broker keeps them. */
  stop(): void {
    this.#stage.stop();
  }

  #enqueue(message: ReadyMessage, isRefused = false): void {
    if (message.failed && this.#stage.isStuck) return message.failed(this.failing?.error);
    const { projectId, events } = message;
    const batchSize = this.options.config.ingest.batch_size;
    const [rows, bytes] = [Math.max(1, events.length), bytesOf(message)];
    const work = isRefused ? 0 : Math.max(0, workOfEvents(rows, bytes) - message.counted);
    const waitMs = this.options.pace.add(projectId, work);
    const isLarge = bytes > LARGE_BYTES || rows > LARGE_EVENTS;
    const size = Math.max(rows, (bytes * batchSize) / (isLarge ? LARGE_BATCH_BYTES : BATCH_BYTES));
    // The pace has already admitted a message whose caller waits.
    const dueInMs = isRefused ? REFUSED_MS : message.failed ? 0 : waitMs;
    const dueAtMs = dueInMs > 0 ? performance.now() + dueInMs : 0;
    this.#stage.push({ message, size, isLarge, dueAtMs, isRefused, hasRoom: undefined });
  }

  /** Returns the delay before a message may be committed. Reserves a committer for small ones. */
  #waitMs(
    { message, isLarge, dueAtMs }: WaitingMessage,
    underWay: ReadonlySet<readonly WaitingMessage[]>,
  ): number {
    const { committers, smallCommitters = () => committers, router } = this.options;
    const max = isLarge ? Math.max(1, committers - 1) : smallCommitters();
    let alike = 0;
    for (const [first] of underWay) if (first!.isLarge === isLarge) alike++;
    if (alike >= max) return Infinity;
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

  /**
   * Commits messages. On failure, the messages whose callers wait fail too.
   *
   * @param hasRoom whether the events are routed in the commit; otherwise they are left to the
   *   queues
   */
  async #commit(given: readonly ReadyMessage[], hasRoom: boolean): Promise<void> {
    const messages = given.filter((message) => !this.#failed.has(message));
    try {
      const { again, refused } = await this.#committer.commit(messages, hasRoom);
      for (const message of again) this.#enqueue(message);
      for (const message of refused) this.#enqueue(message, true);
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

/**
 * Returns the bytes that a message adds to a commit: its events and, if quarantined or kept, the
 * message itself.
 */
function bytesOf({ events, quarantined, kept }: ReadyMessage): number {
  let bytes = quarantined?.raw.byteLength ?? kept?.raw?.byteLength ?? 0;
  for (const event of events) {
    bytes += event.data.length + (event.notes?.length ?? 0);
    for (const name in event.headers) bytes += event.headers[name]?.length ?? 0;
  }
  return bytes;
}
