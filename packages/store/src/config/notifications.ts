import { newId, type OperationalType } from '@gateway/core/events';
import type pg from 'pg';
import { clean } from '../postgres/columns.js';
import type { Querier } from '../postgres/connection.js';

/**
 * The operational events of each kind of notification: when it is raised, when its cause has ended,
 * and, of a source, when it is paused.
 *
 * `endpoint_failing`, `endpoint_breaker` and `source_failing` stay open until recovery, except that
 * a pause notification is closed as soon as it is raised. `endpoint_disabled` stays open until the
 * endpoint is activated. The other kinds are closed as soon as they are raised.
 */
export const TOLD_BY = {
  endpoint_disabled: ['gateway.endpoint.disabled', 'gateway.endpoint.activated'],
  endpoint_disabling: ['gateway.endpoint.disabling'],
  endpoint_failing: ['gateway.endpoint.failing', 'gateway.endpoint.recovered'],
  endpoint_breaker: ['gateway.endpoint.breaker_opened', 'gateway.endpoint.breaker_closed'],
  endpoint_exhausted: ['gateway.delivery.exhausted'],
  source_failing: ['gateway.source.failing', 'gateway.source.recovered', 'gateway.source.paused'],
  source_lost: ['gateway.source.lost'],
} as const satisfies Readonly<Record<string, readonly OperationalType[]>>;
export type NotificationKind = keyof typeof TOLD_BY;
const KINDS = Object.keys(TOLD_BY) as NotificationKind[];

/**
 * Only the agent knows these. Names and addresses are read when the notification is sent. Facts
 * must not contain secrets or event data.
 */
export interface NotificationFacts {
  readonly since?: string;
  readonly error?: string;
  readonly failures?: number;
  /** Deliveries without a retry left, and the id of the first. */
  readonly deliveries?: number;
  readonly delivery_id?: string;
  /**
   * Only deliveries of operational events caused it. It becomes none, so that operational events
   * never cause more of them.
   */
  readonly is_operational?: true;
  /** Messages in `partition` that may have been lost at the broker, at most. */
  readonly messages?: number;
  readonly partition?: string;
  /** When a source's pause ends, in ISO 8601. */
  readonly resumes_at?: string;
  /** Set if an endpoint is disabled by the project's `disable_after_days`. */
  readonly disable_after_days?: number;
  /** ISO 8601. */
  readonly disabled_at?: string;
  /** The outbox keeps here whom an email has not reached. It is no part of messages. */
  readonly mail?: MailProgress;
}

export interface MailProgress {
  /** The addresses to send to. Only the newest of the notifications that share the email has it. */
  readonly left?: readonly string[];
  /** Whether the email has reached a recipient. */
  readonly reached: boolean;
}

export interface NewNotification {
  readonly kind: NotificationKind;
  readonly projectId: string;
  /** The endpoint or source id; for `source_lost`, the source id, a space and the partition. */
  readonly subject: string;
  readonly facts: NotificationFacts;
}

/**
 * `known`: already open. `quiet`: one was raised within the quiet period. `unheard`: neither email
 * nor an operational event tells anyone.
 */
export type Raised = 'raised' | 'known' | 'quiet' | 'unheard';

/**
 * With distinct kinds and subjects. Skips one if another with the same kind and subject is open or
 * younger than `quietSeconds`. Inserts in sorted order, so that concurrent calls cannot deadlock.
 * If `isMailed` is false, only operational events tell of the notifications, and projects that
 * subscribe to none have none.
 */
