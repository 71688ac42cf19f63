import { IN_FLIGHT_BYTES, PluginError, settles, type Handle, type SourceContext } from '@gateway/plugin';
import type { Consumer, ConsumerGroupJoinEvent, EachBatchPayload } from 'kafkajs';
import { openClient, type Client } from './client.js';
import { groupOf, type Connection } from './connection.js';
import { unwrap } from './explain.js';
import { logTo } from './log.js';
import { Reader, type ReaderContext } from './reader.js';

/**
 * A killed agent's partitions move when its session ends, so it is as short as brokers allow by default (`group.min.session.timeout.ms`). Heartbeats go out
 * with every poll and, while a window is full, with every tick: they do not depend on how fast messages settle.
 */
const SESSION_MS = 6_000;
/** A member learns by its heartbeats that others come or go, and from then on nobody reads until all have joined again: so this is the pause of a restart. */
const HEARTBEAT_MS = 300;
const REBALANCE_MS = 10_000;
/** Longest poll of an idle topic. A new message ends it at once; heartbeats and leaving the group wait for it. */
const POLL_MS = 300;
const PARTITIONS_AT_ONCE = 16;
const RETRIES = 5;
/** Messages that all partitions together may have in flight, however many they are, or one window, where that is larger. For bytes there is `IN_FLIGHT_BYTES`. */
const IN_FLIGHT_MAX = 4_000;

const TICK_MS = 1_000;
const COMMIT_MS = 200;
/** kafkajs can stop fetching without a word; this long without a poll, a heartbeat or a rebalance is taken for that. */
const STALL_MS = 30_000;
/** A message is refused when the agent drains, and then the end follows at once. If it does not, its partition would stand still for ever. */
const REFUSAL_MS = 5_000;
const FINAL_COMMIT_MS = 2_000;
const DISCONNECT_MS = 3_000;

/** One member of the consumer group. Its life: `start`, then until the end `failed` may reject; `drain` when the end comes in peace; `close`. */
export class Member {
  /** Rejects when the member can no longer read. Never resolves. */
  readonly failed: Promise<never>;
  readonly #fail: (error: unknown) => void;
  readonly #connection: Connection;
  readonly #group: string;
  readonly #context: SourceContext;
  readonly #client: Client;
  readonly #consumer: Consumer;
  readonly #readerContext: ReaderContext;
  readonly #tick: NodeJS.Timeout;

  /** By partition: exactly what the latest assignment gave to this member. */
  #readers = new Map<number, Reader>();
  /** Messages handed over and unsettled, of this and earlier assignments. */
  #open = 0;
  #openBytes = 0;
  /** Some reader was told that there is no room. */
  #wasFull = false;
  #onIdle: (() => void) | undefined;
  #draining = false;
  #closed = false;
  #seenAt = Date.now();
  #refusedAt: number | undefined;
  #commitTimer: NodeJS.Timeout | undefined;
  #committing: Promise<void> = Promise.resolve();
  /**
   * Commits by the assignment of the moment, or fails. The consumer's own `commitOffsets` tries again after a lost connection, by the assignment of then, which
   * may have given the partitions to others.
   */
  #commitOnce: EachBatchPayload['commitOffsetsIfNecessary'] | undefined;

