import type { Knex } from 'knex';
import type pg from 'pg';
import { maskOfApiKey, matchesApiKey, newApiKey } from '@gateway/core/crypto';
import { newId } from '@gateway/core/events';

const LIFE = `interval '1 hour'`;
/** Emails per user and `LIFE`. */
const REQUESTS_MAX = 3;
const LEASE = `interval '1 minute'`;

/** Only the token's hash is stored. */
export async function insertPasswordReset(
  knex: Knex,
  userId: string,
): Promise<{ token: string; expiresAt: Date }> {
  const { key: token, mask, hash } = newApiKey();
  const [row] = await knex('password_resets')
    .insert({ id: newId(), user_id: userId, mask, hash, expires_at: knex.raw(`now() + ${LIFE}`) })
    .returning<{ expires_at: Date }[]>('expires_at');
  return { token, expiresAt: row!.expires_at };
}

/**
 * If a user with a password has the address. Does the same work for unknown addresses, and nothing
 * for a user with `REQUESTS_MAX` recent requests.
 *
 * @param link the URL to which an agent appends the token
 */
export async function requestPasswordReset(
  pool: pg.Pool,
  email: string,
  link: string,
): Promise<void> {
  await pool.query(
    `with r as (
       insert into password_resets (id, user_id, expires_at, next_mail_at, link)
       select $1, u.id, now() + ${LIFE}, now(), $3 from users u
       where lower(u.email collate "C") = lower($2 collate "C") and u.password_hash <> ''
         and (select count(*) from password_resets p where p.user_id = u.id and p.created_at > now() - ${LIFE}) < ${REQUESTS_MAX}
       returning 1
     )
     select pg_notify('gateway_notifications', '') from r`,
    [newId(), email, link],
  );
}

export interface PasswordResetMail {
  readonly id: string;
  readonly email: string;
  /** Contains the token, which is stored nowhere. */
  readonly link: string;
}

/**
 * Gives the next email a token. A claim that is not reported as mailed can be claimed again after a
 * minute. Also deletes old links.
 */
export async function claimPasswordResetMail(
  pool: pg.Pool,
): Promise<PasswordResetMail | undefined> {
  const { key: token, mask, hash } = newApiKey();
  const { rows } = await pool.query<PasswordResetMail>({
    name: 'claim-password-reset',
    text: `with old as (delete from password_resets where expires_at < now() - interval '7 days'),
           due as (
             select id from password_resets where next_mail_at <= now() and expires_at > now()
             order by next_mail_at limit 1 for update skip locked
           )
           update password_resets r set mask = $1, hash = $2, next_mail_at = now() + ${LEASE}
           from due, users u where r.id = due.id and u.id = r.user_id
           returning r.id, u.email, r.link || $3 as link`,
    values: [mask, hash, token],
  });
  return rows[0];
}

export async function markPasswordResetMailed(pool: pg.Pool, id: string): Promise<void> {
  await pool.query('update password_resets set next_mail_at = null where id = $1', [id]);
}

/** Undefined if the token is unknown, used or expired. In a transaction, locks the link. */
export async function findPasswordReset(
  knex: Knex,
  token: string,
): Promise<{ readonly id: string; readonly email: string } | undefined> {
  const mask = maskOfApiKey(token);
  if (mask === undefined) return undefined;
  const found = await knex('password_resets as r')
    .join('users as u', 'u.id', 'r.user_id')
    .where({ 'r.mask': mask, 'r.used_at': null })
    .whereRaw('r.expires_at > now()')
    .forUpdate('r')
    .first<{ id: string; email: string; hash: Uint8Array } | undefined>(
      'u.id',
      'u.email',
      'r.hash',
    );
  if (!found || !matchesApiKey(token, found.hash)) return undefined;
  return { id: found.id, email: found.email };
}

export async function endPasswordResets(trx: Knex, userId: string): Promise<void> {
  await trx('password_resets')
    .where({ user_id: userId, used_at: null })
    .update({ used_at: trx.fn.now(), next_mail_at: null });
}
