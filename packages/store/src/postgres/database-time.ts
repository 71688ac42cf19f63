import type { Pool } from 'pg';

/** The time of the database, as text with all its digits: what is compared with times that it wrote must not be by our own clock. */
export async function databaseTime(pool: Pool): Promise<string> {
  const { rows } = await pool.query<{ now: string }>('select now()::text as now');
  return rows[0]!.now;
}
