import { GatewayError } from '@gateway/core/errors';
import {
  countValidKeys,
  findApiKeyById,
  insertUserKey,
  listApiKeys,
  revokeSessions,
  ROLES,
  type ApiKeyRow,
  type UserKey,
} from '@gateway/store/config';
import { changePassword, findUser, updateUser } from '@gateway/store/people';
import { personOf, requireScopesFor } from '../../auth/access.js';
import {
  accountItem,
  accountList,
  accountRoute,
  found,
  Id,
  invalid,
  namedObject,
  object,
  optional,
  pageQuery,
  PersonName,
  string,
  Timestamp,
  Type,
  type AccountCall,
  type Route,
} from '../../api/vocabulary.js';
import { changeKey, ChangedApiKey, expiryOf, key, keyView, NewApiKey } from './api-keys.js';
import { hashedPassword, Password, userByPassword } from './password.js';

export const User = namedObject('User', {
  uid: Id,
  email: string(),
  first_name: string(),
  last_name: string(),
  created_at: Timestamp,
  updated_at: Timestamp,
});
const PersonalKey = namedObject('PersonalKey', key);
const CreatedPersonalKey = namedObject('CreatedPersonalKey', {
  ...key,
  key: string('Only this response contains the key.'),
});
const KEYS_MAX = 50;

export const userRoutes: readonly Route[] = [
  accountItem(
    'GET /users/me',
    'Shows the authenticated user.',
    { thing: 'user', data: User, name: 'me' },
    (call) => findUser(call.database.knex, userOf(call).user_id),
  ),
  accountItem(
    'PUT /users/me',
    'Renames the authenticated user.',
    {
      thing: 'user',
      body: namedObject('ChangedUser', optional({ first_name: PersonName, last_name: PersonName })),
      data: User,
      name: 'updateMe',
    },
    (call) => updateUser(call.database.knex, userOf(call).user_id, call.body),
  ),
  accountRoute(
    'PUT /users/me/password',
    'Changes the password of the authenticated user, and ends all other sessions.',
    {
      body: namedObject('ChangedPassword', {
        current_password: Type.String({ maxLength: 1024 }),
        password: Password,
      }),
      name: 'changePassword',
    },
    async (call) => {
      const { database, records, body } = call;
      const caller = userOf(call);
      // A session started with the password has the user's role and no scope restrictions, so a
      // restricted key must not change the password.
      requireNoMore(caller, { role: null, scopes: null });
      const { email } = found(
        await findUser(database.knex, caller.user_id),
        'user',
        caller.user_id,
      );
      const verified = await userByPassword(call, email, body.current_password);
      const hash = verified && (await hashedPassword(call, email, body.password));
      if (
        !hash ||
        !(await changePassword(database.knex, caller.user_id, verified.passwordHash, hash))
      )
        throw invalid('current_password', 'is wrong');
      const masks = await revokeSessions(
        database.knex,
        caller.user_id,
        caller.type === 'session' ? caller.id : undefined,
      );
      await records.forget({ masks });
      return { message: 'password changed; other sessions have ended', data: null };
    },
  ),
  ...keyRoutes('personal', 'api-keys', 'ApiKey', 'personal API key'),
  accountRoute(
    'POST /users/me/api-keys',
    'Creates a personal API key. Only this response contains the key.',
    { body: NewApiKey, data: CreatedPersonalKey, status: 201, name: 'createApiKey' },
    async (call) => {
      const { database, body } = call;
      const user = userOf(call);
      if ((await countValidKeys(database.knex, keysOf(call, 'personal'))) >= KEYS_MAX)
        throw new GatewayError('conflict', {
          sentence: `the user has ${KEYS_MAX} personal API keys`,
          fix: 'revoke keys that are not needed',
        });
      const { role = null, scopes = null } = body;
      requireNoMore(user, { role, scopes });
      const fields = {
        type: 'personal',
        name: body.name,
        role,
        scopes,
        userId: user.user_id,
        expiresAt: expiryOf(body),
      } as const;
      const row = await insertUserKey(database.knex, user.id, fields);
      if (!row)
        throw new GatewayError('unauthorized', {
          reason: 'the credential of this request was revoked',
          fix: 'sign in again',
        });
      return {
        message: 'API key created; keep it, it is not shown again',
        data: { ...keyView({ ...row, revoked_at: null }), key: row.key },
      };
    },
  ),
  accountItem(
    'GET /users/me/api-keys/:id',
    'Shows a personal API key of the user.',
    { thing: 'personal API key', data: PersonalKey, name: 'getApiKey' },
    (call) => findApiKeyById(call.database.knex, keysOf(call, 'personal'), call.id),
    keyView,
  ),
  accountItem(
    'PUT /users/me/api-keys/:id',
    'Updates the given fields of a personal API key of the user, on all servers within a second.',
    {
      thing: 'personal API key',
      message: 'API key updated',
      body: ChangedApiKey,
      data: PersonalKey,
      name: 'updateApiKey',
    },
    async (call) => {
      const { database, body, id } = call;
      const of = keysOf(call, 'personal');
      const before = await findApiKeyById(database.knex, of, id);
      if (!before) return undefined;
      requireNoMore(userOf(call), { ...before, ...body });
      return changeKey(call, of, body);
    },
    keyView,
  ),
  ...keyRoutes('session', 'sessions', 'Session', 'session'),
];

/** Throws `forbidden`. */
function requireNoMore(user: UserKey, { role, scopes }: Pick<ApiKeyRow, 'role' | 'scopes'>): void {
  requireScopesFor(user, scopes);
  if (user.role && (role === null || ROLES.indexOf(role) > ROLES.indexOf(user.role)))
    throw new GatewayError('forbidden', {
      reason: `this API key has the role ${user.role} and cannot create one with another role`,
    });
}

/** Throws `forbidden` for project keys, portal links and process credentials. */
export function userOf({ caller }: Pick<AccountCall, 'caller'>): UserKey {
  const user = personOf(caller);
  if (!user)
    throw new GatewayError('forbidden', { reason: 'a credential of the process has no user' });
  return user;
}

const keysOf = (call: AccountCall, type: 'personal' | 'session') => ({
  type,
  user_id: userOf(call).user_id,
});

function keyRoutes(
  type: 'personal' | 'session',
  collection: string,
  Thing: string,
  thing: string,
): Route[] {
  return [
    accountList(
      `/users/me/${collection}`,
      `Lists the ${thing}s of the user, including revoked and expired ones.`,
      { query: object(pageQuery), title: `${thing}s`, data: PersonalKey, name: `list${Thing}s` },
      (call, page) => listApiKeys(call.database.knex, keysOf(call, type), page),
      keyView,
    ),
    accountItem(
      `DELETE /users/me/${collection}/:id`,
      `Revokes a ${thing} of the user, on all servers within a second.`,
      { thing, message: `${thing} revoked`, data: PersonalKey, name: `revoke${Thing}` },
      (call) => changeKey(call, keysOf(call, type), 'revoked'),
      keyView,
    ),
  ];
}
