import { setTimeout as sleep } from 'node:timers/promises';
import {
  ErrorChain,
  PluginError,
  type PartitionMove,
  type ReadBefore,
  type SeekContext,
  type SeekTarget,
  type SourceContext,
} from '@gateway/plugin';
import {
  committedOffsets,
  offsetsAt,
  partitionsOf,
  withCluster,
  type Cluster,
  type Offsets,
} from './client.js';
import {
  type Connection,
  groupOf,
  keyOf,
  labelOf,
  nameOf,
  type PartitionKey,
} from './connection.js';
import { evictDeadMembers } from './evict-dead-members.js';
import { explain, silentBrokers } from './explain.js';
import { idToCommit, topicIds, type TopicIds } from './topic-ids.js';
import { topicsOf } from './topics.js';

/** Until members that were told to leave have left, or their sessions have ended. */
const COMMIT_MS = 20_000;
const COMMIT_EVERY_MS = 500;
/** Two agents may begin a source at once: one of them sets its offsets. */
const BEGIN_MS = 3_000;
/** Ends connections and requests that nobody answers. */
const DEADLINE_MS = 15_000;

/** The group has members, whose offsets nobody else may set. */
const IN_USE = ['UNKNOWN_MEMBER_ID', 'ILLEGAL_GENERATION', 'REBALANCE_IN_PROGRESS'];

/** Where a run begins. */
export interface Beginning {
  readonly topics: readonly string[];
  readonly ids: TopicIds;
  /** Offsets at which reading is expected to begin, for partitions that were read before. */
  readonly startsAt: Offsets;
  /** Offsets up to which messages were read before, by this source. */
  readonly readTo: Offsets;
  readonly before: ReadBefore;
  /** For the operator. */
  readonly told: string | undefined;
}

const NOTHING_BEFORE: ReadBefore = { positions: new Map(), keptSinceMs: () => -Infinity };

/** The positions of a group, before its first member of this run joins. */
interface Found {
  readonly committed: Offsets;
  readonly recorded: Offsets;
  readonly lows: Offsets;
  readonly highs: Offsets;
  readonly ids: TopicIds;
}

/**
 * Removes dead members of the group, and sets its offsets if it has none or the broker no longer has
 * them. They are committed before a member joins, so that they hold for all agents, and for a
 * partition without messages.
 * @throws PluginError
 */
export async function begin(connection: Connection, context: SourceContext): Promise<Beginning> {
  const { clientId } = context;
  const overdue = AbortSignal.timeout(DEADLINE_MS);
  const signal = AbortSignal.any([context.signal, overdue]);
  const before = (await context.readBefore?.()) ?? NOTHING_BEFORE;
  const group = groupOf(connection, context.sourceId);
  let begun: Beginning | undefined;
  const look = async (cluster: Cluster) => {
    await cluster.connect();
    await evictDeadMembers(cluster, group, context);
    const topics = await topicsOf(cluster, connection);
    if (topics.length === 0) return;
    let found = await find(cluster, topics, group, before);
    const endMs = performance.now() + BEGIN_MS;
    for (;;) {
      const {
        offsets,
        told,
        deleted = [],
      } = await beginningOf(cluster, connection, topics, found, before);
      const isSet = offsets.size === 0 || (await commit(cluster, group, offsets, found.ids));
      if (isSet || !isFirst(found, before)) {
        for (const [key, offset] of isSet ? offsets : [])
          context.record?.(key, recordOf(key, offset, found.ids));
        const { committed, recorded: readTo, ids } = found;
        for (const [label, messages] of isSet ? deleted : []) context.lost?.(label, messages);
        const startsAt = new Map([...readTo, ...(isSet ? offsets : [])]);
        for (const [key, offset] of committed) if (offset >= 0n) startsAt.set(key, offset);
        begun = { topics, ids, startsAt, readTo, before, told: isSet ? told : undefined };
        return;
      }
      if (performance.now() > endMs)
        throw new PluginError(
          `The source is to start from ${startWords(connection)}, but the consumer group "${group}" is in use, so its offsets cannot be set.`,
          { fix: 'Set consumer_group_id to a name that only this source uses.' },
        );
      await sleep(COMMIT_EVERY_MS, undefined, { signal });
      found = await find(cluster, topics, group, before);
    }
  };
  await withCluster(connection, { clientId: `${clientId}-start`, signal }, look);
  if (!begun && overdue.aborted) throw silentBrokers(connection, DEADLINE_MS);
  return (
    begun ?? {
      topics: [],
      ids: new Map(),
      startsAt: new Map(),
      readTo: new Map(),
      before,
      told: undefined,
    }
  );
}

/** The position that members give to `record`: the offset, and the topic that it belongs to. */
export function recordOf(key: PartitionKey, offset: bigint, ids: TopicIds): string {
  const id = ids.get(topicIn(key));
  return id === undefined ? String(offset) : `${offset}@${id}`;
}

function topicIn(key: PartitionKey): string {
  return key.slice(0, key.lastIndexOf('/'));
}

