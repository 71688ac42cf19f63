import type { Knex } from 'knex';
import type pg from 'pg';
import { newApiKey } from '@gateway/core/crypto';
import { newId } from '@gateway/core/events';
import { readRows, type PageRequest, type PageResult } from '../pagination/page.js';
import type { Querier } from '../postgres/connection.js';
import { countOf, requireRoom } from './soft-deletes.js';

export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const;
/** Each role includes the rights of those before it. */
export type Role = (typeof ROLES)[number];

interface ApiKeyBase {
  readonly id: string;
  readonly name: string;
  readonly mask: string;
  /**
   * Null for a user's key, which has the user's role, and for a project key, an admin of its
   * project.
   */
  readonly role: Role | null;
  /** Such as `events:write`. Null, as for sessions and portal links, for no further limit. */
  readonly scopes: readonly string[] | null;
  readonly created_at: Date;
  readonly expires_at: Date | null;
  readonly last_used_at: Date | null;
}

/**
 * For programs or, in a cookie, of a session. Grants access to all projects in the user's
 * organisations.
 */
export type UserKey = ApiKeyBase & {
  readonly type: 'personal' | 'session';
  readonly user_id: string;
  readonly project_id: null;
};
export type ProjectKey = ApiKeyBase & {
  readonly type: 'project';
  readonly user_id: null;
  readonly project_id: string;
};
export type PortalKey = Omit<ApiKeyBase, 'role' | 'expires_at'> & {
  readonly type: 'portal';
  /** `member` may manage endpoints; `viewer` may only read them. */
  readonly role: 'viewer' | 'member';
  readonly expires_at: Date;
  readonly user_id: null;
  readonly project_id: string;
  readonly owner_id: string;
};
export type ApiKeyRow = UserKey | ProjectKey | PortalKey;

interface Revocable {
  readonly revoked_at: Date | null;
}
export type ListedApiKey = ApiKeyRow & Revocable;
export type PortalLinkRow = PortalKey & Revocable;

export interface StoredApiKey extends Revocable {
  readonly row: ApiKeyRow;
  readonly hash: Uint8Array;
}

const COLUMNS =
  'id type user_id project_id owner_id name mask role scopes created_at expires_at last_used_at'.split(
    ' ',
  );
const LISTED = [...COLUMNS, 'revoked_at'];

type NewApiKey = {
  readonly name: string;
  readonly role?: Role | null;
  readonly scopes?: readonly string[] | null;
  readonly expiresAt?: Date | null;
} & (
  | { readonly type: 'personal' | 'session'; readonly userId: string }
  | { readonly type: 'project'; readonly organisationId: string; readonly projectId: string }
  | {
      readonly type: 'portal';
      readonly organisationId: string;
      readonly projectId: string;
      readonly ownerId: string;
      readonly role: 'viewer' | 'member';
      readonly expiresAt: Date;
    }
);

/** With the key, of which only the hash is stored. */
export async function insertApiKey(
  knex: Knex,
  it: NewApiKey,
): Promise<ApiKeyRow & { readonly key: string }> {
  const { key, mask, hash } = newApiKey();
  const rows: ApiKeyRow[] = await knex('api_keys')
    .insert({
      id: newId(),
      type: it.type,
      organisation_id: 'organisationId' in it ? it.organisationId : null,
      user_id: 'userId' in it ? it.userId : null,
      project_id: 'projectId' in it ? it.projectId : null,
      owner_id: 'ownerId' in it ? it.ownerId : null,
      name: it.name,
      role: it.role ?? null,
      scopes: it.scopes ?? null,
      expires_at: it.expiresAt ?? null,
      mask,
      hash,
    })
    .returning(COLUMNS);
  return { ...rows[0]!, key };
}

export async function findApiKey(knex: Knex, mask: string): Promise<StoredApiKey | undefined> {
  const found = await knex('api_keys')
    .where({ mask })
    .first<(ListedApiKey & { hash: Uint8Array }) | undefined>(...LISTED, 'hash');
  if (!found) return undefined;
  const { hash, revoked_at, ...row } = found;
  return { row, hash, revoked_at };
}

export type KeysOf =
  | { readonly type: 'personal' | 'session'; readonly user_id: string }
  | { readonly type: 'project'; readonly project_id: string }
  | { readonly type: 'portal'; readonly project_id: string; readonly owner_id?: string };

type KeyOf<Of extends KeysOf> = Of extends { readonly type: 'portal' }
  ? PortalLinkRow
  : ListedApiKey;

/** By creation time, including revoked and expired keys. */
export function listApiKeys<Of extends KeysOf>(
  knex: Knex,
  of: Of,
  page: PageRequest,
): Promise<PageResult<KeyOf<Of>>> {
  return readRows(knex('api_keys').where(of), LISTED, page);
}

/**
 * Locks the project's row.
 * @throws GatewayError `project_full` if the project has `full.max` valid keys of this type
 */
export function insertProjectKey(
  knex: Knex,
  key: Extract<NewApiKey, { projectId: string }>,
  full: { readonly things: string; readonly max: number; readonly setting: string },
): Promise<ApiKeyRow & { readonly key: string }> {
  return knex.transaction(async (trx) => {
    await requireRoom(
      trx,
      key.projectId,
      validKeys(trx, { type: key.type, project_id: key.projectId }),
      full,
    );
    return insertApiKey(trx, key);
  });
}

