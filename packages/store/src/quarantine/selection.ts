import type { Pool } from 'pg';
import { idBound, progressAt, Values } from '../pagination/log-page.js';
import type { Planes } from '../postgres/planes.js';
import {
  fieldsOfSources,
  QUARANTINE_COLUMNS,
  type QuarantinedMessageRow,
  type QuarantineStatus,
} from './messages.js';

export interface QuarantineEntry extends QuarantinedMessageRow {
  readonly project_name: string;
  readonly source_name: string | null;
}

export interface QuarantineSelection {
  readonly projectId?: string | undefined;
  readonly sourceId?: string | undefined;
  readonly status?: QuarantineStatus | undefined;
  readonly code?: string | undefined;
  readonly from?: Date | undefined;
  /** Must come from `databaseTime`. */
  readonly quarantinedUntil?: string | undefined;
}

export interface QuarantinePart {
  readonly order: 'asc' | 'desc';
  readonly after?: string | undefined;
  readonly limit: number;
}

/** Names by id. */
async function liveProjects(
  pool: Pool,
  projectId: string | null = null,
): Promise<ReadonlyMap<string, string>> {
  const { rows } = await pool.query<{ id: string; name: string }>({
    name: 'live-projects',
    text: 'select id, name from projects where deleted_at is null and ($1::uuid is null or id = $1)',
    values: [projectId],
  });
  return new Map(rows.map(({ id, name }) => [id, name]));
}

async function withNames(
  pool: Pool,
  projects: ReadonlyMap<string, string>,
  rows: readonly QuarantinedMessageRow[],
): Promise<QuarantineEntry[]> {
  const refs = rows.map((row) => ({ projectId: row.project_id, sourceId: row.source_id }));
  const sources = await fieldsOfSources(pool, 'name', refs);
  return rows.map((row, k) => ({
    ...row,
    project_name: projects.get(row.project_id)!,
    source_name: sources[k] ?? null,
  }));
}

/**
 * In one project or in all. For each project, makes one index probe and reads rows until `limit`
 * match the source and code. No lock.
 */
export async function listQuarantine(
  { control, data }: Planes,
  { projectId, sourceId, status, code, from, quarantinedUntil }: QuarantineSelection,
  { order, after, limit }: QuarantinePart,
): Promise<QuarantineEntry[]> {
  const values = new Values();
  const conditions = [
    'e.project_id = p.id',
    // A literal, so that the partial index of quarantined messages can be used.
    ...(status === 'quarantined'
      ? [`e.status = 'quarantined'`]
      : values.where(status, (it) => `e.status = ${it}::quarantine_status`)),
    ...values.where(sourceId, (it) => `e.source_id = ${it}::uuid`),
    ...values.where(code, (it) => `e.code = ${it}`),
    ...values.where(
      from && idBound(Math.max(0, from.getTime()), '0'),
      (it) => `e.id >= ${it}::uuid`,
    ),
    ...values.where(quarantinedUntil, (it) => `e.created_at <= ${it}::timestamptz`),
    ...values.where(after, (it) => `e.id ${order === 'asc' ? '>' : '<'} ${it}::uuid`),
  ];
  const projects = await liveProjects(control, projectId);
  const most = `limit ${values.add(limit)}::int`;
  const { rows } = await data.query<QuarantinedMessageRow>(
    `select ${QUARANTINE_COLUMNS}
     from ${values.each([...projects.keys()], 'uuid')} p(id)
     cross join lateral (select * from quarantined_messages e where ${conditions.join(' and ')} order by e.id ${order} ${most}) e
     order by e.id ${order}, e.project_id ${most}`,
    values.list,
  );
  return withNames(control, projects, rows);
}

export interface QuarantineSpan {
  readonly from: Date;
  /** Defaults to now. `from` and `to` are broker times. */
  readonly to?: Date | undefined;
  readonly after?: string | undefined;
  readonly sourceId?: string | undefined;
  readonly code?: string | undefined;
}

export interface QuarantineStep {
  readonly ids: readonly string[];
  /** Null after the last step. */
  readonly next: string | null;
  /** By broker time, from 0 to 1. */
  readonly progress: number;
}

const STEP_ROWS = 1_000;

/**
 * Oldest first. Each step reads a bounded number of rows, so it may have few or no ids if
 * `sourceId` and `code` match few rows. No lock.
 */
export async function* selectQuarantined(
  pool: Pool,
  projectId: string,
  { from, to = new Date(), after, sourceId, code }: QuarantineSpan,
  stepRows = STEP_ROWS,
): AsyncGenerator<QuarantineStep> {
  const [fromMs, toMs] = [Math.max(0, from.getTime()), Math.max(0, to.getTime())];
  let last = after;
  for (;;) {
    const { rows } = await pool.query<{ id: string; source_id: string; code: string }>({
      name: 'select-quarantined',
      text: `select e.id, e.source_id, e.code from quarantined_messages e
             where e.project_id = $1 and e.status = 'quarantined' and e.id >= $2 and e.id <= $3 and ($4::uuid is null or e.id > $4)
             order by e.id limit $5`,
      values: [projectId, idBound(fromMs, '0'), idBound(toMs, 'f'), last ?? null, stepRows],
    });
    const found = rows.filter(
      (row) =>
        (sourceId === undefined || row.source_id === sourceId) &&
        (code === undefined || row.code === code),
    );
    last = rows.at(-1)?.id;
    const isLast = rows.length < stepRows || last === undefined;
    const progress = isLast ? 1 : progressAt(last!, fromMs, toMs);
    yield { ids: found.map(({ id }) => id), next: isLast ? null : last!, progress };
    if (isLast) return;
  }
}

/**
 * From all projects, in the order of `ids`; missing ones are omitted. One index probe per id and
 * project, no lock.
 */
export async function findQuarantine(
  { control, data }: Planes,
  ids: readonly string[],
): Promise<QuarantineEntry[]> {
  const projects = await liveProjects(control);
  const { rows } = await data.query<QuarantinedMessageRow>({
    name: 'find-quarantine',
    text: `select ${QUARANTINE_COLUMNS}
           from unnest($1::uuid[]) with ordinality u(id, n)
           cross join unnest($2::uuid[]) p(id)
           join quarantined_messages e on e.project_id = p.id and e.id = u.id
           order by u.n`,
    values: [ids, [...projects.keys()]],
  });
  return withNames(control, projects, rows);
}
