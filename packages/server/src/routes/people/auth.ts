import { GatewayError } from '@gateway/core/errors';
import { networkOf } from '@gateway/core/http';
import { revokeApiKey, ROLES } from '@gateway/store/config';
import {
  findOpenInvitation,
  findOrganisation,
  findPasswordReset,
  findUser,
  findUserByEmail,
  hasPassword,
  insertMember,
  insertUser,
  type InvitationRow,
  markAccepted,
  organisationsOfUser,
  requestPasswordReset,
  resetPassword,
} from '@gateway/store/people';
import {
  accountRoute,
  boolean,
  found,
  namedObject,
  nullable,
  object,
  oneOf,
  openRoute,
  optional,
  PersonName,
  string,
  Timestamp,
  Type,
  type OpenCall,
  type Route,
} from '../../api/vocabulary.js';
import { hashedPassword, Password, userByPassword } from './password.js';
import {
  auditSignIn,
  requireNative,
  Session,
  sessionView,
  startSession,
  takenOver,
} from './session.js';
import { userOf } from './users.js';

const Methods = namedObject('SignInMethods', {
  password: boolean('Whether users can sign in with email address and password.'),
  password_reset: boolean('Whether password reset links are sent by email.'),
  oidc: nullable(object({ label: string('Name of the OpenID Connect provider.') })),
});

const Token = Type.String({ maxLength: 200 });
const OpenInvitation = namedObject('OpenInvitation', {
  email: string(),
  role: oneOf(ROLES),
  organisation: string('Name of the organisation.'),
  expires_at: Timestamp,
});

