import type pg from 'pg';
import type { Querier } from '../postgres/connection.js';

const DAY_MS = 86_400_000;

export interface SourceOf {
  readonly projectId: string;
  readonly sourceId: string;
}

export interface SourcePositions {
  readonly positions: ReadonlyMap<string, string>;
  /** The project's own retention, if it has one. */
  readonly retentionDays: number | null;
  /** The database's time. */
  readonly readAt: Date;
}

/** By primary key, without a lock. */
export async function readPositions(
  pool: pg.Pool,
  { projectId, sourceId }: SourceOf,
): Promise<SourcePositions> {
  const { rows } = await pool.query<{
    read_at: Date;
    days: number | null;
    positions: Readonly<Record<string, string>>;
  }>({
    name: 'read-positions',
    text: `select now() as read_at,
             (select (config -> 'retention' ->> 'days')::integer from projects where id = $1) as days,
             (select coalesce(json_object_agg(name, position), '{}') from source_positions where source_id = $2) as positions`,
    values: [projectId, sourceId],
  });
  const { read_at: readAt, days: retentionDays, positions } = rows[0]!;
  return { positions: new Map(Object.entries(positions)), retentionDays, readAt };
}

/** The start of the UTC day before which retention deletes events. */
export function keptSinceMs(days: number, nowMs = Date.now()): number {
  return (Math.floor(nowMs / DAY_MS) - days) * DAY_MS;
}

export interface NewPosition extends SourceOf {
  readonly name: string;
  readonly position: string;
  readonly runBeganAt: Date;
}

/**
 * One row each, in the order of the primary key, because agents share sources. What a person has
 * moved since the run began stays.
 */
export async function recordPositions(
  pool: pg.Pool,
  positions: readonly NewPosition[],
): Promise<void> {
  await pool.query({
    name: 'record-positions',
    text: `insert into source_positions (project_id, source_id, name, position, run_began_at)
           select * from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[]) as n(project_id, source_id, name, position, run_began_at)
           order by source_id, name
           on conflict (source_id, name) do update set position = excluded.position, run_began_at = excluded.run_began_at
           where source_positions.moved_at is null or source_positions.moved_at < excluded.run_began_at`,
    values: [
      positions.map(({ projectId }) => projectId),
      positions.map(({ sourceId }) => sourceId),
      positions.map(({ name }) => name),
      positions.map(({ position }) => position),
      positions.map(({ runBeganAt }) => runBeganAt),
    ],
  });
}

/** For a source that a person has moved. */
export async function movePositions(
  pool: pg.Pool,
  { projectId, sourceId }: SourceOf,
  positions: readonly Pick<NewPosition, 'name' | 'position'>[],
): Promise<void> {
  await pool.query({
    name: 'move-positions',
    text: `insert into source_positions (project_id, source_id, name, position, run_began_at, moved_at)
           select $1, $2, n.*, now(), now() from unnest($3::text[], $4::text[]) as n(name, position) order by name
           on conflict (source_id, name) do update set position = excluded.position, run_began_at = excluded.run_began_at, moved_at = excluded.moved_at`,
    values: [
      projectId,
      sourceId,
      positions.map(({ name }) => name),
      positions.map(({ position }) => position),
    ],
  });
}

export async function deleteOldPositions(control: Querier): Promise<void> {
  await control.query(
    `delete from source_positions p where not exists (select from sources s where s.project_id = p.project_id and s.id = p.source_id and s.deleted_at is null)`,
  );
}
