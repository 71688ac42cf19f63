import { Type } from '@sinclair/typebox';
import { GatewayError } from '@gateway/core/errors';
import { insertApiKey, revokeApiKey, ROLES } from '@gateway/store/config';
import {
  findOpenInvitation,
  findUser,
  findUserByEmail,
  findUserByPassword,
  hashPassword,
  insertMember,
  insertUser,
  isInstanceAdmin,
  markAccepted,
  type Membership,
  organisationsOfUser,
  type UserRow,
} from '@gateway/store/people';
import { accountRoute, found, openRoute, withUid, type OpenCall, type Route } from '../../api/route.js';
import { Id, named, object, oneOf, Timestamp } from '../../http/schema.js';
import { Password, PersonName, withPasswordTurn } from './password.js';
import { User, userOf } from './users.js';

/** A session ends after this time, used or not. */
const SESSION_MS = 12 * 3_600_000;
const NAME_MAX = 200;

const Session = named(
  'Session',
  object({
    user: User,
    organisations: Type.Array(object({ uid: Id, name: Type.String(), role: oneOf(ROLES), created_at: Timestamp, updated_at: Timestamp })),
    is_instance_admin: Type.Boolean({ description: 'Whether the user may see the settings, plugins and health of the instance.' }),
    csrf_token: Type.String({ description: 'Requests of the session that are no GET carry it in the header `x-csrf-token`.' }),
    expires_at: Timestamp,
  }),
);

export const authRoutes: readonly Route[] = [
  openRoute(
    'POST /auth/login',
    'Signs in with email address and password: sets the cookie of a session.',
    { body: named('Login', object({ email: Type.String({ maxLength: 320 }), password: Type.String({ maxLength: 1024 }) })), data: Session },
    async (call) => {
      const { body, database, logins, request } = call;
      const { email, password } = body;
      requireNative(call);
      const account = { kind: 'password', name: email.toLowerCase(), credential: `${email}\n${password}` } as const;
      const user = await logins(request, account, () => withPasswordTurn(() => findUserByPassword(database.knex, email, password)));
      if (!user) throw new GatewayError('login_failed');
      return startSession(call, user);
    },
  ),
  accountRoute(
    'GET /auth/session',
    'Shows the session: its user, organisations and CSRF token.',
    { data: Session, name: 'session' },
    async (call) => {
      const caller = userOf(call);
      const user = found(await findUser(call.database.knex, caller.user_id), 'user', caller.user_id);
      return { message: 'session', data: await view(call, user, await organisationsOfUser(call.database.knex, user.id), caller) };
    },
  ),
  accountRoute('POST /auth/logout', 'Ends the session.', { name: 'logout', role: 'viewer', isAudited: false }, async (call) => {
    const { database, records, sessions, request } = call;
    const { type, user_id, id, mask } = userOf(call);
    if (type === 'session') {
      await revokeApiKey(database.knex, { type, user_id }, id);
      await records.forget({ masks: [mask] });
    }
    return { message: 'signed out', data: null, headers: { 'set-cookie': sessions.write(request) } };
  }),
  openRoute(
    'POST /auth/accept-invitation',
    'Accepts an invitation by its token and signs in. A person without an account gets one with this name and password; others give their password.',
    {
      body: named(
        'AcceptedInvitation',
        object({
          token: Type.String({ maxLength: 200 }),
          password: Password,
          first_name: Type.Optional(PersonName),
          last_name: Type.Optional(PersonName),
        }),
      ),
      data: Session,
      name: 'acceptInvitation',
    },
    async (call) => {
      const { body, database, logins, request, records } = call;
      requireNative(call);
      const account = { kind: 'invitation', name: '', credential: body.token } as const;
      const invitation = await logins(request, account, () => findOpenInvitation(database.knex, body.token));
      if (!invitation) throw new GatewayError('invitation_invalid');
      const { email, organisation_id: organisationId, role } = invitation;
      const known = await findUserByEmail(database.knex, email);
      const login = { kind: 'password', name: email, credential: `${email}\n${body.password}` } as const;
      if (known && !(await logins(request, login, () => withPasswordTurn(() => findUserByPassword(database.knex, email, body.password)))))
        throw new GatewayError('login_failed');
      const passwordHash = known ? '' : await withPasswordTurn(() => hashPassword(body.password));
      const user = await database.knex.transaction(async (trx) => {
        // Locked and looked at again: of two acceptances at once the second finds it accepted.
        if (!(await findOpenInvitation(trx, body.token))) throw new GatewayError('invitation_invalid');
        const { first_name = '', last_name = '' } = body;
        const row = known ?? (await insertUser(trx, { email, first_name, last_name, passwordHash }));
        await insertMember(trx, { organisationId, userId: row.id, role });
        await markAccepted(trx, invitation);
        return row;
      });
      await records.forget({ users: [user.id] });
      return startSession(call, user);
    },
  ),
];

/** Sessions are API keys of the database, which `server.auth.native` can turn off. */
function requireNative({ credentials }: OpenCall): void {
  if (!credentials.native)
    throw new GatewayError('forbidden', { reason: 'this process does not accept logins: server.auth.native is off' });
}

/** Creates a session of the user and sets its cookie. */
async function startSession(call: OpenCall, user: UserRow) {
  const { database, sessions, request, headers } = call;
  const organisations = await organisationsOfUser(database.knex, user.id);
  const [organisation] = organisations;
  if (!organisation) throw new GatewayError('forbidden', { reason: `${user.email} is a member of no organisation` });
  const expiresAt = new Date(Date.now() + SESSION_MS);
  const name = (headers['user-agent'] ?? 'unknown browser').slice(0, NAME_MAX);
  const key = await insertApiKey(database.knex, { type: 'session', name, organisationId: organisation.id, userId: user.id, expiresAt });
  return {
    message: 'signed in',
    data: await view(call, user, organisations, { mask: key.mask, expires_at: expiresAt }),
    headers: { 'set-cookie': sessions.write(request, key.key, expiresAt) },
  };
}

async function view(
  { database, sessions }: OpenCall,
  user: UserRow,
  organisations: readonly Membership[],
  { mask, expires_at }: { mask: string; expires_at: Date | null },
) {
  return {
    user: withUid(user),
    organisations: organisations.map(withUid),
    is_instance_admin: await isInstanceAdmin(database.knex, user.id),
    csrf_token: sessions.csrfToken(mask),
    expires_at: expires_at ?? new Date(Date.now() + SESSION_MS),
  };
}
