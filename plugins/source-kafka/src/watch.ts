import { settles, whenAborted, type WatchContext } from '@gateway/plugin';
import kafkajs from 'kafkajs';
import { setTimeout as sleep } from 'node:timers/promises';
import { clusterOf, committedOffsets, openClient, silent, type Cluster } from './client.js';
import { groupOf, type Connection } from './connection.js';
import { explain } from './explain.js';

const EVERY_MS = 5_000;
const CLOSE_MS = 1_000;

interface Found {
  /** Messages behind the committed offset, by partition. */
  readonly lags: ReadonlyMap<number, number>;
  /** Partitions that no member of the group has. */
  readonly unread: readonly number[];
}

/**
 * Reports the lag of every partition that the topic has, by its high watermark and the committed offset of the group, over a connection of its own; and when
 * nobody reads a partition. Rejects with a `PluginError` when the brokers cannot be asked.
 */
export async function watch(connection: Connection, context: WatchContext): Promise<void> {
  const { signal } = context;
  const group = groupOf(connection, context.sourceId);
  // Not logged: the members have the same errors, and report them.
  const client = openClient(connection, { clientId: `${context.clientId}-watch`, retries: 1, logTo: silent });
  const cluster = clusterOf(client.kafka);
  const watching = async () => {
    let before: Found | undefined;
    await cluster.connect();
    await cluster.addTargetTopic(connection.topic_name);
    while (!signal.aborted) {
      const found = await look(cluster, connection.topic_name, group);
      if (signal.aborted) return;
      for (const [partition, messages] of found.lags) context.lag(String(partition), messages);
      for (const partition of before?.lags.keys() ?? []) if (!found.lags.has(partition)) context.lag(String(partition), null);
      // Between two looks the group may have been joined anew.
      const unread = found.unread.filter((partition) => before?.unread.includes(partition));
      context.advise(unread.length === 0 ? null : unreadSentence(connection.topic_name, unread, group));
      before = found;
      await sleep(EVERY_MS, undefined, { signal }).catch(() => {});
    }
  };
  try {
    const watched = watching();
    watched.catch(() => {});
    await Promise.race([watched, whenAborted(signal)]);
  } catch (error) {
    if (!signal.aborted) throw explain(error, connection, group);
  } finally {
    await settles(cluster.disconnect(), CLOSE_MS);
    client.destroy();
  }
}

async function look(cluster: Cluster, topic: string, groupId: string): Promise<Found> {
  // A topic may have grown, or been created anew.
  await cluster.refreshMetadata();
  const partitions = cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => ({ partition: partitionId }));
  const endsOf = async (fromBeginning: boolean) => {
    const [ends] = await cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning }]);
    return new Map(ends?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
  };
  const committed = await committedOffsets(cluster, topic, groupId);
  const [lows, highs] = [await endsOf(true), await endsOf(false)];
  const lags = new Map<number, number>();
  for (const [partition, high] of highs) {
    // If nothing was committed, or the records behind it are deleted, reading begins with the oldest record.
    const [low, at] = [lows.get(partition) ?? 0n, committed.get(partition) ?? -1n];
    const next = at > low ? at : low;
    lags.set(partition, Number(high > next ? high - next : 0n));
  }
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const { groups } = await coordinator.describeGroups({ groupIds: [groupId] });
  const read = new Set(groups.flatMap(({ members }) => members.flatMap((member) => partitionsOf(member.memberAssignment, topic))));
  const unread = [...lags.keys()].filter((partition) => !read.has(partition));
  return { lags, unread: unread.sort((a, b) => a - b) };
}

/** A member that is joining has no assignment yet. */
function partitionsOf(assignment: Buffer, topic: string): readonly number[] {
  return assignment.length === 0 ? [] : (kafkajs.AssignerProtocol.MemberAssignment.decode(assignment)?.assignment[topic] ?? []);
}

function unreadSentence(topic: string, partitions: readonly number[], group: string): string {
  const named = partitions.slice(0, 10).join(', ') + (partitions.length > 10 ? ', …' : '');
  return `No member of the consumer group "${group}" reads partition ${named} of the topic "${topic}". If this lasts, check that only this source uses the group, and the log of the agents.`;
}
