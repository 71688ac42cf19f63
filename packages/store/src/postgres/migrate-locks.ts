import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '@gateway/core/errors';
import type { Database } from './database.js';

/**
 * What a migration waits for one lock. Whoever wants the table waits behind it, agents that deliver and servers that answer, so it is less than the second
 * that an upgrade may pause them.
 */
export const LOCK_TIMEOUT_MS = 500;

/** Time in which those who were held up catch up, before the next try. */
const PAUSE_MS = 1_000;

/** A migration, all of which was rolled back, could not have a lock. */
export class LockedOut extends Error {
  readonly file: string;

  constructor(file: string, cause: unknown) {
    super(`${file} could not have a lock`, { cause });
    this.file = file;
  }
}

/** https://www.postgresql.org/docs/current/errcodes-appendix.html: deadlock_detected, lock_not_available */
export function isLockCode(code: string): boolean {
  return code === '40P01' || code === '55P03';
}

/** How a migration waits for locks that others hold. */
export interface LockWait {
  /** How long it is tried again and again, in milliseconds. */
  readonly triesMs: number;
  /** Is told why it waits, once for each reason. */
  readonly onWait?: ((why: string) => void) | undefined;
}

/**
 * Tries migrations again of which one could not have a lock in time, or that Postgres chose to end a deadlock with an agent: of such a try nothing stays.
 *
 * @param migrate throws `LockedOut` then
 * @throws GatewayError `migration_locked` when it had no luck in `triesMs`; what `migrate` throws for another reason
 */
export async function withLocks<T>(database: Pick<Database, 'pool'>, migrate: () => Promise<T>, { triesMs, onWait }: LockWait): Promise<T> {
  const startedAtMs = performance.now();
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await migrate();
    } catch (error) {
      if (!(error instanceof LockedOut)) throw error;
      const { file } = error;
      const elapsedMs = performance.now() - startedAtMs;
      if (elapsedMs >= triesMs) {
        throw new GatewayError(
          'migration_locked',
          { file, seconds: Math.round(elapsedMs / 1000), holders: await holders(database) },
          { cause: error },
        );
      }
      if (isFirst) onWait?.(`other sessions hold locks that ${file} needs; it is tried again for ${Math.ceil(triesMs / 1000)} s`);
      await sleep(PAUSE_MS);
    }
  }
}

/** Sessions with the longest transactions, that an operator may know them by; none when Postgres does not show those of others. */
async function holders({ pool }: Pick<Database, 'pool'>): Promise<string[]> {
  const { rows } = await pool
    .query<{ holder: string }>(
      `select format('pid %s (%s, %s for %s s)', pid, coalesce(nullif(application_name, ''), usename), state, extract(epoch from now() - xact_start)::int) as holder
       from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and xact_start < now() - interval '1 second'
       order by xact_start limit 3`,
    )
    .catch(() => ({ rows: [] }));
  return rows.map(({ holder }) => holder);
}
