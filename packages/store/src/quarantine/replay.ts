import type { Pool } from 'pg';
import { GatewayError } from '@gateway/core/errors';
import { acceptEvents, type StorableEvent } from '../events/events.js';
import type { SourceRecord } from '../config/sources.js';
import { withTransaction } from '../postgres/advisory-lock.js';
import { clean } from '../postgres/columns.js';
import type { Querier } from '../postgres/connection.js';
import type { Planes } from '../postgres/planes.js';
import { acceptedNow, addUsage } from '../counts/usage.js';
import type { QuarantinedMessage } from './messages.js';

const RETRY_AFTER_SECONDS = 1;

export type QuarantineRef = Pick<QuarantinedMessage, 'projectId' | 'id'>;

export interface ReplayableMessage extends Pick<
  QuarantinedMessage,
  'projectId' | 'id' | 'sourceId' | 'occurredAtMs' | 'coordinates' | 'message'
> {
  readonly headers: Readonly<Record<string, string>>;
  /** Edited, if they were. */
  readonly body: Buffer;
  readonly digest: string;
  readonly editedAt: Date | null;
  /** The current one, or the last one of a deleted source. */
  readonly bodyFunction: string | null;
  readonly codec: SourceRecord['pub_sub']['codec'] | null;
}

/** In the order of `refs`, without missing ones. Reads by primary key, without a lock. */
export async function readReplayable(
  { control, data }: Planes,
  refs: readonly QuarantineRef[],
): Promise<ReplayableMessage[]> {
  const { rows } = await data.query<
    Omit<ReplayableMessage, 'headers' | 'bodyFunction' | 'codec'> & { headers: string }
  >({
    name: 'read-replayable',
    text: `select e.project_id as "projectId", e.id, e.source_id as "sourceId", (extract(epoch from e.occurred_at) * 1000)::float8 as "occurredAtMs",
                  e.coordinates, e.headers, e.message, coalesce(e.edited_raw, e.raw) as body, left(encode(sha256(e.raw), 'hex'), 16) as digest, e.edited_at as "editedAt"
           from unnest($1::uuid[], $2::uuid[]) with ordinality u(project, id, n)
           join quarantined_messages e on e.project_id = u.project and e.id = u.id
           order by u.n`,
    values: [refs.map((ref) => ref.projectId), refs.map((ref) => ref.id)],
  });
  const { rows: sources } = await control.query<
    Pick<SourceRecord, 'body_function'> & Pick<ReplayableMessage, 'codec'>
  >({
    name: 'functions-of-quarantined',
    text: `select s.body_function, s.pub_sub->'codec' as codec from unnest($1::uuid[], $2::uuid[]) with ordinality u(project, id, n)
           left join sources s on s.project_id = u.project and s.id = u.id order by u.n`,
    values: [rows.map((it) => it.projectId), rows.map((it) => it.sourceId)],
  });
  return rows.map((row, k) => ({
    ...row,
    headers: JSON.parse(row.headers) as Record<string, string>,
    bodyFunction: sources[k]!.body_function,
    codec: sources[k]!.codec,
  }));
}

/**
 * Still quarantined, and not edited since it was read. `edited_at` is in whole milliseconds, like a
 * JavaScript date.
 */
const UNCHANGED = `project_id = $1 and id = $2 and status = 'quarantined' and edited_at is not distinct from $3`;

type Seen = QuarantineRef & Pick<ReplayableMessage, 'editedAt'>;

function update(
  client: Querier,
  { projectId, id, editedAt }: Seen,
  set: string,
  ...values: readonly unknown[]
) {
  return client.query<{ edited_at: Date }>(
    `update quarantined_messages set ${set}, updated_at = now() where ${UNCHANGED} returning edited_at`,
    [projectId, id, editedAt, ...values],
  );
}

/**
 * Commits the events and the new status, all or nothing, and then adds their usage, which is lost
 * if the process is killed before that. The events must be sorted by id. Undefined if the message
 * has changed since it was read. Locks its row first, so that a second replay waits and then finds
 * it replayed; then as `acceptEvents`.
 *
 * @throws GatewayError `project_moved` if the message is on another shard
 */
export async function replayQuarantinedMessage(
  { control, data }: Planes,
  message: Seen,
  {
    events,
    idempotencyWindowSeconds,
  }: { events: readonly StorableEvent[]; idempotencyWindowSeconds: number },
): Promise<ReadonlySet<string> | 'all' | undefined> {
  const accepted = await withTransaction(data, async (client) => {
    const { rowCount } = await update(client, message, `status = 'replayed'`);
    const committed =
      rowCount === 1
        ? await acceptEvents(client, {
            events,
            deliveries: [],
            agentId: 0,
            idempotencyWindowSeconds,
          })
        : undefined;
    if (committed && committed.refused.size > 0)
      throw new GatewayError('project_moved', { retryAfterSeconds: RETRY_AFTER_SECONDS });
    return committed?.created;
  });
  const created = events.filter(({ id }) => accepted === 'all' || accepted?.has(id));
  if (created.length > 0) await addUsage(control, [acceptedNow(message.projectId, created)]);
  return accepted;
}

/** False, with no change, if the message has changed since it was read. */
export async function rejectReplayedMessage(
  pool: Pool,
  message: Seen,
  { code, reason }: { code: string; reason: string },
): Promise<boolean> {
  const { rowCount } = await update(pool, message, 'code = $4, reason = $5', code, clean(reason));
  return rowCount === 1;
}

/** False, with no change, if the message has changed since it was read. */
export async function dropReplayedMessage(
  pool: Pool,
  message: Seen,
  reason: string,
): Promise<boolean> {
  const set = `status = 'discarded', reason = $4`;
  return (await update(pool, message, set, clean(reason))).rowCount === 1;
}

/**
 * The next replay uses these; the original ones and the status remain. Returns the time of the
 * edit, or undefined if the message has changed since it was read.
 */
export async function editQuarantinedMessage(
  pool: Pool,
  seen: Seen,
  body: Uint8Array,
): Promise<Date | undefined> {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const set = `edited_raw = $4, edited_at = date_trunc('milliseconds', now())`;
  const { rows } = await update(pool, seen, set, bytes);
  return rows[0]?.edited_at;
}

/** Returns the ids of those that were quarantined. Locks their rows in sorted order. */
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
