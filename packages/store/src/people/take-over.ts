import type { Knex } from 'knex';
import { revokeSessions, revokeUserKeys } from '../config/api-keys.js';
import type { Identity } from './identities.js';
import { endPasswordResets, findPasswordReset } from './password-resets.js';

/** Revoked when the owner of an email address took over the account. */
export interface TakenOver {
  readonly had_password: boolean;
  readonly sessions: number;
  readonly api_keys: readonly string[];
  readonly identities: number;
  readonly invitations: number;
  readonly masks: readonly string[];
}

/**
 * For the person who has proven ownership of its email address. Undefined if that was proven
 * earlier. Until then, someone else may have created the account, because inviters also have the
 * invitation link; all its credentials and the invitations that it created are therefore revoked.
 * Locks the user's row.
 *
 * @param trx a transaction in which `proof`, the identity that proves ownership if one does,
 *   already belongs to the user
 */
export async function takeOver(
  trx: Knex,
  userId: string,
  proof?: Identity,
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
  const others = trx('user_identities').where({ user_id: userId });
  if (proof) void others.whereNot({ issuer: proof.issuer, subject: proof.subject });
  const identities = await others.delete();
  await endPasswordResets(trx, userId);
  const invitations = await trx('invitations')
    .where({ invited_by: userId, accepted_at: null, revoked_at: null })
    .update({ revoked_at: trx.fn.now() });
  return {
    had_password: user.password_hash !== '',
    sessions: keys.filter(({ type }) => type === 'session').length,
    api_keys: keys.filter(({ type }) => type === 'personal').map(({ name }) => name),
    identities,
    invitations,
    masks: keys.map(({ mask }) => mask),
  };
}

/**
 * Ends all of the user's links and sessions, and takes the account over if its address was
 * unproven: only the owner of the address receives a link, by email or from the operator. Undefined
 * if the link was used meanwhile.
 *
 * @param token of the link; undefined if the operator sets the password
 */
export async function resetPassword(
  trx: Knex,
  userId: string,
  passwordHash: string,
  token?: string,
): Promise<
  | { readonly taken: TakenOver | undefined; readonly sessions: number; readonly masks: string[] }
  | undefined
> {
  // Locked first, as in `takeOver`.
  await trx('users').where({ id: userId }).forUpdate().first('id');
  if (token !== undefined && !(await findPasswordReset(trx, token))) return undefined;
  const taken = await takeOver(trx, userId);
  await trx('users')
    .where({ id: userId })
    .update({ password_hash: passwordHash, updated_at: trx.fn.now() });
  await endPasswordResets(trx, userId);
  const masks = taken?.masks ?? (await revokeSessions(trx, userId));
  return { taken, sessions: taken?.sessions ?? masks.length, masks: [...masks] };
}
