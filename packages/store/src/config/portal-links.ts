import type { Knex } from 'knex';
import type pg from 'pg';
import { newApiKey } from '@gateway/core/crypto';
import { KEY_COLUMNS, type ListedApiKey, type PortalKey } from './api-keys.js';

export type PortalLinkRow = PortalKey & Pick<ListedApiKey, 'revoked_at'>;

export interface PortalLinkFields {
  readonly name?: string;
  readonly role?: PortalKey['role'];
}

const links = (knex: Knex, projectId: string, id: string) =>
  knex('api_keys').where({ type: 'portal', project_id: projectId, id });
const RETURNED = [...KEY_COLUMNS, 'revoked_at'];

/** Returns the link, even if revoked or expired. */
export async function findPortalLink(
  knex: Knex,
  projectId: string,
  id: string,
): Promise<PortalLinkRow | undefined> {
  return links(knex, projectId, id).first<PortalLinkRow | undefined>(...RETURNED);
}

/** Changes the given fields. */
export async function updatePortalLink(
  knex: Knex,
  projectId: string,
  id: string,
  fields: PortalLinkFields,
): Promise<PortalLinkRow | undefined> {
  if (Object.keys(fields).length === 0) return findPortalLink(knex, projectId, id);
  const rows: PortalLinkRow[] = await links(knex, projectId, id).update(fields).returning(RETURNED);
  return rows[0];
}

/** Replaces a link's token; undefined if it is missing or revoked. Lock: its row. */
export function refreshPortalLink(
  knex: Knex,
  projectId: string,
  id: string,
  expiresAt: Date,
): Promise<
  { readonly row: PortalLinkRow; readonly key: string; readonly oldMask: string } | undefined
> {
  return knex.transaction(async (trx) => {
    const old = await links(trx, projectId, id)
      .whereNull('revoked_at')
      .forUpdate()
      .first<{ mask: string } | undefined>('mask');
    if (!old) return undefined;
    const { key, mask, hash } = newApiKey();
    const rows: PortalLinkRow[] = await links(trx, projectId, id)
      .update({ mask, hash, expires_at: expiresAt })
      .returning(RETURNED);
    return { row: rows[0]!, key, oldMask: old.mask };
  });
}

/** Deletes links that ended more than a week ago. */
export async function deleteEndedPortalLinks(pool: pg.Pool): Promise<void> {
  await pool.query(
    `delete from api_keys where type = 'portal' and least(expires_at, revoked_at) < now() - interval '7 days'`,
  );
}