export const authRoutes: readonly Route[] = [
  openRoute(
    'GET /auth/methods',
    'Lists the available sign-in methods.',
    { data: Methods, name: 'methods' },
    ({ config, auth }) => ({
      message: 'ways to sign in',
      data: {
        password: config.server.auth.passwords,
        password_reset: config.server.auth.passwords && mailsAreSent(config),
        oidc: auth.oidc ? { label: config.oidc.label } : null,
      },
    }),
  ),
  openRoute(
    'POST /auth/login',
    'Signs in with an email address and a password, and sets the session cookie.',
    {
      body: namedObject('Login', {
        email: Type.String({ maxLength: 320 }),
        password: Type.String({ maxLength: 1024 }),
      }),
      data: Session,
    },
    async (call) => {
      const { email, password } = call.body;
      requirePasswords(call);
      const verified = await userByPassword(call, email, password);
      if (!verified) throw new GatewayError('login_failed');
      const { user, passwordHash } = verified;
      return startSession(call, user, { method: 'password', passwordHash });
    },
  ),
  accountRoute(
    'GET /auth/session',
    'Shows the current session: its user, organisations and CSRF token.',
    { data: Session, name: 'session' },
    async (call) => {
      const caller = userOf(call);
      const user = found(
        await findUser(call.database.knex, caller.user_id),
        'user',
        caller.user_id,
      );
      const organisations = await organisationsOfUser(call.database.knex, user.id);
      return { message: 'session', data: await sessionView(call, user, organisations, caller) };
    },
  ),
  accountRoute(
    'POST /auth/logout',
    'Ends the current session.',
    { name: 'logout', role: 'viewer', isAudited: false },
    async (call) => {
      const { database, records, auth, request } = call;
      const { type, user_id, id, mask } = userOf(call);
      if (type === 'session') {
        await revokeApiKey(database.knex, { type, user_id }, id);
        await records.forget({ masks: [mask] });
      }
      return {
        message: 'signed out',
        data: null,
        headers: { 'set-cookie': auth.sessions.write(request) },
      };
    },
  ),
  openRoute(
    'POST /auth/invitation',
    'Shows the invitation that a token belongs to. The method is POST to keep the token out of URLs.',
    {
      body: namedObject('InvitationToken', { token: Token }),
      data: OpenInvitation,
      name: 'showInvitation',
    },
    async (call) => {
      const { knex } = call.database;
      const it = await openInvitation(call, call.body);
      const { email, role, organisation_id: id, expires_at } = it;
      const { name } = found(await findOrganisation(knex, id), 'organisation', id);
      return { message: 'invitation', data: { email, role, organisation: name, expires_at } };
    },
  ),
  openRoute(
    'POST /auth/accept-invitation',
    'Accepts an invitation and signs in. Creates an account with this name and password if there is none for the email address; otherwise `password` must be the password of the account.',
    {
      body: namedObject('AcceptedInvitation', {
        token: Token,
        password: Password,
        ...optional({ first_name: PersonName, last_name: PersonName }),
      }),
      data: Session,
      name: 'acceptInvitation',
    },
    async (call) => {
      const { body, database, records } = call;
      requirePasswords(call);
      const invitation = await openInvitation(call, body);
      const { email, organisation_id: organisationId, role } = invitation;
      const known = await findUserByEmail(database.knex, email);
      const verified = known && (await userByPassword(call, email, body.password));
      if (known && !verified) throw new GatewayError('login_failed');
      const passwordHash =
        verified?.passwordHash ?? (await hashedPassword(call, email, body.password));
      const user = await database.knex.transaction(async (trx) => {
        // Read again under a lock, so that the second of two concurrent acceptances fails.
        if (!(await findOpenInvitation(trx, body.token)))
          throw new GatewayError('invitation_invalid');
        const { first_name = '', last_name = '' } = body;
        if (known && !(await hasPassword(trx, known.id, passwordHash)))
          throw new GatewayError('login_failed');
        // The email address is not proven, because the invitation's creator has the token too.
        const row =
          known ?? (await insertUser(trx, { email, first_name, last_name, passwordHash }));
        await insertMember(trx, { organisationId, userId: row.id, role });
        await markAccepted(trx, invitation);
        return row;
      });
      await records.forget({ users: [user.id] });
      return startSession(call, user, { method: 'invitation', passwordHash, joined: [invitation] });
    },
  ),
  openRoute(
    'POST /auth/forgot-password',
    'Emails a link to reset the password if a user with this address has one. The response does not reveal whether an email was sent.',
    {
      body: namedObject('ForgottenPassword', { email: Type.String({ maxLength: 320 }) }),
      name: 'forgotPassword',
    },
    async (call) => {
      const { body, config, database, links, request, limits, addressOf } = call;
      requirePasswords(call);
      if (!mailsAreSent(config))
        throw new GatewayError('forbidden', {
          reason: 'this gateway cannot send email; ask its operator for a link',
        });
      await limits.resets({ id: `reset:${networkOf(addressOf(request))}` });
      const base = links.url(request.socket.localPort ?? config.server.http.port);
      await requestPasswordReset(database.pool, body.email, `${base}/#password-reset=`);
      return { message: 'if a user has this address, a link was sent', data: null };
    },
  ),
  openRoute(
    'POST /auth/reset-password',
    'Sets a new password with the token of a reset link, which works once, and ends all sessions of the user. If the email address was unproven until now, personal API keys and all else that was made for the account end too.',
    {
      body: namedObject('ResetPassword', { token: Token, password: Password }),
      name: 'resetPassword',
    },
    async (call) => {
      const { body, database, records, auth, request } = call;
      requirePasswords(call);
      const account = { kind: 'invitation', name: '', credential: body.token } as const;
      const user = await auth.logins.check(request, account, () =>
        findPasswordReset(database.knex, body.token),
      );
      if (!user) throw new GatewayError('reset_invalid');
      const hash = await hashedPassword(call, user.email, body.password);
      const { taken, masks } = await database.knex.transaction(async (trx) => {
        // Reads the link again under a lock, so that the second of two concurrent uses fails.
        const done = await resetPassword(trx, user.id, hash, body.token);
        if (!done) throw new GatewayError('reset_invalid');
        const organisations = await organisationsOfUser(trx, user.id);
        const entry = { action: 'auth.resetPassword', keyId: null, organisations };
        await auditSignIn(trx, call, user, entry, () => ({
          sessions_ended: { after: done.sessions },
          ...(done.taken && takenOver(done.taken)),
        }));
        return done;
      });
      await records.forget({ masks });
      const ended = taken ? 'sessions and API keys of the account' : 'sessions';
      return { message: `password changed; all ${ended} have ended`, data: null };
    },
  ),
];

function mailsAreSent({ smtp }: OpenCall['config']): boolean {
  return (smtp.url ?? smtp.provider) !== undefined && smtp.from !== undefined;
}

/** Throws `invitation_invalid`, or `too_many_logins` for a client that could be guessing. */
async function openInvitation(
  { database, auth, request }: OpenCall,
  { token }: { readonly token: string },
): Promise<InvitationRow> {
  const account = { kind: 'invitation', name: '', credential: token } as const;
  const invitation = await auth.logins.check(request, account, () =>
    findOpenInvitation(database.knex, token),
  );
  if (!invitation) throw new GatewayError('invitation_invalid');
  return invitation;
}

function requirePasswords(call: OpenCall): void {
  requireNative(call);
  if (!call.config.server.auth.passwords)
    throw new GatewayError('forbidden', {
      reason: `passwords are disabled: sign in with ${call.config.oidc.label}`,
    });
}
