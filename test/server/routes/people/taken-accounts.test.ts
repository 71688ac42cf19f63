import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { insertApiKey, insertUserKey } from '#store/config/api-keys';
import { hashPassword } from '#store/people/passwords';
import { insertMember } from '#store/people/organisations';
import { insertIdentity } from '#store/people/identities';
import { insertInvitation } from '#store/people/invitations';
import { insertPasswordReset } from '#store/people/password-resets';
import { takeOver } from '#store/people/take-over';
import { bootstrapUser, hasPassword, insertUser, type BootstrappedUser } from '#store/people/users';
import {
  oidcProvider,
  passThrough,
  type Account,
  type TestProvider,
} from '../../../support/oidc-provider.js';
import { startApi, type Answer, type Api } from '../../api.js';

/* Accounts created by an attacker before the owner of the address signs in with the provider.
   The kinds are from "Pre-hijacked accounts", Sudhodanan and Paverd, USENIX Security 2022. */
const taken = suite('server/routes/people/taken-accounts');

const REDIRECT = 'https://gateway.example.com/sign-in/callback';
const OURS = newId();
const PASSWORD = 'chosen by somebody else';
const hash = hashPassword(PASSWORD);
let provider: TestProvider;
let api: Api;
/** The attacker, owner of another organisation. */
let mallory: BootstrappedUser;

taken.before(async () => {
  provider = await oidcProvider({ redirectUri: REDIRECT });
  const oidc = {
    issuer: provider.issuer,
    client_id: provider.clientId,
    client_secret: provider.clientSecret,
  };
  api = await startApi({
    file: {
      host: 'https://gateway.example.com',
      server: { auth: { max_failures: 0 } },
      oidc: { ...oidc, allowed_networks: ['127.0.0.0/8'], organisation: OURS, role: 'admin' },
    },
  });
  mallory = await bootstrapUser(api.db.knex, {
    email: 'mallory@example.net',
    firstName: 'm',
    lastName: '',
  });
  await api.db.knex('organisations').insert({ id: OURS, name: 'Ours' });
});
taken.after(async () => {
  await api.close();
  await provider.close();
});

const anonymous = { key: null } as const;
const HTTPS = { 'x-forwarded-proto': 'https' };

function sessionOf({ headers, body }: Answer): { headers: Record<string, string>; key: null } {
  const cookie = headers.getSetCookie()[0]!.split(';')[0]!;
  return { ...anonymous, headers: { ...HTTPS, cookie, 'x-csrf-token': body.data.csrf_token } };
}

async function signIn(account: Account): Promise<Answer> {
  provider.account = account;
  const started = await api.call('POST', '/api/v1/auth/oidc/start', undefined, {
    ...anonymous,
    headers: HTTPS,
  });
  const query = await passThrough(started.body.data.url, REDIRECT);
  const cookie = started.headers.get('set-cookie')!.split(';')[0]!;
  return api.call(
    'POST',
    '/api/v1/auth/oidc/complete',
    { query },
    { ...anonymous, headers: { ...HTTPS, cookie } },
  );
}

async function invite(email: string): Promise<string> {
  const path = `/organisations/${mallory.organisation.id}/invitations`;
  const invited = await api.call(
    'POST',
    path,
    { email, role: 'owner' },
    { key: mallory.api_key.key },
  );
  assert.is(invited.status, 201, invited.text);
  return invited.body.data.token;
}

/** Mallory creates an account for a victim's address, with a password, a session and a key. */
async function prepare(email: string) {
  const { knex } = api.db;
  const { id: userId } = await insertUser(knex, {
    email,
    first_name: '',
    last_name: '',
    passwordHash: await hash,
  });
  await insertMember(knex, { organisationId: mallory.organisation.id, userId, role: 'owner' });
  const session = await insertApiKey(knex, {
    type: 'session',
    name: 'browser',
    userId,
    expiresAt: new Date(Date.now() + 3_600_000),
  });
  const { key } = await insertApiKey(knex, { type: 'personal', name: 'kept', userId });
  const cookie = {
    ...anonymous,
    headers: { ...HTTPS, cookie: `__Host-gateway_session=${session.key}` },
  };
  const works = async () => {
    const statuses = await Promise.all(
      [cookie, { key }].map(
        async (it) => (await api.call('GET', '/projects', undefined, it)).status,
      ),
    );
    return [...statuses, await hasPassword(knex, userId, await hash)];
  };
  assert.equal(await works(), [200, 200, true]);
  return { works, userId, by: session.id };
}