export async function raiseNotifications(
  client: Querier,
  notifications: readonly NewNotification[],
  {
    agentIdOf,
    quietSeconds,
    isMailed = true,
  }: {
    agentIdOf: (notification: NewNotification) => number;
    quietSeconds: number;
    isMailed?: boolean;
  },
): Promise<Raised[]> {
  if (notifications.length === 0) return [];
  const { rows } = await client.query<{ raised: Raised }>({
    name: 'raise-notifications',
    // Use set operations: without fresh statistics, Postgres would not use the indexes for lookups.
    text: `with given as (
             select * from unnest($1::uuid[], $2::notification_kind[], $3::uuid[], $4::text[], $5::text[], $6::int[]) with ordinality
               as g(id, kind, project_id, subject, facts, raised_by, n)
           ),
           raised as (
             insert into notifications (id, kind, project_id, subject, facts, raised_by, ended_at, status, next_attempt_at)
             select id, kind, project_id, subject, facts::jsonb, raised_by, case when kind in ('source_lost', 'endpoint_exhausted') then now() end, ${waiting('$8')} from given
             where ${heard('$8', 'given.project_id', '= any ($3::uuid[])')} and (kind, subject) not in (select kind, subject from notifications where created_at > now() - $7::int * interval '1 second')
             order by kind, subject
             on conflict (kind, subject) where ended_at is null do nothing
             returning id
           )
           select case when id in (select id from raised) then 'raised'
                       when (kind, subject) in (select kind, subject from notifications where ended_at is null) then 'known'
                       when ${heard('$8', 'given.project_id', '= any ($3::uuid[])')} then 'quiet' else 'unheard' end as raised
           from given order by n`,
    values: [
      notifications.map(() => newId()),
      notifications.map(({ kind }) => kind),
      notifications.map(({ projectId }) => projectId),
      notifications.map(({ subject }) => subject),
      notifications.map(({ facts }) => factsText(facts)),
      notifications.map(agentIdOf),
      quietSeconds,
      isMailed,
    ],
  });
  return rows.map(({ raised }) => raised);
}

/** The status and next attempt of a new notification in SQL, by whether it is mailed. */
export function waiting(isMailed: string): string {
  return `(case when ${isMailed}::boolean then 'waiting' else 'given_up' end)::notification_status, case when ${isMailed} then now() end`;
}

/** JSON that Postgres accepts, whatever characters an error message contains. */
export function factsText(facts: NotificationFacts): string {
  return JSON.stringify(facts, (_, value: unknown) =>
    typeof value === 'string' ? clean(value).toWellFormed() : value,
  );
}

/** The next failure then notifies again. Notifications waiting to be sent are still sent. */
export async function endNotifications(
  client: Querier,
  kind: NotificationKind,
  subjects: readonly string[],
): Promise<void> {
  await client.query(
    `update notifications set ended_at = now() where kind = $1::notification_kind and subject = any($2::text[]) and ended_at is null`,
    [kind, subjects],
  );
}

export interface OpenNotification {
  readonly kind: NotificationKind;
  readonly subject: string;
  /** The shard of its project. Null if that is deleted. */
  readonly shard: string | null;
  /** The agent on the shard that raised it. */
  readonly raised_by: number | null;
}

/** Returns the open notifications of failing endpoints, open circuit breakers and failing sources. */
export async function readOpenNotifications(client: Querier): Promise<OpenNotification[]> {
  const { rows } = await client.query<OpenNotification>({
    name: 'open-notifications',
    text: `select n.kind, n.subject, p.shard, n.raised_by
           from notifications n left join projects p on p.id = n.project_id
           where n.ended_at is null and n.kind in ('endpoint_failing', 'endpoint_breaker', 'source_failing')`,
  });
  return rows;
}

export interface ClaimedNotification extends NewNotification {
  readonly id: string;
  readonly attempts: number;
  readonly createdAt: Date;
  readonly project: string | null;
  readonly organisation: string | null;
  readonly name: string | null;
  readonly url: string | null;
  /** The email addresses of the organisation's admins and owners. */
  readonly admins: readonly string[];
}

/** Exceeds the longest send; afterwards, the notification can be claimed again. */
const LEASE = `interval '5 minutes'`;
/**
 * Notifications of one kind and organisation sent without delay within `gatherSeconds`. Later ones
 * are batched.
 */
