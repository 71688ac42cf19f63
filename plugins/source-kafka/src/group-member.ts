import { Batches, ErrorChain, InFlight, PluginError, settles, type Handle, type Message, type SourceContext } from '@gateway/plugin';
import type { Consumer, ConsumerGroupJoinEvent, EachBatchPayload } from 'kafkajs';
import { logTo, openClient, type Client } from './client.js';
import { groupOf, type Connection } from './connection.js';
import { currentFetch, FetchMemory, type SourceMemory } from './memory.js';
import { PartitionReader, type ReaderContext } from './partition-reader.js';
import { idToCommit } from './topic-ids.js';
import { oldestOffset } from './watch.js';

/**
 * The partitions of a killed agent move when its session times out, so this is as short as brokers allow by default (`group.min.session.timeout.ms`).
 * Heartbeats go out with every poll and, while a window is full, with every tick: they do not depend on how fast messages settle.
 */
const SESSION_MS = 6_000;
/** Members learn from a heartbeat that the group rebalances, and read nothing until all have joined again: this is the pause of a restart. */
const HEARTBEAT_MS = 300;
const REBALANCE_MS = 10_000;
/** The longest poll of an idle topic. A new message ends it at once; heartbeats and leaving the group wait for it. */
const POLL_MS = 300;
/** A topic that has grown is noticed after this long; kafkajs looks every five minutes. */
const METADATA_MS = 5_000;
const PARTITIONS_AT_ONCE = 16;
const RETRIES = 5;
/** Messages that all partitions together may have in flight, or one window, if that is larger. `IN_FLIGHT_BYTES` limits their bytes. */
const IN_FLIGHT_MAX = 4_000;

const TICK_MS = 1_000;
const COMMIT_MS = 200;
/** kafkajs can stop fetching without an error; so long without a poll, a heartbeat or a rebalance means that it has. */
const STALL_MS = 30_000;
/** A message settles with `later` when the agent drains, and then the run ends. If it does not, the partition would stand still for ever. */
const REJECTION_MS = 5_000;
const FINAL_COMMIT_MS = 2_000;
const DISCONNECT_MS = 3_000;

