import type { Pool } from 'pg';
import { isSameDelivery } from '../events/event-ref.js';
import { isHere } from '../events/project-fences.js';
import { batchOf, opaque } from '../postgres/columns.js';
import type { Querier } from '../postgres/connection.js';
import {
  DROPPED,
  firstOf,
  isSameKey,
  PASSED,
  TURNED,
  TURNS,
  type OrderedKey,
  type KeyTurn,
} from '../events/turns.js';

const KEY = batchOf<OrderedKey>([
  ['project_id', 'projectId', 'uuid'],
  ['endpoint_id', 'endpointId', 'uuid'],
  ['order_key', 'orderKey', 'uuid'],
]);

/* Locks: the inserted turns, by key, and the deliveries that it makes due. */
const ADVANCE = `
  with u as materialized (${KEY.select()}),
  moved as (
    insert into ordered_keys (project_id, endpoint_id, order_key, delivery_id, occurred_at)
    select u.project_id, u.endpoint_id, u.order_key, n.delivery_id, n.occurred_at
    from u cross join lateral (${firstOf('u')}) n
    where not exists (select from ordered_keys k where ${isSameKey('k', 'u')}) and ${isHere('u.project_id')}
    order by u.project_id, u.endpoint_id, u.order_key
    on conflict do nothing
    returning project_id, endpoint_id, order_key, delivery_id, occurred_at
  ),
  ${TURNED}
  ${TURNS}`;

/**
 * A turn with the state of its delivery. One whose row is missing is over, unless it is still on
 * the former shard of its project.
 */
const OVER = `case when d.id is null then not exists (select from project_fences f where f.project_id = k.project_id and f.through is not null)
    else d.status in ('success', 'failure', 'discarded') and k.parked_at is null end`;
const LOST = `d.status in ('scheduled', 'retry') and d.next_attempt_at is null`;
const OF_TURN = `left join event_deliveries d on d.project_id = k.project_id and d.id = k.delivery_id and d.occurred_at = k.occurred_at and d.endpoint_id = k.endpoint_id`;

/*
 * Locks: the turns that it passes, and the deliveries that it makes due. Finds deliveries by primary
 * key.
 */
const REPAIR = `
  with u as materialized (${KEY.select()}),
  k as materialized (
    select k.*, d.id is not null and ${LOST} as is_lost, ${OVER} as is_over
    from u join ordered_keys k on ${isSameKey('k', 'u')} ${OF_TURN}
  ),
  over as materialized (select project_id, endpoint_id, order_key, delivery_id as id from k where is_over),
  resent as (
    update ordered_keys o set parked_at = null from k where k.is_lost and ${isSameKey('o', 'k')} and o.delivery_id = k.delivery_id and o.parked_at is not null
  ),
  found as (
    update event_deliveries d set next_attempt_at = now(), updated_at = now()
    from (select project_id, endpoint_id, order_key, delivery_id as id, occurred_at from k where is_lost) m
    where ${isSameDelivery('d', 'm')} and ${opaque(LOST)}
    returning d.project_id, d.endpoint_id, d.order_key, d.event_id
  ),
  ${PASSED}
  ${TURNS}
  ${DROPPED}
  union all select project_id, endpoint_id, order_key, event_id from found`;

/** Beyond these, a sweep goes on. */
const ROUNDS = 100;

/**
 * Gives a turn to the first delivery of each key that has none. Call it after a statement that has
 * accepted deliveries with keys, or returned keys without a delivery. Returns what is due now.
 */
export async function advanceKeys(pool: Querier, keys: readonly OrderedKey[]): Promise<KeyTurn[]> {
  return settle(pool, keys, 'advance');
}

/**
 * Passes turns of deliveries that ended, or were sent again, by a statement that knows no turns.
 * Returns what is due now.
 */
export async function repairKeys(pool: Querier, keys: readonly OrderedKey[]): Promise<KeyTurn[]> {
  return settle(pool, keys, 'repair');
}

