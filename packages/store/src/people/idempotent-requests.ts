import type pg from 'pg';
import { deleteInBatches } from '../postgres/advisory-lock.js';
import type { Querier } from '../postgres/connection.js';

/** An older request without an answer was interrupted. */
const RUN_SECONDS = 60;
const KEPT = `interval '24 hours'`;
/**
 * Deleted per request while the caller is above its limit. More than one, so that a lowered limit
 * takes effect.
 */
const DROPPED = 100;

export interface RequestKey {
  readonly callerId: string;
  readonly key: string;
}

/** `claimed` means that the caller must run the request, then finish or release it. */
export type ClaimedRequest =
  | { readonly state: 'claimed' | 'other_request' | 'in_progress' | 'interrupted' }
  | { readonly state: 'answered'; readonly answer: string };

/**
 * Succeeds if the key has not been used in the last 24 hours. Deletes the caller's oldest answers
 * in excess of `max`. Locks the request's row.
 *
 * @param hash the digest of the request
 */
export async function claimRequest(
  pool: pg.Pool,
  { callerId, key }: RequestKey,
  { hash, max }: { readonly hash: Buffer; readonly max: number },
): Promise<ClaimedRequest> {
  const claimed = await pool.query({
    name: 'claim-request',
    text: `with claimed as (
             insert into idempotent_requests as r (caller_id, key, request_hash) values ($1, $2, $3)
             on conflict (caller_id, key) do update set request_hash = excluded.request_hash, answer = null, created_at = now()
               where r.created_at < now() - ${KEPT}
             returning 1
           ),
           beyond as (select created_at from idempotent_requests where caller_id = $1 order by created_at desc offset $4 limit 1),
           old as materialized (
             select key from idempotent_requests
              where caller_id = $1 and key <> $2 and answer is not null and created_at <= (select created_at from beyond) and exists (select from claimed)
              order by created_at limit ${DROPPED} for update skip locked
           ),
           dropped as (delete from idempotent_requests r using old where r.caller_id = $1 and r.key = old.key)
           select from claimed`,
    values: [callerId, key, hash, max - 1],
  });
  if (claimed.rowCount === 1) return { state: 'claimed' };
  const { rows } = await pool.query<{ answer: string | null; is_same: boolean; is_old: boolean }>({
    name: 'claimed-request',
    text: `select answer, request_hash = $3 as is_same, created_at < now() - interval '${RUN_SECONDS} seconds' as is_old
           from idempotent_requests where caller_id = $1 and key = $2`,
    values: [callerId, key, hash],
  });
  const [found] = rows;
  if (found && !found.is_same) return { state: 'other_request' };
  if (found && found.answer !== null) return { state: 'answered', answer: found.answer };
  return { state: found?.is_old ? 'interrupted' : 'in_progress' };
}

export async function finishRequest(
  pool: pg.Pool,
  { callerId, key }: RequestKey,
  answer: string,
): Promise<void> {
  await pool.query({
    name: 'finish-request',
    text: `update idempotent_requests set answer = $3 where caller_id = $1 and key = $2 and answer is null`,
    values: [callerId, key, answer],
  });
}

/** For a request that changed nothing: the next with its key runs. */
export async function releaseRequest(pool: pg.Pool, { callerId, key }: RequestKey): Promise<void> {
  await pool.query(
    `delete from idempotent_requests where caller_id = $1 and key = $2 and answer is null`,
    [callerId, key],
  );
}

export async function deleteOldRequests(pool: Querier): Promise<void> {
  await deleteInBatches(
    pool,
    `with old as materialized (select caller_id, key from idempotent_requests where created_at < now() - ${KEPT} limit $1 for update skip locked)
     delete from idempotent_requests r using old where r.caller_id = old.caller_id and r.key = old.key`,
  );
}
