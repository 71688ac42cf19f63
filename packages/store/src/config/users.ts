import { randomBytes, scrypt, timingSafeEqual, type ScryptOptions } from 'node:crypto';
import type { Knex } from 'knex';
import { GatewayError } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { sqlState, UNIQUE_VIOLATION } from '../postgres/sqlstate.js';
import { insertApiKey } from './api-keys.js';

/** A new user. Password and key are shown once; only their hashes are stored. */
export interface BootstrappedUser {
  readonly user: { readonly id: string; readonly email: string; readonly first_name: string; readonly last_name: string };
  readonly password: string;
  readonly organisation: { readonly id: string; readonly name: string };
  readonly api_key: { readonly id: string; readonly name: string; readonly type: 'personal'; readonly key: string };
}

const EMAIL = /^[^\s@]+@[^\s@]+$/;

/** Creates a user with an organisation and a personal API key, all or nothing. Throws `email_in_use`, or `wrong_use` for an invalid address. */
export async function bootstrapUser(
  knex: Knex,
  { email, firstName, lastName }: { email: string; firstName: string; lastName: string },
): Promise<BootstrappedUser> {
  if (!EMAIL.test(email) || email.length > 320) {
    throw new GatewayError('wrong_use', { sentence: `"${email}" is not an e-mail address`, fix: 'give one like ops@example.com' });
  }
  const password = generatePassword();
  const user = { id: newId(), email, first_name: firstName, last_name: lastName };
  const passwordHash = await hashPassword(password);
  try {
    return await knex.transaction(async (trx) => {
      await trx('users').insert({ ...user, password_hash: passwordHash, is_instance_admin: true });
      const { id, name } = await insertOrganisation(trx, { name: 'Default Organisation', userId: user.id });
      const apiKey = await insertApiKey(trx, { type: 'personal', name: 'Default Key', organisationId: id, userId: user.id });
      return {
        user,
        password,
        organisation: { id, name },
        api_key: { id: apiKey.id, name: apiKey.name, type: 'personal', key: apiKey.key },
      };
    });
  } catch (error) {
    if (sqlState(error) === UNIQUE_VIOLATION) throw new GatewayError('email_in_use', { email }, { cause: error });
    throw error;
  }
}

export interface OrganisationRow {
  readonly id: string;
  readonly name: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const COLUMNS = ['organisations.id', 'organisations.name', 'organisations.created_at', 'organisations.updated_at'];

/** Creates an organisation with the user as its admin, in two statements: pass a transaction to make it all or nothing. */
export async function insertOrganisation(knex: Knex, { name, userId }: { name: string; userId: string }): Promise<OrganisationRow> {
  const [row] = await knex<OrganisationRow>('organisations')
    .insert({ id: newId(), name })
    .returning(['id', 'name', 'created_at', 'updated_at']);
  await knex('organisation_members').insert({ organisation_id: row!.id, user_id: userId, role: 'admin' });
  return row!;
}

/** Returns the organisations of which the user is a member in any role, oldest first; an empty list when there are none. */
export function organisationsOfUser(knex: Knex, userId: string): Promise<OrganisationRow[]> {
  return knex('organisations')
    .join('organisation_members', 'organisation_members.organisation_id', 'organisations.id')
    .where('organisation_members.user_id', userId)
    .orderBy('organisations.id')
    .select<OrganisationRow[]>(COLUMNS);
}

/** Returns every organisation of the instance, oldest first. */
export function listOrganisations(knex: Knex): Promise<OrganisationRow[]> {
  return knex('organisations').orderBy('id').select<OrganisationRow[]>(COLUMNS);
}

/** `id` must be a UUID; Postgres rejects others. */
export async function organisationExists(knex: Knex, id: string): Promise<boolean> {
  return (await knex('organisations').where({ id }).first('id')) !== undefined;
}

// https://cheatsheetseries.owasp.org/cheatsheets/Password_Storage_Cheat_Sheet.html#scrypt: N 2^17, r 8, p 1 (128 MB for one hash).
const LOG_N = 17;
const R = 8;
const P = 1;
const KEY_BYTES = 32;

/** A password that nobody has to invent: 24 characters, 144 bits. */
export function generatePassword(): string {
  return randomBytes(18).toString('base64url');
}

/** `scrypt$<log2 N>$<r>$<p>$<salt>$<hash>`, the last two in base64url. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16);
  const hash = await derive(password, salt, { logN: LOG_N, r: R, p: P });
  return ['scrypt', LOG_N, R, P, salt.toString('base64url'), hash.toString('base64url')].join('$');
}

/** True when the password is the one that was hashed; false too for a stored text of another form. */
export async function verifyPassword(password: string, stored: string): Promise<boolean> {
  const parts = /^scrypt\$(\d{1,2})\$(\d{1,2})\$(\d{1,2})\$([\w-]+)\$([\w-]+)$/.exec(stored);
  if (!parts) return false;
  const expected = Buffer.from(parts[5]!, 'base64url');
  const given = await derive(password, Buffer.from(parts[4]!, 'base64url'), {
    logN: Number(parts[1]),
    r: Number(parts[2]),
    p: Number(parts[3]),
  });
  return given.length === expected.length && timingSafeEqual(given, expected);
}

function derive(password: string, salt: Buffer, { logN, r, p }: { logN: number; r: number; p: number }): Promise<Buffer> {
  const N = 2 ** logN;
  const options: ScryptOptions = { N, r, p, maxmem: 256 * N * r };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFKC'), salt, KEY_BYTES, options, (error, key) => (error ? reject(error) : resolve(key)));
  });
}
