import type { Kv } from './kv.js';
import { decodeValue, encodeValue } from './versions.js';

/** By one agent. For a queue, `partition` is empty. */
export interface PartitionLag {
  readonly partition: string;
  /** Unacknowledged. */
  readonly messages: number;
  /**
   * The next message's and, as `end`, the partition's end, in the broker's format. Null if it has
   * none.
   */
  readonly position: string | null;
  readonly end: string | null;
}

export interface SourceLag {
  readonly reportedAtMs: number;
  /** Over all partitions, listed or not. */
  readonly messages: number;
  readonly partitionCount: number;
  readonly partitions: readonly PartitionLag[];
}

/** Per source, those with the largest lag. */
export const PARTITIONS_MAX = 1_000;
export const LAG_TTL_MS = 30_000;

const nameOf = (sourceId: string, agentId: number) => `source-lag:${sourceId}:${agentId}`;

/** For half a minute. Rejects if KV is down. */
export async function writeSourceLag(
  kv: Kv,
  { sourceId, agentId }: { readonly sourceId: string; readonly agentId: number },
  all: readonly PartitionLag[],
): Promise<void> {
  await kv.set(nameOf(sourceId, agentId), encodeValue('source-lag', lagOf(all, Date.now())), {
    ttlMs: LAG_TTL_MS,
  });
}

/**
 * From the recent reports of these agents, if any. The latest report of a partition wins, because
 * with most brokers each agent sees all partitions. Rejects if KV is down.
 */
export async function readSourceLag(
  kv: Kv,
  sourceId: string,
  agentIds: readonly number[],
): Promise<SourceLag | undefined> {
  const texts = await Promise.all(agentIds.map((agentId) => kv.get(nameOf(sourceId, agentId))));
  const reports = texts.flatMap((text) => decodeValue<SourceLag>('source-lag', text) ?? []);
  reports.sort((one, other) => one.reportedAtMs - other.reportedAtMs);
  const latest = reports.at(-1);
  if (!latest || reports.length === 1) return latest;
  const known = new Map(
    reports.flatMap(({ partitions }) => partitions.map((it) => [it.partition, it] as const)),
  );
  // Reports list only the largest lags, so keep the totals of the report with the most partitions.
  const largest = reports.reduce(
    (one, other) => (other.partitionCount > one.partitionCount ? other : one),
    latest,
  );
  const merged = lagOf([...known.values()], latest.reportedAtMs);
  return largest.partitionCount > merged.partitionCount
    ? { ...merged, messages: largest.messages, partitionCount: largest.partitionCount }
    : merged;
}

function lagOf(all: readonly PartitionLag[], reportedAtMs: number): SourceLag {
  const messages = all.reduce((sum, it) => sum + it.messages, 0);
  const partitions = [...all]
    .sort((one, other) => other.messages - one.messages)
    .slice(0, PARTITIONS_MAX);
  return { reportedAtMs, messages, partitionCount: all.length, partitions };
}