taken(
  'password, session and key that were made for an address end when its owner comes, who joins the own organisation first',
  async () => {
    const accepted = { token: await invite('victim@example.com'), password: PASSWORD };
    const theirs = sessionOf(
      await api.call('POST', '/api/v1/auth/accept-invitation', accepted, {
        ...anonymous,
        headers: HTTPS,
      }),
    );
    const kept = {
      key: (await api.call('POST', '/api/v1/users/me/api-keys', { name: 'kept' }, theirs)).body.data
        .key,
    };
    const answer = await signIn({
      sub: 'victim',
      email: 'Victim@example.com',
      email_verified: true,
    });
    assert.is(answer.status, 200, answer.text);
    assert.equal(
      answer.body.data.organisations.map((it: { name: string; role: string }) => [
        it.name,
        it.role,
      ]),
      [
        ['Ours', 'admin'],
        ['Default Organisation', 'owner'],
      ],
    );
    for (const it of [theirs, kept])
      assert.is((await api.call('GET', '/projects', undefined, it)).status, 401);
    const login = { email: 'victim@example.com', password: PASSWORD };
    assert.is((await api.call('POST', '/api/v1/auth/login', login, anonymous)).status, 401);
    const body = { token: await invite('victim@example.com'), password: PASSWORD };
    assert.is(
      (await api.call('POST', '/api/v1/auth/accept-invitation', body, anonymous)).status,
      401,
      'nor by another invitation',
    );

    const [entry] = await api.db.rows(
      `select changes from audit_log where action = 'auth.takeOver' and organisation_id = $1`,
      [OURS],
    );
    const ended = {
      ...{ had_password: true, sessions: 1, api_keys: ['kept'] },
      ...{ identities: 0, invitations: 0 },
    };
    assert.equal(entry, { changes: { ended: { before: ended } } });

    const own = sessionOf(answer);
    const made = await api.call('POST', '/api/v1/users/me/api-keys', { name: 'own' }, own);
    const again = await signIn({
      sub: 'victim',
      email: 'victim@example.com',
      email_verified: true,
    });
    assert.is(again.status, 200, again.text);
    const { key } = made.body.data;
    for (const it of [own, { key }])
      assert.is(
        (await api.call('GET', '/projects', undefined, it)).status,
        200,
        'what the owner made stays',
      );

    const gone = await api.call('DELETE', `/organisations/${mallory.organisation.id}`, undefined, {
      key: mallory.api_key.key,
    });
    assert.is(gone.status, 200, gone.text);
    for (const it of [own, { key }, { key: mallory.api_key.key }])
      assert.is(
        (await api.call('GET', '/projects', undefined, it)).status,
        200,
        'keys of people outlive an organisation',
      );
    const other = await api.call(
      'POST',
      '/organisations',
      { name: 'Another' },
      { key: mallory.api_key.key },
    );
    mallory = { ...mallory, organisation: { id: other.body.data.uid, name: 'Another' } };
  },
);

taken(
  'an open invitation of somebody else does not replace joining the own organisation',
  async () => {
    await invite('newcomer@example.com');
    const answer = await signIn({
      sub: 'newcomer',
      email: 'newcomer@example.com',
      email_verified: true,
    });
    assert.equal(
      answer.body.data.organisations.map((it: { name: string; role: string }) => [
        it.name,
        it.role,
      ]),
      [
        ['Ours', 'admin'],
        ['Another', 'owner'],
      ],
    );
  },
);

taken(
  'accounts linked before addresses were proven are taken over at the next sign-in, whatever address it tells',
  async () => {
    const { works } = await prepare('linked@example.com');
    await api.db.rows(
      `insert into user_identities (issuer, subject, user_id) select $1, 'linked', id from users where email = 'linked@example.com'`,
      [provider.issuer],
    );
    await api.db.rows(`insert into user_identities (issuer, subject, user_id)
    select 'https://other.example.com', 'trojan', id from users where email = 'linked@example.com'`);
    assert.is(
      (await signIn({ sub: 'linked', email: 'new@example.com', email_verified: false })).status,
      200,
    );
    assert.equal(await works(), [401, 401, false]);
    const left = await api.db.rows(
      `select subject from user_identities i join users u on u.id = i.user_id where email = 'linked@example.com'`,
    );
    assert.equal(left, [{ subject: 'linked' }]);
  },
);

