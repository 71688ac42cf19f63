import type pg from 'pg';
import { newId } from '@gateway/core/events';
import { clean } from '../postgres/columns.js';

type Client = Pick<pg.Pool, 'query'>;

/** What a notification is about. An endpoint or a source is failing until it is well; the others happen once. */
export type NotificationKind = 'endpoint_disabled' | 'endpoint_failing' | 'source_failing' | 'licence_expiring' | 'licence_expired';

/** What only the agent knew; names and addresses are looked up when it is sent. Never secrets or data of events. */
export interface NotificationFacts {
  /** When it began, ISO 8601. */
  readonly since?: string;
  /** The sentence of the last error. */
  readonly error?: string;
  /** Failed attempts in a row. */
  readonly failures?: number;
  /** When a source that was paused is tried again, ISO 8601. */
  readonly resumes_at?: string;
  /** Whom the licence is for. */
  readonly licensee?: string;
  /** ISO 8601. */
  readonly expires_at?: string;
}

/** A notification to be sent. */
export interface NewNotification {
  readonly kind: NotificationKind;
  /** Null: about the whole instance. */
  readonly projectId: string | null;
  /** Id of the endpoint or source; of a licence what makes it another one. */
  readonly subject: string;
  readonly facts: NotificationFacts;
}

/** What became of a notification that was raised: `known` when there is an open one, `quiet` when it was too early. */
export type Raised = 'raised' | 'known' | 'quiet';

/**
 * Puts notifications in the outbox, each once for all agents: while its kind and subject have one whose end was not told, nothing happens.
 * Lock: their keys in one order, for the moment of the statement.
 *
 * @param notifications of different kinds or subjects
 * @param agentId the agent that raises them
 * @param quietSeconds nothing is raised within so many seconds after the last one of its kind and subject
 * @returns what became of each, in their order
 */
export async function raiseNotifications(
  client: Client,
  notifications: readonly NewNotification[],
  { agentId, quietSeconds }: { agentId: number; quietSeconds: number },
): Promise<Raised[]> {
  if (notifications.length === 0) return [];
  const { rows } = await client.query<{ raised: Raised }>({
    name: 'raise-notifications',
    // Sets and no look-ups for each: of a table that has just grown Postgres does not know that its indexes pay.
    text: `with given as (
             select * from unnest($1::uuid[], $2::notification_kind[], $3::uuid[], $4::text[], $5::text[]) with ordinality
               as g(id, kind, project_id, subject, facts, n)
           ),
           raised as (
             insert into notifications (id, kind, project_id, subject, facts, raised_by)
             select id, kind, project_id, subject, facts::jsonb, $6::int from given
             where (kind, subject) not in (select kind, subject from notifications where created_at > now() - $7::int * interval '1 second')
             order by kind, subject
             on conflict (kind, subject) where ended_at is null do nothing
             returning id
           )
           select case when id in (select id from raised) then 'raised'
                       when (kind, subject) in (select kind, subject from notifications where ended_at is null) then 'known'
                       else 'quiet' end as raised
           from given order by n`,
    values: [
      notifications.map(() => newId()),
      notifications.map(({ kind }) => kind),
      notifications.map(({ projectId }) => projectId),
      notifications.map(({ subject }) => subject),
      notifications.map(({ facts }) => factsText(facts)),
      agentId,
      quietSeconds,
    ],
  });
  return rows.map(({ raised }) => raised);
}

/** Facts as JSON that Postgres takes, whatever an endpoint or a broker put into its error. */
export function factsText(facts: NotificationFacts): string {
  return JSON.stringify(facts, (_, value: unknown) => (typeof value === 'string' ? clean(value).toWellFormed() : value));
}

/** Says that what these told of is over: the next time it is told again. Also one that was not sent yet is sent. */
export async function endNotifications(client: Client, kind: NotificationKind, subjects: readonly string[]): Promise<void> {
  await client.query(
    `update notifications set ended_at = now() where kind = $1::notification_kind and subject = any($2::text[]) and ended_at is null`,
    [kind, subjects],
  );
}

/** What endpoints and sources are known to be failing, and whether the agent that said so is alive. */
export async function readOpenNotifications(client: Client): Promise<{ kind: NotificationKind; subject: string; raiser_lives: boolean }[]> {
  const { rows } = await client.query<{ kind: NotificationKind; subject: string; raiser_lives: boolean }>({
    name: 'open-notifications',
    text: `select kind, subject, exists (select from agents a where a.id = n.raised_by and a.expires_at > now()) as raiser_lives
           from notifications n where ended_at is null and kind in ('endpoint_failing', 'source_failing')`,
  });
  return rows;
}

/** A notification with all that its e-mail says. */
export interface ClaimedNotification extends NewNotification {
  readonly id: string;
  /** Which try this is, from 1. */
  readonly attempts: number;
  readonly createdAt: Date;
  readonly project: string | null;
  readonly organisation: string | null;
  /** Name of the endpoint or source. */
  readonly name: string | null;
  /** Of the endpoint. */
  readonly url: string | null;
  /** E-mail addresses of the admins of the project's organisation; of all organisations when it is about the instance. */
  readonly admins: readonly string[];
}

