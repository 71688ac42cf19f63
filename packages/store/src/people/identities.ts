import type { Knex } from 'knex';
import { USER, type UserRow } from './users.js';

/** At an OpenID Connect provider. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
}

export function findUserByIdentity(
  knex: Knex,
  { issuer, subject }: Identity,
): Promise<UserRow | undefined> {
  const owner = knex('user_identities').where({ issuer, subject }).select('user_id');
  return knex('users').whereIn('id', owner).first<UserRow | undefined>(USER);
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
