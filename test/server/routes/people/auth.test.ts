import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { insertPasswordReset } from '#store/people/password-resets';
import { mistakes, startApi, type Api, type Answer } from '../../api.js';

const auth = suite('server/routes/people/auth');
let api: Api;
/** A server with an SMTP server, which only agents use. */
let mailing: Api;

auth.before(async () => {
  api = await startApi({});
  mailing = await startApi({ file: { smtp: { url: '127.0.0.1:9', from: 'gw@example.com' } } });
});
auth.after(() => Promise.all([api.close(), mailing.close()]).then(() => undefined));

const anonymous = { key: null } as const;

async function login(email: string, password: string, headers: Record<string, string> = {}) {
  return api.call('POST', '/api/v1/auth/login', { email, password }, { ...anonymous, headers });
}

function sessionOf({ headers, body }: Answer): { cookie: string; 'x-csrf-token': string } {
  return {
    cookie: headers.get('set-cookie')!.split(';')[0]!,
    'x-csrf-token': body.data.csrf_token,
  };
}

auth(
  'a login starts a session that reads with its cookie and writes with its token, until it ends',
  async () => {
    const { user, password } = api.owner;
    const signedIn = await login(user.email.toUpperCase(), password);
    assert.is(signedIn.status, 200);
    assert.equal(
      [signedIn.body.data.user.email, signedIn.body.data.organisations[0].role],
      [user.email, 'owner'],
    );
    const cookie = signedIn.headers.get('set-cookie')!;
    assert.match(cookie, /^gateway_session=gw_.*; Path=\/; HttpOnly; SameSite=Lax; Expires=/);
    assert.not.match(signedIn.text, cookie.split(/[=;]/)[1]!);

    const headers = sessionOf(signedIn);
    const { cookie: only } = headers;
    const session = await api.call('GET', '/api/v1/auth/session', undefined, {
      ...anonymous,
      headers: { cookie: only },
    });
    assert.equal([session.status, session.body.data.csrf_token], [200, headers['x-csrf-token']]);
    const project = { name: 'by a session' };
    for (const wrong of [
      { cookie: only },
      { cookie: only, 'x-csrf-token': `${headers['x-csrf-token'].slice(1)}A` },
    ]) {
      const refused = await api.call('POST', '/projects', project, {
        ...anonymous,
        headers: wrong,
      });
      assert.equal([refused.status, refused.body.code], [403, 'csrf_token_missing']);
    }
    assert.is(
      (await api.call('POST', '/projects', project, { ...anonymous, headers })).status,
      201,
    );

    const key = only.split('=')[1]!;
    assert.is(
      (await api.call('GET', '/projects', undefined, { key })).status,
      401,
      'the key of a session in a header',
    );
    const out = await api.call('POST', '/api/v1/auth/logout', undefined, { ...anonymous, headers });
    assert.match(out.headers.get('set-cookie')!, /^gateway_session=; .*Expires=Thu, 01 Jan 1970/);
    const ended = await api.call('GET', '/projects', undefined, { ...anonymous, headers });
    assert.equal([ended.status, ended.body.fix], [401, 'sign in again']);
  },
);

auth('over HTTPS the cookie is bound to the host and never sent without TLS', async () => {
  const { user, password } = api.owner;
  const secure = { 'x-forwarded-proto': 'https' };
  const signedIn = await login(user.email, password, secure);
  assert.match(
    signedIn.headers.get('set-cookie')!,
    /^__Host-gateway_session=gw_.*; Path=\/; HttpOnly; SameSite=Lax; Secure/,
  );
  const headers = { ...sessionOf(signedIn), ...secure };
  assert.is((await api.call('GET', '/projects', undefined, { ...anonymous, headers })).status, 200);
  const plain = { ...headers, cookie: headers.cookie.replace('__Host-', '') };
  assert.is(
    (await api.call('GET', '/projects', undefined, { ...anonymous, headers: plain })).status,
    401,
    'a cookie of another origin',
  );
});

