import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import {
  type PartitionOffsets,
  type WatchContext,
  PluginError,
  type SourceContext,
} from '@gateway/plugin';
import { committedOffsets, offsetsAt, withCluster, type Cluster } from './client.js';
import {
  type Connection,
  groupOf,
  keyOf,
  labelOf,
  nameOf,
  type PartitionKey,
} from './connection.js';
import { explain, idleMembers } from './explain.js';
import { topicsOf } from './topics.js';

const LAG_EVERY_MS = 5_000;
const OFFSETS_EVERY_MS = 2_000;

interface FoundLags {
  /** Messages after the committed offset, and the range of offsets to read. */
  readonly lags: ReadonlyMap<
    PartitionKey,
    { readonly label: string; readonly messages: number; readonly offsets: PartitionOffsets }
  >;
  /** Assigned to no member. */
  readonly unread: readonly PartitionKey[];
}

/**
 * The lag of each partition is computed from its high watermark and committed offset, over a
 * separate connection. Advises if a partition has no reader or members are idle. Rejects with a
 * `PluginError` if the brokers cannot be queried.
 */
export async function watch(connection: Connection, context: WatchContext): Promise<void> {
  const { signal } = context;
  const group = groupOf(connection, context.sourceId);
  const watching = async (cluster: Cluster) => {
    let before: FoundLags | undefined;
    await cluster.connect();
    while (!signal.aborted) {
      const found = await look(cluster, connection, group);
      if (signal.aborted) return;
      for (const { label, messages, offsets } of found.lags.values())
        context.lag(label, messages, offsets);
      for (const [key, { label }] of before?.lags ?? [])
        if (!found.lags.has(key)) context.lag(label, null);
      // Report a partition only if it was unread twice in a row, because the group may have
      // rebalanced in between.
      const unread = found.unread.filter((key) => before?.unread.includes(key));
      const labels = unread.map((key) => found.lags.get(key)!.label);
      const idle = idleMembers(connection, found.lags.size, context.workers);
      const advice = [
        ...(labels.length > 0 ? [unreadSentence(connection, labels, group)] : []),
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

async function look(cluster: Cluster, connection: Connection, groupId: string): Promise<FoundLags> {
  const topics = await topicsOf(cluster, connection);
  if (topics.length === 0) return { lags: new Map(), unread: [] };
  await cluster.addMultipleTargetTopics(topics);
  // Refresh the metadata: a topic may have grown or been recreated.
  await cluster.refreshMetadata();
  const committed = await committedOffsets(cluster, topics, groupId);
  const [lows, highs] = [
    await offsetsAt(cluster, topics, 'earliest'),
    await offsetsAt(cluster, topics, 'latest'),
  ];
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const { groups } = await coordinator.describeGroups({ groupIds: [groupId] });
  const read = new Set(
    groups.flatMap(({ members }) =>
      members.flatMap((member) => partitionsIn(member.memberAssignment)),
    ),
  );
  const lags = new Map<
    PartitionKey,
    { label: string; messages: number; offsets: PartitionOffsets }
  >();
  for (const [key, high] of highs) {
    // Reading begins with the oldest record if there is no committed offset, or if its record was
    // deleted.
    const [low, at] = [lows.get(key) ?? 0n, committed.get(key) ?? -1n];
    const next = at > low ? at : low;
    const messages = Number(high > next ? high - next : 0n);
    const cut = key.lastIndexOf('/');
    const label = labelOf(connection, key.slice(0, cut), Number(key.slice(cut + 1)));
    lags.set(key, { label, messages, offsets: { position: String(next), end: String(high) } });
  }
  return { lags, unread: [...lags.keys()].filter((key) => !read.has(key)).sort(inOrder) };
}

function inOrder(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true });
}

/** A joining member has no assignment. */
function partitionsIn(assignment: Buffer): readonly PartitionKey[] {
  if (assignment.length === 0) return [];
  const { assignment: topics = {} } =
    kafkajs.AssignerProtocol.MemberAssignment.decode(assignment) ?? {};
  return Object.entries(topics).flatMap(([topic, partitions]) =>
    partitions.map((partition) => keyOf(topic, partition)),
  );
}

function unreadSentence(connection: Connection, labels: readonly string[], group: string): string {
  const named = labels.slice(0, 10).join(', ') + (labels.length > 10 ? ', …' : '');
  return `No member of the consumer group "${group}" reads partition ${named} of ${nameOf(connection)}. If this lasts, check that only this source uses the group, and the log of the agents.`;
}

/** Undefined if the signal aborts. */
export async function oldestOffset(
  connection: Connection,
  { clientId, signal }: Pick<SourceContext, 'clientId' | 'signal'>,
  topic: string,
  partition: number,
): Promise<bigint | undefined> {
  let oldest: bigint | undefined;
  await withCluster(connection, { clientId: `${clientId}-oldest`, signal }, async (cluster) => {
    await cluster.connect();
    await cluster.addMultipleTargetTopics([topic]);
    await cluster.refreshMetadata();
    oldest = (await offsetsAt(cluster, [topic], 'earliest')).get(keyOf(topic, partition));
  });
  return oldest;
}

/**
 * Rejects with a `PluginError` if a committed offset decreases, such as when the topic was
 * recreated: brokers then delete its offsets, and ignore later commits for the old topic, but
 * members would continue at their old position. Resolves when the signal aborts.
 * @param largest the largest offsets that this process committed; those found here are
 *   added, because a topic may be deleted right after
 */
export async function offsetsReset(
  connection: Connection,
  context: SourceContext,
  topics: readonly string[],
  largest: Map<PartitionKey, bigint>,
  signal: AbortSignal,
): Promise<void> {
  const group = groupOf(connection, context.sourceId);
  const look = async (cluster: Cluster) => {
    await cluster.connect();
    await cluster.addMultipleTargetTopics(topics);
    await cluster.refreshMetadata();
    const earlier = new Map(largest);
    for (const [key, committed] of await committedOffsets(cluster, topics, group)) {
      // kafkajs commits -2 if an offset is out of range. Treat it as no offset.
      const offset = committed < 0n ? -1n : committed;
      const before = earlier.get(key) ?? -1n;
      if (offset < before)
        return `The committed offset of ${key} of the consumer group "${group}" went back from ${before} to ${offset}`;
      if (offset > (largest.get(key) ?? -1n)) largest.set(key, offset);
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
        throw new PluginError(`${reset}: the topic was created anew, or offsets were reset.`, {
          fix: 'Nothing is to be done: the source restarts there by itself.',
        });
      await sleep(OFFSETS_EVERY_MS, undefined, { signal }).catch(() => {});
    }
  };
  await withCluster(connection, { clientId: `${context.clientId}-offsets`, signal }, watching);
}
