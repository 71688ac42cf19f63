import type { Pool } from 'pg';
import { acceptEvents, type NewEvent } from '../events/events.js';
import { withConnection } from '../postgres/advisory-lock.js';
import { clean } from '../postgres/columns.js';
import { acceptedNow, addUsage } from '../usage/usage.js';
import type { QuarantinedMessage } from './messages.js';

export type QuarantineRef = Pick<QuarantinedMessage, 'projectId' | 'id'>;

export interface ReplayableMessage extends Pick<
  QuarantinedMessage,
  'projectId' | 'id' | 'sourceId' | 'occurredAtMs' | 'coordinates'
> {
  readonly headers: Readonly<Record<string, string>>;
  /** The edited bytes, otherwise the original bytes. */
  readonly body: Buffer;
  /** Digest of the original bytes. */
  readonly digest: string;
  readonly editedAt: Date | null;
  /** The source's current function, or its last one if deleted. */
  readonly bodyFunction: string | null;
}

/**
 * Returns the messages with their bytes in the given order, without missing messages. Reads primary
 * keys. No lock.
 */
export async function readReplayable(
  pool: Pool,
  refs: readonly QuarantineRef[],
): Promise<ReplayableMessage[]> {
  const { rows } = await pool.query<Omit<ReplayableMessage, 'headers'> & { headers: string }>({
    name: 'read-replayable',
    text: `select e.project_id as "projectId", e.id, e.source_id as "sourceId", (extract(epoch from e.occurred_at) * 1000)::float8 as "occurredAtMs",
                  e.coordinates, e.headers, coalesce(e.edited_raw, e.raw) as body, left(encode(sha256(e.raw), 'hex'), 16) as digest, e.edited_at as "editedAt", s.body_function as "bodyFunction"
           from unnest($1::uuid[], $2::uuid[]) with ordinality u(project, id, n)
           join quarantined_messages e on e.project_id = u.project and e.id = u.id
           left join sources s on s.project_id = e.project_id and s.id = e.source_id
           order by u.n`,
    values: [refs.map((ref) => ref.projectId), refs.map((ref) => ref.id)],
  });
  return rows.map((row) => ({
    ...row,
    headers: JSON.parse(row.headers) as Record<string, string>,
  }));
}

/** Still quarantined, with the same bytes. `edited_at` has whole milliseconds. */
const UNCHANGED = `project_id = $1 and id = $2 and status = 'quarantined' and edited_at is not distinct from $3`;

type Seen = QuarantineRef & Pick<ReplayableMessage, 'editedAt'>;

function update({ projectId, id, editedAt }: Seen, set: string, ...values: readonly unknown[]) {
  const text = `update quarantined_messages set ${set}, updated_at = now() where ${UNCHANGED} returning edited_at`;
  return { text, values: [projectId, id, editedAt, ...values] };
}

/**
 * Commits a message's events, sorted by id, their usage and its status, all or nothing; undefined
 * when it has changed. Locks the message's row first: a second replay waits and finds it replayed.
 * Then the locks of `acceptEvents` and `addUsage`.
 */
export function replayQuarantinedMessage(
  pool: Pool,
  message: Seen,
  {
    events,
    idempotencyWindowSeconds,
  }: { events: readonly NewEvent[]; idempotencyWindowSeconds: number },
): Promise<ReadonlySet<string> | 'all' | undefined> {
  return withConnection(pool, async (client) => {
    await client.query('begin');
    const { rowCount } = await client.query(update(message, `status = 'replayed'`));
    const accepted =
      rowCount === 1
        ? await acceptEvents(client, {
            events,
            deliveries: [],
            agentId: 0,
            idempotencyWindowSeconds,
          })
        : undefined;
    const created = events.filter(({ id }) => accepted === 'all' || accepted?.has(id));
    if (created.length > 0) await addUsage(client, [acceptedNow(message.projectId, created)]);
    await client.query('commit');
    return accepted;
  });
}

/** Records why a message is still rejected. False, without a change, when it has changed. */
export async function rejectReplayedMessage(
  pool: Pool,
  message: Seen,
  { code, reason }: { code: string; reason: string },
): Promise<boolean> {
  return (
    (await pool.query(update(message, 'code = $4, reason = $5', code, clean(reason)))).rowCount ===
    1
  );
}

/** Discards a message with the reason. False, without a change, when it has changed. */
export async function dropReplayedMessage(
  pool: Pool,
  message: Seen,
  reason: string,
): Promise<boolean> {
  return (
    (await pool.query(update(message, `status = 'discarded', reason = $4`, clean(reason))))
      .rowCount === 1
  );
}

/**
 * Stores the bytes for the next replay and returns the time; the original bytes and the status
 * remain. Undefined when it has changed.
 */
export async function editQuarantinedMessage(
  pool: Pool,
  seen: Seen,
  body: Uint8Array,
): Promise<Date | undefined> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const { rows } = await pool.query<{ edited_at: Date }>(
    update(
      seen,
      `edited_raw = $4, edited_at = date_trunc('milliseconds', clock_timestamp())`,
      bytes,
    ),
  );
  return rows[0]?.edited_at;
}

/**
 * Discards messages and returns the ids of the quarantined ones. Locks: their rows, in one order.
 */
export async function discardQuarantinedMessages(
  pool: Pool,
  refs: readonly QuarantineRef[],
): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'discard-quarantined-messages',
    text: `with u as materialized (
             select e.project_id, e.id from unnest($1::uuid[], $2::uuid[]) u(project, id)
             join quarantined_messages e on e.project_id = u.project and e.id = u.id and e.status = 'quarantined'
             order by e.project_id, e.id for update of e
           )
           update quarantined_messages e set status = 'discarded', updated_at = now()
           from u where e.project_id = u.project_id and e.id = u.id returning e.id`,
    values: [refs.map((ref) => ref.projectId), refs.map((ref) => ref.id)],
  });
  return rows.map(({ id }) => id);
}