async function settle(
  pool: Querier,
  keys: readonly OrderedKey[],
  first: 'advance' | 'repair',
): Promise<KeyTurn[]> {
  const due: KeyTurn[] = [];
  let left = distinct(keys);
  for (let step = first, round = 0; left.length > 0 && round < ROUNDS; round++) {
    const { rows } = await pool.query<KeyTurn>({
      name: `${step}-keys`,
      text: step === 'advance' ? ADVANCE : REPAIR,
      values: KEY.texts(left),
    });
    due.push(...rows.filter(({ eventId }) => eventId !== null));
    // A repair may find that a key has no turn.
    const unsettled = rows.filter(({ eventId }) => eventId === null);
    left = distinct(step === 'repair' && round === 0 ? [...left, ...unsettled] : unsettled);
    step = step === 'advance' ? 'repair' : 'advance';
  }
  return due;
}

function distinct(keys: readonly OrderedKey[]): OrderedKey[] {
  const known = new Map(
    keys.map((key) => [`${key.projectId} ${key.endpointId} ${key.orderKey}`, key]),
  );
  return [...known.values()];
}

const SCANNED = 20_000;
const FIRST = '00000000-0000-0000-0000-000000000000';
const START: OrderedKey = { projectId: FIRST, endpointId: FIRST, orderKey: FIRST };
const AFTER = '(k.project_id, k.endpoint_id, k.order_key) > ($1, $2, $3)';
const BY_KEY = `order by k.project_id, k.endpoint_id, k.order_key limit ${SCANNED}`;
const KEY_COLUMNS = `k.project_id as "projectId", k.endpoint_id as "endpointId", k.order_key as "orderKey"`;

/** Without locks. Each reads `SCANNED` rows from where the call before ended. */
const SWEEPS = {
  turns: `select ${KEY_COLUMNS}, k.since < now() - interval '2 seconds' and (d.id is not null and ${LOST} or ${OVER}) as "isWrong"
    from (select k.* from ordered_keys k where ${AFTER} ${BY_KEY}) k ${OF_TURN} ${BY_KEY}`,
  waiting: `select ${KEY_COLUMNS}, bool_and(not exists (select from ordered_keys o where ${isSameKey('o', 'k')})) as "isWrong"
    from (select k.project_id, k.endpoint_id, k.order_key from ordered_deliveries k where ${AFTER} ${BY_KEY}) k group by 1, 2, 3 order by 1, 2, 3`,
} as const;

/** Where a sweep goes on. */
export type SweepPosition = Map<keyof typeof SWEEPS, OrderedKey>;

/**
 * For what a killed process left between two statements. Returns what is due now.
 *
 * @param position is changed; empty for the first call
 */
export async function sweepKeys(pool: Pool, position: SweepPosition): Promise<KeyTurn[]> {
  const due: KeyTurn[] = [];
  for (const [name, text] of Object.entries(SWEEPS) as [keyof typeof SWEEPS, string][]) {
    const read = async (after: OrderedKey = START) => {
      const { rows } = await pool.query<OrderedKey & { readonly isWrong: boolean }>({
        name: `sweep-${name}`,
        text,
        values: [after.projectId, after.endpointId, after.orderKey],
      });
      return rows;
    };
    const after = position.get(name);
    let rows = await read(after);
    if (rows.length === 0 && after) rows = await read();
    if (rows.length > 0) position.set(name, rows.at(-1)!);
    due.push(
      ...(await repairKeys(
        pool,
        rows.filter(({ isWrong }) => isWrong),
      )),
    );
  }
  return due;
}

/** For a deleted project or endpoint, whose deliveries are discarded. */
export async function deleteKeys(
  pool: Querier,
  {
    projectId,
    endpointId,
  }: { readonly projectId: string; readonly endpointId?: string | undefined },
): Promise<void> {
  for (const table of ['ordered_deliveries', 'ordered_keys'])
    await pool.query(
      `delete from ${table} where project_id = $1 and ($2::uuid is null or endpoint_id = $2)`,
      [projectId, endpointId ?? null],
    );
}
