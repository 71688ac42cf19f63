import type pg from 'pg';

/** Enters a running agent. Its claims hold as long as it beats. */
export async function registerAgent(pool: pg.Pool, name: string, ttlMs: number): Promise<number> {
  const { rows } = await pool.query<{ id: number }>(
    `insert into agents (name, expires_at) values ($1, now() + $2::float8 * interval '1 millisecond') returning id`,
    [name, ttlMs],
  );
  return rows[0]!.id;
}

/**
 * Removes the agent after a drain, so that nobody waits for its row to expire. One that still holds something, as after a drain that took too
 * long, is left as a dead one: the next beat of another agent recovers what it held.
 */
export async function deregisterAgent(pool: pg.Pool, id: number): Promise<void> {
  await pool.query({
    name: 'leave-agent',
    text: `with gone as (
             delete from agents where id = $1 and not exists (select from event_deliveries where status = 'processing' and claimed_by = $1) returning 1
           )
           update agents set expires_at = now() where id = $1 and not exists (select from gone)`,
    values: [id],
  });
}

export interface Beat {
  /** False: this agent's row was swept; its claims are void and it must enter again. */
  readonly alive: boolean;
  /** Agents that beat, this one included. */
  readonly agents: number;
  /** True when there is a row of an agent that stopped beating. */
  readonly anyDead: boolean;
  /** Milliseconds until the first of the other agents is dead unless it beats before; null without others. */
  readonly nextDeadInMs: number | null;
  /** Age of the oldest event that is accepted and not routed; null when there is none. */
  readonly oldestPendingMs: number | null;
  /** Milliseconds until the earliest scheduled or retrying delivery of each project that has one; negative when overdue. */
  readonly dueInMs: ReadonlyMap<string, number>;
}

/**
 * One statement in place of five: renews the agent's row and reads all that an idle agent needs to know. Every part is one probe of a partial index
 * per partition (and per project).
 */
export async function sendHeartbeat(pool: pg.Pool, id: number, ttlMs: number, projectIds: readonly string[]): Promise<Beat> {
  const { rows } = await pool.query<{
    alive: boolean;
    agents: number;
    any_dead: boolean;
    next_dead_ms: number | null;
    oldest_pending_ms: number | null;
    due: Record<string, number> | null;
  }>({
    name: 'beat-agent',
    text: `with beat as (update agents set expires_at = now() + $2::float8 * interval '1 millisecond' where id = $1 returning 1)
           select exists (select from beat) as alive,
                  (select count(*) from agents where expires_at > now())::int as agents,
                  exists (select from agents where expires_at <= now() and id <> $1) as any_dead,
                  extract(epoch from (select min(expires_at) from agents where expires_at > now() and id <> $1) - now()) * 1000 as next_dead_ms,
                  extract(epoch from now() - (select min(accepted_at) from events where status = 'pending')) * 1000 as oldest_pending_ms,
                  (select json_object_agg(p.id, extract(epoch from m.at - now()) * 1000)
                   from unnest($3::uuid[]) p(id)
                   cross join lateral (select min(d.next_attempt_at) as at from event_deliveries d
                                       where d.project_id = p.id and d.status in ('scheduled', 'retry')) m
                   where m.at < 'infinity') as due`,
    values: [id, ttlMs, projectIds],
  });
  const row = rows[0]!;
  return {
    alive: row.alive,
    agents: row.agents,
    anyDead: row.any_dead,
    nextDeadInMs: row.next_dead_ms === null ? null : Number(row.next_dead_ms),
    oldestPendingMs: row.oldest_pending_ms === null ? null : Number(row.oldest_pending_ms),
    dueInMs: new Map(Object.entries(row.due ?? {})),
  };
}

/** Agents that beat, and those that stopped without leaving. */
export async function countAgents(pool: pg.Pool): Promise<{ alive: string[]; dead: string[] }> {
  const { rows } = await pool.query<{ name: string; alive: boolean }>(
    `select name, expires_at > now() as alive from agents order by started_at limit 1000`,
  );
  const named = (alive: boolean) => rows.filter((row) => row.alive === alive).map(({ name }) => name);
  return { alive: named(true), dead: named(false) };
}

/** Tells every agent that deliveries of these projects are due; without a project, that some of any may be. */
export async function notifyDue(pool: pg.Pool, projectIds: readonly string[] = ['']): Promise<void> {
  await pool.query({ name: 'announce-due', text: `select pg_notify('gateway_due', p) from unnest($1::text[]) p`, values: [projectIds] });
}
