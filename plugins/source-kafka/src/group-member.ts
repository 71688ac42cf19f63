import {
  Batches,
  ErrorChain,
  InFlight,
  PluginError,
  settles,
  type Handle,
  type Message,
  type SourceContext,
} from '@gateway/plugin';
import type { Consumer, ConsumerGroupJoinEvent, EachBatchPayload } from 'kafkajs';
import { logTo, openClient, type KafkaClient } from './client.js';
import {
  type Connection,
  groupOf,
  keyOf,
  labelOf,
  nameOf,
  type PartitionKey,
} from './connection.js';
import { currentFetch, FetchMemory, type SourceMemory } from './memory.js';
import { PartitionReader, type ReaderContext } from './partition-reader.js';
import { recordOf, type Beginning } from './positions.js';
import { idToCommit } from './topic-ids.js';
import { oldestOffset } from './watch.js';

/**
 * After it, other members get the partitions of a killed agent: the shortest that brokers allow by
 * default (`group.min.session.timeout.ms`). Heartbeats are sent with every poll and, while a window
 * is full, every tick, however fast messages settle.
 */
const SESSION_MS = 6_000;
/**
 * Determines the pause on a restart: the response to a heartbeat announces a rebalance, and members
 * read nothing until all have rejoined.
 */
const HEARTBEAT_MS = 300;
const REBALANCE_MS = 10_000;
/**
 * The longest poll of an idle topic. A message ends it early. Heartbeats and leaving the group wait
 * for it.
 */
const POLL_MS = 300;
/** New partitions of a topic are detected at this interval. The kafkajs default is five minutes. */
const METADATA_MS = 5_000;
const PARTITIONS_AT_ONCE = 16;
const RETRIES = 5;

const TICK_MS = 1_000;
const COMMIT_MS = 200;
/**
 * Without a poll, heartbeat or rebalance for this long, a member counts as stalled, because kafkajs
 * can stop fetching silently.
 */
const STALL_MS = 30_000;
/**
 * After a `later`, which means that the agent is draining and the run ends. If the run did not end,
 * the partition would be blocked forever, so the member fails.
 */
const REJECTION_MS = 5_000;
const FINAL_COMMIT_MS = 2_000;
const DISCONNECT_MS = 3_000;

/** From a commit for an earlier generation of the group. */
const STALE = [
  'REBALANCE_IN_PROGRESS',
  'ILLEGAL_GENERATION',
  'UNKNOWN_MEMBER_ID',
  'NOT_COORDINATOR_FOR_GROUP',
];

/** Shared by the members of a run. */
export interface SharedByMembers extends Beginning {
  readonly memory: SourceMemory;
  /** The offsets that the members have committed. */
  readonly committed: Map<PartitionKey, bigint>;
  /** Counts messages that were passed over, because their events have been deleted. */
  passedOver(messages: number): void;
}

/**
 * Call `start`, then `drain` unless `failed` has rejected, then `close`. To remove a member while
 * others remain, call `leave` instead of `drain` and `close`.
 */
export class GroupMember implements ReaderContext {
  /** Rejects when the member can no longer read. Never resolves. */
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => {};
  readonly window: number;
  readonly #group: string;
  readonly #client: KafkaClient;
  readonly #consumer: Consumer;
  readonly #ticks: NodeJS.Timeout;
  readonly #fetches = new Map<number, FetchMemory>();

  /** From the latest assignment. */
  #readers = new Map<PartitionKey, PartitionReader>();
  /** Across all partitions. Includes messages of earlier assignments. */
  readonly #inFlight = new InFlight(Infinity);
  /** A reader had to wait because the member was full. */
  #wasFull = false;
  #isDraining = false;
  #closing: Promise<void> | undefined;
  #isClosed = false;
  #isConnected = false;
  #seenAt = performance.now();
  #rejectedAt: number | undefined;
  /** Readers whose settled prefix has grown. One request commits for all. */
  readonly #commits = new Batches<PartitionReader>(() => this.#commit(), { afterMs: COMMIT_MS });
  /**
   * For the current assignment only. The consumer's `commitOffsets` retries after a lost
   * connection, possibly in a later assignment without these partitions.
   */
  #commitOnce: EachBatchPayload['commitOffsetsIfNecessary'] | undefined;

