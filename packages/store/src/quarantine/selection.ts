import type { Pool } from 'pg';
import { idBound, progressAt, Values } from '../pagination/log-page.js';
import {
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
  /** Only messages quarantined up to this time, which must come from `databaseTime`. */
  readonly quarantinedUntil?: string | undefined;
}

export interface QuarantinePart {
  readonly order: 'asc' | 'desc';
  readonly after?: string | undefined;
  readonly limit: number;
}

const COLUMNS = `${QUARANTINE_COLUMNS}, p.name as project_name, s.name as source_name`;
const SOURCE = `left join sources s on s.project_id = e.project_id and s.id = e.source_id`;

/**
 * Returns the quarantined messages of one project or of all. For each project, makes one index
 * probe and reads rows until `limit` match the source and code. No lock.
 */
export async function listQuarantine(
  pool: Pool,
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
  const projects = [
    'p.deleted_at is null',
    ...values.where(projectId, (it) => `p.id = ${it}::uuid`),
  ];
  const most = `limit ${values.add(limit)}::int`;
  const { rows } = await pool.query<QuarantineEntry>(
    `select ${COLUMNS}
     from projects p
     cross join lateral (select * from quarantined_messages e where ${conditions.join(' and ')} order by e.id ${order} ${most}) e
     ${SOURCE}
     where ${projects.join(' and ')}
     order by e.id ${order}, e.project_id ${most}`,
    values.list,
  );
  return rows;
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
  /** The cursor of the next step. Null after the last one. */
  readonly next: string | null;
  /** Progress by broker time, from 0 to 1. */
  readonly progress: number;
}

const STEP_ROWS = 1_000;

/**
 * Yields the ids of a project's quarantined messages in a span, oldest first. Each step reads a
 * bounded number of rows, so it may have few or no ids if `sourceId` and `code` match few rows. No
 * lock.
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
 * Returns the messages that exist, from all projects, in the order of `ids`. One index probe per id
 * and project, no lock.
 */
export async function findQuarantine(
  pool: Pool,
  ids: readonly string[],
): Promise<QuarantineEntry[]> {
  const { rows } = await pool.query<QuarantineEntry>({
    name: 'find-quarantine',
    text: `select ${COLUMNS}
           from unnest($1::uuid[]) with ordinality u(id, n)
           cross join projects p
           join quarantined_messages e on e.project_id = p.id and e.id = u.id
           ${SOURCE}
           where p.deleted_at is null
           order by u.n`,
    values: [ids],
  });
  return rows;
}
