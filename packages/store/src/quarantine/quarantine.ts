import type pg from 'pg';
import { clean } from '../postgres/columns.js';

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
export async function quarantineMessages(pool: pg.Pool, messages: readonly QuarantinedMessage[]): Promise<void> {
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
