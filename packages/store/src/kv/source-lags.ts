import type { Kv } from './kv.js';
import { decodeValue, encodeValue } from './versions.js';

/** What an agent knows of a partition of a source, or of its queue, which has no name. */
export interface PartitionLag {
  readonly partition: string;
  /** Messages that are not acknowledged yet. */
  readonly messages: number;
  /** Place of the next message and of the end, in the words of the broker; null if it has none. */
  readonly position: string | null;
  readonly end: string | null;
}

/** What agents know of a source together. */
export interface SourceLag {
  readonly reportedAtMs: number;
  /** Sum over all partitions, also of those that are not listed. */
  readonly messages: number;
  readonly partitionCount: number;
  readonly partitions: readonly PartitionLag[];
}

/** Partitions that are kept of a source: those with the largest lag. */
export const PARTITIONS_MAX = 1_000;
/** A report counts for this long. */
export const LAG_TTL_MS = 30_000;

const nameOf = (sourceId: string, agentId: number) => `source-lag:${sourceId}:${agentId}`;

/** Keeps what an agent knows of a source for half a minute. Rejects when KV is down. */
export async function writeSourceLag(
  kv: Kv,
  { sourceId, agentId }: { readonly sourceId: string; readonly agentId: number },
  all: readonly PartitionLag[],
): Promise<void> {
  await kv.set(nameOf(sourceId, agentId), encodeValue('source-lag', lagOf(all, Date.now())), { ttlMs: LAG_TTL_MS });
}

/**
 * Returns what these agents know of a source, undefined when none has reported lately. Of agents that know the same partition the latest report counts: for most
 * brokers each agent sees all partitions. Rejects when KV is down.
 */
export async function readSourceLag(kv: Kv, sourceId: string, agentIds: readonly number[]): Promise<SourceLag | undefined> {
  const texts = await Promise.all(agentIds.map((agentId) => kv.get(nameOf(sourceId, agentId))));
  const reports = texts.flatMap((text) => decodeValue<SourceLag>('source-lag', text) ?? []);
  reports.sort((one, other) => one.reportedAtMs - other.reportedAtMs);
  const latest = reports.at(-1);
  if (!latest || reports.length === 1) return latest;
  const known = new Map(reports.flatMap(({ partitions }) => partitions.map((it) => [it.partition, it] as const)));
  // Each report lists the largest of what one agent sees, so that the sum of a report with more partitions is kept.
  const largest = reports.reduce((one, other) => (other.partitionCount > one.partitionCount ? other : one), latest);
  const merged = lagOf([...known.values()], latest.reportedAtMs);
  return largest.partitionCount > merged.partitionCount
    ? { ...merged, messages: largest.messages, partitionCount: largest.partitionCount }
    : merged;
}

function lagOf(all: readonly PartitionLag[], reportedAtMs: number): SourceLag {
  const messages = all.reduce((sum, it) => sum + it.messages, 0);
  const partitions = [...all].sort((one, other) => other.messages - one.messages).slice(0, PARTITIONS_MAX);
  return { reportedAtMs, messages, partitionCount: all.length, partitions };
}
