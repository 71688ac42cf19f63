import { setTimeout as sleep } from 'node:timers/promises';
import type { Config } from '@gateway/core/config';
import { kvAddress } from '@gateway/core/errors';
import { countAgents } from '@gateway/store/deliveries';
import { silentLog } from '@gateway/core/logging';
import { createMeter } from '@gateway/core/metrics/meter';
import { Replicas, type Database, type DatabaseFacts } from '@gateway/store/postgres';
import { missingDays } from '@gateway/store/retention/maintenance';
import { withKv } from '../app/stores.js';
import { escapeLine } from '../output/escape-terminal.js';
import {
  failed,
  ok,
  skipped,
  warning,
  type DoctorCheck,
  type DoctorContext,
  type DoctorResult,
} from './finding.js';

const OLDEST_POSTGRES = 15;
const OLDEST_REDIS = [6, 2] as const;
const SKEW_WARNING_MS = 2_000;
/** Receivers should allow five minutes: https://github.com/standard-webhooks/standard-webhooks */
const SKEW_FAILURE_MS = 30_000;

/**
 * Reports version and address. Fails if Postgres is older than version 15. Rejects if it is
 * unreachable.
 */
export async function checkDatabase({ config, reached }: DoctorContext): Promise<DoctorResult> {
  return checkServer(config.database, await reached);
}

/**
 * Reports version and address. Fails if Postgres is older than version 15, and warns of changed
 * collations.
 */
export function checkServer(
  place: Pick<Config['database'], 'host' | 'port' | 'database'>,
  { version, majorVersion, tls, latencyMs, collation }: DatabaseFacts,
): DoctorResult {
  const sentence = `Postgres ${version} at ${place.host}:${place.port}, database ${place.database}, ${tls ?? 'no TLS'}, ${latencyMs.toFixed(1)} ms`;
  if (majorVersion < OLDEST_POSTGRES)
    return failed(`${sentence}: too old`, `upgrade Postgres to ${OLDEST_POSTGRES} or later`);
  return collation ? warning(`${sentence}: ${collation.sentence}`, collation.fix) : ok(sentence);
}

/**
 * Warns if the clocks of this machine and Postgres differ by more than 2 s, and fails above 30 s,
 * after subtracting half a round trip.
 */
export function checkClock({ clockAheadMs, latencyMs }: DatabaseFacts): DoctorResult {
  const skewMs = Math.abs(clockAheadMs);
  const sentence = `${(skewMs / 1000).toFixed(skewMs < 1000 ? 3 : 1)} s ${clockAheadMs > 0 ? 'behind' : 'ahead of'} that of Postgres`;
  const fix =
    'synchronise both machines with NTP; receivers reject signatures that are five minutes off';
  if (skewMs - latencyMs / 2 > SKEW_FAILURE_MS) return failed(sentence, fix);
  return skewMs - latencyMs / 2 > SKEW_WARNING_MS ? warning(sentence, fix) : ok(sentence);
}

/** Warns if no agent has a valid lease. Rejects if Postgres is unreachable. */
export async function checkAgents({ pool }: Database): Promise<DoctorResult> {
  const { alive, dead } = await countAgents(pool);
  const gone = dead.length > 0 ? `; ${dead.length} stopped without a clean shutdown` : '';
  if (alive.length > 0) return ok(`${alive.length} running: ${alive.join(', ')}${gone}`);
  return warning(
    `none is running${gone}`,
    'start one with `gateway agent`: without it nothing is read and nothing is delivered',
  );
}

/**
 * Warns if today or tomorrow has no partition: that day's rows then go to the default partition,
 * which is never dropped. Rejects if Postgres is unreachable.
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
  const replicas = new Replicas(database, {
    settings,
    poolSize: 1,
    name: 'gateway-doctor',
    log: silentLog,
    meter: createMeter(undefined),
  });
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
