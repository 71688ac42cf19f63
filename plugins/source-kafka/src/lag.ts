import { settles, type SourceContext } from '@gateway/plugin';
import type { Admin } from 'kafkajs';
import { openClient, type Client } from './client.js';
import { groupOf, type Connection } from './connection.js';
import { silent } from './log.js';
import type { Reader } from './reader.js';

const TELL_EVERY_MS = 1_000;
/**
 * Every fetch tells the end of its partition, so one that is caught up needs no question: its next record comes with a fetch. Brokers are asked for partitions of
 * which nothing was fetched yet, and for those that are behind, whose reader may be held back and fetch nothing for a while.
 */
const ASK_EVERY_MS = 5_000;
const CLOSE_MS = 3_000;

/**
 * Tells once a second how many records each partition of these readers has that were not read. Does nothing when nobody wants to know.
 *
 * @param readers those of the moment
 * @returns what ends that, forgets every partition and closes what was opened. Never rejects
 */
export function tellLag(connection: Connection, context: SourceContext, readers: () => readonly Reader[]): () => Promise<void> {
  const { lag, log } = context;
  if (!lag) return () => Promise.resolve();
  const offsets = new Offsets(connection, context);
  let told = new Set<string>();
  let askedAtMs = -Infinity;
  let asking: Promise<void> = Promise.resolve();
  const tell = () => {
    const current = readers();
    const before = told;
    told = new Set();
    for (const reader of current) {
      const partition = String(reader.partition);
      const messages = reader.lag;
      if (messages === undefined) continue;
      told.add(partition);
      lag(partition, messages);
    }
    for (const partition of before) if (!told.has(partition)) lag(partition, null);
    if (performance.now() - askedAtMs < ASK_EVERY_MS || current.every((reader) => reader.lag === 0)) return;
    askedAtMs = performance.now();
    asking = offsets.note(current).catch((error: unknown) => {
      log.debug({ error }, 'the brokers did not tell where the partitions end');
    });
  };
  const timer = setInterval(tell, TELL_EVERY_MS);
  return async () => {
    clearInterval(timer);
    for (const partition of told) lag(partition, null);
    await offsets.close(asking);
  };
}

/** What brokers know of the topic and the group, over a connection of its own that is opened when it is first needed. */
class Offsets {
  readonly #connection: Connection;
  readonly #context: SourceContext;
  #opened: { readonly client: Client; readonly admin: Admin } | undefined;
  #connected: Promise<void> | undefined;

  constructor(connection: Connection, context: SourceContext) {
    this.#connection = connection;
    this.#context = context;
  }

  /** Tells readers where their partitions end, and those that have read nothing where they stand. Rejects with the errors of kafkajs. */
  async note(readers: readonly Reader[]): Promise<void> {
    const { topic_name: topic } = this.#connection;
    const admin = await this.#connect();
    const ends = new Map((await admin.fetchTopicOffsets(topic)).map((end) => [end.partition, end]));
    const committed = readers.some((reader) => reader.lag === undefined) ? await this.#committed(admin, topic) : undefined;
    for (const reader of readers) {
      const end = ends.get(reader.partition);
      if (!end) continue;
      reader.endsAt(end.high);
      // Where nothing was committed, or what is behind it is gone, reading begins with the oldest record.
      const [low, at] = [BigInt(end.low), BigInt(committed?.get(reader.partition) ?? -1)];
      if (committed) reader.startsAt(at > low ? at : low);
    }
  }

  async close(asking: Promise<void>): Promise<void> {
    if (!this.#opened) return;
    const { admin, client } = this.#opened;
    await settles(
      asking.then(() => admin.disconnect()),
      CLOSE_MS,
    );
    client.destroy();
  }

  async #connect(): Promise<Admin> {
    if (!this.#opened) {
      // What goes wrong here goes wrong for the readers too, and they say so.
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
