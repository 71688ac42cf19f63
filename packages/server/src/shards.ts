import { isGatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { repeat } from '@gateway/core/process';
import { requireReady, type Database } from '@gateway/store/postgres';
import { DEFAULT_SHARD, Shards } from '@gateway/store/shards';

/** The interval at which added, changed and removed shards are noticed. */
const REFRESH_MS = 5_000;

/**
 * Opens the shards and follows their changes. A shard that is away does not stop the process.
 *
 * @throws GatewayError if a shard lacks a migration, or is newer than this version
 */
export async function openShards(
  database: Database,
  options: ConstructorParameters<typeof Shards>[1],
  log: Log,
): Promise<{ readonly all: Shards; close(): Promise<void> }> {
  const all = new Shards(database, options);
  try {
    await all.refresh();
    await Promise.all(all.all.map((shard) => requireShard(shard, log)));
  } catch (error) {
    await all.close();
    throw error;
  }
  const stop = repeat(() => all.refresh().then(() => REFRESH_MS), {
    afterMs: REFRESH_MS,
    retryMs: REFRESH_MS,
    failed(error, isFirst) {
      if (isFirst) log.warn({ error }, 'The shards could not be read; the known ones stay in use.');
    },
  });
  return {
    all,
    async close() {
      await stop();
      await all.close();
    },
  };
}

async function requireShard(
  { name, database, settings }: Shards['all'][number],
  log: Log,
): Promise<void> {
  // The default shard is the database of the control plane, which is checked before.
  if (name === DEFAULT_SHARD) return;
  try {
    await requireReady(database, settings, log, name);
  } catch (error) {
    if (REFUSED.some((code) => isGatewayError(error, code))) throw error;
    log.warn({ shard: name, error }, 'A shard is away; requests for its projects fail until then.');
  }
}

const REFUSED = ['migration_pending', 'database_newer', 'shard_schema'] as const;