/** How long a taken notification stays with its agent: more than sending it may take, since it is sent again after that. */
const LEASE = `interval '5 minutes'`;
/** Notifications of one kind and organisation that go out at once; more of them are gathered. */
const BURST = 10;
const CLAIM_MAX = 10_000;

/**
 * Takes the oldest notification that is due, and with it all of its kind and organisation that are: they go in one e-mail. None when nothing is due.
 * Locks: their rows, for the moment; those that another agent takes are passed over.
 *
 * @param gatherSeconds when ten of a kind and organisation were sent within so many seconds, the next wait until that is over
 */
export async function claimNotifications(client: Client, gatherSeconds: number): Promise<ClaimedNotification[]> {
  const { rows } = await client.query<ClaimedNotification>({
    name: 'claim-notifications',
    text: `with enough as (
             select n.kind, p.organisation_id from notifications n left join projects p on p.id = n.project_id
             where n.sent_at > now() - $1::int * interval '1 second' group by 1, 2 having count(*) >= ${BURST}
           ),
           first as (
             select n.kind, p.organisation_id from notifications n left join projects p on p.id = n.project_id
             where n.status = 'waiting' and n.next_attempt_at <= now()
               and not exists (select from enough g where g.kind = n.kind and g.organisation_id is not distinct from p.organisation_id)
             order by n.next_attempt_at limit 1 for update of n skip locked
           ),
           n as (
             update notifications set next_attempt_at = now() + ${LEASE}, attempts = attempts + 1
             where id in (
               select n.id from first f join notifications n on n.kind = f.kind left join projects p on p.id = n.project_id
               where n.status = 'waiting' and n.next_attempt_at <= now() and p.organisation_id is not distinct from f.organisation_id
               order by n.next_attempt_at limit ${CLAIM_MAX} for update of n skip locked
             )
             returning *
           )
           select n.id, n.kind, n.project_id as "projectId", n.subject, n.facts, n.attempts, n.created_at as "createdAt",
                  p.name as project, o.name as organisation, coalesce(e.name, s.name) as name, e.url,
                  array(
                    select distinct u.email from first f, organisation_members m join users u on u.id = m.user_id
                    where m.role = 'admin' and (f.organisation_id is null or m.organisation_id = f.organisation_id) order by u.email
                  ) as admins
           from n
           left join projects p on p.id = n.project_id
           left join organisations o on o.id = p.organisation_id
           left join endpoints e on e.project_id = n.project_id
             and e.id = case when n.kind in ('endpoint_disabled', 'endpoint_failing') then n.subject::uuid end
           left join sources s on s.project_id = n.project_id and s.id = case when n.kind = 'source_failing' then n.subject::uuid end
           order by n.created_at, n.id`,
    values: [gatherSeconds],
  });
  return rows;
}

/** Says that notifications were sent. */
export async function markSent(client: Client, ids: readonly string[]): Promise<void> {
  await client.query(
    `update notifications set status = 'sent', sent_at = now(), next_attempt_at = null, last_error = null
     where id = any($1::uuid[]) and status = 'waiting'`,
    [ids],
  );
}

/** Says why notifications could not be sent; they are due again after a while. */
export async function postponeNotifications(client: Client, ids: readonly string[], error: string, waitMs: number): Promise<void> {
  await client.query(
    `update notifications set next_attempt_at = now() + $3::float8 * interval '1 millisecond', last_error = $2
     where id = any($1::uuid[]) and status = 'waiting'`,
    [ids, clean(error), waitMs],
  );
}

/**
 * Gives up what has waited for too long, ends what tells of endpoints and sources that are no more, and forgets what is long over. Returns what was given
 * up.
 */
export async function giveUpNotifications(
  client: Client,
  { afterHours, forgetAfterDays }: { afterHours: number; forgetAfterDays: number },
): Promise<{ id: string; kind: NotificationKind; subject: string; last_error: string | null }[]> {
  await client.query(
    `update notifications n set ended_at = now()
     where n.ended_at is null and case n.kind
       when 'endpoint_failing' then not exists (
         select from endpoints e where e.project_id = n.project_id and e.id = n.subject::uuid and e.deleted_at is null)
       when 'source_failing' then not exists (
         select from sources s where s.project_id = n.project_id and s.id = n.subject::uuid and s.deleted_at is null)
       else false end`,
  );
  await client.query(
    `delete from notifications where status <> 'waiting' and ended_at is not null and ended_at < now() - $1::int * interval '1 day'`,
    [forgetAfterDays],
  );
  const { rows } = await client.query<{ id: string; kind: NotificationKind; subject: string; last_error: string | null }>(
    `update notifications set status = 'given_up', next_attempt_at = null
     where status = 'waiting' and created_at < now() - $1::int * interval '1 hour' returning id, kind, subject, last_error`,
    [afterHours],
  );
  return rows;
}