const BURST = 10;
const CLAIM_MAX = 10_000;
/** Notifications share this id, in SQL, while their email has recipients left. */
const EMAIL = `n.facts -> 'mail' ->> 'id'`;

/**
 * The oldest due notification, along with all others due of the same kind and organisation, for one
 * email. Skips kinds introduced by newer versions. Locks the claimed rows and skips locked rows.
 */
export async function claimNotifications(
  client: Querier,
  gatherSeconds: number,
): Promise<ClaimedNotification[]> {
  const { rows } = await client.query<ClaimedNotification>({
    name: 'claim-notifications',
    text: `with enough as (
             select n.kind, p.organisation_id from notifications n left join projects p on p.id = n.project_id
             where n.sent_at > now() - $1::int * interval '1 second' group by 1, 2 having count(*) >= ${BURST}
           ),
           first as (
             select n.kind, p.organisation_id, ${EMAIL} as email from notifications n left join projects p on p.id = n.project_id
             where n.status = 'waiting' and n.next_attempt_at <= now() and n.kind::text = any($2::text[])
               and not exists (select from enough g where g.kind = n.kind and g.organisation_id is not distinct from p.organisation_id)
             order by n.next_attempt_at limit 1 for update of n skip locked
           ),
           n as (
             update notifications set next_attempt_at = now() + ${LEASE}, attempts = attempts + 1
             where id in (
               select n.id from first f join notifications n on n.kind = f.kind left join projects p on p.id = n.project_id
               where n.status = 'waiting' and n.next_attempt_at <= now() and p.organisation_id is not distinct from f.organisation_id
                 and ${EMAIL} is not distinct from f.email
               order by n.next_attempt_at limit ${CLAIM_MAX} for update of n skip locked
             )
             returning *
           )
           ${describeNotifications(
             'n',
             `array(
                select distinct u.email from first f, organisation_members m join users u on u.id = m.user_id
                where m.role in ('admin', 'owner') and m.organisation_id = f.organisation_id order by u.email
              ) as admins`,
           )}
           order by n.created_at, n.id`,
    values: [gatherSeconds, KINDS],
  });
  return rows;
}

/**
 * The SQL condition that a notification of a project is mailed, or that the project subscribes to
 * operational events. Reads the subscriptions of the projects that are `among` once.
 */
export function heard(isMailed: string, projectId: string, among: string): string {
  return `(${isMailed}::boolean or ${projectId} in (
    select project_id from subscriptions, unnest(event_types) t
    where project_id ${among} and deleted_at is null and not is_disabled and t like 'gateway.%'
  ))`;
}

function describeNotifications(from: string, more: string): string {
  return `select n.id, n.kind, n.project_id as "projectId", n.subject, n.facts, n.attempts, n.created_at as "createdAt",
             p.name as project, o.name as organisation, coalesce(e.name, s.name) as name, e.url, ${more}
           from ${from} n
           left join projects p on p.id = n.project_id
           left join organisations o on o.id = p.organisation_id
           left join endpoints e on e.project_id = n.project_id
             and e.id = case when n.kind::text like 'endpoint\\_%' then n.subject::uuid end
           left join sources s on s.project_id = n.project_id
             and s.id = case when n.kind::text like 'source\\_%' then split_part(n.subject, ' ', 1)::uuid end`;
}

/** A notification of which no event tells yet, or whose end it does not tell. */
export interface UntoldNotification extends Omit<ClaimedNotification, 'admins'> {
  readonly endedAt: Date | null;
  /** The event that tells of the notification. Null if there is none yet. */
  readonly eventId: string | null;
}

/** Afterwards, another agent may tell of the notification. */
const TELLING = `interval '1 minute'`;
const UNTOLD_MAX = 1_000;

