import { explainDatabaseError } from '@gateway/core/errors';
import type { Config } from '@gateway/core/config';
import { countAgents } from '@gateway/store/deliveries';
import { readDatabaseFacts, type DatabaseFacts } from '@gateway/store/postgres';
import { requireMigrated, type Database } from '@gateway/store/postgres';
import { failed, failedBy, ok, warning, type Finding } from './finding.js';

const OLDEST_POSTGRES = 15;
const SKEW_WARNING_MS = 2_000;
/** Signatures are told to be verified with a tolerance of five minutes. https://github.com/standard-webhooks/standard-webhooks */
const SKEW_FAILURE_MS = 30_000;

/** Looks at Postgres; the facts are there when it answers, even when it is too old. */
export async function checkDatabase(database: Database, { database: place }: Config): Promise<{ finding: Finding; facts?: DatabaseFacts }> {
  let facts: DatabaseFacts;
  try {
    facts = await readDatabaseFacts(database.pool);
  } catch (error) {
    return { finding: failedBy('database', explainDatabaseError(error, place)) };
  }
  const { version, majorVersion, tls, latencyMs } = facts;
  const sentence = `Postgres ${version} at ${place.host}:${place.port}, database ${place.database}, ${tls ?? 'no TLS'}, ${latencyMs.toFixed(1)} ms`;
  if (majorVersion >= OLDEST_POSTGRES) return { finding: ok('database', sentence), facts };
  return { finding: failed('database', `${sentence}: too old`, `upgrade Postgres to ${OLDEST_POSTGRES} or later`), facts };
}

export async function checkMigrations(database: Database): Promise<Finding> {
  try {
    await requireMigrated(database);
    return ok('migrations', 'all are applied');
  } catch (error) {
    return failedBy('migrations', error);
  }
}

export function checkClock({ clockAheadMs, latencyMs }: DatabaseFacts): Finding {
  const skewMs = Math.abs(clockAheadMs);
  const sentence = `${(skewMs / 1000).toFixed(skewMs < 1000 ? 3 : 1)} s ${clockAheadMs > 0 ? 'behind' : 'ahead of'} that of Postgres`;
  const fix = 'let both machines set their clocks by NTP; receivers refuse signatures whose time is five minutes off';
  // An answer that took long says nothing finer than that.
  if (skewMs - latencyMs / 2 > SKEW_FAILURE_MS) return failed('clock', sentence, fix);
  return skewMs - latencyMs / 2 > SKEW_WARNING_MS ? warning('clock', sentence, fix) : ok('clock', sentence);
}

export async function checkAgents({ pool }: Database): Promise<Finding> {
  const { alive, dead } = await countAgents(pool);
  const gone = dead.length > 0 ? `; ${dead.length} stopped without leaving` : '';
  if (alive.length > 0) return ok('agents', `${alive.length} running: ${alive.join(', ')}${gone}`);
  return warning('agents', `none is running${gone}`, 'start one with `gateway agent`: without it nothing is read and nothing is delivered');
}
