import type { Pool } from 'pg';
import { clean } from '../postgres/columns.js';
import { acceptEvents, type NewEvent } from '../events/events.js';
import { acceptedNow, addUsage } from '../usage/usage.js';

/** Names a quarantined message. */
export interface QuarantineRef {
  readonly projectId: string;
  readonly id: string;
}

/** A quarantined message as it is sent on its way again. */
export interface ReplayableMessage extends QuarantineRef {
  readonly sourceId: string;
  readonly occurredAtMs: number;
  readonly coordinates: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The edited bytes, else those that came. */
  readonly body: Buffer;
  /** Which edit this is; null for the bytes that came. A message that is edited again meanwhile is another one. */
  readonly editedAt: Date | null;
  /** The function of the source as it is now, a deleted source's as it was last. */
  readonly bodyFunction: string | null;
}

/** The messages with their bytes, in the order given; what is not there is left out. */
export async function readReplayable(pool: Pool, refs: readonly QuarantineRef[]): Promise<ReplayableMessage[]> {
  const { rows } = await pool.query<{
    project_id: string;
    id: string;
    source_id: string;
    ms: string;
    coordinates: string;
    headers: string;
    body: Buffer;
    edited_at: Date | null;
    body_function: string | null;
  }>({
    name: 'read-replayable',
    text: `select e.project_id, e.id, e.source_id, (extract(epoch from e.occurred_at) * 1000)::bigint as ms, e.coordinates, e.headers,
                  coalesce(e.edited_raw, e.raw) as body, e.edited_at, s.body_function
           from unnest($1::uuid[], $2::uuid[]) with ordinality u(project, id, n)
           join quarantined_messages e on e.project_id = u.project and e.id = u.id
           left join sources s on s.project_id = e.project_id and s.id = e.source_id
           order by u.n`,
    values: [refs.map((ref) => ref.projectId), refs.map((ref) => ref.id)],
  });
  return rows.map((row) => ({
    projectId: row.project_id,
    id: row.id,
    sourceId: row.source_id,
    occurredAtMs: Number(row.ms),
    coordinates: row.coordinates,
    headers: JSON.parse(row.headers) as Record<string, string>,
    body: row.body,
    editedAt: row.edited_at,
    bodyFunction: row.body_function,
  }));
}

/** The row that a decision was made about: still quarantined, and with the bytes that were looked at. Edits have whole milliseconds. */
const UNCHANGED = `project_id = $1 and id = $2 and status = 'quarantined' and edited_at is not distinct from $3`;

type Decided = QuarantineRef & Pick<ReplayableMessage, 'editedAt'>;

function keyOf({ projectId, id, editedAt }: Decided): unknown[] {
  return [projectId, id, editedAt];
}

/**
 * Commits the events of a quarantined message, their usage, and its mark as replayed, all or nothing. Locks: the message's row first, so that of two
 * replays at once the second waits and finds it replayed; then what `acceptEvents` locks, and the record of usage.
 *
 * @param events in the order of their ids; ids and idempotency keys are distinct
 * @returns ids of the events that are new, `all` when every one is; undefined when the message is no longer as it was, and nothing was done
 * @throws the error of Postgres: nothing is changed then
 */
export async function replayQuarantinedMessage(
  pool: Pool,
  message: Decided,
  { events, idempotencyWindowSeconds }: { events: readonly NewEvent[]; idempotencyWindowSeconds: number },
): Promise<ReadonlySet<string> | 'all' | undefined> {
  const client = await pool.connect();
  // A connection that breaks fails its query; without a listener it would end the process as well.
  const broken = () => undefined;
  client.on('error', broken);
  let isUnusable = false;
  try {
    await client.query('begin');
    const { rowCount } = await client.query({
      name: 'mark-replayed',
      text: `update quarantined_messages set status = 'replayed', updated_at = now() where ${UNCHANGED}`,
      values: keyOf(message),
    });
    const accepted =
      rowCount === 1 ? await acceptEvents(client, { events, deliveries: [], agentId: 0, idempotencyWindowSeconds }) : undefined;
    const created = events.filter(({ id }) => accepted === 'all' || accepted?.has(id));
    if (created.length > 0) await addUsage(client, [acceptedNow(message.projectId, created)]);
    await client.query('commit');
    return accepted;
  } catch (error) {
    await client.query('rollback').catch(() => (isUnusable = true));
    throw error;
  } finally {
    client.off('error', broken);
    client.release(isUnusable);
  }
}

/** Notes why a message is still refused. False when it is no longer as it was, and nothing was done. */
export async function rejectReplayedMessage(
  pool: Pool,
  message: Decided,
  { code, reason }: { code: string; reason: string },
): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: 'refuse-replayed',
    text: `update quarantined_messages set code = $4, reason = $5, updated_at = now() where ${UNCHANGED}`,
    values: [...keyOf(message), code, clean(reason)],
  });
  return rowCount === 1;
}

/** Discards a message that was looked at, and notes why. False when it is no longer as it was, and nothing was done. */
export async function dropReplayedMessage(pool: Pool, message: Decided, reason: string): Promise<boolean> {
  const { rowCount } = await pool.query({
    name: 'drop-replayed',
    text: `update quarantined_messages set status = 'discarded', reason = $4, updated_at = now() where ${UNCHANGED}`,
    values: [...keyOf(message), clean(reason)],
  });
  return rowCount === 1;
}

/**
 * Stores the bytes that a message is to be replayed with; the bytes that came stay. It stays quarantined.
 *
 * @returns when it was edited; undefined when it is no longer as it was seen, and nothing was done
 */
export async function editQuarantinedMessage(pool: Pool, seen: Decided, body: Uint8Array): Promise<Date | undefined> {
  const { rows } = await pool.query<{ edited_at: Date }>({
    name: 'edit-quarantined',
    text: `update quarantined_messages set edited_raw = $4, edited_at = date_trunc('milliseconds', clock_timestamp()), updated_at = now()
           where ${UNCHANGED} returning edited_at`,
    values: [...keyOf(seen), Buffer.from(body.buffer, body.byteOffset, body.byteLength)],
  });
  return rows[0]?.edited_at;
}

/** Marks messages as discarded; returns the ids of those that were quarantined. */
export async function discardQuarantinedMessages(pool: Pool, refs: readonly QuarantineRef[]): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>({
    name: 'discard-quarantined-messages',
    // The rows are locked in one order, whoever discards at the same time.
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
