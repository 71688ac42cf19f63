// A message is stored once, under the id of its first event, because a function may make many
// events of it. A message above the limit is not cut: a part of one is no sample for a function,
// and often no JSON. A constant limit bounds the disk that a project takes for each message.
import { isUtf8 } from 'node:buffer';
import type pg from 'pg';
import { eventId as eventIdOf, timeOfId } from '@gateway/core/events';
import { batchOf, opaque } from '../postgres/columns.js';
import { REF_COLUMNS, type EventRef } from './event-ref.js';

/** With headers. Of a larger message, only the size is kept. */
export const KEPT_BYTES_MAX = 65_536;

/** Has the id of its first event, even if that event is not created. */
export interface KeptMessage extends EventRef {
  /** As in the events. */
  readonly digest: string;
  readonly headers: string;
  readonly raw: Uint8Array | null;
  readonly rawBytes: number;
}

/** Stored if at least one of its events is created. */
export interface MessageOfEvents {
  readonly message: KeptMessage;
  readonly eventIds: readonly string[];
}

/** Only the size, if the message is too large. */
export function keptParts(message: {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}): Pick<KeptMessage, 'headers' | 'raw' | 'rawBytes'> {
  const { body: raw } = message;
  const headers = JSON.stringify(message.headers);
  const rawBytes = raw.byteLength;
  return rawBytes + headers.length > KEPT_BYTES_MAX
    ? { headers: '{}', raw: null, rawBytes }
    : { headers, raw, rawBytes };
}

type Stored = Omit<KeptMessage, 'raw'> & { readonly raw: string | null };
const MESSAGE = batchOf<Stored>([
  ...REF_COLUMNS,
  ['digest', 'digest', (text) => `decode(${text}, 'hex')`],
  ['headers', 'headers'],
  ['raw', 'raw', (text) => `decode(${text}, 'base64')`],
  ['raw_bytes', 'rawBytes', 'int'],
]);
const LINK = batchOf<{ readonly messageId: string; readonly eventId: string }>([
  ['message_id', 'messageId', 'uuid'],
  ['event_id', 'eventId', 'uuid'],
]);

/**
 * The SQL from parameter `first`, each message once, if one of its events is in the CTE `e`.
 * Inserts in id order and after the events, so that a second agent with the same message waits for
 * the events and then finds none of them new.
 */
export function insertMessages(first: number): string {
  const links = LINK.select(first + MESSAGE.size);
  return `insert into event_messages (${MESSAGE.names})
    select ${MESSAGE.names} from (${MESSAGE.select(first)}) m
    where ${opaque(`id in (select message_id from (${links}) l where ${opaque('event_id in (select id from e)')})`)}
    order by 1, 2
    on conflict do nothing`;
}

export function messageTexts(messages: readonly MessageOfEvents[]): string[] {
  const base64 = (raw: Uint8Array) =>
    Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('base64');
  const stored = messages.map(({ message }): Stored => ({
    ...message,
    raw: message.raw && base64(message.raw),
  }));
  const links = messages.flatMap(({ message, eventIds }) =>
    eventIds.map((eventId) => ({ messageId: message.id, eventId })),
  );
  return [...MESSAGE.texts(stored), ...LINK.texts(links)];
}

/** Text if the bytes are valid UTF-8, otherwise base64. */
export function bytesText(bytes: Buffer): {
  readonly raw: string;
  readonly raw_encoding: 'utf8' | 'base64';
} {
  const encoding = isUtf8(bytes) ? 'utf8' : 'base64';
  return { raw: bytes.toString(encoding), raw_encoding: encoding };
}

export interface EventMessage {
  readonly id: string;
  readonly source_id: string;
  readonly headers: string;
  readonly raw: Buffer | null;
  readonly raw_bytes: number;
}

/**
 * Kept by the source, or replayed from quarantine, with edits. The digest distinguishes it from
 * others with the same coordinates and time. Reads by primary key, without a lock.
 */
export function findEventMessage(
  pool: pg.Pool,
  projectId: string,
  eventId: string,
): Promise<EventMessage | undefined> {
  return find<EventMessage>(pool, projectId, eventId, {
    name: 'find-event-message',
    columns: 'id, headers, raw, raw_bytes',
  });
}

/** Also for one that was too large to keep. Null if none is stored. */
export async function eventMessageBytes(
  pool: pg.Pool,
  projectId: string,
  eventId: string,
): Promise<number | null> {
  const columns = { name: 'event-message-bytes', columns: 'raw_bytes' };
  return (
    (await find<Pick<EventMessage, 'raw_bytes'>>(pool, projectId, eventId, columns))?.raw_bytes ??
    null
  );
}

async function find<Row extends pg.QueryResultRow>(
  pool: pg.Pool,
  projectId: string,
  id: string,
  { name, columns }: { readonly name: string; readonly columns: string },
): Promise<(Row & Pick<EventMessage, 'source_id'>) | undefined> {
  const [ms, occurredAt] = [timeOfId(id), new Date(timeOfId(id))];
  const { rows: events } = await pool.query<{
    source_id: string;
    coordinates: string;
    digest: string;
  }>({
    name: 'coordinates-of-event',
    text: `select source_id, coordinates, encode(digest, 'hex') as digest from events
           where project_id = $1 and id = $2 and occurred_at = $3 and source_id is not null and digest is not null`,
    values: [projectId, id, occurredAt],
  });
  const [event] = events;
  if (!event) return undefined;
  const { source_id: source, coordinates, digest } = event;
  const { rows } = await pool.query<Row>({
    name,
    text: `select ${columns} from (
             select id, headers, raw, raw_bytes from event_messages
             where project_id = $1 and id = any ($2::uuid[]) and occurred_at = $3 and digest = decode($4, 'hex')
             union all
             select id, headers, coalesce(edited_raw, raw), octet_length(coalesce(edited_raw, raw)) from quarantined_messages
             where project_id = $1 and id = any ($2::uuid[]) and status = 'replayed' and substr(sha256(raw), 1, 8) = decode($4, 'hex')
           ) m limit 1`,
    values: [
      projectId,
      [eventIdOf(source, coordinates, ms), eventIdOf(source, coordinates, ms, 0, digest)],
      occurredAt,
      digest,
    ],
  });
  return rows[0] && { ...rows[0], source_id: source };
}
