import type { Knex } from 'knex';
import { revokeUserKeys } from '../config/api-keys.js';
import type { UserRow } from './users.js';

/** A person's identity at an OpenID Connect provider. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

const USER = [
  'users.id',
  'email',
  'first_name',
  'last_name',
  'users.created_at',
  'users.updated_at',
];

export function findUserByIdentity(
  knex: Knex,
  { issuer, subject }: Identity,
): Promise<UserRow | undefined> {
  return knex('user_identities')
    .join('users', 'users.id', 'user_identities.user_id')
    .where({ issuer, subject })
    .first<UserRow | undefined>(USER);
}

/**
 * Links an identity to a user. Returns false if the user has another identity at the issuer, or the
 * identity belongs to another user.
 */
export async function insertIdentity(
  knex: Knex,
  userId: string,
  { issuer, subject }: Identity,
): Promise<boolean> {
  const rows: unknown[] = await knex('user_identities')
    .insert({ issuer, subject, user_id: userId })
    .onConflict()
    .ignore()
    .returning('user_id');
  return rows.length > 0;
}

/** The credentials revoked when the owner of an email address took over the account. */
export interface TakenOver {
  readonly had_password: boolean;
  readonly sessions: number;
  /** The names of the revoked personal keys. */
  readonly api_keys: readonly string[];
  readonly identities: number;
  /** The masks of the revoked sessions and keys. */
  readonly masks: readonly string[];
}

/**
 * Transfers an account to the person who has proven ownership of its email address. Returns
 * undefined if ownership was proven earlier. Until then, someone else may have created the account,
 * because inviters also have the invitation link; its password, sessions, personal keys and other
 * identities are therefore revoked. Locks the user's row.
 *
 * @param trx a transaction in which the identity already belongs to the user
 */
export async function takeOver(
  trx: Knex,
  userId: string,
  { issuer, subject }: Identity,
): Promise<TakenOver | undefined> {
  const user = await trx('users')
    .where({ id: userId, email_verified_at: null })
    .forUpdate()
    .first<{ password_hash: string } | undefined>('password_hash');
  if (!user) return undefined;
  await trx('users')
    .where({ id: userId })
    .update({ email_verified_at: trx.fn.now(), password_hash: '' });
  const keys = await revokeUserKeys(trx, userId);
  const identities = await trx('user_identities')
    .where({ user_id: userId })
    .whereNot({ issuer, subject })
    .delete();
  return {
    had_password: user.password_hash !== '',
    sessions: keys.filter(({ type }) => type === 'session').length,
    api_keys: keys.filter(({ type }) => type === 'personal').map(({ name }) => name),
    identities,
    masks: keys.map(({ mask }) => mask),
  };
}
