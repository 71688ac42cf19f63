import { isUtf8 } from 'node:buffer';
import type { Pool } from 'pg';
import { clean } from '../postgres/columns.js';
import { readLog, type Span } from '../pagination/log-page.js';
import type { Page, PageRequest } from '../pagination/page.js';

export type QuarantineStatus = 'quarantined' | 'replayed' | 'discarded';

/** A quarantined message as the management API shows it; `raw` is left out of lists. */
export interface QuarantinedMessageRow {
  readonly project_id: string;
  readonly id: string;
  readonly source_id: string;
  readonly occurred_at: Date;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly status: QuarantineStatus;
  readonly coordinates: string;
  readonly code: string;
  readonly reason: string;
  /** JSON text. */
  readonly headers: string;
  /** Null while nobody has edited it. */
  readonly edited_at: Date | null;
  /** Size of the bytes that would be replayed. */
  readonly raw_bytes: number;
}

/** Of a row as `e`. */
export const QUARANTINE_COLUMNS = `e.project_id, e.id, e.source_id, e.occurred_at, e.created_at, e.updated_at, e.status, e.coordinates, e.code, e.reason, e.headers,
  e.edited_at, octet_length(coalesce(e.edited_raw, e.raw)) as raw_bytes`;

/** A message with its bytes: as they came, and as they were edited, null while nobody has. */
export type QuarantinedMessageWhole = QuarantinedMessageRow & { readonly raw: Buffer; readonly edited_raw: Buffer | null };

/** The bytes of a message as its records show them: those that would be replayed, and those that came when they were edited. */
export function quarantinedBytes({ raw, edited_raw: edited }: Pick<QuarantinedMessageWhole, 'raw' | 'edited_raw'>) {
  const now = bytesText(edited ?? raw);
  const before = edited && bytesText(raw);
  return {
    raw: now.text,
    raw_encoding: now.encoding,
    ...(before ? { original_raw: before.text, original_raw_encoding: before.encoding } : {}),
  };
}

/** As text, or in base64 when they are no text. */
function bytesText(bytes: Buffer): { text: string; encoding: 'utf8' | 'base64' } {
  const encoding = isUtf8(bytes) ? 'utf8' : 'base64';
  return { text: bytes.toString(encoding), encoding };
}

export interface QuarantineFilter extends Span {
  readonly sourceId?: string | undefined;
  readonly status?: QuarantineStatus | undefined;
  readonly code?: string | undefined;
}

/** A page of a project's quarantined messages by the time of the messages. */
export function listQuarantinedMessages(
  pool: Pool,
  projectId: string,
  filter: QuarantineFilter,
  page: PageRequest,
): Promise<Page<QuarantinedMessageRow>> {
  const { sourceId, status, code } = filter;
  return readLog(
    pool,
    {
      table: 'quarantined_messages',
      projectId,
      span: filter,
      filters: (values) => [
        ...(status === undefined ? [] : [`e.status = ${values.add(status)}::quarantine_status`]),
        ...(sourceId === undefined ? [] : [`e.source_id = ${values.add(sourceId)}::uuid`]),
        ...(code === undefined ? [] : [`e.code = ${values.add(code)}`]),
      ],
      columns: QUARANTINE_COLUMNS,
    },
    page,
  );
}

/** One message with its bytes. */
export async function findQuarantinedMessage(pool: Pool, projectId: string, id: string): Promise<QuarantinedMessageWhole | undefined> {
  const { rows } = await pool.query<QuarantinedMessageWhole>({
    name: 'find-quarantined-message',
    text: `select ${QUARANTINE_COLUMNS}, e.raw, e.edited_raw from quarantined_messages e where e.project_id = $1 and e.id = $2`,
    values: [projectId, id],
  });
  return rows[0];
}

/** Marks a message as discarded; false when there is no quarantined message of that id. */
export async function discardQuarantinedMessage(pool: Pool, projectId: string, id: string): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: 'discard-quarantined-message',
    text: `update quarantined_messages set status = 'discarded', updated_at = now() where project_id = $1 and id = $2 and status = 'quarantined'`,
    values: [projectId, id],
  });
  return rowCount === 1;
}

/** A message that can never be accepted as it is. */
export interface QuarantinedMessage {
  readonly projectId: string;
  /** Made from the coordinates like an event's id, so a redelivered message is not stored again. */
  readonly id: string;
  readonly sourceId: string;
  readonly occurredAtMs: number;
  readonly coordinates: string;
  /** A code of the agent's table of refusals. */
  readonly code: string;
  /** The sentence for a person. */
  readonly reason: string;
  /** JSON object of string to string. */
  readonly headers: string;
  readonly raw: Uint8Array;
}

/** Stores messages with the reason why they were refused; those that are there already stay as they are. */
export async function quarantineMessages(pool: Pool, messages: readonly QuarantinedMessage[]): Promise<void> {
  await pool.query({
    name: 'quarantine-messages',
    text: `insert into quarantined_messages (project_id, id, source_id, occurred_at, coordinates, code, reason, headers, raw)
           select project, id, source, timestamptz 'epoch' + ms * interval '1 millisecond', coordinates, code, reason, headers, raw
           from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::text[], $9::bytea[])
             as u(project, id, source, ms, coordinates, code, reason, headers, raw)
           order by project, id
           on conflict do nothing`,
    values: [
      messages.map((m) => m.projectId),
      messages.map((m) => m.id),
      messages.map((m) => m.sourceId),
      messages.map((m) => m.occurredAtMs),
      messages.map((m) => clean(m.coordinates)),
      messages.map((m) => m.code),
      messages.map((m) => clean(m.reason)),
      messages.map((m) => m.headers),
      messages.map((m) => Buffer.from(m.raw.buffer, m.raw.byteOffset, m.raw.byteLength)),
    ],
  });
}