function labelIn(connection: Connection, key: PartitionKey): string {
  return labelOf(connection, topicIn(key), Number(key.slice(key.lastIndexOf('/') + 1)));
}

async function find(
  cluster: Cluster,
  topics: readonly string[],
  groupId: string,
  { positions }: ReadBefore,
): Promise<Found> {
  await cluster.addMultipleTargetTopics(topics);
  await cluster.refreshMetadata();
  const ids = await topicIds(await cluster.findGroupCoordinator({ groupId }), topics);
  const recorded = new Map<PartitionKey, bigint>();
  for (const { topic, partitions } of partitionsOf(cluster, topics))
    for (const { partition } of partitions) {
      const [offset = '', id] = positions.get(keyOf(topic, partition))?.split('@') ?? [];
      // A position of an earlier topic with this name means nothing.
      if (/^\d+$/.test(offset) && (id === undefined || id === (ids.get(topic) ?? id)))
        recorded.set(keyOf(topic, partition), BigInt(offset));
    }
  return {
    ids,
    recorded,
    committed: await committedOffsets(cluster, topics, groupId),
    lows: await offsetsAt(cluster, topics, 'earliest'),
    highs: await offsetsAt(cluster, topics, 'latest'),
  };
}

function isFirst({ committed }: Found, { positions }: ReadBefore): boolean {
  return positions.size === 0 && [...committed.values()].every((offset) => offset < 0n);
}

/** The offsets to commit before reading begins. */
async function beginningOf(
  cluster: Cluster,
  connection: Connection,
  topics: readonly string[],
  found: Found,
  before: ReadBefore,
): Promise<{
  readonly offsets: Offsets;
  readonly told?: string;
  /** Messages that were never read, by partition. */
  readonly deleted?: readonly (readonly [label: string, messages: number])[];
}> {
  if (isFirst(found, before))
    return { offsets: await firstOffsets(cluster, connection, topics, found) };
  const { committed, recorded, lows, highs } = found;
  const { on_lost_offset: policy = 'resume' } = connection;
  const offsets = new Map<PartitionKey, bigint>();
  const lost: string[] = [];
  const deleted: [string, number][] = [];
  for (const [key, high] of highs) {
    const [low, at, read] = [lows.get(key) ?? 0n, committed.get(key) ?? -1n, recorded.get(key)];
    // Without a record, it is a new partition, which is read from its first message.
    if (at < 0n ? read === undefined : at >= low && at <= high) continue;
    // kafkajs goes on at the oldest message, and the member counts those that were deleted.
    if (at >= 0n && at < low && policy !== 'latest' && policy !== 'stop') continue;
    lost.push(labelIn(connection, key));
    const resumesAt = at < 0n ? read! : at;
    if (at < 0n && resumesAt < low && policy === 'resume')
      deleted.push([labelIn(connection, key), Number(low - resumesAt)]);
    const to = { resume: resumesAt, earliest: low, latest: high, stop: resumesAt }[policy];
    offsets.set(key, within(to, low, high));
  }
  if (lost.length === 0) return { offsets };
  const what = `The cluster no longer has the offsets of ${partitionWords(lost)} of ${nameOf(connection)} for this consumer group, or their messages: they expired, or were deleted`;
  if (policy === 'stop')
    throw new PluginError(`${what}. on_lost_offset is stop, so nothing is read.`, {
      fix: 'Move the source (gateway utils sources rewind, or its page) to where it is to go on, or change on_lost_offset.',
    });
  const where = {
    resume: 'where the gateway had read to, or at the oldest message after it',
    earliest:
      'at the oldest message; those that were read before are duplicates, or passed over if their events have been deleted',
    latest: 'after the newest message; those before are not read',
  }[policy];
  return { offsets, deleted, told: `${what}. Reading went on ${where} (on_lost_offset).` };
}

function partitionWords(labels: readonly string[]): string {
  const named = labels.slice(0, 10).join(', ');
  if (labels.length === 1) return `partition ${named}`;
  return `partitions ${named}${labels.length > 10 ? `, … (${labels.length})` : ''}`;
}

function startWords({ start_from: from = 'earliest', start_offsets: offsets }: Connection): string {
  return offsets === undefined ? from : 'given offsets';
}

/** None for the oldest messages, which a group without offsets begins with. */
async function firstOffsets(
  cluster: Cluster,
  connection: Connection,
  topics: readonly string[],
  found: Found,
): Promise<Offsets> {
  const { start_from: from = 'earliest', start_offsets: given } = connection;
  const offsets = new Map<PartitionKey, bigint>();
  if (from !== 'earliest') {
    const to = from === 'latest' ? from : { timeMs: Date.parse(from) };
    for (const it of await targets(cluster, connection, topics, found, to)) offsets.set(...it);
  }
  if (given !== undefined) {
    const positions = Object.fromEntries(
      Object.entries(given).map(([label, offset]) => [label, String(offset)]),
    );
    const named = await targets(cluster, connection, topics, found, { positions });
    for (const it of named) offsets.set(...it);
  }
  return offsets;
}

