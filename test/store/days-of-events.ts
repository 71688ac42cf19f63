import { acceptEvents } from '#store/events/events';
import { applyRetention } from '#store/retention/retention';
import { within } from '../support/until.js';
import { batch, newDelivery, newEvents, PROJECT } from './batches.js';
import { migratedDatabase } from './migrated.js';

export type Db = Awaited<ReturnType<typeof migratedDatabase>>;

/** Runs a test on a private database: it creates and drops partitions. */
export async function onFresh(test: (db: Db) => Promise<void>): Promise<void> {
  const db = await migratedDatabase();
  try {
    // The default shard has it already, from the first migrations; others begin with today.
    await db.rows('select ensure_day($1::date)', [dayOf(-1)]);
    await within(test(db), 60_000, 'the test');
  } finally {
    await db.close();
  }
}

export const DAY_MS = 86_400_000;
export const TABLES = ['events', 'event_deliveries', 'delivery_attempts'];
export const DAYS = 30;
const NOON = (Math.floor(Date.now() / DAY_MS) + 0.5) * DAY_MS;
/** Noon of a day, relative to today. */
export const at = (day: number) => NOON + day * DAY_MS;
export const dayOf = (day: number) => new Date(at(day)).toISOString().slice(0, 10);
/** Applies retention as if `daysLater` days had passed. */
export const forget = (db: Db, daysLater: number, days = DAYS) =>
  applyRetention(db.planes, { days, now: new Date(at(daysLater)) });
export const NOTHING = { dropped: [], unfinished: [], kept: [], locked: false, rowsDeleted: 0 };

export const count = async (db: Db, table: string) =>
  (await db.rows<{ n: number }>(`select count(*)::int as n from ${table}`))[0]!.n;

export async function counts(db: Db, suffix = ''): Promise<number[]> {
  const found: number[] = [];
  for (const table of TABLES) found.push(await count(db, table + suffix));
  return found;
}

/** Finishes every delivery, with one attempt each. */
export async function finish(db: Db): Promise<void> {
  await db.rows(
    `update event_deliveries set status = 'success', claimed_by = null, next_attempt_at = null where status <> 'success'`,
  );
  await db.rows(
    `with made as materialized (
       select project_id, id, gen_random_uuid() as attempt, occurred_at, endpoint_id from event_deliveries d
        where not exists (select from delivery_attempts a where a.event_delivery_id = d.id))
     insert into delivery_attempts (project_id, event_delivery_id, id, occurred_at, requested_at, endpoint_id, duration_ms, number, url)
     select project_id, id, attempt, occurred_at, now(), endpoint_id, 1, 1, 'http://x' from made`,
  );
}

/** Creates finished events of a day with a delivery each. */
export async function finished(
  db: Db,
  day: number,
  events = 3,
  projectId = PROJECT,
): Promise<void> {
  const made = newEvents(events, (n) => ({ projectId, occurredAtMs: at(day) + n }));
  await acceptEvents(db.pool, batch(made, { deliveries: made.map((event) => newDelivery(event)) }));
  await finish(db);
}
