import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '@gateway/core/config';
import { kvAddress } from '@gateway/core/errors';
import { listAgents } from '@gateway/store/deliveries';
import { clockFault, readOnly } from '@gateway/ingest/dependencies';
import { Replicas, readDatabaseFacts } from '@gateway/store/postgres';
import type { Database, DatabaseFacts } from '@gateway/store/postgres';
import { missingDays } from '@gateway/store/retention/maintenance';
import { migratedAs, requireReadyShard, type Shard } from '@gateway/store/shards';
import { withArchive, withKv } from '../app/stores.js';
import { escapeLine } from '../output/escape-terminal.js';
import {
  failed,
  failedBy,
  ok,
  resultOf,
  skipped,
  warning,
  type DoctorCheck,
  type DoctorContext,
  type DoctorResult,
} from './finding.js';

const AGENTS_MAX = 1_000;
const OLDEST_POSTGRES = 15;
const OLDEST_REDIS = [6, 2] as const;

/** Rejects if Postgres is unreachable. */
export async function checkDatabase({ config, reached }: DoctorContext): Promise<DoctorResult> {
  return checkServer(config.database, await reached);
}

/** Warns of changed collations. */
export function checkServer(
  place: Parameters<typeof readOnly>[0],
  { version, majorVersion, tls, latencyMs, isWritable, collation }: DatabaseFacts,
  name?: string,
): DoctorResult {
  const sentence = `Postgres ${version} at ${place.host}:${place.port}, database ${place.database}, ${tls ?? 'no TLS'}, ${latencyMs.toFixed(1)} ms`;
  if (majorVersion < OLDEST_POSTGRES)
    return failed(`${sentence}: too old`, `upgrade Postgres to ${OLDEST_POSTGRES} or later`);
  if (!isWritable) return resultOf(readOnly(place, name));
  return collation ? warning(`${sentence}: ${collation.sentence}`, collation.fix) : ok(sentence);
}

/** Subtracts half a round trip. */
export function checkClock({ clockAheadMs, latencyMs }: DatabaseFacts): DoctorResult {
  const skewMs = Math.abs(clockAheadMs);
  const fault = clockFault(Math.sign(clockAheadMs) * Math.max(0, skewMs - latencyMs / 2));
  if (fault) return resultOf(fault);
  return ok(
    `${(skewMs / 1000).toFixed(skewMs < 1000 ? 3 : 1)} s ${clockAheadMs > 0 ? 'behind' : 'ahead of'} that of Postgres`,
  );
}

/** Warns if no agent has a valid lease. */
export async function checkAgents({ pool }: Database): Promise<DoctorResult> {
  const agents = await listAgents(pool, AGENTS_MAX);
  const alive = agents.flatMap((agent) => (agent.alive ? [agent.name] : []));
  const dead = agents.length - alive.length;
  const gone = dead > 0 ? `; ${dead} stopped without a clean shutdown` : '';
  if (alive.length > 0) return ok(`${alive.length} running: ${alive.join(', ')}${gone}`);
  return warning(
    `none is running${gone}`,
    'start one with `gateway agent`: without it nothing is read and nothing is delivered',
  );
}

/**
 * Warns if today or tomorrow has no partition: that day's rows then go to the default partition,
 * which is never dropped.
 */
export async function checkPartitions({ pool }: Database): Promise<DoctorResult> {
  const days = await missingDays(pool, 1);
  if (days.length === 0) return ok('today and tomorrow have a partition');
  return warning(
    `no partition for ${days.join(' and ')}: events go to the default partition and are deleted row by row`,
    'the log of the agents has the cause; a long transaction may hold a lock on events (pg_stat_activity), or the default partition has more than 100,000 rows of the day. Agents try again every hour',
  );
}

const REPLICA_CHECK_MS = 500;

