import type { Pool } from 'pg';
import { findSourceIds } from '../config/sources.js';
import { bytesText } from '../events/kept-messages.js';
import { DATED_BY_ARRIVAL, NOT_DATED_BY_ARRIVAL } from '../events/message-arrivals.js';
import { FENCED, NOT_FENCED } from '../events/project-fences.js';
import { readLog, type Groups, type LogQuery, type Span } from '../pagination/log-page.js';
import type { PageRequest, PageResult } from '../pagination/page.js';
import { clean, timeAt } from '../postgres/columns.js';
import type { Planes } from '../postgres/planes.js';

export type QuarantineStatus = 'quarantined' | 'replayed' | 'discarded';

export interface QuarantinedMessage {
  readonly projectId: string;
  /** As an event id, so that a redelivery is not stored again. */
  readonly id: string;
  readonly sourceId: string;
  readonly occurredAtMs: number;
  readonly coordinates: string;
  readonly code: string;
  readonly reason: string;
  readonly headers: string;
  /** JSON (`storedMessage`). */
  readonly message?: string | null | undefined;
  readonly raw: Uint8Array;
}

/**
 * Leaves existing messages unchanged. Returns those not stored: `refused` by a fence
 * (`readFences`), `other` if the stored one with this id has different bytes, else `same`. Locks
 * the inserted rows in sorted order.
 */
export async function quarantineMessages(
  pool: Pool,
  messages: readonly QuarantinedMessage[],
): Promise<ReadonlyMap<QuarantinedMessage, 'same' | 'other' | 'refused'>> {
  const raw = piecesOf(messages.map((message) => message.raw));
  const refs = (['projectId', 'id'] as const).map((name) => messages.map((m) => m[name]));
  const { rows: stored } = await pool.query<{ id: string }>({
    name: 'quarantine-messages',
    text: `with u as materialized (
             select project_id, id, source_id, ${timeAt('ms')} as occurred_at, coordinates, code, reason, headers, message, ${PIECE} as raw
             from unnest($2::int[], $3::int[], $4::uuid[], $5::uuid[], $6::uuid[], $7::bigint[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[])
               as u(start, length, project_id, id, source_id, ms, coordinates, code, reason, headers, message)
           ),
           ${DATED_BY_ARRIVAL},
           ${FENCED}
           insert into quarantined_messages (project_id, id, source_id, occurred_at, coordinates, code, reason, headers, message, raw)
           select project_id, id, source_id, occurred_at, coordinates, code, reason, headers, message, raw from u
           where ${NOT_DATED_BY_ARRIVAL} and ${NOT_FENCED}
           order by project_id, id
           on conflict do nothing returning id`,
    values: [
      ...raw,
      ...refs,
      ...(['sourceId', 'occurredAtMs'] as const).map((name) => messages.map((m) => m[name])),
      messages.map((m) => clean(m.coordinates)),
      messages.map((m) => m.code),
      messages.map((m) => clean(m.reason)),
      messages.map((m) => m.headers),
      messages.map((m) => m.message),
    ],
  });
  if (stored.length === messages.length) return new Map();
  const ids = new Set(stored.map(({ id }) => id));
  const { rows } = await pool.query<{ n: number; is: 'other' | 'refused' }>({
    name: 'other-quarantined-messages',
    text: `select n::int - 1 as n, case when e.id is null then 'refused' else 'other' end as is
           from unnest($2::int[], $3::int[], $4::uuid[], $5::uuid[]) with ordinality u(start, length, project, id, n)
           left join quarantined_messages e on e.project_id = u.project and e.id = u.id
           left join message_arrivals a on a.project_id = u.project and a.id = u.id
           where e.raw <> ${PIECE} or e.id is null and a.id is null`,
    values: [...raw, ...refs],
  });
  const others = new Map(rows.map(({ n, is }) => [n, is]));
  // The first of several messages with the same id was stored.
  const left = messages.flatMap((message, n) =>
    ids.delete(message.id) ? [] : [[message, others.get(n) ?? 'same'] as const],
  );
  return new Map(left);
}

const PIECE = 'substring($1::bytea from start + 1 for length)';

/**
 * One parameter with all bytes, and the start and length of each piece. It is sent as is; an array
 * would be sent as hex, at several times the size.
 */
function piecesOf(
  pieces: readonly Uint8Array[],
): [bytes: Buffer, starts: number[], lengths: number[]] {
  const lengths = pieces.map(({ byteLength }) => byteLength);
  let end = 0;
  return [Buffer.concat(pieces), lengths.map((length) => (end += length) - length), lengths];
}

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
  readonly headers: string;
  readonly message: string | null;
  readonly edited_at: Date | null;
  /** For a replay. */
  readonly raw_bytes: number;
}

export const QUARANTINE_COLUMNS = `e.project_id, e.id, e.source_id, e.occurred_at, e.created_at, e.updated_at, e.status, e.coordinates, e.code, e.reason, e.headers, e.message,
  e.edited_at, octet_length(coalesce(e.edited_raw, e.raw)) as raw_bytes`;

/** `edited_raw` is null unless the message was edited. */
export type QuarantinedMessageWhole = QuarantinedMessageRow & {
  readonly raw: Buffer;
  readonly edited_raw: Buffer | null;
};

/** With the original ones, if edited. */
export function quarantinedBytes({
  raw,
  edited_raw: edited,
}: Pick<QuarantinedMessageWhole, 'raw' | 'edited_raw'>) {
  const { raw: original_raw, raw_encoding: original_raw_encoding } = bytesText(raw);
  return edited ? { ...bytesText(edited), original_raw, original_raw_encoding } : bytesText(raw);
}

export interface QuarantineFilter extends Span {
  readonly sourceId?: string | undefined;
  readonly status?: QuarantineStatus | undefined;
  readonly code?: string | undefined;
}

const STATUSES: readonly QuarantineStatus[] = ['quarantined', 'replayed', 'discarded'];

/** By id, without their bytes. An index serves every combination of filters. */
export async function listQuarantinedMessages(
  { control, data }: Planes,
  projectId: string,
  filter: QuarantineFilter,
  page: PageRequest,
): Promise<PageResult<QuarantinedMessageRow>> {
  const { status, sourceId, code } = filter;
  const isAll = status === undefined && sourceId === undefined && code === undefined;
  const sources =
    sourceId === undefined && !isAll ? await findSourceIds(control, projectId) : [sourceId];
  const groups: Groups = {
    keys: [
      ['e.code', code === undefined ? undefined : [code], 'text'],
      ['e.source_id', sources, 'uuid'],
      ['e.status', status ? [status] : STATUSES, 'quarantine_status'],
    ],
  };
  const log = {
    table: 'quarantined_messages',
    projectId,
    span: filter,
    ...(isAll ? {} : { groups }),
    columns: QUARANTINE_COLUMNS,
  } as const satisfies LogQuery;
  return readLog(data, log, page);
}

/** With its bytes, regardless of its status. */
export async function findQuarantinedMessage(
  pool: Pool,
  projectId: string,
  id: string,
): Promise<QuarantinedMessageWhole | undefined> {
  const { rows } = await pool.query<QuarantinedMessageWhole>({
    name: 'find-quarantined-message',
    text: `select ${QUARANTINE_COLUMNS}, e.raw, e.edited_raw from quarantined_messages e where e.project_id = $1 and e.id = $2`,
    values: [projectId, id],
  });
  return rows[0];
}
