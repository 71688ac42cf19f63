import type { Knex } from 'knex';
import { newApiKey } from '@gateway/core/crypto';
import { newId } from '@gateway/core/events';
import { readPage, type Page, type PageRequest } from '../pagination/page.js';
import { requireRoom } from './soft-deletes.js';

interface ApiKeyBase {
  readonly id: string;
  readonly organisation_id: string;
  readonly name: string;
  readonly mask: string;
  readonly created_at: Date;
  readonly expires_at: Date | null;
}

/** A personal key grants access to the projects of its user's organisations, a project key to its project. */
export type ApiKeyRow = ApiKeyBase &
  (
    | { readonly type: 'personal'; readonly user_id: string; readonly project_id: null }
    | { readonly type: 'project'; readonly user_id: null; readonly project_id: string }
  );

export interface StoredApiKey {
  readonly row: ApiKeyRow;
  readonly hash: Uint8Array;
  readonly revoked_at: Date | null;
}

const COLUMNS: readonly string[] = ['id', 'type', 'organisation_id', 'user_id', 'project_id', 'name', 'mask', 'created_at', 'expires_at'];

type NewApiKey = { readonly name: string; readonly organisationId: string; readonly expiresAt?: Date | null } & (
  { readonly type: 'personal'; readonly userId: string } | { readonly type: 'project'; readonly projectId: string }
);

/** Creates a key. Only its hash is stored; the result has the key itself. */
export async function insertApiKey(knex: Knex, it: NewApiKey): Promise<ApiKeyRow & { readonly key: string }> {
  const { key, mask, hash } = newApiKey();
  const rows: ApiKeyRow[] = await knex('api_keys')
    .insert({
      id: newId(),
      type: it.type,
      organisation_id: it.organisationId,
      user_id: it.type === 'personal' ? it.userId : null,
      project_id: it.type === 'project' ? it.projectId : null,
      name: it.name,
      expires_at: it.expiresAt ?? null,
      mask,
      hash,
    })
    .returning([...COLUMNS]);
  return { ...rows[0]!, key };
}

/** Returns the key with this mask, also when it has expired or was revoked, with its SHA-256 to compare; undefined when there is none. */
export async function findApiKey(knex: Knex, mask: string): Promise<StoredApiKey | undefined> {
  const found = await knex('api_keys')
    .where({ mask })
    .first<(ApiKeyRow & { hash: Uint8Array; revoked_at: Date | null }) | undefined>(...COLUMNS, 'hash', 'revoked_at');
  if (!found) return undefined;
  const { hash, revoked_at, ...row } = found;
  return { row, hash, revoked_at };
}

export type ListedApiKey = ApiKeyRow & { readonly revoked_at: Date | null };

/** Returns a page of the keys of a project by creation time, revoked and expired ones included. */
export function listProjectKeys(knex: Knex, projectId: string, page: PageRequest): Promise<Page<ListedApiKey>> {
  return readPage(page, async ({ order, after, limit }) => {
    const query = knex('api_keys').where({ project_id: projectId }).orderBy('id', order).limit(limit);
    if (after !== undefined) void query.where('id', order === 'asc' ? '>' : '<', after);
    return { rows: await query.select<ListedApiKey[]>(...COLUMNS, 'revoked_at') };
  });
}

/** Creates a key of a project. Throws a `GatewayError` when the project has `max` keys that are valid. Lock: the project's row. */
export function insertProjectKey(
  knex: Knex,
  key: Extract<NewApiKey, { type: 'project' }>,
  max: number,
): Promise<ApiKeyRow & { readonly key: string }> {
  return knex.transaction(async (trx) => {
    const valid = trx('api_keys').where({ project_id: key.projectId, revoked_at: null }).whereRaw('coalesce(expires_at > now(), true)');
    await requireRoom(trx, key.projectId, valid, { things: 'API keys', max, setting: 'limits.api_keys_per_project' });
    return insertApiKey(trx, key);
  });
}

/** Revokes a key of the project; undefined when there is no such key. One that is revoked already stays as it is. */
export async function revokeProjectKey(knex: Knex, projectId: string, id: string): Promise<ListedApiKey | undefined> {
  const rows: ListedApiKey[] = await knex('api_keys')
    .where({ project_id: projectId, id })
    .update({ revoked_at: knex.raw('coalesce(revoked_at, now())') })
    .returning([...COLUMNS, 'revoked_at']);
  return rows[0];
}

/** Returns the masks of all project keys, revoked ones included. Personal keys are not among them. */
export function masksOfProject(knex: Knex, projectId: string): Promise<string[]> {
  return knex('api_keys').where({ project_id: projectId }).pluck<string[]>('mask');
}

/** Revokes the keys of the project that are not revoked yet. Personal keys are unchanged. */
export async function revokeProjectKeys(knex: Knex, projectId: string): Promise<void> {
  await knex('api_keys').where({ project_id: projectId }).whereNull('revoked_at').update({ revoked_at: knex.fn.now() });
}
