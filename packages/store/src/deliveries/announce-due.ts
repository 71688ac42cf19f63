import type pg from 'pg';

/** Tells every agent that deliveries of these projects are due; without a project, that some of any may be. */
export async function announceDue(pool: pg.Pool, projectIds: readonly string[] = ['']): Promise<void> {
  await pool.query({ name: 'announce-due', text: `select pg_notify('gateway_due', p) from unnest($1::text[]) p`, values: [projectIds] });
}