taken('a reset link ends all that was made for an unproven address, and only once', async () => {
  const email = 'forgot@example.com';
  const { works, userId } = await prepare(email);
  const pending = await insertInvitation(api.db.knex, {
    invitedBy: userId,
    organisationId: mallory.organisation.id,
    email: 'accomplice@example.net',
    role: 'owner',
    expiresAt: new Date(Date.now() + 3_600_000),
  });
  const reset = async (password: string) => {
    const { token } = await insertPasswordReset(api.db.knex, userId);
    return api.call('POST', '/api/v1/auth/reset-password', { token, password }, anonymous);
  };
  const answer = await reset('a password of the owner');
  assert.is(answer.status, 200, answer.text);
  assert.equal(await works(), [401, 401, false]);
  const body = { token: pending.token, password: PASSWORD };
  const accepted = await api.call('POST', '/api/v1/auth/accept-invitation', body, anonymous);
  assert.is(accepted.body.code, 'invitation_invalid');
  const { key } = await insertApiKey(api.db.knex, { type: 'personal', name: 'own', userId });
  assert.is((await reset('a password forgotten again')).status, 200);
  assert.is((await api.call('GET', '/projects', undefined, { key })).status, 200, 'kept');
});

taken('a reset link made before the owner of the address came opens nothing', async () => {
  const { userId } = await prepare('early@example.com');
  const { token } = await insertPasswordReset(api.db.knex, userId);
  const account = { sub: 'early', email: 'early@example.com', email_verified: true };
  assert.is((await signIn(account)).status, 200);
  const body = { token, password: PASSWORD };
  const used = await api.call('POST', '/api/v1/auth/reset-password', body, anonymous);
  assert.is(used.body.code, 'reset_invalid');
});

taken('an invitation does not tell whether its address has an account', async () => {
  const shown = async (email: string) => {
    const body = { token: await invite(email) };
    return (await api.call('POST', '/api/v1/auth/invitation', body, anonymous)).body.data;
  };
  const [known, unknown] = [await shown(api.owner.user.email), await shown('no@example.com')];
  assert.equal(Object.keys(known), Object.keys(unknown));
  assert.equal({ ...known, email: '', expires_at: '' }, { ...unknown, email: '', expires_at: '' });
});

taken('an address that the provider has not verified takes nothing over', async () => {
  const { works } = await prepare('unverified@example.com');
  for (const email_verified of [false, undefined]) {
    const account = {
      sub: 'unverified',
      email: 'unverified@example.com',
      ...(email_verified === undefined ? {} : { email_verified }),
    };
    assert.is((await signIn(account)).body.code, 'oidc_refused');
  }
  assert.equal(await works(), [200, 200, true]);
});

taken(
  'addresses that differ are different, and those that only look alike are refused',
  async () => {
    await prepare('grace@example.com');
    const plus = await signIn({ sub: 'plus', email: 'grace+1@example.com', email_verified: true });
    assert.is(plus.body.data.user.email, 'grace+1@example.com');
    const path = `/organisations/${mallory.organisation.id}/invitations`;
    // A Kelvin sign, a Cyrillic letter, a fullwidth letter, a direction mark, an escape.
    for (const email of [
      '\u212Aim@example.com',
      'gr\u0430ce@example.com',
      '\uff47race@example.com',
      'grace\u202e@example.com',
      'g\u001b[2J@example.com',
    ]) {
      const invited = await api.call(
        'POST',
        path,
        { email, role: 'viewer' },
        { key: mallory.api_key.key },
      );
      assert.is(invited.status, 422, email);
      assert.is(
        (await signIn({ sub: `alike ${email.codePointAt(0)}`, email, email_verified: true })).body
          .code,
        'oidc_refused',
        email,
      );
    }
  },
);

taken('who is trusted by the operator keeps password and keys', async () => {
  const { user, password } = api.owner;
  assert.is(
    (await signIn({ sub: 'operator', email: user.email, email_verified: true })).status,
    200,
  );
  assert.is((await api.call('GET', '/projects')).status, 200);
  assert.is(
    (await api.call('POST', '/api/v1/auth/login', { email: user.email, password }, anonymous))
      .status,
    200,
  );
});

taken(
  'requests that run while an account is taken over make no credential that outlives it',
  async () => {
    const { knex } = api.db;
    const { userId, by } = await prepare('racing@example.com');
    const passwordHash = await hash;
    const identity = { issuer: provider.issuer, subject: 'racing' };
    const begun: { key?: Promise<unknown>; password?: Promise<boolean> } = {};
    await knex.transaction(async (trx) => {
      await insertIdentity(trx, userId, identity);
      await takeOver(trx, userId, identity);
      // Verified before, they wait for the lock on the user's row.
      begun.key = insertUserKey(knex, by, { type: 'personal', name: 'late', userId });
      begun.password = knex.transaction((other) => hasPassword(other, userId, passwordHash));
    });
    assert.equal([await begun.key, await begun.password], [undefined, false]);
  },
);

taken.run();