  constructor(connection: Connection, handle: Handle, context: SourceContext, clientId: string) {
    let fail: (error: unknown) => void = () => {};
    this.failed = new Promise((_resolve, reject) => (fail = reject));
    this.failed.catch(() => {});
    this.#fail = fail;
    this.#connection = connection;
    this.#group = groupOf(connection, context.sourceId);
    this.#context = context;
    this.#client = openClient(connection, { clientId, retries: RETRIES, logTo: logTo(context.log, () => !this.#closed) });
    this.#consumer = this.#client.kafka.consumer({
      groupId: this.#group,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_MS,
      minBytes: 1,
      maxWaitTimeInMs: POLL_MS,
      allowAutoTopicCreation: false,
      // Starting again is the business of the agent, which backs off and tells health.
      retry: { retries: RETRIES, restartOnFailure: () => Promise.resolve(false) },
    });
    this.#readerContext = {
      topic: connection.topic_name,
      window: context.window,
      handle,
      hasRoom: () => {
        const hasRoom = this.#hasRoom;
        if (!hasRoom) this.#wasFull = true;
        return hasRoom;
      },
      opened: (bytes) => {
        this.#open++;
        this.#openBytes += bytes;
      },
      settled: (refused, bytes) => this.#settled(refused, bytes),
    };
    this.#tick = setInterval(() => this.#look(), TICK_MS);
    this.#listen();
  }

  /** What the latest assignment gave to this member. */
  get readers(): Iterable<Reader> {
    return this.#readers.values();
  }

  /** Connects and joins the group; resolves when this member has its partitions. */
  async start(): Promise<void> {
    await this.#consumer.connect();
    if (this.#closed) return;
    await this.#consumer.subscribe({ topics: [this.#connection.topic_name], fromBeginning: true });
    if (this.#closed) return;
    await this.#consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
      eachBatch: (payload) => this.#read(payload),
    });
  }

  /** Stops reading, waits for what was handed over and commits it. Never rejects. */
  async drain(): Promise<void> {
    this.#draining = true;
    for (const reader of this.#readers.values()) reader.wake();
    try {
      // The member goes on with its heartbeats, so that its partitions stay where they are until the offsets are committed.
      this.#consumer.pause([{ topic: this.#connection.topic_name }]);
    } catch {
      // It is not in the group, because it has not come that far or has failed.
    }
    if (this.#open > 0) await new Promise<void>((resolve) => (this.#onIdle = resolve));
    await settles(this.#commitAll(), FINAL_COMMIT_MS);
  }

  /** Leaves the group and closes the connections. Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#draining = true;
    clearInterval(this.#tick);
    clearTimeout(this.#commitTimer);
    for (const reader of this.#readers.values()) reader.wake();
    if (!(await settles(this.#consumer.disconnect(), DISCONNECT_MS)))
      this.#context.log.warn({ group: this.#group }, 'the brokers did not let the consumer leave in time; its connections are cut');
    // A connection that kafkajs was still opening outlives its `disconnect`.
    this.#client.destroy();
  }

  /** Hands over the records of one fetch, as the window lets them; the next fetch of these partitions waits for this. */
  async #read({ batch, resolveOffset, heartbeat, isRunning, commitOffsetsIfNecessary }: EachBatchPayload): Promise<void> {
    this.#commitOnce = commitOffsetsIfNecessary;
    const reader = this.#readers.get(batch.partition);
    if (!reader) return;
    let last: string | undefined;
    reader.endsAt(batch.highWatermark);
    try {
      for (const record of batch.messages) {
        while (!reader.hasRoom) {
          await reader.room();
          await heartbeat();
          if (!this.#reads(reader) || !isRunning()) return;
        }
        if (!this.#reads(reader)) return;
        reader.handOver(record);
        last = record.offset;
      }
      reader.passed(batch.lastOffset());
    } finally {
      // Moves the position of the next fetch. Not after a new assignment: its reader starts at the committed offset and must see every record from there,
      // otherwise its prefix would be settled over records that it never opened.
      if (last !== undefined && this.#readers.get(batch.partition) === reader) resolveOffset(last);
    }
  }

  #reads(reader: Reader): boolean {
    return !this.#draining && this.#readers.get(reader.partition) === reader;
  }

  #listen(): void {
    const { events, on } = this.#consumer;
    const seen = () => (this.#seenAt = Date.now());
    on(events.HEARTBEAT, seen);
    on(events.FETCH, seen);
    on(events.START_BATCH_PROCESS, seen);
    on(events.END_BATCH_PROCESS, ({ payload }) => {
      // Nothing to hand over in all of the fetch: then that is all that is heard of it.
      if (payload.batchSize > 0) return;
      const reader = this.#readers.get(payload.partition);
      reader?.endsAt(payload.highWatermark);
      reader?.passed(payload.lastOffset);
    });
    on(events.GROUP_JOIN, ({ payload }) => {
      seen();
      this.#assign(payload);
    });
    // The broker still takes offsets of the old assignment now, and this request is on its way before the one that joins again.
    on(events.REBALANCING, () => void this.#commit());
    on(events.CRASH, ({ payload }) => this.#fail(payload.error));
  }

  #assign({ memberAssignment, memberId }: ConsumerGroupJoinEvent['payload']): void {
    const partitions = memberAssignment[this.#connection.topic_name] ?? [];
    const before = this.#readers;
    this.#readers = new Map(partitions.map((partition) => [partition, new Reader(partition, this.#readerContext)]));
    for (const reader of before.values()) reader.wake();
    this.#context.log.info({ group: this.#group, member: memberId, partitions }, 'partitions assigned');
  }

  get #hasRoom(): boolean {
    return this.#open < Math.max(IN_FLIGHT_MAX, this.#context.window) && this.#openBytes < IN_FLIGHT_BYTES;
  }

  #settled(refused: boolean, bytes: number): void {
    this.#open--;
    this.#openBytes -= bytes;
    if (this.#wasFull && this.#hasRoom) {
      this.#wasFull = false;
      for (const reader of this.#readers.values()) reader.wake();
    }
    if (refused) this.#refusedAt ??= Date.now();
    if (this.#open === 0) this.#onIdle?.();
    this.#commitSoon(COMMIT_MS);
  }

  #commitSoon(ms: number): void {
    if (this.#closed) return;
    this.#commitTimer ??= setTimeout(() => {
      this.#commitTimer = undefined;
      void this.#commit();
    }, ms);
  }

  /** Commits what is settled; one request at a time. Never rejects. */
  #commit(): Promise<void> {
    return (this.#committing = this.#committing.then(() => this.#sendOffsets()));
  }

  async #commitAll(): Promise<void> {
    await this.#commit();
    // Between a rebalance and the new assignment brokers take no offsets.
    while (!this.#closed && this.#dirty().length > 0) {
      await new Promise((resolve) => setTimeout(resolve, COMMIT_MS));
      await this.#commit();
    }
  }

  #dirty(): { reader: Reader; through: string }[] {
    return [...this.#readers.values()].flatMap((reader) => (reader.dirty === undefined ? [] : [{ reader, through: reader.dirty }]));
  }

  async #sendOffsets(): Promise<void> {
    const due = this.#dirty();
    if (due.length === 0 || !this.#commitOnce) return;
    const { topic_name: topic } = this.#connection;
    try {
      const partitions = due.map(({ reader: { partition }, through }) => ({ partition, offset: String(BigInt(through) + 1n) }));
      await this.#commitOnce({ topics: [{ topic, partitions }] });
      for (const { reader, through } of due) reader.committed(through);
    } catch (error) {
      const fields = { topic, group: this.#group, error: error instanceof Error ? error.message : String(error) };
      if (isStale(error))
        this.#context.log.debug(fields, 'offsets of an earlier assignment were not committed; their messages are read again');
      else this.#context.log.warn(fields, 'offsets were not committed; trying again');
      this.#commitSoon(TICK_MS);
    }
  }

  #look(): void {
    const now = Date.now();
    for (const reader of this.#readers.values()) reader.wake();
    if (this.#draining) return;
    if (now - this.#seenAt > STALL_MS) {
      this.#fail(
        new PluginError(
          `Reading the topic "${this.#connection.topic_name}" stood still for ${STALL_MS / 1000} seconds: no poll and no heartbeat.`,
          {
            fix: 'The source starts again by itself; if it happens often, look at the health of the cluster.',
          },
        ),
      );
    }
    if (this.#refusedAt !== undefined && now - this.#refusedAt > REFUSAL_MS) {
      this.#fail(
        new PluginError(
          `A message of the topic "${this.#connection.topic_name}" was not accepted, and what is behind it cannot be committed.`,
          {
            fix: 'The source starts again by itself at the last committed offset.',
          },
        ),
      );
    }
  }
}

const STALE = ['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'NOT_COORDINATOR_FOR_GROUP'];

/** The commit was for a generation of the group that is over. */
function isStale(error: unknown): boolean {
  const { types } = unwrap(error);
  return STALE.some((type) => types.has(type));
}
