import type { Knex } from 'knex';
import type pg from 'pg';
import { newId } from '@gateway/core/events';
import { clean } from '../postgres/columns.js';
import type { Querier } from '../postgres/connection.js';
import { describeNotifications, type ClaimedNotification } from './notifications.js';
import { column, projectTable, type FieldsOf, type RowOf } from './soft-deletes.js';

interface ChannelSetting {
  readonly isSecret?: true;
  readonly isUrl?: true;
  readonly isOptional?: true;
  readonly default?: string;
}

/**
 * Secret settings are sealed. A channel of the type `events` creates events of the project instead
 * of sending requests.
 */
export const CHANNEL_TYPES = {
  slack: { url: { isSecret: true, isUrl: true } },
  teams: { url: { isSecret: true, isUrl: true } },
  pagerduty: {
    routing_key: { isSecret: true },
    api_url: { isUrl: true, default: 'https://events.pagerduty.com' },
  },
  opsgenie: {
    api_key: { isSecret: true },
    api_url: { isUrl: true, default: 'https://api.opsgenie.com' },
  },
  webhook: { url: { isUrl: true }, secret: { isSecret: true, isOptional: true } },
  events: {},
} as const satisfies Readonly<Record<string, Readonly<Record<string, ChannelSetting>>>>;
export type ChannelType = keyof typeof CHANNEL_TYPES;

export function channelSettings(type: ChannelType): Readonly<Record<string, ChannelSetting>> {
  return CHANNEL_TYPES[type];
}

const columns = {
  name: column<string>({ isSearched: true }),
  type: column<ChannelType>(),
  settings: column<Readonly<Record<string, string>>>({ isJson: true }),
  /** Null for all. */
  kinds: column<readonly string[] | null>(),
  enabled: column<boolean>(),
  failures: column<number>(),
  last_sent_at: column<Date | null>(),
  last_error: column<string | null>(),
  last_error_at: column<Date | null>(),
};

export interface ChannelRow extends RowOf<typeof columns> {}
type ChannelFields = FieldsOf<
  ChannelRow,
  'name' | 'type' | 'settings',
  'failures' | 'last_sent_at' | 'last_error' | 'last_error_at'
>;

const { rows: _, ...table } = projectTable<ChannelRow, ChannelFields>(
  'notification_channels',
  columns,
);
export const {
  list: listChannels,
  find: findChannel,
  insert: insertChannel,
  delete: deleteChannel,
} = table;

/** Disabling a channel also drops what it has yet to send. */
export function updateChannel(
  knex: Knex,
  projectId: string,
  id: string,
  fields: Partial<ChannelFields>,
): Promise<ChannelRow | undefined> {
  return knex.transaction(async (trx) => {
    const row = await table.update(trx, projectId, id, fields);
    if (row?.enabled === false)
      await trx('channel_notifications').where({ channel_id: row.id }).delete();
    return row;
  });
}

/** Also for a disabled channel. */
export async function testChannel(
  knex: Knex,
  { project_id, id }: Pick<ChannelRow, 'project_id' | 'id'>,
): Promise<void> {
  await knex('notifications').insert({
    id: newId(),
    kind: 'channel_test',
    project_id,
    subject: id,
    facts: '{}',
    ended_at: knex.fn.now(),
    status: 'given_up',
    next_attempt_at: null,
  });
}

/** Longer than a request. */
const LEASE = `interval '1 minute'`;

/**
 * Up to `max` channels of the shards' projects that have something to send and are not waiting
 * after a request. Locks the claimed rows and skips locked ones.
 */
export async function claimChannels(
  pool: pg.Pool,
  { shards, max }: { readonly shards: readonly string[]; readonly max: number },
): Promise<ChannelRow[]> {
  const { rows } = await pool.query<ChannelRow>({
    name: 'claim-channels',
    text: `with due as (
             select project_id, id from notification_channels c
             where id in (select channel_id from channel_notifications) and next_attempt_at <= now() and deleted_at is null
               and not exists (select from projects p where p.id = c.project_id and p.shard <> all ($2::text[]))
             order by next_attempt_at limit $1 for update skip locked
           )
           update notification_channels c set next_attempt_at = now() + ${LEASE} from due
           where c.project_id = due.project_id and c.id = due.id returning c.*`,
    values: [max, shards],
  });
  return rows;
}

export interface ChannelNotification extends ClaimedNotification {
  /** The position in the channel's queue. */
  readonly n: string;
  readonly isRecovery: boolean;
  readonly queuedAt: Date;
}

export async function readChannelQueue(
  pool: pg.Pool,
  channelId: string,
  max: number,
): Promise<ChannelNotification[]> {
  const { rows } = await pool.query<ChannelNotification>({
    name: 'read-channel-queue',
    text: `select q.n, q.is_recovery as "isRecovery", q.created_at as "queuedAt", d.* from channel_notifications q,
             lateral (${describeNotifications('(select * from notifications where id = q.notification_id)', `'{}'::text[]`)}) d
           where q.channel_id = $1 order by q.n limit $2`,
    values: [channelId, max],
  });
  return rows;
}

/**
 * Removes `sent` from the channel's queue: what was sent or is given up. The next request follows
 * after `waitMs`.
 */
export async function recordChannelRequest(
  pool: pg.Pool,
  { project_id: projectId, id }: Pick<ChannelRow, 'project_id' | 'id'>,
  { sent, error, waitMs }: { sent: readonly string[]; error: string | null; waitMs: number },
): Promise<void> {
  await pool.query(
    `with q as (delete from channel_notifications where n = any ($3::bigint[]))
     update notification_channels set
       next_attempt_at = now() + $5::float8 * interval '1 millisecond',
       failures = case when $4::text is null then 0 else failures + 1 end,
       last_sent_at = case when $4::text is null then now() else last_sent_at end,
       last_error = $4, last_error_at = case when $4::text is null then null else now() end
     where project_id = $1 and id = $2`,
    [projectId, id, sent, error === null ? null : clean(error), waitMs],
  );
}

/** Removes what channels could not send within `hours`, and what deleted channels had yet to send. */
export async function giveUpChannelNotifications(
  client: Querier,
  hours: number,
): Promise<{ channel_id: string; last_error: string | null; notifications: number }[]> {
  const { rows } = await client.query<{
    channel_id: string;
    last_error: string | null;
    notifications: number;
  }>(
    `with q as (
       delete from channel_notifications q using notification_channels c
       where c.id = q.channel_id and (c.deleted_at is not null or q.created_at < now() - $1::int * interval '1 hour')
       returning q.channel_id, c.last_error, c.deleted_at
     )
     select channel_id, last_error, count(*)::int as notifications from q where deleted_at is null group by 1, 2`,
    [hours],
  );
  return rows;
}
