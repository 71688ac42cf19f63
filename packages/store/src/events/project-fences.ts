import { opaqueUnless } from '../postgres/columns.js';
import type { Querier } from '../postgres/connection.js';

/** The highest id: a shard with this fence takes nothing of the project, which is on another one. */
export const EVERYTHING = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/**
 * The CTE `fenced` selects the fences of the projects in the CTE `u`. The table has rows only during
 * a move and for a day after it.
 */
export const FENCED = `fenced as materialized (
    select project_id, through from project_fences where (select exists (select from project_fences)) and through is not null and project_id in (select project_id from u)
  )`;

const FENCE = `exists (select from fenced f where f.project_id = u.project_id and u.id <= f.through)`;
export const NOT_FENCED = `case when (select exists (select from fenced)) then not ${FENCE} else true end`;
/** The ids `u.id` that a fence refuses. Without fences, `u` is not read. */
export const REFUSED = `select id::text from u where (select exists (select from fenced)) and ${FENCE}`;

/** The rows of the project are on this shard. */
export const isHere = (project: string): string =>
  opaqueUnless(
    `${project} in (select project_id from project_fences where through = '${EVERYTHING}')`,
  );

/** The highest id that this shard refuses, of each project with a fence. */
export async function readFences(
  pool: Querier,
  projectIds: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ id: string; through: string }>({
    name: 'read-fences',
    text: 'select project_id as id, through from project_fences where project_id = any ($1::uuid[]) and through is not null',
    values: [[...new Set(projectIds)]],
  });
  return new Map(rows.map(({ id, through }) => [id, through]));
}
