import type { Knex } from 'knex';
import { revokeUserKeys } from '../config/api-keys.js';
import type { UserRow } from './users.js';

/** A person at an OpenID Connect provider. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

const USER = ['users.id', 'email', 'first_name', 'last_name', 'users.created_at', 'users.updated_at'];

/** Returns the user who signs in as this person; undefined when there is none yet. */
export function findUserByIdentity(knex: Knex, { issuer, subject }: Identity): Promise<UserRow | undefined> {
  return knex('user_identities')
    .join('users', 'users.id', 'user_identities.user_id')
    .where({ issuer, subject })
    .first<UserRow | undefined>(USER);
}

/** Lets the person sign in as the user. False when the user has another identity of the issuer, or the identity another user. */
export async function insertIdentity(knex: Knex, userId: string, { issuer, subject }: Identity): Promise<boolean> {
  const rows: unknown[] = await knex('user_identities')
    .insert({ issuer, subject, user_id: userId })
    .onConflict()
    .ignore()
    .returning('user_id');
  return rows.length > 0;
}

/** The credentials that ended when the owner of an address took over an account. */
export interface TakenOver {
  readonly had_password: boolean;
  readonly sessions: number;
  /** Names of personal keys. */
  readonly api_keys: readonly string[];
  readonly identities: number;
  /** The masks of the sessions and keys. */
  readonly masks: readonly string[];
}

/**
 * Gives an account to the person who has proven its email address. Undefined when that was proven before. Otherwise another person may have made the account, since
 * whoever invites an address also has the link that accepts the invitation: its password, sessions, personal keys and other identities end. Lock: the user's row.
 *
 * @param trx a transaction, in which the identity belongs to the user already
 */
export async function takeOver(trx: Knex, userId: string, { issuer, subject }: Identity): Promise<TakenOver | undefined> {
  const user = await trx('users')
    .where({ id: userId, email_verified_at: null })
    .forUpdate()
    .first<{ password_hash: string } | undefined>('password_hash');
  if (!user) return undefined;
  await trx('users').where({ id: userId }).update({ email_verified_at: trx.fn.now(), password_hash: '' });
  const keys = await revokeUserKeys(trx, userId);
  const identities = await trx('user_identities').where({ user_id: userId }).whereNot({ issuer, subject }).delete();
  return {
    had_password: user.password_hash !== '',
    sessions: keys.filter(({ type }) => type === 'session').length,
    api_keys: keys.filter(({ type }) => type === 'personal').map(({ name }) => name),
    identities,
    masks: keys.map(({ mask }) => mask),
  };
}
