import type { Pool } from 'pg';
import type { SourceRecord } from '../config/snapshot.js';
import type { SourceRow } from '../config/sources.js';

/** What is worth knowing of a Postgres before a gateway relies on it. */
export interface DatabaseFacts {
  /** `17.2` */
  readonly version: string;
  readonly majorVersion: number;
  /** Version of the protocol, null without TLS. */
  readonly tls: string | null;
  /** Milliseconds of a statement that does nothing, there and back. */
  readonly latencyMs: number;
  /** Milliseconds that its clock is ahead of ours; negative when it is behind. */
  readonly clockAheadMs: number;
}

/** Looks at Postgres; changes nothing. Throws what keeps it from being reached. */
export async function examineDatabase(pool: Pool): Promise<DatabaseFacts> {
  const client = await pool.connect();
  try {
    const { rows } = await client.query<{ version: string; number: number; tls: string | null }>(
      `select current_setting('server_version') as version, current_setting('server_version_num')::int as number,
              (select version from pg_stat_ssl where pid = pg_backend_pid() and ssl) as tls`,
    );
    const startedAtMs = performance.now();
    const { rows: clock } = await client.query<{ ms: number }>(`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`);
    const latencyMs = performance.now() - startedAtMs;
    const { version, number, tls } = rows[0]!;
    const clockAheadMs = clock[0]!.ms - (Date.now() - latencyMs / 2);
    return { version: version.split(' ')[0]!, majorVersion: Math.floor(number / 10_000), tls, latencyMs, clockAheadMs };
  } finally {
    client.release();
  }
}

/** Agents that beat, and those that stopped without leaving. */
export async function countAgents(pool: Pool): Promise<{ alive: string[]; dead: string[] }> {
  const { rows } = await pool.query<{ name: string; alive: boolean }>(
    `select name, expires_at > now() as alive from agents order by started_at limit 1000`,
  );
  const named = (alive: boolean) => rows.filter((row) => row.alive === alive).map(({ name }) => name);
  return { alive: named(true), dead: named(false) };
}

/** A source with what tells whether agents read it. */
export type SourceOfProject = SourceRecord &
  Pick<SourceRow, 'paused_at' | 'resumes_at' | 'pause_reason' | 'paused_by' | 'pauses'> & {
    readonly project_name: string;
    readonly project_type: 'outgoing' | 'incoming';
  };

/** The sources of all projects that are not deleted, secrets sealed. */
export async function listSourcesOfProjects(pool: Pool): Promise<SourceOfProject[]> {
  const { rows } = await pool.query<SourceOfProject>(
    `select s.project_id, s.id, s.name, s.pub_sub, s.body_function, s.is_disabled, s.paused_at, s.resumes_at, s.pause_reason, s.paused_by, s.pauses,
            p.name as project_name, p.type as project_type
     from projects p join sources s on s.project_id = p.id
     where p.deleted_at is null and s.deleted_at is null order by p.name, s.name, s.id`,
  );
  return rows;
}