auth(
  'a wrong password and an unknown address get the same answer, and an address that guesses is locked out',
  async () => {
    const guarded = await startApi({ file: { server: { auth: { max_failures: 3 } } } });
    try {
      const { user, password } = guarded.owner;
      const tryLogin = (email: string, word: string) =>
        guarded.call('POST', '/api/v1/auth/login', { email, password: word }, anonymous);
      const [wrong, unknown] = [
        await tryLogin(user.email, 'not the password'),
        await tryLogin('nobody@example.com', password),
      ];
      assert.equal([wrong.status, wrong.body.code], [401, 'login_failed']);
      assert.equal(wrong.body, unknown.body);
      await tryLogin(user.email, 'another guess');
      const locked = await tryLogin(user.email, password);
      assert.equal([locked.status, locked.body.code], [429, 'too_many_logins']);
      assert.ok(Number(locked.headers.get('retry-after')) > 0);
    } finally {
      await guarded.close();
    }
  },
);

auth('a changed password ends the other sessions and needs the present one', async () => {
  const email = 'changer@example.com';
  const first = await invite(email, 'member', 'the first password');
  const [one, other] = [sessionOf(first), sessionOf(await login(email, 'the first password'))];
  const change = (current_password: string, password: string) =>
    api.call(
      'PUT',
      '/api/v1/users/me/password',
      { current_password, password },
      { ...anonymous, headers: one },
    );
  assert.equal(mistakes(await change('wrong', 'the second password')), [
    'current_password is wrong',
  ]);
  assert.equal(mistakes(await change('the first password', 'short')), [
    'password must have at least 12 characters',
  ]);
  assert.is((await change('the first password', 'the second password')).status, 200);
  const status = async (headers: Record<string, string>) =>
    (await api.call('GET', '/projects', undefined, { ...anonymous, headers })).status;
  assert.equal([await status(one), await status(other)], [200, 401]);
  assert.equal(
    [
      (await login(email, 'the first password')).status,
      (await login(email, 'the second password')).status,
    ],
    [401, 200],
  );
});

async function invite(email: string, role: string, password: string): Promise<Answer> {
  const invited = await api.call(
    'POST',
    `/organisations/${api.owner.organisation.id}/invitations`,
    { email, role },
  );
  assert.is(invited.status, 201, invited.text);
  return api.call(
    'POST',
    '/api/v1/auth/accept-invitation',
    { token: invited.body.data.token, password, first_name: 'Ada' },
    anonymous,
  );
}

auth('an invitation makes an account with its role, once', async () => {
  const path = `/organisations/${api.owner.organisation.id}`;
  const invited = await api.call('POST', `${path}/invitations`, {
    email: 'ada@example.com',
    role: 'viewer',
  });
  const { token, uid } = invited.body.data;
  const accept = (fields: object) =>
    api.call(
      'POST',
      '/api/v1/auth/accept-invitation',
      { token, password: 'a long enough word', ...fields },
      anonymous,
    );
  const show = () => api.call('POST', '/api/v1/auth/invitation', { token }, anonymous);
  const shown = (await show()).body.data;
  assert.equal([shown.email, shown.role], ['ada@example.com', 'viewer']);
  const both = await Promise.all([accept({ first_name: 'Ada' }), accept({ first_name: 'Ada' })]);
  assert.equal(both.map(({ status }) => status).sort(), [200, 404]);
  const accepted = both.find(({ status }) => status === 200)!;
  assert.equal(
    [accepted.body.data.user.first_name, accepted.body.data.organisations[0].role],
    ['Ada', 'viewer'],
  );
  for (const again of [await accept({}), await show()])
    assert.is(again.body.code, 'invitation_invalid');
  const headers = sessionOf(accepted);
  const denied = await api.call('POST', '/projects', { name: 'x' }, { ...anonymous, headers });
  assert.is(denied.status, 403);
  assert.match(denied.body.message, 'requires the role admin');
  const listed = await api.call('GET', `${path}/invitations`);
  assert.ok(
    listed.body.data.content.find((it: { uid: string; accepted_at: string }) => it.uid === uid)
      .accepted_at,
  );
  assert.is(
    (await api.call('DELETE', `${path}/invitations/${uid}`)).status,
    404,
    'an accepted one is not open',
  );
});

