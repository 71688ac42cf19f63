import type pg from 'pg';

/**
 * Makes the partitions of the coming days and forgets idempotency keys whose window has passed. Any number of agents may call it: one at a
 * time does the work. A partition that cannot have its lock within two seconds is made at the next call.
 *
 * @param daysAhead how many days beyond today have their partitions
 */
export async function keepUp(pool: pg.Pool, daysAhead = 7): Promise<{ partitionsMade: boolean; keysForgotten: number }> {
  const client = await pool.connect();
  // A connection that breaks fails its query; without a listener it would end the process as well.
  const broken = () => undefined;
  client.on('error', broken);
  try {
    const { rows } = await client.query<{ mine: boolean }>(`select pg_try_advisory_lock(hashtext('gateway.upkeep')) as mine`);
    if (!rows[0]?.mine) return { partitionsMade: false, keysForgotten: 0 };
    try {
      await client.query(`set lock_timeout = '2s'`);
      const partitionsMade = await makeDays(client, daysAhead);
      let keysForgotten = 0;
      for (let deleted = 1000; deleted === 1000; keysForgotten += deleted) {
        const result = await client.query(
          `delete from idempotency_keys where (project_id, key) in (select project_id, key from idempotency_keys where expires_at <= now() limit 1000)`,
        );
        deleted = result.rowCount ?? 0;
      }
      return { partitionsMade, keysForgotten };
    } finally {
      await client.query(`reset lock_timeout`).catch(() => undefined);
      await client.query(`select pg_advisory_unlock(hashtext('gateway.upkeep'))`).catch(() => undefined);
    }
  } finally {
    client.off('error', broken);
    client.release();
  }
}

/** https://www.postgresql.org/docs/current/errcodes-appendix.html: lock_not_available. */
const LOCK_NOT_AVAILABLE = '55P03';

/** Makes the partitions of today and of the days ahead; a table that is locked, as by a backup, is no failure: its rows go to the default partition meanwhile. */
async function makeDays(client: pg.PoolClient, daysAhead: number): Promise<boolean> {
  try {
    const { rows } = await client.query<{ made: boolean }>(
      `select bool_or(ensure_day((now() at time zone 'UTC')::date + n)) as made from generate_series(0, $1::int) n`,
      [daysAhead],
    );
    return rows[0]?.made ?? false;
  } catch (error) {
    if ((error as { code?: string }).code === LOCK_NOT_AVAILABLE) return false;
    throw error;
  }
}