/** One check per read replica, which warns if reads cannot use it. */
export async function checkReplicas(
  database: Database,
  { config, signal }: DoctorContext,
): Promise<DoctorResult | DoctorCheck[]> {
  const settings = config.database;
  if (settings.replicas.length === 0) return skipped('there are none (database.replicas)');
  const replicas = new Replicas(database, { settings, poolSize: 1, name: 'gateway-doctor' });
  try {
    // A busy primary is ahead at the first look; a replica that follows reaches that position soon.
    const endsAt = Date.now() + Math.min(settings.max_replica_lag_seconds, 5) * 1000;
    for (;;) {
      await replicas.check();
      if (replicas.states.every(({ problem }) => problem === null)) break;
      if (Date.now() > endsAt || signal.aborted) break;
      await sleep(REPLICA_CHECK_MS);
    }
    return replicas.states.map(({ address, lagSeconds, problem }): DoctorCheck => {
      const found =
        problem === null
          ? ok(`at most ${lagSeconds!.toFixed(1)} s behind`)
          : warning(
              problem,
              'start it, or see pg_stat_replication of the primary; until then others are read',
            );
      return [`replica ${escapeLine(address)}`, () => found];
    });
  } finally {
    await replicas.close();
  }
}

/** Each shard other than the default one is checked as the database of the settings is. */
export async function checkShards({ shards }: DoctorContext): Promise<DoctorCheck[]> {
  const others = (await shards).all.filter((shard) => migratedAs(shard) !== undefined);
  return others.map((shard): DoctorCheck => [`shard ${shard.name}`, () => checkShard(shard)]);
}

/** The first problem of a shard, or a description of its database. */
async function checkShard(shard: Shard): Promise<DoctorResult> {
  const { database, settings } = shard;
  const named = (what: string, result: DoctorResult) => ({
    ...result,
    sentence: `${what}: ${result.sentence}`,
  });
  await requireReadyShard(shard);
  const facts = await readDatabaseFacts(database.pool);
  const server = checkServer(settings, facts, shard.name);
  const results = [
    server,
    named('clock', checkClock(facts)),
    named('partitions', await checkPartitions(database)),
    named('agents', await checkAgents(database)),
  ];
  return results.find(({ state }) => state !== 'ok') ?? server;
}

/**
 * Warns if KV is in memory or can evict keys, and fails if Redis is older than 6.2. Rejects with
 * `kv_unreachable` or another connection error.
 */
export async function checkKv({ config }: DoctorContext): Promise<DoctorResult> {
  if (config.kv.type === 'in-memory')
    return warning(
      'in the memory of each process',
      'set kv.type to redis before you run more than one process',
    );
  const info = await withKv(config, async (kv) => {
    await kv.ping();
    return kv.info();
  });
  const fact = (name: string) =>
    new RegExp(`^${name}:(.*)$`, 'm').exec(info ?? '')?.[1]?.trim() ?? '';
  const version = fact('redis_version');
  const policy = fact('maxmemory_policy') || 'unknown';
  const kept = fact('aof_enabled') === '1' ? 'append-only file on' : 'append-only file off';
  const sentence = `Redis ${version} ${placeOf(config.kv)}, ${policy}, ${kept}`;
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major < OLDEST_REDIS[0] || (major === OLDEST_REDIS[0] && minor < OLDEST_REDIS[1]))
    return failed(`${sentence}: too old`, `upgrade Redis to ${OLDEST_REDIS.join('.')} or later`);
  if (policy === 'noeviction' || policy === 'unknown') return ok(sentence);
  return warning(
    sentence,
    'set maxmemory-policy to noeviction; agents recover evicted signals from Postgres, but seconds later',
  );
}

function placeOf(settings: Config['kv']): string {
  const { host, port, sentinels, nodes } = kvAddress(settings);
  if (nodes) return `on one node of the Cluster with ${nodes}`;
  return sentinels ? `found through the Sentinels ${sentinels}` : `at ${host}:${port}`;
}

/**
 * Writes, reads and lists as agents and `gateway archive` do. Fails with the first of these that
 * the store refuses.
 */
export async function checkArchive({ config }: DoctorContext): Promise<DoctorResult> {
  const { url } = config.archive;
  if (url === undefined)
    return skipped('archive.url is not set, so retention deletes events without a copy');
  // Writing would create the folder: as another user than the agents, or where no disk is mounted.
  if (!url.startsWith('s3://') && !existsSync(url))
    return warning(
      `there is no folder ${url}`,
      'mount it, or create it so that the user of the agents may write to it; agents on this machine create it when the first day expires',
    );
  return withArchive(config, async ({ place, probes }) => {
    for (const [step, work] of Object.entries(probes)) {
      try {
        await work();
      } catch (error) {
        const { sentence, ...found } = failedBy(error);
        return { ...found, sentence: `${step}: ${sentence}` };
      }
    }
    return ok(`${place} can be written, read and listed`);
  });
}
