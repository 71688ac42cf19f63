import { hostname } from 'node:os';
import { databaseReason, isGatewayError, kvReason } from '@gateway/core/errors';
import { withTimeout, type ComponentState } from '@gateway/core/process';
import type { Kv } from '@gateway/store/kv';
import { probeDatabase, requireMigrated, type ReplicaState } from '@gateway/store/postgres';
import { DEFAULT_SHARD, explainShardError, migratedAs, type Shard } from '@gateway/store/shards';

/** A dependency of a process is at fault, as its operator sees it. */
export interface Fault {
  readonly state: Exclude<ComponentState, 'ok'>;
  /** Without a final period, as the fix. */
  readonly reason: string;
  readonly fix?: string;
}

/** The component of health of a shard other than the default one. */
export const shardComponent = (name: string) => `shard ${name}`;

/** The reason of a component of health. `meanwhile` is a sentence. */
export function faultText({ reason, fix }: Fault, meanwhile?: string): string {
  const sentences = [`${reason}.`, meanwhile, fix && `To fix it: ${fix}.`];
  return sentences.filter(Boolean).join(' ');
}

/** The fix of another shard than the default one is not about settings. */
export const databaseFault = (
  error: unknown,
  settings: Shard['settings'],
  name = DEFAULT_SHARD,
): Fault => ({
  state: 'down',
  ...databaseReason(explainShardError(error, { name, settings }), settings),
});

/** A database that answers reads, and takes no writes. */
export const readOnly = (settings: Shard['settings'], name?: string) =>
  databaseFault({ code: '25006' }, settings, name);

/** Whether Postgres answers and takes writes, and whether it has the migrations of this version. */
export async function checkDatabase(
  { name, database, settings }: Pick<Shard, 'name' | 'database' | 'settings'>,
  withinMs: number,
): Promise<Readonly<Record<'postgres' | 'migrations', Fault | undefined>>> {
  try {
    // Probed first, because this probe has its own timeout. The migration check would hold a
    // connection while Postgres is unresponsive.
    const { isWritable } = await probeDatabase(database.pool, withinMs);
    const migrated = requireMigrated(database, undefined, migratedAs({ name }));
    return {
      postgres: isWritable ? undefined : { ...readOnly(settings, name), state: 'degraded' },
      migrations: await withTimeout(migrated, withinMs).then(newerFault, migrationFault),
    };
  } catch (error) {
    const migrations = { state: 'down', reason: 'unknown while Postgres is unavailable' } as const;
    return { postgres: databaseFault(error, settings, name), migrations };
  }
}

function newerFault(newer: readonly string[]): Fault | undefined {
  if (newer.length === 0) return undefined;
  const reason = `the database is newer than this gateway: it has ${newer.join(', ')}; this version works with it too`;
  return { state: 'degraded', reason };
}

function migrationFault(error: unknown): Fault {
  if (isGatewayError(error, 'migration_pending'))
    return { state: 'down', reason: error.message, fix: error.fix };
  if (!isGatewayError(error, 'database_newer')) throw error;
  // Migrations keep the previous version working (docs/guides/deploy.md, Upgrade), so old servers
  // stay ready during an upgrade.
  const reason = `${error.message}; this process keeps running but cannot restart`;
  return { state: 'degraded', reason, fix: error.fix };
}

/** An outage only makes the gateway slower. */
export function checkKv(
  kv: Pick<Kv, 'ping'>,
  settings: Parameters<typeof kvReason>[1],
  withinMs: number,
): Promise<Fault | undefined> {
  return withTimeout(kv.ping(), withinMs).then(
    () => undefined,
    (error: unknown) => ({
      state: 'degraded',
      reason: `${kvReason(error, settings)}. Events are routed without it, some seconds later`,
    }),
  );
}

export function replicasFault(states: readonly ReplicaState[]): Fault | undefined {
  const problems = states.flatMap(({ problem }) => problem ?? []);
  if (problems.length === 0) return undefined;
  return { state: 'degraded', reason: `${problems.join('; ')}; reads go elsewhere` };
}

const CLOCK_DOUBTFUL_MS = 2_000;
/**
 * Receivers should reject a `webhook-timestamp` that is five minutes off
 * (https://github.com/standard-webhooks/standard-webhooks), so half a minute leaves time to correct
 * the clock.
 */
const CLOCK_WRONG_MS = 30_000;

/** `aheadMs` is how far Postgres is at least ahead of this machine; negative if it is behind. */
export function clockFault(aheadMs: number): Fault | undefined {
  const skewMs = Math.abs(aheadMs);
  if (skewMs <= CLOCK_DOUBTFUL_MS) return undefined;
  return {
    state: skewMs > CLOCK_WRONG_MS ? 'down' : 'degraded',
    reason: `The clock of ${hostname()} is ${Math.round(skewMs / 1000)} s ${aheadMs > 0 ? 'behind' : 'ahead of'} that of Postgres`,
    fix: 'synchronise both machines with NTP; receivers reject signatures that are five minutes off',
  };
}