/** Errors of a commit for a generation of the group that is over. */
const STALE = ['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'NOT_COORDINATOR_FOR_GROUP'];

/** What the members of a run share. */
export interface SharedByMembers {
  readonly memory: SourceMemory;
  readonly committed: Map<number, bigint>;
  readonly startsAt: ReadonlyMap<number, bigint>;
  readonly topicId: string | undefined;
}

/** One member of the consumer group: `start`; until the end `failed` may reject; `drain` unless it failed; `close`. Or, while others stay: `leave`. */
export class GroupMember implements ReaderContext {
  /** Rejects when the member can no longer read. Never resolves. */
  readonly failed: Promise<never>;
  #fail: (error: unknown) => void = () => {};
  readonly topic: string;
  readonly window: number;
  readonly handle: Handle;
  readonly #group: string;
  readonly #context: SourceContext;
  readonly #client: Client;
  readonly #consumer: Consumer;
  readonly #ticks: NodeJS.Timeout;
  readonly #memory: SourceMemory;
  readonly #committed: Map<number, bigint>;
  readonly #startsAt: ReadonlyMap<number, bigint>;
  readonly #metadata: string | undefined;
  readonly #connection: Connection;
  /** By broker: of its latest fetch. */
  readonly #fetches = new Map<number, FetchMemory>();

  /** By partition: exactly those of the latest assignment. */
  #readers = new Map<number, PartitionReader>();
  /** Messages in flight, of this and earlier assignments. */
  readonly #inFlight: InFlight;
  /** Some reader was refused for lack of room. */
  #wasFull = false;
  #isDraining = false;
  #closing: Promise<void> | undefined;
  #isClosed = false;
  #isConnected = false;
  #seenAt = performance.now();
  #rejectedAt: number | undefined;
  /** Readers whose settled prefix has grown. One request at a time commits those of all. */
  readonly #commits = new Batches<PartitionReader>(() => this.#commit(), { afterMs: COMMIT_MS });
  /**
   * Commits for the current assignment, or fails. `commitOffsets` of the consumer retries after a lost connection, then possibly for a later assignment, which
   * may have given the partitions to others.
   */
  #commitOnce: EachBatchPayload['commitOffsetsIfNecessary'] | undefined;

  /**
   * @param committed where the members of a source note what they have committed, by partition
   * @param startsAt what the group had committed before the run, by partition
   * @param topicId the id of the topic before the run; undefined when it is unknown
   */
  constructor(
    connection: Connection,
    handle: Handle,
    context: SourceContext,
    clientId: string,
    { memory, committed, startsAt, topicId }: SharedByMembers,
  ) {
    this.#connection = connection;
    this.#startsAt = startsAt;
    this.#metadata = idToCommit(topicId);
    this.#memory = memory;
    this.#committed = committed;
    this.failed = new Promise((_resolve, reject) => (this.#fail = reject));
    this.failed.catch(() => {});
    this.topic = connection.topic_name;
    this.window = context.window;
    this.#inFlight = new InFlight(Math.max(IN_FLIGHT_MAX, context.window));
    this.handle = handle;
    this.#group = groupOf(connection, context.sourceId);
    this.#context = context;
    this.#client = openClient(connection, { clientId, retries: RETRIES, logTo: logTo(context.log, () => !this.#isClosed) });
    this.#consumer = this.#client.kafka.consumer({
      groupId: this.#group,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: HEARTBEAT_MS,
      rebalanceTimeout: REBALANCE_MS,
      minBytes: 1,
      maxWaitTimeInMs: POLL_MS,
      metadataMaxAge: METADATA_MS,
      allowAutoTopicCreation: false,
      // The agent restarts the source, backs off and reports to health.
      retry: { retries: RETRIES, restartOnFailure: () => Promise.resolve(false) },
    });
    this.#ticks = setInterval(() => this.#tick(), TICK_MS);
    this.#listen();
  }

  /** Connects and joins the group; resolves when this member has its partitions. */
  async start(): Promise<void> {
    await this.#consumer.connect();
    if (this.#isClosed) return;
    this.#isConnected = true;
    await this.#consumer.subscribe({ topics: [this.topic], fromBeginning: true });
    if (this.#isClosed) return;
    await this.#consumer.run({
      autoCommit: false,
      eachBatchAutoResolve: false,
      partitionsConsumedConcurrently: PARTITIONS_AT_ONCE,
      eachBatch: (payload) => this.#readBatch(payload),
    });
  }

  /** Stops reading, waits until every message has settled, and commits. Never rejects. */
  async drain(): Promise<void> {
    this.#isDraining = true;
    this.#wakeReaders();
    try {
      // The member keeps sending heartbeats, so that it keeps its partitions until the offsets are committed.
      this.#consumer.pause([{ topic: this.topic }]);
    } catch {
      // It is not in the group: it has not joined yet or has failed.
    }
    await this.#inFlight.idle();
    this.#commits.flush();
    await settles(this.#commits.idle(), FINAL_COMMIT_MS);
  }

  /** Drains for a while and closes. Never rejects. */
  async leave(withinMs: number): Promise<void> {
    await settles(this.drain(), withinMs);
    await this.close();
  }

  /** Leaves the group and closes the connections. Never rejects. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async #close(): Promise<void> {
    this.#isClosed = true;
    this.#isDraining = true;
    clearInterval(this.#ticks);
    this.#commits.close();
    this.#wakeReaders();
    // No broker has to let go of a member that none has answered.
    if (!this.#isConnected) this.#client.destroy();
    if (!(await settles(this.#consumer.disconnect(), this.#isConnected ? DISCONNECT_MS : 0)) && this.#isConnected)
      this.#context.log.warn({ group: this.#group }, 'the brokers did not let the consumer leave in time; its connections are cut');
    // A connection that kafkajs is still opening outlives its `disconnect`.
    this.#client.destroy();
    for (const fetch of this.#fetches.values()) fetch.release();
    this.#fetches.clear();
  }

  /** Hands over the records of one fetch as the window permits; the next fetch of the partition waits for this. */
  async #readBatch({ batch, resolveOffset, heartbeat, isRunning, commitOffsetsIfNecessary }: EachBatchPayload): Promise<void> {
    this.#commitOnce = commitOffsetsIfNecessary;
    const reader = this.#readers.get(batch.partition);
    if (!reader) return;
    // Where the fetch began, which the types of kafkajs leave out: a gap behind it is one of compaction or of transactions.
    this.#lookForLost(reader, BigInt((batch as unknown as { fetchedOffset: string }).fetchedOffset));
    let last: string | undefined;
    const isAssigned = () => this.#readers.get(reader.partition) === reader;
    try {
      for (const record of batch.messages) {
        while (!reader.hasRoom) {
          await reader.room();
          await heartbeat();
          if (this.#isDraining || !isAssigned() || !isRunning()) return;
        }
        if (this.#isDraining || !isAssigned()) return;
        reader.handOver(record);
        last = record.offset;
      }
      reader.skipTo(batch.lastOffset());
    } finally {
      // Sets the position of the next fetch. Not after a new assignment: its reader starts at the committed offset and must see every record from there,
      // otherwise its prefix would extend over records that it never opened.
      if (last !== undefined && isAssigned()) resolveOffset(last);
    }
  }

  #listen(): void {
    const { events, on } = this.#consumer;
    const seen = () => (this.#seenAt = performance.now());
    on(events.HEARTBEAT, seen);
    on(events.FETCH, seen);
    on(events.FETCH_START, ({ payload: { nodeId } }) => {
      // The batches of the fetch before have been read; messages in flight are copies.
      this.#fetches.get(nodeId)?.release();
      const fetch = new FetchMemory(this.#memory);
      this.#fetches.set(nodeId, fetch);
      // Called at the start of the fetch, within it: its answer is decoded in this context.
      currentFetch.enterWith(fetch);
    });
    on(events.START_BATCH_PROCESS, seen);
    on(events.END_BATCH_PROCESS, ({ payload }) => {
      // A fetch without records is reported only here.
      const reader = payload.batchSize === 0 ? this.#readers.get(payload.partition) : undefined;
      if (!reader) return;
      if (reader.next === undefined) this.#lookForLost(reader, BigInt(payload.lastOffset) + 1n);
      reader.skipTo(payload.lastOffset);
    });
    on(events.GROUP_JOIN, ({ payload }) => {
      seen();
      this.#assign(payload);
    });
    // The broker still accepts offsets of the old assignment now, and this request goes out before the one that joins again.
    on(events.REBALANCING, () => this.#commits.flush());
    on(events.CRASH, ({ payload }) => {
      if (!this.#isDraining) this.#fail(payload.error);
    });
  }

  /** Reports records that the broker has deleted before they were read, so that reading goes on at `next`: the oldest record is behind what was due. */
  #lookForLost(reader: PartitionReader, next: bigint): void {
    const { partition } = reader;
    const known = [this.#startsAt, this.#committed].map((offsets) => offsets.get(partition) ?? -1n);
    const due = reader.next ?? known.reduce((one, other) => (one > other ? one : other));
    if (due < 0n || next <= due || !this.#context.lost) return;
    oldestOffset(this.#connection, this.#context, partition).then(
      (oldest = 0n) => {
        const end = oldest < next ? oldest : next;
        if (end > due) this.#context.lost?.(String(partition), Number(end - due));
      },
      (error: unknown) => {
        if (this.#context.signal.aborted) return;
        this.#context.log.warn(
          { error, partition },
          'the oldest offset of a partition could not be read: all that was skipped counts as deleted',
        );
        this.#context.lost?.(String(partition), Number(next - due));
      },
    );
  }

  #assign({ memberAssignment, memberId }: ConsumerGroupJoinEvent['payload']): void {
    const partitions = memberAssignment[this.topic] ?? [];
    this.#wakeReaders();
    this.#readers = new Map(partitions.map((partition) => [partition, new PartitionReader(partition, this)]));
    for (const partition of partitions) this.#context.lost?.(String(partition), 0);
    this.#context.log.info({ group: this.#group, member: memberId, partitions }, 'partitions assigned');
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

  /** Commits the settled prefixes. Never rejects. */
  async #commit(): Promise<void> {
    const due = this.#uncommitted();
    if (due.length === 0 || !this.#commitOnce) return;
    try {
      const metadata = this.#metadata ?? null;
      const partitions = due.map(({ reader: { partition }, through }) => ({ partition, offset: String(BigInt(through) + 1n), metadata }));
      await this.#commitOnce({ topics: [{ topic: this.topic, partitions }] });
      for (const { reader, through } of due) {
        reader.committed(through);
        this.#committed.set(reader.partition, BigInt(through) + 1n);
      }
    } catch (error) {
      if (this.#isClosed) return;
      const { log } = this.#context;
      const fields = { topic: this.topic, group: this.#group, error: error instanceof Error ? error.message : String(error) };
      if (new ErrorChain(error).has(...STALE))
        log.debug(fields, 'offsets of an earlier assignment were not committed; their messages are read again');
      else log.warn(fields, 'offsets were not committed; trying again');
      // Brokers accept no offsets between a rebalance and the new assignment: the end does not wait long for that.
      for (const { reader } of due) this.#commits.add(reader, this.#isDraining ? COMMIT_MS : TICK_MS);
    }
  }

  #tick(): void {
    this.#wakeReaders();
    if (this.#isDraining) return;
    const now = performance.now();
    if (now - this.#seenAt > STALL_MS) {
      this.#fail(
        new PluginError(`Reading the topic "${this.topic}" stalled for ${STALL_MS / 1000} seconds: no poll and no heartbeat.`, {
          fix: 'The source restarts by itself; if it happens often, check the health of the cluster.',
        }),
      );
    }
    if (this.#rejectedAt !== undefined && now - this.#rejectedAt > REJECTION_MS) {
      this.#fail(
        new PluginError(`A message of the topic "${this.topic}" was not accepted, and the messages behind it cannot be committed.`, {
          fix: 'The source restarts by itself at the last committed offset.',
        }),
      );
    }
  }
}
