import type { Knex } from 'knex';
import { matchesApiKey, newApiKey, maskOfApiKey } from '@gateway/core/crypto';
import { newId } from '@gateway/core/events';
import type { Role } from '../config/api-keys.js';
import { countOf } from '../config/soft-deletes.js';
import { SAME_EMAIL } from './users.js';
import { readRows, type PageRequest, type PageResult } from '../pagination/page.js';

export interface InvitationRow {
  readonly id: string;
  readonly organisation_id: string;
  readonly email: string;
  readonly role: Role;
  readonly created_at: Date;
  readonly expires_at: Date;
  readonly accepted_at: Date | null;
  readonly revoked_at: Date | null;
}

const COLUMNS = 'id organisation_id email role created_at expires_at accepted_at revoked_at'.split(
  ' ',
);

/** With the token, of which only the hash is stored. */
export async function insertInvitation(
  knex: Knex,
  it: {
    readonly organisationId: string;
    readonly email: string;
    readonly role: Role;
    readonly invitedBy: string | null;
    readonly expiresAt: Date;
  },
): Promise<InvitationRow & { readonly token: string }> {
  const { key, mask, hash } = newApiKey();
  const rows: InvitationRow[] = await knex('invitations')
    .insert({
      organisation_id: it.organisationId,
      id: newId(),
      email: it.email,
      role: it.role,
      invited_by: it.invitedBy,
      expires_at: it.expiresAt,
      mask,
      hash,
    })
    .returning(COLUMNS);
  return { ...rows[0]!, token: key };
}

/** By creation time, including accepted, expired and revoked ones. */
export function listInvitations(
  knex: Knex,
  organisationId: string,
  page: PageRequest,
): Promise<PageResult<InvitationRow>> {
  return readRows(knex('invitations').where({ organisation_id: organisationId }), COLUMNS, page);
}

export function countOpenInvitations(knex: Knex, organisationId: string): Promise<number> {
  const open = { organisation_id: organisationId, accepted_at: null, revoked_at: null };
  return countOf(knex('invitations').where(open).whereRaw('expires_at > now()'));
}

/** Undefined if the invitation was accepted or does not exist. */
export async function revokeInvitation(
  knex: Knex,
  organisationId: string,
  id: string,
): Promise<InvitationRow | undefined> {
  const rows: InvitationRow[] = await knex('invitations')
    .where({ organisation_id: organisationId, id, accepted_at: null })
    .update({ revoked_at: knex.raw('coalesce(revoked_at, now())') })
    .returning(COLUMNS);
  return rows[0];
}

/** In a transaction, locks the invitation's row. */
export async function findOpenInvitation(
  knex: Knex,
  token: string,
): Promise<InvitationRow | undefined> {
  const mask = maskOfApiKey(token);
  if (mask === undefined) return undefined;
  const found = await knex('invitations')
    .where({ mask, accepted_at: null, revoked_at: null })
    .whereRaw('expires_at > now()')
    .forUpdate()
    .first<(InvitationRow & { hash: Uint8Array }) | undefined>(...COLUMNS, 'hash');
  if (!found || !matchesApiKey(token, found.hash)) return undefined;
  const { hash: _, ...row } = found;
  return row;
}

/** Open ones, ignoring case. In a transaction, locks their rows in id order. */
export function findInvitationsTo(knex: Knex, email: string): Promise<InvitationRow[]> {
  return knex('invitations')
    .where({ accepted_at: null, revoked_at: null })
    .whereRaw(`${SAME_EMAIL} and expires_at > now()`, [email])
    .orderBy('id')
    .forUpdate()
    .select<InvitationRow[]>(COLUMNS);
}

export async function markAccepted(
  knex: Knex,
  { organisation_id, id }: InvitationRow,
): Promise<void> {
  await knex('invitations').where({ organisation_id, id }).update({ accepted_at: knex.fn.now() });
}