/** Within what the broker has. */
async function targets(
  cluster: Cluster,
  connection: Connection,
  topics: readonly string[],
  { lows, highs }: Pick<Found, 'lows' | 'highs'>,
  to: SeekTarget,
): Promise<Offsets> {
  if (to === 'earliest') return lows;
  if (to === 'latest') return highs;
  if ('timeMs' in to) {
    const found = await offsetsAt(cluster, topics, to);
    return new Map(
      [...highs].map(([key, high]) => {
        const offset = found.get(key) ?? -1n;
        return [key, offset < 0n ? high : offset];
      }),
    );
  }
  const keys = new Map([...highs.keys()].map((key) => [labelIn(connection, key), key]));
  return new Map(
    Object.entries(to.positions).map(([label, position]) => {
      const key = keys.get(label);
      if (key === undefined)
        throw new PluginError(`There is no partition ${label} of ${nameOf(connection)}.`, {
          fix: `Name partitions as the lag of the source does: ${[...keys.keys()].slice(0, 3).join(', ')}${keys.size > 3 ? ', …' : ''}.`,
        });
      if (!/^\d{1,19}$/.test(position))
        throw new PluginError(`"${position}" is not an offset of partition ${label}.`, {
          fix: 'Give a number.',
        });
      return [key, within(BigInt(position), lows.get(key) ?? 0n, highs.get(key)!)];
    }),
  );
}

function within(offset: bigint, low: bigint, high: bigint): bigint {
  return offset < low ? low : offset > high ? high : offset;
}

/** Returns false if the group has members. */
async function commit(
  cluster: Cluster,
  groupId: string,
  offsets: Offsets,
  ids: TopicIds,
): Promise<boolean> {
  const topics = new Map<
    string,
    { partition: number; offset: string; metadata: string | null }[]
  >();
  for (const [key, offset] of offsets) {
    const topic = topicIn(key);
    const partition = Number(key.slice(topic.length + 1));
    const partitions = topics.get(topic) ?? [];
    topics.set(topic, partitions);
    const metadata = idToCommit(ids.get(topic)) ?? null;
    partitions.push({ partition, offset: String(offset), metadata });
  }
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  try {
    await coordinator.offsetCommit({
      groupId,
      groupGenerationId: -1,
      memberId: '',
      topics: [...topics].map(([topic, partitions]) => ({ topic, partitions })),
    });
    return true;
  } catch (error) {
    if (new ErrorChain(error).has(...IN_USE)) return false;
    throw error;
  }
}

/** @throws PluginError */
export async function seek(connection: Connection, context: SeekContext): Promise<PartitionMove[]> {
  const { before, signal } = context;
  const group = groupOf(connection, context.sourceId);
  let moves: PartitionMove[] = [];
  const work = async (cluster: Cluster) => {
    await cluster.connect();
    const topics = await topicsOf(cluster, connection);
    const found = await find(cluster, topics, group, before);
    const to = await targets(cluster, connection, topics, found, context.to);
    const keptSinceMs = before.keptSinceMs();
    const kept = Number.isFinite(keptSinceMs)
      ? await targets(cluster, connection, topics, found, { timeMs: keptSinceMs })
      : found.lows;
    moves = [...to].map(([key, offset]) => moveOf(connection, found, context, key, offset, kept));
    if (context.isDryRun || to.size === 0) return;
    const endMs = performance.now() + COMMIT_MS;
    while (!(await commit(cluster, group, to, found.ids))) {
      if (performance.now() > endMs)
        throw new PluginError(
          `The consumer group "${group}" still has members after ${COMMIT_MS / 1000} seconds, so its offsets were not changed.`,
          {
            fix: 'Stop other programs that use the group, and check that all agents can reach Postgres; then try again.',
          },
        );
      await sleep(COMMIT_EVERY_MS, undefined, { signal });
    }
  };
  try {
    await withCluster(connection, { clientId: context.clientId, signal }, work);
  } catch (error) {
    signal.throwIfAborted();
    throw explain(error, connection, group);
  }
  signal.throwIfAborted();
  return moves;
}

function moveOf(
  connection: Connection,
  { committed, recorded, lows, ids }: Found,
  { isRedelivering }: SeekContext,
  key: PartitionKey,
  to: bigint,
  kept: Offsets,
): PartitionMove {
  const low = lows.get(key) ?? 0n;
  const at = committed.get(key) ?? -1n;
  const read = recorded.get(key) ?? -1n;
  const from = at >= 0n ? at : read >= 0n ? read : undefined;
  const readTo = read > at ? read : at;
  const keptFrom = kept.get(key) ?? low;
  const expiredTo = keptFrom < readTo ? keptFrom : readTo;
  const start = from === undefined || from < low ? low : from;
  const record = isRedelivering ? to : readTo > to ? readTo : to;
  return {
    partition: labelIn(connection, key),
    from: from === undefined ? null : String(from),
    to: String(to),
    again: from === undefined ? 0 : above(start, to),
    expired: above(expiredTo, to),
    skipped: above(to, start),
    record: { name: key, position: recordOf(key, record, ids) },
  };
}

function above(one: bigint, other: bigint): number {
  return Number(one > other ? one - other : 0n);
}
