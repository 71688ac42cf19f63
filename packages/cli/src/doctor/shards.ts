import { sealer } from '@gateway/core/crypto';
import { readDatabaseFacts, requireReady, type Database } from '@gateway/store/postgres';
import { explainShardError, migratedAs, Shards, type Shard } from '@gateway/store/shards';
import { failedBy, type DoctorCheck, type DoctorContext, type DoctorResult } from './finding.js';
import { checkAgents, checkClock, checkPartitions, checkServer } from './stores.js';

/** Each shard other than the default one is checked as the database of the settings is. */
export async function checkShards(
  control: Database,
  { config }: DoctorContext,
): Promise<DoctorCheck[]> {
  const { open } = sealer(config.encryption_key);
  const options = { settings: config.database, open, poolSize: 2, name: 'gateway-doctor' };
  const shards = new Shards(control, options);
  try {
    await shards.refresh();
    const others = shards.all.filter((shard) => migratedAs(shard) !== undefined);
    const found = others.map(async (shard): Promise<DoctorCheck> => {
      const result = await checkShard(shard);
      return [`shard ${shard.name}`, () => result];
    });
    return await Promise.all(found);
  } finally {
    // Not awaited, because closing waits for running statements.
    void shards.close().catch(() => undefined);
  }
}

/** The first problem of a shard, or a description of its database. */
async function checkShard(shard: Shard): Promise<DoctorResult> {
  const { database, settings } = shard;
  try {
    await requireReady(database, settings, { warn: () => undefined }, migratedAs(shard));
    const facts = await readDatabaseFacts(database.pool);
    const server = checkServer(settings, facts);
    const results = [
      server,
      named('clock', checkClock(facts)),
      named('partitions', await checkPartitions(database)),
      named('agents', await checkAgents(database)),
    ];
    return results.find(({ state }) => state !== 'ok') ?? server;
  } catch (error) {
    return failedBy(explainShardError(error, shard));
  }
}

function named(what: string, result: DoctorResult): DoctorResult {
  return { ...result, sentence: `${what}: ${result.sentence}` };
}
