import { PluginError, settles, whenAborted, type SourceContext } from '@gateway/plugin';
import { setTimeout as sleep } from 'node:timers/promises';
import { clusterOf, committedOffsets, openClient, silent } from './client.js';
import { groupOf, type Connection } from './connection.js';

const EVERY_MS = 2_000;
const CLOSE_MS = 500;

/**
 * Rejects with a `PluginError` when a committed offset of the group goes down, as when the topic is deleted and created anew: brokers then delete the offsets, but
 * members go on where they were, behind all messages of the new topic. Resolves when the signal aborts.
 */
export async function offsetsReset(connection: Connection, context: SourceContext, signal: AbortSignal): Promise<void> {
  const { topic_name: topic } = connection;
  const group = groupOf(connection, context.sourceId);
  const client = openClient(connection, { clientId: `${context.clientId}-offsets`, retries: 1, logTo: silent });
  const cluster = clusterOf(client.kafka);
  const largest = new Map<number, bigint>();
  const look = async () => {
    await cluster.connect();
    await cluster.addTargetTopic(topic);
    await cluster.refreshMetadata();
    for (const [partition, offset] of await committedOffsets(cluster, topic, group)) {
      if (offset < (largest.get(partition) ?? -1n)) return false;
      largest.set(partition, offset);
    }
    return true;
  };
  const watching = async () => {
    while (!signal.aborted) {
      const isAsBefore = await look().catch((error: unknown) => {
        // The members have the same errors, and report them.
        context.log.debug({ error }, 'the committed offsets could not be fetched');
        return true;
      });
      if (signal.aborted) return;
      if (!isAsBefore)
        throw new PluginError(
          `The committed offsets of the consumer group "${group}" went back: the topic "${topic}" was created anew, or they were reset.`,
          { fix: 'Nothing is to be done: the source restarts at these offsets by itself.' },
        );
      await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
    }
  };
  try {
    const watched = watching();
    watched.catch(() => {});
    await Promise.race([watched, whenAborted(signal)]);
  } finally {
    await settles(cluster.disconnect(), CLOSE_MS);
    client.destroy();
  }
}
