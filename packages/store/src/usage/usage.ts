import type pg from 'pg';

type Client = Pick<pg.Pool, 'query'>;

/** What was used: events that were accepted, event deliveries that ended in success, bytes of the data of those events. */
export interface Usage {
  readonly events: number;
  readonly deliveries: number;
  readonly bytes: number;
}

/** The usage of a project on one day. */
export interface ProjectUsage extends Usage {
  readonly projectId: string;
  /** UTC, `2025-03-31`. */
  readonly day: string;
}

/** The record of an organisation and UTC day. */
export interface UsageDay extends Usage {
  /** `2025-03-31`. */
  readonly day: string;
  readonly organisation_id: string;
  readonly organisation: string;
  /** When it was posted to billing.url; null: not yet, or never. */
  readonly posted_at: Date | null;
}

/** A day is closed an hour after its end in UTC: what agents still had in memory at midnight has been added by then. */
const CLOSED = `day < (now() at time zone 'UTC' - interval '1 hour')::date`;

/**
 * Adds to the records of the organisations of these projects. A day that billing has begun to post stays as it is.
 * Lock: the records' rows, in one order, for the moment of the statement.
 */
export async function addUsage(client: Client, usage: readonly ProjectUsage[]): Promise<void> {
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
    values: [
      usage.map((it) => it.projectId),
      usage.map((it) => it.day),
      usage.map((it) => it.events),
      usage.map((it) => it.deliveries),
      usage.map((it) => it.bytes),
    ],
  });
}

/** The usage of events of a project that are accepted now. */
export function acceptedNow(projectId: string, events: readonly { readonly data: string }[]): ProjectUsage {
  const bytes = events.reduce((sum, { data }) => sum + Buffer.byteLength(data), 0);
  return { projectId, day: new Date().toISOString().slice(0, 10), events: events.length, deliveries: 0, bytes };
}

/** Sums come from Postgres as text, for they may exceed what a number holds; these do not. */
type Row = Omit<UsageDay, keyof Usage> & Readonly<Record<keyof Usage, string>>;

const COLUMNS = `to_char(u.day, 'YYYY-MM-DD') as day, u.organisation_id, o.name as organisation, u.events, u.deliveries, u.bytes, u.posted_at`;

function usageDay({ events, deliveries, bytes, ...row }: Row): UsageDay {
  const { day, organisation_id, organisation, posted_at } = row;
  return { day, organisation_id, organisation, events: Number(events), deliveries: Number(deliveries), bytes: Number(bytes), posted_at };
}

/**
 * The records of the last days, today's first.
 *
 * @param days how many days, today included
 * @param organisationId of this organisation alone
 */
export async function listUsage(
  client: Client,
  { days, organisationId = null }: { days: number; organisationId?: string | null },
): Promise<UsageDay[]> {
  const { rows } = await client.query<Row>(
    `select ${COLUMNS} from usage_days u join organisations o on o.id = u.organisation_id
     where u.day > (now() at time zone 'UTC')::date - $1::int and ($2::uuid is null or u.organisation_id = $2::uuid)
     order by u.day desc, o.name, o.id`,
    [days, organisationId],
  );
  return rows.map(usageDay);
}

/** True while there are records of closed days that were not posted. */
export async function hasUnposted(client: Client): Promise<boolean> {
  const { rows } = await client.query(`select from usage_days where posted_at is null and ${CLOSED} limit 1`);
  return rows.length > 0;
}

/**
 * The next records of closed days that were not posted, oldest first; from now on nothing is added to them. Call it while `lockBilling` holds.
 *
 * @param after the last record of the call before
 */
export async function closeUnposted(client: Client, limit: number, after?: Pick<UsageDay, 'day' | 'organisation_id'>): Promise<UsageDay[]> {
  const { rows } = await client.query<Row>(
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
    [limit, after?.day ?? '-infinity', after?.organisation_id ?? '00000000-0000-0000-0000-000000000000'],
  );
  return rows.map(usageDay);
}

/** Says that a record was posted. */
export async function markPosted(client: Client, { organisation_id: id, day }: Pick<UsageDay, 'day' | 'organisation_id'>): Promise<void> {
  await client.query(`update usage_days set posted_at = now() where organisation_id = $1 and day = $2::date and posted_at is null`, [
    id,
    day,
  ]);
}

/** Tries to become the one process that posts, for as long as this connection lasts; false when another one is. */
export async function lockBilling(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ mine: boolean }>(`select pg_try_advisory_lock(hashtext('gateway.billing')) as mine`);
  return rows[0]?.mine ?? false;
}
