import type pg from 'pg';
import { WAITING_PROJECTS } from './waiting-projects.js';

/** The id is new even if the name is already in use. */
export async function registerAgent(
  pool: pg.Pool,
  name: string,
  ttlMs: number,
  { readsSources = true } = {},
): Promise<number> {
  const { rows } = await pool.query<{ id: number }>(
    `insert into agents (name, expires_at, reads_sources) values ($1, now() + $2::float8 * interval '1 millisecond', $3) returning id`,
    [name, ttlMs, readsSources],
  );
  return rows[0]!.id;
}

const READERS = `array(select id from agents where expires_at > now() and reads_sources order by id)`;

export interface Readers {
  readonly ids: readonly number[];
  /** When the last lease of one expired. Null if none is recorded. */
  readonly lostAt: Date | null;
}

export async function findReaders(pool: pg.Pool): Promise<Readers> {
  const { rows } = await pool.query<Readers>(
    `select ${READERS} as ids, (select max(expires_at) from agents where expires_at <= now() and reads_sources) as "lostAt"`,
  );
  return rows[0]!;
}

/**
 * After a drain. If it still holds deliveries, its lease expires instead, and another agent
 * recovers them.
 */
export async function deregisterAgent(pool: pg.Pool, id: number): Promise<void> {
  await pool.query({
    name: 'deregister-agent',
    text: `with gone as (
             delete from agents where id = $1 and not exists (select from event_deliveries where status = 'processing' and claimed_by = $1) returning 1
           )
           update agents set expires_at = now() where id = $1 and not exists (select from gone)`,
    values: [id],
  });
}

export interface HeartbeatReply {
  /** By the clock of Postgres, at the start of the statement. */
  readonly nowMs: number;
  /** False if its row was deleted: its claims are void, and it must register again. */
  readonly alive: boolean;
  readonly agents: number;
  readonly readers: readonly number[];
  readonly anyDead: boolean;
  readonly nextDeadInMs: number | null;
  readonly oldestPendingMs: number | null;
  /**
   * Each project with unclaimed waiting deliveries, until the earliest is due; negative if overdue.
   */
  readonly dueInMs: ReadonlyMap<string, number>;
}

/**
 * Reads all that an idle agent needs: one partial index probe per partition and project with
 * waiting deliveries. Locks the agent's row.
 */
export async function sendHeartbeat(
  pool: pg.Pool,
  id: number,
  ttlMs: number,
): Promise<HeartbeatReply> {
  const { rows } = await pool.query<
    Omit<HeartbeatReply, 'dueInMs'> & { due: Record<string, number> | null }
  >({
    name: 'heartbeat',
    text: `with recursive ${WAITING_PROJECTS},
             renewed as (update agents set expires_at = now() + $2::float8 * interval '1 millisecond' where id = $1 returning 1)
           select (extract(epoch from now()) * 1000)::float8 as "nowMs", exists (select from renewed) as alive,
                  (select count(*) from agents where expires_at > now())::int as agents,
                  ${READERS} as readers,
                  exists (select from agents where expires_at <= now() and id <> $1) as "anyDead",
                  (extract(epoch from (select min(expires_at) from agents where expires_at > now() and id <> $1) - now()) * 1000)::float8 as "nextDeadInMs",
                  (extract(epoch from now() - (select min(accepted_at) from events where status = 'pending')) * 1000)::float8 as "oldestPendingMs",
                  (select json_object_agg(project_id, extract(epoch from next_attempt_at - now()) * 1000) from waiting where next_attempt_at < 'infinity') as due`,
    values: [id, ttlMs],
  });
  const { due, ...row } = rows[0]!;
  return { ...row, dueInMs: new Map(Object.entries(due ?? {})) };
}

export interface AgentRow {
  readonly id: number;
  readonly name: string;
  readonly started_at: Date;
  readonly expires_at: Date;
  readonly reads_sources: boolean;
  readonly alive: boolean;
}

/** The oldest, also those with an expired lease until their deliveries are recovered. */
export async function listAgents(pool: pg.Pool, limit: number): Promise<AgentRow[]> {
  const { rows } = await pool.query<AgentRow>({
    name: 'list-agents',
    text: `select id, name, started_at, expires_at, reads_sources, expires_at > now() as alive from agents order by started_at, id limit $1`,
    values: [limit],
  });
  return rows;
}

/** Empty for any project. Agents listen in the control plane, `pool`. */
export async function notifyDue(
  pool: pg.Pool,
  projectIds: readonly string[] = [''],
): Promise<void> {
  await pool.query({
    name: 'notify-due',
    text: `select pg_notify('gateway_due', p) from unnest($1::text[]) p`,
    values: [projectIds],
  });
}
