import { insertRows, type MovedRows } from './move-rows.js';

const PAGE = 5_000;

/**
 * Before the new shard accepts anything, so that new deliveries come behind those of the former one.
 * Places get numbers of the new shard, in their order. A turn whose delivery is not there yet waits
 * for it (`repairKeys`).
 */
export async function copyTurns({ from, into, projectId }: MovedRows): Promise<void> {
  for (let after = '0'; ;) {
    const { rows } = await from.query<{ seq: string; row: string }>(
      `select seq, row_to_json(t)::text as row from ordered_deliveries t where project_id = $1 and seq > $2 order by seq limit ${PAGE}`,
      [projectId, after],
    );
    if (rows.length > 0)
      await into.query(
        `insert into ordered_deliveries (project_id, endpoint_id, order_key, delivery_id, occurred_at, shown)
         select r.project_id, r.endpoint_id, r.order_key, r.delivery_id, r.occurred_at, r.shown
         from unnest($1::text[]) j(row) cross join lateral json_populate_record(null::ordered_deliveries, j.row::json) r order by r.seq
         on conflict do nothing`,
        [rows.map(({ row }) => row)],
      );
    if (rows.length < PAGE) break;
    after = rows.at(-1)!.seq;
  }
  for (let after = { endpoint: FIRST, key: FIRST }; ;) {
    const { rows } = await from.query<{ endpoint: string; key: string; row: string }>(
      `select endpoint_id as endpoint, order_key as key, row_to_json(t)::text as row from ordered_keys t
       where project_id = $1 and (endpoint_id, order_key) > ($2, $3) order by endpoint_id, order_key limit ${PAGE}`,
      [projectId, after.endpoint, after.key],
    );
    await insertRows(into, 'ordered_keys', rows);
    if (rows.length < PAGE) break;
    after = rows.at(-1)!;
  }
}

const FIRST = '00000000-0000-0000-0000-000000000000';