export function countValidKeys(knex: Knex, of: KeysOf): Promise<number> {
  return countOf(validKeys(knex, of));
}

function validKeys(knex: Knex, of: KeysOf): Knex.QueryBuilder {
  return knex('api_keys')
    .where({ ...of, revoked_at: null })
    .where((valid) => void valid.where('expires_at', '>', knex.fn.now()).orWhereNull('expires_at'));
}

export async function findApiKeyById<Of extends KeysOf>(
  knex: Knex,
  of: Of,
  id: string,
): Promise<KeyOf<Of> | undefined> {
  const row: unknown = await knex('api_keys')
    .where({ ...of, id })
    .first(...LISTED);
  return row as KeyOf<Of> | undefined;
}

export async function updateApiKey<Of extends KeysOf>(
  knex: Knex,
  of: Of,
  id: string,
  fields: Partial<Pick<KeyOf<Of>, 'name' | 'role' | 'scopes'>>,
): Promise<KeyOf<Of> | undefined> {
  if (Object.keys(fields).length === 0) return findApiKeyById(knex, of, id);
  return changed(knex, of, id, fields);
}

/** Revoking a key again has no effect. */
export function revokeApiKey<Of extends KeysOf>(
  knex: Knex,
  of: Of,
  id: string,
): Promise<KeyOf<Of> | undefined> {
  return changed(knex, of, id, { revoked_at: knex.raw('coalesce(revoked_at, now())') });
}

async function changed<Of extends KeysOf>(
  knex: Knex,
  of: Of,
  id: string,
  columns: object,
): Promise<KeyOf<Of> | undefined> {
  const rows = await knex('api_keys')
    .where({ ...of, id })
    .update(columns)
    .returning(LISTED);
  return rows[0] as KeyOf<Of> | undefined;
}

/** Undefined if it is missing or revoked. Locks its row. */
export function refreshPortalLink(
  knex: Knex,
  projectId: string,
  id: string,
  expiresAt: Date,
): Promise<
  { readonly row: PortalLinkRow; readonly key: string; readonly oldMask: string } | undefined
> {
  const of = { type: 'portal', project_id: projectId } as const;
  return knex.transaction(async (trx) => {
    const old = await trx('api_keys')
      .where({ ...of, id, revoked_at: null })
      .forUpdate()
      .first<{ mask: string } | undefined>('mask');
    if (!old) return undefined;
    const { key, mask, hash } = newApiKey();
    const row = await changed(trx, of, id, { mask, hash, expires_at: expiresAt });
    return { row: row!, key, oldMask: old.mask };
  });
}

/**
 * Undefined if the key `by`, which authorises it, has been revoked. Locks the user's row, so that a
 * concurrent revocation of all credentials covers the new key too.
 */
export function insertUserKey(
  knex: Knex,
  by: string,
  key: Extract<NewApiKey, { userId: string }>,
): Promise<(ApiKeyRow & { readonly key: string }) | undefined> {
  return knex.transaction(async (trx) => {
    await trx('users').where({ id: key.userId }).forShare().first('id');
    const maker = await trx('api_keys')
      .where({ id: by, revoked_at: null })
      .first<{ id: string } | undefined>('id');
    return maker && insertApiKey(trx, key);
  });
}

export async function revokeUserKeys(
  knex: Knex,
  userId: string,
): Promise<Pick<ListedApiKey, 'type' | 'name' | 'mask'>[]> {
  return knex('api_keys')
    .where({ user_id: userId, revoked_at: null })
    .update({ revoked_at: knex.fn.now() })
    .returning(['type', 'name', 'mask']);
}

/** The masks of those that it revoked. */
export async function revokeSessions(
  knex: Knex,
  userId: string,
  exceptId?: string,
): Promise<string[]> {
  const query = knex('api_keys').where({ type: 'session', user_id: userId, revoked_at: null });
  if (exceptId !== undefined) void query.whereNot({ id: exceptId });
  const rows: { mask: string }[] = await query
    .update({ revoked_at: knex.fn.now() })
    .returning('mask');
  return rows.map(({ mask }) => mask);
}

/** A later stored time is kept. */
export async function recordKeyUse(pool: pg.Pool, used: ReadonlyMap<string, Date>): Promise<void> {
  await pool.query(
    `update api_keys k set last_used_at = u.at from unnest($1::uuid[], $2::timestamptz[]) u(id, at)
      where k.id = u.id and coalesce(k.last_used_at < u.at, true)`,
    [[...used.keys()], [...used.values()]],
  );
}

/** Sessions one day, and portal links one week, after they expire or are revoked. */
export async function deleteEndedKeys(pool: Querier): Promise<void> {
  for (const [type, age] of [
    ['session', '1 day'],
    ['portal', '7 days'],
  ])
    await pool.query(
      `delete from api_keys where type = '${type}' and least(expires_at, revoked_at) < now() - interval '${age}'`,
    );
}

export function masksOfProject(knex: Knex, projectId: string): Promise<string[]> {
  return knex('api_keys').where({ project_id: projectId }).pluck<string[]>('mask');
}

export async function revokeProjectKeys(knex: Knex, projectId: string): Promise<void> {
  await knex('api_keys')
    .where({ project_id: projectId })
    .whereNull('revoked_at')
    .update({ revoked_at: knex.fn.now() });
}
