import { settles, type SourceContext } from '@gateway/plugin';
import type { Admin } from 'kafkajs';
import { openClient, type Client } from './client.js';
import { groupOf, type Connection } from './connection.js';
import { silent } from './log.js';
import type { PartitionReader } from './partition-reader.js';

const REPORT_EVERY_MS = 1_000;
/**
 * Every fetch tells the end of its partition, so brokers are asked only about partitions of which nothing was fetched yet, and about those that are behind:
 * their reader may be held back and fetch nothing for a while.
 */
const FETCH_OFFSETS_EVERY_MS = 5_000;
const CLOSE_MS = 3_000;

/**
 * Reports once a second how many records of each partition are not read yet. Does nothing without `context.lag`.
 * @param readers returns the current readers
 * @returns a function that stops this, reports null for every partition and closes the connection. Never rejects
 */
export function reportLag(connection: Connection, context: SourceContext, readers: () => readonly PartitionReader[]): () => Promise<void> {
  const { lag, log } = context;
  if (!lag) return () => Promise.resolve();
  const offsets = new Offsets(connection, context);
  let reported = new Set<string>();
  let fetchedAtMs = -Infinity;
  let fetching: Promise<void> = Promise.resolve();
  const report = () => {
    const current = readers();
    const before = reported;
    reported = new Set();
    for (const { partition, lag: messages } of current) {
      if (messages === undefined) continue;
      reported.add(String(partition));
      lag(String(partition), messages);
    }
    for (const partition of before) if (!reported.has(partition)) lag(partition, null);
    if (performance.now() - fetchedAtMs < FETCH_OFFSETS_EVERY_MS || current.every((reader) => reader.lag === 0)) return;
    fetchedAtMs = performance.now();
    fetching = offsets.fetch(current).catch((error: unknown) => log.debug({ error }, 'the offsets of the partitions could not be fetched'));
  };
  const timer = setInterval(report, REPORT_EVERY_MS);
  return async () => {
    clearInterval(timer);
    for (const partition of reported) lag(partition, null);
    await offsets.close(fetching);
  };
}

/** Fetches the offsets of the topic and the group over a connection of its own, which is opened when first needed. */
class Offsets {
  readonly #connection: Connection;
  readonly #context: SourceContext;
  #opened: { readonly client: Client; readonly admin: Admin } | undefined;
  #connected: Promise<void> | undefined;

  constructor(connection: Connection, context: SourceContext) {
    this.#connection = connection;
    this.#context = context;
  }

  /** Sets the high watermark of the readers, and the start offset of those that have read nothing. Rejects with the errors of kafkajs. */
  async fetch(readers: readonly PartitionReader[]): Promise<void> {
    const { topic_name: topic } = this.#connection;
    const admin = await this.#connect();
    const ends = new Map((await admin.fetchTopicOffsets(topic)).map((end) => [end.partition, end]));
    const committed = readers.some((reader) => reader.lag === undefined) ? await this.#committed(admin, topic) : undefined;
    for (const reader of readers) {
      const end = ends.get(reader.partition);
      if (!end) continue;
      reader.highWatermark = BigInt(end.high);
      // If nothing was committed, or the records behind it are deleted, reading begins with the oldest record.
      const [low, at] = [BigInt(end.low), BigInt(committed?.get(reader.partition) ?? -1)];
      if (committed) reader.startOffset = at > low ? at : low;
    }
  }

  async close(fetching: Promise<void>): Promise<void> {
    if (!this.#opened) return;
    const { admin, client } = this.#opened;
    const disconnected = fetching.then(() => admin.disconnect());
    await settles(disconnected, CLOSE_MS);
    client.destroy();
  }

  async #connect(): Promise<Admin> {
    if (!this.#opened) {
      // Not logged: the members have the same errors, and report them.
      const client = openClient(this.#connection, { clientId: `${this.#context.clientId}-lag`, retries: 1, logTo: silent });
      this.#opened = { client, admin: client.kafka.admin() };
    }
    const { admin } = this.#opened;
    this.#connected ??= admin.connect();
    try {
      await this.#connected;
    } catch (error) {
      this.#connected = undefined;
      throw error;
    }
    return admin;
  }

  async #committed(admin: Admin, topic: string): Promise<Map<number, string>> {
    const [found] = await admin.fetchOffsets({ groupId: groupOf(this.#connection, this.#context.sourceId), topics: [topic] });
    return new Map(found?.partitions.map(({ partition, offset }) => [partition, offset]));
  }
}
