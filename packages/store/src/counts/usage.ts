import pg from 'pg';
import { tryTransactionLock, withConnection } from '../postgres/advisory-lock.js';
import type { Querier } from '../postgres/connection.js';

/** Accepted events, successful deliveries, and the size of the data. */
export interface Usage {
  readonly events: number;
  readonly deliveries: number;
  readonly bytes: number;
}

export interface ProjectUsage extends Usage {
  readonly projectId: string;
  readonly day: string;
}

export interface UsageDay extends Usage {
  readonly day: string;
  readonly organisation_id: string;
  readonly organisation: string;
  readonly posted_at: Date | null;
}

/** An hour after the end of a day in UTC, agents have flushed its counts. */
const CLOSED = `day < (now() at time zone 'UTC' - interval '1 hour')::date`;

/** Except for closed days. Locks the rows of usage_days in sorted order. */
export async function addUsage(client: Querier, usage: readonly ProjectUsage[]): Promise<void> {
  await client.query({
    name: 'add-usage',
    text: `insert into usage_days as known (organisation_id, day, events, deliveries, bytes)
           select p.organisation_id, u.day, sum(u.events), sum(u.deliveries), sum(u.bytes)
           from unnest($1::uuid[], $2::date[], $3::bigint[], $4::bigint[], $5::bigint[]) as u(project, day, events, deliveries, bytes)
           join projects p on p.id = u.project
           group by 1, 2 order by 1, 2
           on conflict (organisation_id, day) do update
             set events = known.events + excluded.events, deliveries = known.deliveries + excluded.deliveries, bytes = known.bytes + excluded.bytes
             where known.closed_at is null`,
    values: (['projectId', 'day', 'events', 'deliveries', 'bytes'] as const).map((name) =>
      usage.map((it) => it[name]),
    ),
  });
}

/**
 * Adds all of it, or rejects. Without an answer from Postgres, returns the error: the usage may have
 * been added, and adding it again could count it twice.
 */
export async function addUsageOnce(
  pool: pg.Pool,
  usage: readonly ProjectUsage[],
): Promise<Error | undefined> {
  let isSent = false;
  const add = (client: Querier) => {
    isSent = true;
    return addUsage(client, usage);
  };
  try {
    await withConnection(pool, add);
    return undefined;
  } catch (error) {
    if (isSent && !(error instanceof pg.DatabaseError)) return error as Error;
    throw error;
  }
}

/** Today in UTC, by this process's clock. */
export function acceptedNow(
  projectId: string,
  events: readonly { readonly data: string }[],
): ProjectUsage {
  const bytes = events.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0);
  return {
    projectId,
    day: new Date().toISOString().slice(0, 10),
    events: events.length,
    deliveries: 0,
    bytes,
  };
}

/** Floats, because the driver returns bigints as strings. The sums are small enough to be exact. */
const COLUMNS = `to_char(u.day, 'YYYY-MM-DD') as day, u.organisation_id, o.name as organisation, u.events::float8, u.deliveries::float8, u.bytes::float8, u.posted_at`;

/**
 * Newest first, including today.
 *
 * @param options.after the day and organisation of a record, as `2026-01-31~<id>`
 */
export async function listUsage(
  client: Querier,
  options: { days: number; organisationId?: string | undefined; after?: string; limit?: number },
): Promise<UsageDay[]> {
  const { days, organisationId = null, after = null, limit = null } = options;
  const { rows } = await client.query<UsageDay>(
    `select ${COLUMNS} from usage_days u join organisations o on o.id = u.organisation_id
     where u.day > (now() at time zone 'UTC')::date - $1::int and ($2::uuid is null or u.organisation_id = $2::uuid)
       and ($3::text is null or (to_char(u.day, 'YYYY-MM-DD') || '~' || u.organisation_id) collate "C" < $3::text)
     order by u.day desc, u.organisation_id desc limit $4`,
    [days, organisationId, after, limit],
  );
  return rows;
}

export async function hasUnposted(client: Querier): Promise<boolean> {
  const { rows } = await client.query(
    `select from usage_days where posted_at is null and ${CLOSED} limit 1`,
  );
  return rows.length > 0;
}

/**
 * Oldest first. Nothing is added to a closed day. The caller must hold the lock of `lockBilling`.
 */
export async function closeUnposted(
  client: Querier,
  limit: number,
  after?: Pick<UsageDay, 'day' | 'organisation_id'>,
): Promise<UsageDay[]> {
  const { rows } = await client.query<UsageDay>(
    `with next as (
       select organisation_id, day from usage_days
       where posted_at is null and ${CLOSED} and (day, organisation_id) > ($2::date, $3::uuid)
       order by day, organisation_id limit $1
     ),
     u as (
       update usage_days it set closed_at = coalesce(it.closed_at, now()) from next
       where it.organisation_id = next.organisation_id and it.day = next.day returning it.*
     )
     select ${COLUMNS} from u join organisations o on o.id = u.organisation_id order by u.day, u.organisation_id`,
    [
      limit,
      after?.day ?? '-infinity',
      after?.organisation_id ?? '00000000-0000-0000-0000-000000000000',
    ],
  );
  return rows;
}

/** Keeps an earlier time. */
export async function markPosted(
  client: Querier,
  { organisation_id: id, day }: Pick<UsageDay, 'day' | 'organisation_id'>,
): Promise<void> {
  const text = `update usage_days set posted_at = now() where organisation_id = $1 and day = $2::date and posted_at is null`;
  await client.query(text, [id, day]);
}

/** Begins a transaction that holds the lock. False if another connection holds it. */
export async function lockBilling(client: Querier): Promise<boolean> {
  await client.query('begin');
  const isMine = await tryTransactionLock(client, 'gateway.billing');
  if (!isMine) await client.query('rollback');
  return isMine;
}