auth('a gateway without a provider says so', async () => {
  const methods = await api.call('GET', '/api/v1/auth/methods', undefined, anonymous);
  assert.equal(methods.body.data, { password: true, password_reset: false, oidc: null });
  const started = await api.call('POST', '/api/v1/auth/oidc/start', undefined, anonymous);
  assert.equal([started.status, started.body.code], [404, 'oidc_off']);
});

auth('a session of a server that takes no stored keys is refused', async () => {
  const closed = await startApi({
    file: { server: { auth: { native: false, api_keys: ['0123456789abcdef0123'] } } },
  });
  try {
    const { user, password } = closed.owner;
    const answer = await closed.call(
      'POST',
      '/api/v1/auth/login',
      { email: user.email, password },
      anonymous,
    );
    assert.is(answer.status, 403);
    assert.match(answer.body.message, 'server.auth.native');
  } finally {
    await closed.close();
  }
});

auth(
  'a link sets another password once, ends the sessions, and stands in the audit log',
  async () => {
    const { user } = api.owner;
    const { token } = await insertPasswordReset(api.db.knex, user.id);
    const [stored] = await api.db.rows<{ hash: Buffer }>('select hash from password_resets');
    assert.not.match(stored!.hash.toString('latin1'), token);
    const before = await login(user.email, api.owner.password);
    const reset = (given: string, password = 'another good password') =>
      api.call('POST', '/api/v1/auth/reset-password', { token: given, password }, anonymous);
    assert.equal(mistakes(await reset(token, 'short')).length, 1);
    const both = await Promise.all([reset(token), reset(token)]);
    assert.equal(both.map(({ status }) => status).sort(), [200, 404]);
    assert.is((await login(user.email, api.owner.password)).status, 401);
    assert.is((await login(user.email, 'another good password')).status, 200);
    const { cookie } = sessionOf(before);
    const session = await api.call('GET', '/api/v1/auth/session', undefined, {
      ...anonymous,
      headers: { cookie },
    });
    assert.is(session.status, 401);
    const [entry] = await api.db.rows<{ actor_id: string }>(
      `select actor_id from audit_log where action = 'auth.resetPassword'`,
    );
    assert.is(entry!.actor_id, user.id);
    const { token: late } = await insertPasswordReset(api.db.knex, user.id);
    await api.db.rows(`update password_resets set expires_at = now()`);
    assert.equal((await reset(late)).body.code, 'reset_invalid');
  },
);

auth('asking for a link tells nobody whether a user exists, and is limited', async () => {
  const ask = (email: string, to = mailing) =>
    to.call('POST', '/api/v1/auth/forgot-password', { email }, anonymous);
  assert.is((await ask('a@example.com', api)).status, 403, 'without SMTP');
  const { email } = mailing.owner.user;
  const [known, unknown] = [await ask(email.toUpperCase()), await ask('nobody@example.com')];
  assert.equal([known.status, known.body], [unknown.status, unknown.body]);
  for (let k = 0; k < 3; k++) assert.is((await ask(email)).status, 200);
  const refused = await ask(email);
  assert.equal([refused.status, refused.body.code], [429, 'too_many_resets']);
  const queued = await mailing.db.rows<{ link: string; mask: null }>(
    'select link, mask from password_resets',
  );
  assert.equal(queued.length, 3, 'no more for one user within the hour');
  assert.match(queued[0]!.link, /^http:\/\/.*\/#password-reset=$/);
  assert.is(queued[0]!.mask, null, 'no token before it is mailed');
});

auth.run();