  constructor(
    private readonly connection: Connection,
    readonly handle: Handle,
    private readonly context: SourceContext,
    clientId: string,
    private readonly shared: SharedByMembers,
  ) {
    this.failed = new Promise((_resolve, reject) => (this.#fail = reject));
    this.failed.catch(() => {});
    this.window = context.window;
    this.#group = groupOf(connection, context.sourceId);
    this.#client = openClient(connection, {
      clientId,
      retries: RETRIES,
      logTo: logTo(context.log, () => !this.#isClosed),
    });
    this.#consumer = this.#client.kafka.consumer({
      groupId: this.#group,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_MS,
      minBytes: 1,
      maxWaitTimeInMs: POLL_MS,
      metadataMaxAge: METADATA_MS,
      allowAutoTopicCreation: false,
      ...(connection.client_rack !== undefined && { rackId: connection.client_rack }),
      // kafkajs must not restart the consumer: the agent restarts the source.
      retry: { retries: RETRIES, restartOnFailure: () => Promise.resolve(false) },
    });
    this.#ticks = setInterval(() => this.#tick(), TICK_MS);
    this.#listen();
  }

  /** Resolves when this member has its partitions. */
  async start(): Promise<void> {
    await this.#consumer.connect();
    if (this.#isClosed) return;
    this.#isConnected = true;
    await this.#consumer.subscribe({ topics: [...this.shared.topics], fromBeginning: true });
    if (this.#isClosed) return;
    await this.#consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
      eachBatch: (payload) => this.#readBatch(payload),
    });
  }

  /** Waits until all messages in flight have settled, and commits their offsets. Never rejects. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#wakeReaders();
    try {
      // The member still sends heartbeats, and so keeps its partitions until the offsets are
      // committed.
      this.#consumer.pause(this.shared.topics.map((topic) => ({ topic })));
    } catch {
      // `pause` throws if the member is not in the group, and so reads nothing.
    }
    await this.#inFlight.idle();
    this.#commits.flush();
    await settles(this.#commits.idle(), FINAL_COMMIT_MS);
  }

  /** Drains for at most `withinMs`, then closes. Never rejects. */
  async leave(withinMs: number): Promise<void> {
    await settles(this.drain(), withinMs);
    await this.close();
  }

  /** Never rejects. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    this.#isDraining = true;
    clearInterval(this.#ticks);
    this.#commits.close();
    this.#wakeReaders();
    // A member that never connected has no group to leave: destroy its sockets first.
    if (!this.#isConnected) this.#client.destroy();
    if (
      !(await settles(this.#consumer.disconnect(), this.#isConnected ? DISCONNECT_MS : 0)) &&
      this.#isConnected
    )
      this.context.log.warn(
        { group: this.#group },
        'the consumer did not leave the group in time; closing its connections',
      );
    // Connections that kafkajs is still opening outlive its `disconnect`, so destroy the client
    // again.
    this.#client.destroy();
    for (const fetch of this.#fetches.values()) fetch.release();
    this.#fetches.clear();
  }

  /** As the window permits. The partition's next fetch waits until it is done. */
  async #readBatch({
    batch,
    resolveOffset,
    heartbeat,
    isRunning,
    commitOffsetsIfNecessary,
  }: EachBatchPayload): Promise<void> {
    this.#commitOnce = commitOffsetsIfNecessary;
    const key = keyOf(batch.topic, batch.partition);
    const reader = this.#readers.get(key);
    if (!reader) return;
    // The kafkajs types lack `fetchedOffset`. A gap between it and the first record is due to
    // compaction or transactions, so those records are not lost.
    const { fetchedOffset } = batch as typeof batch & { readonly fetchedOffset: string };
    this.#lookForLost(reader, BigInt(fetchedOffset));
    let last: string | undefined;
    const isAssigned = () => this.#readers.get(key) === reader;
    const keptSinceMs = this.shared.before.keptSinceMs();
    const readTo = latest(this.shared.readTo.get(key), this.shared.committed.get(key));
    let passedOver = 0;
    try {
      for (const record of batch.messages) {
        while (!reader.hasRoom) {
          await reader.room();
          await heartbeat();
          if (this.#isDraining || !isAssigned() || !isRunning()) return;
        }
        if (this.#isDraining || !isAssigned()) return;
        // Its event was deleted, so it would be delivered a second time.
        if (Number(record.timestamp) < keptSinceMs && BigInt(record.offset) < readTo) {
          reader.skipTo(record.offset);
          passedOver++;
        } else reader.handOver(record);
        last = record.offset;
      }
      reader.skipTo(batch.lastOffset());
    } finally {
      // Set the position of the next fetch, except after a new assignment: the new reader must see
      // every record from the committed offset, or its prefix would include records that it never
      // opened.
      if (last !== undefined && isAssigned()) resolveOffset(last);
      if (passedOver > 0) this.shared.passedOver(passedOver);
    }
  }

  #listen(): void {
    const { events, on } = this.#consumer;
    const seen = () => (this.#seenAt = performance.now());
    on(events.HEARTBEAT, seen);
    on(events.FETCH, seen);
    on(events.FETCH_START, ({ payload: { nodeId } }) => {
      // Release the memory of the previous fetch: its batches have been read, and messages in
      // flight are copies.
      this.#fetches.get(nodeId)?.release();
      const fetch = new FetchMemory(this.shared.memory);
      this.#fetches.set(nodeId, fetch);
      // kafkajs emits this event within the fetch, so the response is decoded in the same async
      // context.
      currentFetch.enterWith(fetch);
    });
    on(events.START_BATCH_PROCESS, seen);
    on(events.END_BATCH_PROCESS, ({ payload }) => {
      // kafkajs reports a fetch without records only by this event.
      const key = keyOf(payload.topic, payload.partition);
      const reader = payload.batchSize === 0 ? this.#readers.get(key) : undefined;
      if (!reader) return;
      if (reader.next === undefined) this.#lookForLost(reader, BigInt(payload.lastOffset) + 1n);
      reader.skipTo(payload.lastOffset);
    });
    on(events.GROUP_JOIN, ({ payload }) => {
      seen();
      this.#assign(payload);
    });
    // This event precedes the request to rejoin, so the broker still accepts offsets of the old
    // assignment.
    on(events.REBALANCING, () => this.#commits.flush());
    on(events.CRASH, ({ payload }) => {
      if (!this.#isDraining) this.#fail(payload.error);
    });
  }

  /**
   * Records were deleted before they were read if reading continues at a `next` after the expected
   * offset, and the oldest record is after it too.
   */
  #lookForLost(reader: PartitionReader, next: bigint): void {
    const { topic, partition, key } = reader;
    const { startsAt, committed } = this.shared;
    const due = reader.next ?? latest(startsAt.get(key), committed.get(key));
    if (due < 0n || next <= due || !this.context.lost) return;
    const label = labelOf(this.connection, topic, partition);
    oldestOffset(this.connection, this.context, topic, partition).then(
      (oldest = 0n) => {
        const end = oldest < next ? oldest : next;
        if (end > due) this.context.lost?.(label, Number(end - due));
      },
      (error: unknown) => {
        if (this.context.signal.aborted) return;
        this.context.log.warn(
          { error, partition: label },
          'could not read the oldest offset of a partition: all skipped records count as deleted',
        );
        this.context.lost?.(label, Number(next - due));
      },
    );
  }

  #assign({ memberAssignment, memberId }: ConsumerGroupJoinEvent['payload']): void {
    const readers = Object.entries(memberAssignment).flatMap(([topic, partitions]) =>
      partitions.map((partition) => new PartitionReader(topic, partition, this)),
    );
    this.#wakeReaders();
    this.#readers = new Map(readers.map((reader) => [reader.key, reader]));
    const partitions = readers.map(({ topic, partition }) =>
      labelOf(this.connection, topic, partition),
    );
    for (const label of partitions) this.context.lost?.(label, 0);
    this.context.log.info(
      { group: this.#group, member: memberId, partitions },
      'partitions assigned',
    );
  }

  #wakeReaders(): void {
    for (const reader of this.#readers.values()) reader.wake();
  }

  hasRoom(): boolean {
    this.#wasFull = !this.#inFlight.hasRoom;
    return !this.#wasFull;
  }

  opened(message: Message): () => void {
    return this.#inFlight.open(message);
  }

  skipped(reader: PartitionReader): void {
    this.#commits.add(reader);
  }

  settled(reader: PartitionReader, isAcknowledged: boolean): void {
    if (this.#wasFull && this.hasRoom()) this.#wakeReaders();
    if (!isAcknowledged) this.#rejectedAt ??= performance.now();
    this.#commits.add(reader);
  }

  #uncommitted(): { reader: PartitionReader; through: string }[] {
    return [...this.#readers.values()].flatMap((reader) => {
      const through = reader.uncommitted;
      return through === undefined ? [] : [{ reader, through }];
    });
  }

  /** Never rejects. */
  async #commit(): Promise<void> {
    const due = this.#uncommitted();
    if (due.length === 0 || !this.#commitOnce) return;
    try {
      const { topics, ids, committed, readTo } = this.shared;
      const of = (topic: string) =>
        due
          .filter(({ reader }) => reader.topic === topic)
          .map(({ reader: { partition }, through }) => ({
            partition,
            offset: String(BigInt(through) + 1n),
            metadata: idToCommit(ids.get(topic)) ?? null,
          }));
      const all = topics.map((topic) => ({ topic, partitions: of(topic) }));
      await this.#commitOnce({ topics: all.filter(({ partitions }) => partitions.length > 0) });
      for (const { reader, through } of due) {
        const offset = BigInt(through) + 1n;
        reader.committed(through);
        committed.set(reader.key, offset);
        // After a rewind, messages up to the record were read before.
        if (offset > (readTo.get(reader.key) ?? -1n))
          this.context.record?.(reader.key, recordOf(reader.key, offset, ids));
      }
    } catch (error) {
      if (this.#isClosed) return;
      const { log } = this.context;
      const fields = {
        group: this.#group,
        error: error instanceof Error ? error.message : String(error),
      };
      if (new ErrorChain(error).has(...STALE))
        log.debug(
          fields,
          'could not commit offsets of an earlier assignment; their messages will be redelivered',
        );
      else log.warn(fields, 'could not commit offsets; retrying');
      // Retry the commit: between a rebalance and the assignment, brokers accept no offsets. A
      // draining member retries sooner.
      for (const { reader } of due)
        this.#commits.add(reader, this.#isDraining ? COMMIT_MS : TICK_MS);
    }
  }

  #tick(): void {
    this.#wakeReaders();
    if (this.#isDraining) return;
    const now = performance.now();
    if (now - this.#seenAt > STALL_MS) {
      this.#fail(
        new PluginError(
          `Reading ${nameOf(this.connection)} stalled for ${STALL_MS / 1000} seconds: no poll and no heartbeat.`,
          {
            fix: 'The source restarts by itself; if it happens often, check the health of the cluster.',
          },
        ),
      );
    }
    if (this.#rejectedAt !== undefined && now - this.#rejectedAt > REJECTION_MS) {
      this.#fail(
        new PluginError(
          `A message of ${nameOf(this.connection)} was not accepted, and the messages behind it cannot be committed.`,
          { fix: 'The source restarts by itself at the last committed offset.' },
        ),
      );
    }
  }
}

function latest(one = -1n, other = -1n): bigint {
  return one > other ? one : other;
}
