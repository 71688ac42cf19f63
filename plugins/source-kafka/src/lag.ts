import { settles, type SourceContext } from '@gateway/plugin';
import { openClient, silent } from './client.js';
import { groupOf, type Connection } from './connection.js';
import type { PartitionReader } from './partition-reader.js';

const REPORT_EVERY_MS = 1_000;
/**
 * Every fetch tells the end of its partition, so brokers are asked only about partitions of which nothing was fetched yet, and about those that are behind:
 * their reader may be held back and fetch nothing for a while.
 */
const FETCH_OFFSETS_EVERY_MS = 5_000;
const CLOSE_MS = 3_000;

/** Reports once a second, if there is `lag`, how many records of each partition are unread; returns a function that stops and closes this. */
export function reportLag(connection: Connection, context: SourceContext, readers: () => readonly PartitionReader[]): () => Promise<void> {
  const { lag, log } = context;
  if (!lag) return () => Promise.resolve();
  const offsets = openOffsets(connection, context);
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

/** Fetches offsets over a connection of its own, which is opened when first needed. */
function openOffsets(connection: Connection, { clientId, sourceId }: SourceContext) {
  const { topic_name: topic } = connection;
  // Not logged: the members have the same errors, and report them.
  const client = openClient(connection, { clientId: `${clientId}-lag`, retries: 1, logTo: silent });
  const admin = client.kafka.admin();
  let connected: Promise<void> | undefined;
  return {
    /** Sets the high watermark of the readers, and the start offset of those that have read nothing. Rejects with the errors of kafkajs. */
    async fetch(readers: readonly PartitionReader[]): Promise<void> {
      await (connected ??= admin.connect()).catch((error: unknown) => {
        connected = undefined;
        throw error;
      });
      const ends = new Map((await admin.fetchTopicOffsets(topic)).map((end) => [end.partition, end]));
      const isCommittedNeeded = readers.some((reader) => reader.lag === undefined);
      const [found] = isCommittedNeeded ? await admin.fetchOffsets({ groupId: groupOf(connection, sourceId), topics: [topic] }) : [];
      const committed = new Map(found?.partitions.map(({ partition, offset }) => [partition, offset]));
      for (const reader of readers) {
        const end = ends.get(reader.partition);
        if (!end) continue;
        reader.highWatermark = BigInt(end.high);
        // If nothing was committed, or the records behind it are deleted, reading begins with the oldest record.
        const [low, at] = [BigInt(end.low), BigInt(committed.get(reader.partition) ?? -1)];
        if (isCommittedNeeded) reader.startOffset = at > low ? at : low;
      }
    },
    async close(fetching: Promise<void>): Promise<void> {
      await settles(
        fetching.then(() => admin.disconnect()),
        CLOSE_MS,
      );
      client.destroy();
    },
  };
}
