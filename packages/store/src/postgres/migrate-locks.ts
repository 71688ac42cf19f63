import { setTimeout as sleep } from 'node:timers/promises';
import { GatewayError } from '@gateway/core/errors';
import type { Database } from './database.js';

/** How long a migration waits for one lock. Statements on the table queue behind it, so it is less than the second that an upgrade may pause them. */
export const LOCK_TIMEOUT_MS = 500;

/** Pause between two tries, in which blocked statements run. */
const PAUSE_MS = 1_000;

/** A migration was rolled back because it could not get a lock. */
export class LockNotAcquired extends Error {
  readonly file: string;

  constructor(file: string, cause: unknown) {
    super(`${file} could not get a lock`, { cause });
    this.file = file;
  }
}

/** How a migration waits for locks that others hold. */
export interface LockWait {
  /** How long it retries, in milliseconds. */
  readonly triesMs: number;
  /** Called with the reason, once per reason. */
  readonly onWait?: ((why: string) => void) | undefined;
}

/**
 * Retries `migrate` while it throws `LockNotAcquired`: a lock timeout, or a deadlock with an agent. Such a try was rolled back.
 *
 * @throws GatewayError `migration_locked` after `triesMs`; any other error of `migrate`
 */
export async function withLocks<T>(database: Pick<Database, 'pool'>, migrate: () => Promise<T>, { triesMs, onWait }: LockWait): Promise<T> {
  const startedAtMs = performance.now();
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await migrate();
    } catch (error) {
      if (!(error instanceof LockNotAcquired)) throw error;
      const { file } = error;
      const elapsedMs = performance.now() - startedAtMs;
      if (elapsedMs >= triesMs) {
        const details = { file, seconds: Math.round(elapsedMs / 1000), holders: await lockHolders(database) };
        throw new GatewayError('migration_locked', details, { cause: error });
      }
      if (isFirst) onWait?.(`other sessions hold locks that ${file} needs; it is tried again for ${Math.ceil(triesMs / 1000)} s`);
      await sleep(PAUSE_MS);
    }
  }
}

/** The sessions with the longest transactions; none when Postgres hides those of other users. */
async function lockHolders({ pool }: Pick<Database, 'pool'>): Promise<string[]> {
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
