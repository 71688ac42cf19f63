import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import {
  type PartitionOffsets,
  type WatchContext,
  PluginError,
  type SourceContext,
} from '@gateway/plugin';
import { committedOffsets, withCluster, type Cluster } from './client.js';
import { groupOf, type Connection } from './connection.js';
import { explain, idleMembers } from './explain.js';

const LAG_EVERY_MS = 5_000;
const OFFSETS_EVERY_MS = 2_000;

interface FoundLags {
  /** Messages after the committed offset, and the range of offsets to read, by partition. */
  readonly lags: ReadonlyMap<
    number,
    { readonly messages: number; readonly offsets: PartitionOffsets }
  >;
  /** Assigned to no member. */
  readonly unread: readonly number[];
}

/**
 * The lag of each partition is computed from its high watermark and committed offset, over a
 * separate connection. Advises if a partition has no reader or members are idle. Rejects with a
 * `PluginError` if the brokers cannot be queried.
 */
export async function watch(connection: Connection, context: WatchContext): Promise<void> {
  const { signal } = context;
  const { topic_name: topic } = connection;
  const group = groupOf(connection, context.sourceId);
  const watching = async (cluster: Cluster) => {
    let before: FoundLags | undefined;
    await cluster.connect();
    await cluster.addTargetTopic(topic);
    while (!signal.aborted) {
      const found = await look(cluster, topic, group);
      if (signal.aborted) return;
      for (const [partition, { messages, offsets }] of found.lags)
        context.lag(String(partition), messages, offsets);
      for (const partition of before?.lags.keys() ?? [])
        if (!found.lags.has(partition)) context.lag(String(partition), null);
      // Report a partition only if it was unread twice in a row, because the group may have
      // rebalanced in between.
      const unread = found.unread.filter((partition) => before?.unread.includes(partition));
      const idle = idleMembers(topic, found.lags.size, context.workers);
      const advice = [
        ...(unread.length > 0 ? [unreadSentence(topic, unread, group)] : []),
        ...(idle ? [idle.message, idle.fix] : []),
      ];
      context.advise(advice.join(' ') || null);
      before = found;
      await sleep(LAG_EVERY_MS, undefined, { signal }).catch(() => {});
    }
  };
  try {
    await withCluster(connection, { clientId: `${context.clientId}-watch`, signal }, watching);
  } catch (error) {
    if (!signal.aborted) throw explain(error, connection, group);
  }
}

async function look(cluster: Cluster, topic: string, groupId: string): Promise<FoundLags> {
  // Refresh the metadata: the topic may have grown or been recreated.
  await cluster.refreshMetadata();
  const partitions = cluster
    .findTopicPartitionMetadata(topic)
    .map(({ partitionId }) => ({ partition: partitionId }));
  const endsOf = async (fromBeginning: boolean) => {
    const [ends] = await cluster.fetchTopicsOffset([{ topic, partitions, fromBeginning }]);
    return new Map(ends?.partitions.map(({ partition, offset }) => [partition, BigInt(offset)]));
  };
  const committed = await committedOffsets(cluster, topic, groupId);
  const [lows, highs] = [await endsOf(true), await endsOf(false)];
  const lags = new Map<number, { messages: number; offsets: PartitionOffsets }>();
  for (const [partition, high] of highs) {
    // Reading begins with the oldest record if there is no committed offset, or if its record was
    // deleted.
    const [low, at] = [lows.get(partition) ?? 0n, committed.get(partition) ?? -1n];
    const next = at > low ? at : low;
    const messages = Number(high > next ? high - next : 0n);
    lags.set(partition, { messages, offsets: { position: String(next), end: String(high) } });
  }
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const { groups } = await coordinator.describeGroups({ groupIds: [groupId] });
  const read = new Set(
    groups.flatMap(({ members }) =>
      members.flatMap((member) => partitionsOf(member.memberAssignment, topic)),
    ),
  );
  const unread = [...lags.keys()].filter((partition) => !read.has(partition));
  return { lags, unread: unread.sort((a, b) => a - b) };
}

/** A joining member has no assignment. */
function partitionsOf(assignment: Buffer, topic: string): readonly number[] {
  return assignment.length === 0
    ? []
    : (kafkajs.AssignerProtocol.MemberAssignment.decode(assignment)?.assignment[topic] ?? []);
}

function unreadSentence(topic: string, partitions: readonly number[], group: string): string {
  const named = partitions.slice(0, 10).join(', ') + (partitions.length > 10 ? ', …' : '');
  return `No member of the consumer group "${group}" reads partition ${named} of the topic "${topic}". If this lasts, check that only this source uses the group, and the log of the agents.`;
}

/** Undefined if the signal aborts. */
export async function oldestOffset(
  connection: Connection,
  { clientId, signal }: Pick<SourceContext, 'clientId' | 'signal'>,
  partition: number,
): Promise<bigint | undefined> {
  const { topic_name: topic } = connection;
  let oldest: bigint | undefined;
  await withCluster(connection, { clientId: `${clientId}-oldest`, signal }, async (cluster) => {
    await cluster.connect();
    await cluster.addTargetTopic(topic);
    await cluster.refreshMetadata();
    const [found] = await cluster.fetchTopicsOffset([
      { topic, partitions: [{ partition }], fromBeginning: true },
    ]);
    oldest = found?.partitions[0] && BigInt(found.partitions[0].offset);
  });
  return oldest;
}

/**
 * Rejects with a `PluginError` if a committed offset decreases, such as when the topic was
 * recreated: brokers then delete its offsets, and ignore later commits for the old topic, but
 * members would continue at their old position. Resolves when the signal aborts.
 * @param largest the largest offset by partition that this process committed; those found here are
 *   added, because a topic may be deleted right after
 */
export async function offsetsReset(
  connection: Connection,
  context: SourceContext,
  largest: Map<number, bigint>,
  signal: AbortSignal,
): Promise<void> {
  const { topic_name: topic } = connection;
  const group = groupOf(connection, context.sourceId);
  const look = async (cluster: Cluster) => {
    await cluster.connect();
    await cluster.addTargetTopic(topic);
    await cluster.refreshMetadata();
    const earlier = new Map(largest);
    for (const [partition, committed] of await committedOffsets(cluster, topic, group)) {
      // kafkajs commits -2 if an offset is out of range. Treat it as no offset.
      const offset = committed < 0n ? -1n : committed;
      const before = earlier.get(partition) ?? -1n;
      if (offset < before)
        return `The committed offset of partition ${partition} of the consumer group "${group}" went back from ${before} to ${offset}`;
      if (offset > (largest.get(partition) ?? -1n)) largest.set(partition, offset);
    }
    return undefined;
  };
  const watching = async (cluster: Cluster) => {
    while (!signal.aborted) {
      const reset = await look(cluster).catch((error: unknown) => {
        // Log only at `debug`, because the members report the same errors.
        context.log.debug({ error }, 'could not fetch the committed offsets');
        return undefined;
      });
      if (signal.aborted) return;
      if (reset)
        throw new PluginError(
          `${reset}: the topic "${topic}" was created anew, or offsets were reset.`,
          { fix: 'Nothing is to be done: the source restarts there by itself.' },
        );
      await sleep(OFFSETS_EVERY_MS, undefined, { signal }).catch(() => {});
    }
  };
  await withCluster(connection, { clientId: `${context.clientId}-offsets`, signal }, watching);
}
