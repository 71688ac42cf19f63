import type { Pool } from 'pg';
import { Values, idBound } from '../pagination/log-page.js';
import type { QuarantinedMessageRow, QuarantineStatus } from './messages.js';
import { QUARANTINE_COLUMNS } from './messages.js';

/** A quarantined message with the names of its project and source, without its bytes. */
export interface QuarantineEntry extends QuarantinedMessageRow {
  readonly project_name: string;
  /** Null when the source's row is gone. */
  readonly source_name: string | null;
}

/** Which messages are meant; what is left out is not asked for. */
export interface QuarantineSelection {
  readonly projectId?: string | undefined;
  readonly sourceId?: string | undefined;
  readonly status?: QuarantineStatus | undefined;
  readonly code?: string | undefined;
  /** Messages whose time at the broker is this or later. */
  readonly from?: Date | undefined;
  /** Messages that were put in quarantine at this time of the database (`databaseTime`) or earlier. */
  readonly quarantinedUntil?: string | undefined;
}

/** Which part of the selection: beyond the id of the entry seen last, in this order by the time of the messages. */
export interface QuarantinePart {
  readonly order: 'asc' | 'desc';
  readonly after?: string | undefined;
  readonly limit: number;
}

const ENTRY_COLUMNS = `p.name as project_name, s.name as source_name`;
const SOURCE = `left join sources s on s.project_id = e.project_id and s.id = e.source_id`;

/**
 * Part of the quarantined messages of all projects that are not deleted, or of one. Cost: one index probe per project and the rows of a part of
 * each; a filter by source or code looks at the rows of the project one by one. No lock.
 */
export async function listQuarantine(
  pool: Pool,
  selection: QuarantineSelection,
  { order, after, limit }: QuarantinePart,
): Promise<QuarantineEntry[]> {
  const values = new Values();
  const { projectId, sourceId, status, code, from, quarantinedUntil } = selection;
  const conditions = [
    'e.project_id = p.id',
    // Written out, so that the index of what is still quarantined is known to fit.
    ...(status === undefined
      ? []
      : status === 'quarantined'
        ? [`e.status = 'quarantined'`]
        : [`e.status = ${values.add(status)}::quarantine_status`]),
    ...(sourceId === undefined ? [] : [`e.source_id = ${values.add(sourceId)}::uuid`]),
    ...(code === undefined ? [] : [`e.code = ${values.add(code)}`]),
    ...(from === undefined ? [] : [`e.id >= ${values.add(idBound(Math.max(0, from.getTime()), '0'))}::uuid`]),
    ...(quarantinedUntil === undefined ? [] : [`e.created_at <= ${values.add(quarantinedUntil)}::timestamptz`]),
    ...(after === undefined ? [] : [`e.id ${order === 'asc' ? '>' : '<'} ${values.add(after)}::uuid`]),
  ];
  const project = projectId === undefined ? '' : `and p.id = ${values.add(projectId)}::uuid`;
  const most = values.add(limit);
  const { rows } = await pool.query<QuarantineEntry>(
    `select ${QUARANTINE_COLUMNS}, ${ENTRY_COLUMNS}
     from projects p
     cross join lateral (select * from quarantined_messages e where ${conditions.join(' and ')} order by e.id ${order} limit ${most}::int) e
     ${SOURCE}
     where p.deleted_at is null ${project}
     order by e.id ${order}, e.project_id limit ${most}::int`,
    values.list,
  );
  return rows;
}

/** The messages of these ids, whatever project they are in, in the order of the ids; ids that are not there are left out. */
export async function findQuarantine(pool: Pool, ids: readonly string[]): Promise<QuarantineEntry[]> {
  const { rows } = await pool.query<QuarantineEntry>({
    name: 'find-quarantine',
    text: `select ${QUARANTINE_COLUMNS}, ${ENTRY_COLUMNS}
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
