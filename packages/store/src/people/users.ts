import type { Knex } from 'knex';
import { GatewayError } from '@gateway/core/errors';
import { newId } from '@gateway/core/events';
import { insertApiKey } from '../config/api-keys.js';
import { hasTable } from '../postgres/connection.js';
import type { Database } from '../postgres/database.js';
import { sqlState, UNIQUE_VIOLATION } from '../postgres/sqlstate.js';
import { insertOrganisation } from './organisations.js';
import { generatePassword, hashPassword, verifyPassword } from './passwords.js';

export interface UserRow {
  readonly id: string;
  readonly email: string;
  readonly first_name: string;
  readonly last_name: string;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/**
 * Printable ASCII excludes lookalikes and needs no Unicode case rules. Addresses are compared by
 * `lower(… collate "C")`, because in a Turkish database `lower('I')` is not `i`.
 */
const EMAIL = /^[!-?A-~]+@[!-?A-~]+$/;
const EMAIL_MAX = 320;
export const SAME_EMAIL = 'lower(email collate "C") = lower(? collate "C")';
export const USER = ['id', 'email', 'first_name', 'last_name', 'created_at', 'updated_at'];

export function isEmail(text: string): boolean {
  return EMAIL.test(text) && text.length <= EMAIL_MAX;
}

/**
 * With an organisation and a personal API key, all or nothing.
 * @throws GatewayError `email_in_use`; `wrong_use` for an invalid address
 */
export async function bootstrapUser(
  knex: Knex,
  { email, firstName, lastName }: { email: string; firstName: string; lastName: string },
) {
  if (!isEmail(email))
    throw new GatewayError('wrong_use', {
      sentence: `"${email}" is not an email address`,
      fix: 'give one like ops@example.com',
    });
  const password = generatePassword();
  const passwordHash = await hashPassword(password);
  return knex.transaction(async (trx) => {
    const { id, first_name, last_name } = await insertUser(trx, {
      email,
      first_name: firstName,
      last_name: lastName,
      passwordHash,
      isInstanceAdmin: true,
      isProven: true,
    });
    const organisation = await insertOrganisation(trx, {
      name: 'Default Organisation',
      userId: id,
    });
    const apiKey = await insertApiKey(trx, { type: 'personal', name: 'Default Key', userId: id });
    return {
      user: { id, email, first_name, last_name },
      password,
      organisation: { id: organisation.id, name: organisation.name },
      api_key: { id: apiKey.id, name: apiKey.name, type: 'personal', key: apiKey.key },
    } as const;
  });
}

/** Only the hashes of password and key are stored. */
export type BootstrappedUser = Awaited<ReturnType<typeof bootstrapUser>>;

/**
 * An empty `passwordHash` disables the password. `isProven`: the address is known to belong to the
 * user.
 * @throws GatewayError `email_in_use`, which aborts a surrounding transaction
 */
export async function insertUser(
  knex: Knex,
  {
    passwordHash,
    isInstanceAdmin: is_instance_admin = false,
    isProven = false,
    ...fields
  }: Pick<UserRow, 'email' | 'first_name' | 'last_name'> & {
    readonly passwordHash: string;
    readonly isInstanceAdmin?: boolean;
    readonly isProven?: boolean;
  },
): Promise<UserRow> {
  try {
    const rows: UserRow[] = await knex('users')
      .insert({
        id: newId(),
        ...fields,
        password_hash: passwordHash,
        is_instance_admin,
        email_verified_at: isProven ? knex.fn.now() : null,
      })
      .returning(USER);
    return rows[0]!;
  } catch (error) {
    if (sqlState(error) === UNIQUE_VIOLATION)
      throw new GatewayError('email_in_use', { email: fields.email }, { cause: error });
    throw error;
  }
}

export function findUser(knex: Knex, id: string): Promise<UserRow | undefined> {
  return knex('users').where({ id }).first<UserRow | undefined>(USER);
}

/** False before the first migration. */
export async function isUsed({ pool }: Database): Promise<boolean> {
  if (!(await hasTable(pool, 'projects'))) return false;
  const { rows } = await pool.query<{ used: boolean }>(
    'select exists (select from users) or exists (select from projects) as used',
  );
  return rows[0]!.used;
}

/** Ignores case. */
export function findUserByEmail(knex: Knex, email: string): Promise<UserRow | undefined> {
  return knex('users').whereRaw(SAME_EMAIL, [email]).first<UserRow | undefined>(USER);
}

/** Takes as long for an unknown address as for a wrong password. */
export async function findUserByPassword(
  knex: Knex,
  email: string,
  password: string,
): Promise<{ readonly user: UserRow; readonly passwordHash: string } | undefined> {
  const found = await knex('users')
    .whereRaw(SAME_EMAIL, [email])
    .first<(UserRow & { password_hash: string }) | undefined>(...USER, 'password_hash');
  unknownHash ??= hashPassword(generatePassword());
  const hash = found && found.password_hash !== '' ? found.password_hash : await unknownHash;
  if (!(await verifyPassword(password, hash)) || !found) return undefined;
  const { password_hash: passwordHash, ...user } = found;
  return { user, passwordHash };
}
let unknownHash: Promise<string> | undefined;

/**
 * Still the hash against which a password was verified. Locks the user's row, so that the password
 * cannot change until the transaction ends.
 */
export async function hasPassword(trx: Knex, id: string, passwordHash: string): Promise<boolean> {
  const found = await trx('users')
    .where({ id, password_hash: passwordHash })
    .forShare()
    .first<{ id: string } | undefined>('id');
  return found !== undefined;
}

/** False if it has changed since a password was verified against `before`. */
export async function changePassword(
  knex: Knex,
  id: string,
  before: string,
  after: string,
): Promise<boolean> {
  return (
    (await knex('users')
      .where({ id, password_hash: before })
      .update({ password_hash: after, updated_at: knex.fn.now() })) > 0
  );
}

export async function updateUser(
  knex: Knex,
  id: string,
  fields: Partial<Pick<UserRow, 'first_name' | 'last_name'>>,
): Promise<UserRow | undefined> {
  const rows: UserRow[] = await knex('users')
    .where({ id })
    .update({ ...fields, updated_at: knex.fn.now() })
    .returning(USER);
  return rows[0];
}

/** Has access to the instance's settings, plugins, licence and health. */
export async function isInstanceAdmin(knex: Knex, userId: string): Promise<boolean> {
  return (
    (await knex('users')
      .where({ id: userId, is_instance_admin: true })
      .first<{ id: string } | undefined>('id')) !== undefined
  );
}
