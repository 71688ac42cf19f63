import { GatewayError } from '@gateway/core/errors';
import { clip, plainOf } from '@gateway/core/json';
import { insertApiKey, ROLES, type Role } from '@gateway/store/config';
import {
  hasPassword,
  insertAuditEntries,
  isInstanceAdmin,
  type Membership,
  organisationsOfUser,
  type TakenOver,
  type UserRow,
} from '@gateway/store/people';
import type { Database } from '@gateway/store/postgres';
import {
  boolean,
  described,
  Id,
  namedObject,
  object,
  oneOf,
  string,
  stringify,
  Timestamp,
  Type,
  withUid,
  type OpenCall,
} from '../../api/vocabulary.js';
import { User } from './users.js';

/** Whether or not the session is used. */
const SESSION_MS = 12 * 3_600_000;
const NAME_MAX = 200;

export const Session = namedObject('Session', {
  user: User,
  organisations: Type.Array(
    object({
      uid: Id,
      name: string(),
      role: oneOf(ROLES),
      created_at: Timestamp,
      updated_at: Timestamp,
    }),
  ),
  is_instance_admin: boolean(
    'Whether the user can see the settings, plugins and health of the instance.',
  ),
  key_id: described(Id, 'The session or API key of the request.'),
  csrf_token: string(
    'Send this in the header `x-csrf-token` of every request of the session except GET.',
  ),
  expires_at: Timestamp,
});

export interface SignedIn {
  readonly method: 'password' | 'invitation' | 'oidc';
  /** The given password was verified against it; undefined if no password was needed. */
  readonly passwordHash?: string;
  readonly joined?: readonly { readonly organisation_id: string; readonly role: Role }[];
}

/**
 * Throws `forbidden` if `server.auth.native` is off: sessions are API keys in the database, which
 * are then not accepted.
 */
export function requireNative({ auth }: OpenCall): void {
  if (!auth.credentials.native)
    throw new GatewayError('forbidden', {
      reason: 'this process does not accept logins: server.auth.native is off',
    });
}

/**
 * One transaction with its audit log entries. Throws `login_failed` if the verified password is no
 * longer the user's, and `forbidden` if the user is a member of no organisation.
 */
export async function startSession(
  call: OpenCall,
  user: UserRow,
  { method, passwordHash, joined = [] }: SignedIn,
) {
  const { database, auth, request, headers } = call;
  const organisations = await organisationsOfUser(database.knex, user.id);
  const [organisation] = organisations;
  if (!organisation)
    throw new GatewayError('forbidden', {
      reason: `${user.email} is not a member of any organisation`,
    });
  const expiresAt = new Date(Date.now() + SESSION_MS);
  const name = clip(plainOf(headers['user-agent'] ?? 'unknown browser'), NAME_MAX, '');
  const key = await database.knex.transaction(async (trx) => {
    if (passwordHash !== undefined && !(await hasPassword(trx, user.id, passwordHash)))
      throw new GatewayError('login_failed');
    const row = await insertApiKey(trx, { type: 'session', name, userId: user.id, expiresAt });
    const entry = { action: 'auth.login', keyId: row.id, organisations };
    await auditSignIn(trx, call, user, entry, ({ id }) => {
      const role = joined.find((it) => it.organisation_id === id)?.role;
      return { method: { after: method }, ...(role && { role: { after: role } }) };
    });
    return row;
  });
  return {
    message: 'signed in',
    data: await sessionView(call, user, organisations, { ...key, expires_at: expiresAt }),
    headers: {
      'set-cookie': [
        auth.sessions.write(request, key.key, expiresAt),
        ...(method === 'oidc' ? [] : [auth.sessions.writeDevice(request, user.email)]),
      ],
    },
  };
}

/** For the audit log: the owner of the account's address has taken it over. */
export function takenOver({ masks: _, ...ended }: TakenOver): object {
  return { ended: { before: ended } };
}

/** One entry per organisation. */
export async function auditSignIn(
  trx: Database['knex'],
  { request, addressOf, requestId }: OpenCall,
  user: Pick<UserRow, 'id'>,
  {
    action,
    keyId,
    organisations,
  }: { action: string; keyId: string | null; organisations: readonly Membership[] },
  changesOf: (organisation: Membership) => object,
): Promise<void> {
  const entries = organisations.map((organisation) => ({
    organisation_id: organisation.id,
    project_id: null,
    actor_type: 'user' as const,
    actor_id: user.id,
    key_id: keyId,
    action,
    resource_id: user.id,
    changes: stringify(changesOf(organisation)),
    address: addressOf(request),
    request_id: requestId,
  }));
  await insertAuditEntries(trx, entries);
}

export async function sessionView(
  { database, auth }: OpenCall,
  user: UserRow,
  organisations: readonly Membership[],
  { id, mask, expires_at }: { id: string; mask: string; expires_at: Date | null },
) {
  return {
    user: withUid(user),
    organisations: organisations.map(withUid),
    is_instance_admin: await isInstanceAdmin(database.knex, user.id),
    key_id: id,
    csrf_token: auth.sessions.csrfToken(mask),
    expires_at: expires_at ?? new Date(Date.now() + SESSION_MS),
  };
}