/** For the projects of the shards, oldest first. Locks the claimed rows and skips locked ones. */
export async function claimUntold(
  pool: pg.Pool,
  shards: readonly string[],
): Promise<UntoldNotification[]> {
  const { rows } = await pool.query<UntoldNotification>({
    name: 'claim-untold',
    text: `with due as (
             select n.id from notifications n join projects p on p.id = n.project_id
             where n.event_due_at <= now() and n.kind::text = any ($2::text[]) and p.deleted_at is null and p.shard = any ($1::text[])
             order by n.event_due_at, n.id limit ${UNTOLD_MAX} for update of n skip locked
           ),
           n as (
             update notifications set event_due_at = now() + ${TELLING} where id in (select id from due) returning *
           )
           ${describeNotifications('n', 'n.ended_at as "endedAt", n.event_id as "eventId"')}
           order by n.created_at, n.id`,
    values: [shards, KINDS],
  });
  return rows;
}

/** If one has ended since it was raised, an event of its end is due. */
export async function markTold(
  pool: pg.Pool,
  ids: readonly string[],
  { eventId, isEnd }: { readonly eventId: string; readonly isEnd: boolean },
): Promise<void> {
  await pool.query(
    `update notifications set event_id = coalesce(event_id, $2),
       event_due_at = case when not $3::boolean and ended_at > created_at then now() end
     where id = any ($1::uuid[])`,
    [ids, eventId, isEnd],
  );
}

/** Clears the last error. */
export async function markSent(client: Querier, ids: readonly string[]): Promise<void> {
  await client.query(
    `update notifications set status = 'sent', sent_at = now(), next_attempt_at = null, last_error = null
     where id = any($1::uuid[]) and status = 'waiting'`,
    [ids],
  );
}

/** The notifications, oldest first, are due again after `waitMs`; with `mail`, without others. */
export async function postponeNotifications(
  client: Querier,
  ids: readonly string[],
  { reason, waitMs, mail }: { reason: string; waitMs: number; mail?: MailProgress },
): Promise<void> {
  const newest = ids.at(-1);
  await client.query(
    `update notifications set next_attempt_at = now() + $3::float8 * interval '1 millisecond', last_error = $2,
       facts = facts || case when id = $4 then $5::jsonb else $5::jsonb #- '{mail,left}' end
     where id = any($1::uuid[]) and status = 'waiting'`,
    [
      ids,
      clean(reason),
      waitMs,
      newest,
      JSON.stringify(mail ? { mail: { id: newest, ...mail } } : {}),
    ],
  );
}

/**
 * Notifications that have waited longer than `afterHours` become `given_up` and are returned. Also
 * closes notifications about deleted endpoints and sources, and deletes notifications closed more
 * than `forgetAfterDays` ago.
 */
export async function giveUpNotifications(
  client: Querier,
  { afterHours, forgetAfterDays }: { afterHours: number; forgetAfterDays: number },
) {
  await client.query(
    `update notifications n set ended_at = now()
     where n.ended_at is null and case
       when n.kind in ('endpoint_failing', 'endpoint_breaker', 'endpoint_disabled') then not exists (
         select from endpoints e where e.project_id = n.project_id and e.id = n.subject::uuid and e.deleted_at is null)
       when n.kind = 'source_failing' then not exists (
         select from sources s where s.project_id = n.project_id and s.id = n.subject::uuid and s.deleted_at is null)
       else false end`,
  );
  await client.query(
    `delete from notifications where status <> 'waiting' and ended_at is not null and ended_at < now() - $1::int * interval '1 day'`,
    [forgetAfterDays],
  );
  const { rows } = await client.query<{
    id: string;
    kind: NotificationKind;
    subject: string;
    last_error: string | null;
  }>(
    `update notifications set status = 'given_up', next_attempt_at = null
     where status = 'waiting' and created_at < now() - $1::int * interval '1 hour' returning id, kind, subject, last_error`,
    [afterHours],
  );
  return rows;
}
