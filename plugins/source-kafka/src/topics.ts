import { setTimeout as sleep } from 'node:timers/promises';
import { PluginError } from '@gateway/plugin';
import { RE2JS, RE2JSException } from 're2js';
import { withCluster, type Cluster } from './client.js';
import type { Connection } from './connection.js';

/** Members start again when the topics change. */
const LOOK_EVERY_MS = 20_000;

/** As many as one group of members follows with little work, and far more than a pattern means. */
const TOPICS_MAX = 500;

/**
 * Whole names. RE2 matches in time linear in the name, because a tenant chooses the pattern.
 * @throws PluginError if the pattern cannot be read, or matches too many
 */
export function matching(names: readonly string[], { topic_pattern: pattern = '' }: Connection) {
  const matched = names.filter(
    (name) => !name.startsWith('__') && patternOf(pattern).matches(name),
  );
  if (matched.length > TOPICS_MAX)
    throw new PluginError(
      `${matched.length} topics match "${pattern}", and a source reads up to ${TOPICS_MAX}.`,
      { fix: 'Make topic_pattern more specific, or divide the topics between sources.' },
    );
  return matched.sort();
}

let compiled: { readonly pattern: string; readonly it: RE2JS } | undefined;

function patternOf(pattern: string): RE2JS {
  if (compiled?.pattern === pattern) return compiled.it;
  try {
    compiled = { pattern, it: RE2JS.compile(pattern) };
    return compiled.it;
  } catch (cause) {
    const reason = cause instanceof RE2JSException ? `: ${cause.message}` : '';
    throw new PluginError(`topic_pattern is not a regular expression of RE2${reason}.`, {
      fix: 'Correct it; lookaround and back-references are not supported.',
      cause,
    });
  }
}

/** For a pattern, the topics that exist. */
export async function topicsOf(cluster: Cluster, connection: Connection): Promise<string[]> {
  if (connection.topic_pattern === undefined) return [connection.topic_name!];
  const { topicMetadata } = await cluster.metadata();
  return matching(
    topicMetadata.map(({ topic }) => topic),
    connection,
  );
}

/** Resolves when other topics than `known` match, or the signal aborts. Never rejects. */
export async function topicsChanged(
  connection: Connection,
  known: readonly string[],
  { clientId, signal }: { readonly clientId: string; readonly signal: AbortSignal },
): Promise<void> {
  const look = async (cluster: Cluster) => {
    await cluster.connect();
    const found = await topicsOf(cluster, connection);
    return found.join() !== known.join();
  };
  while (!signal.aborted) {
    await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => {});
    let isChanged = false;
    // A failure is that of the members, which report it.
    await withCluster(connection, { clientId: `${clientId}-topics`, signal }, async (cluster) => {
      isChanged = await look(cluster);
    }).catch(() => {});
    if (isChanged) return;
  }
}
