import type { Knex } from 'knex';
import type { UserRow } from './users.js';

/** At an OpenID Connect provider. */
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

/** False if the user has another identity at the issuer, or another user has this one. */
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
