import { createHmac } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sealer } from '#core/crypto/sealing';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { silentLog, type Log } from '#core/logging/log';
import { openOidc } from '#server/auth/oidc/provider';
import { linksOf } from '#core/config/links';
import { freePort } from '../../../support/ports.js';
import {
  oidcProvider,
  passThrough,
  type Account,
  type TestProvider,
} from '../../../support/oidc-provider.js';
import { configOf, refusal, startApi, type Answer, type Api } from '../../api.js';

const oidc = suite('server/routes/people/oidc');

const HOST = 'https://gateway.example.com';
const REDIRECT = `${HOST}/sign-in/callback`;
const JOINED = newId();
let provider: TestProvider;
/** The default settings: people need an invitation. */
let api: Api;
/** Open sign-up. */
let open: Api;
const lines: string[] = [];
const log: Log = {
  ...silentLog,
  warn: (...said: unknown[]) => void lines.push(JSON.stringify(said)),
};

oidc.before(async () => {
  provider = await oidcProvider({ redirectUri: REDIRECT });
  api = await startApi({ file: settings({}, { max_failures: 0 }), log });
  const joining = {
    organisation: JOINED,
    role: 'member',
    allowed_domains: ['example.com'],
    require_verified_email: false,
  };
  open = await startApi({
    file: settings(
      { scopes: ['email'], label: 'Keycloak', ...joining },
      { passwords: false, max_failures: 3 },
    ),
  });
  await open.db.knex('organisations').insert({ id: JOINED, name: 'Everybody' });
});
oidc.after(async () => {
  await Promise.all([api.close(), open.close()]);
  await provider.close();
});

function settings(
  fields: Record<string, unknown> = {},
  auth: Record<string, unknown> = {},
): Record<string, unknown> {
  return {
    host: HOST,
    server: { auth },
    oidc: {
      issuer: provider.issuer,
      client_id: provider.clientId,
      client_secret: provider.clientSecret,
      allowed_networks: ['127.0.0.0/8'],
      ...fields,
    },
  };
}

const HEADERS = { 'x-forwarded-proto': 'https' };

/** Starts a sign-in. Returns the provider's address and the browser's cookie. */
async function start(at: Api): Promise<{ url: URL; cookie: string; answer: Answer }> {
  const answer = await at.call('POST', '/api/v1/auth/oidc/start', undefined, {
    key: null,
    headers: HEADERS,
  });
  if (answer.status !== 200) return { url: new URL(HOST), cookie: '', answer };
  return {
    url: new URL(answer.body.data.url),
    cookie: answer.headers.get('set-cookie')!.split(';')[0]!,
    answer,
  };
}

function complete(at: Api, query: string, cookie: string): Promise<Answer> {
  return at.call(
    'POST',
    '/api/v1/auth/oidc/complete',
    { query },
    { key: null, headers: { ...HEADERS, cookie } },
  );
}

/** Signs in as a person of the provider; `change` modifies the redirect address. */
async function signIn(at: Api, account: Account, change: (url: URL) => void = () => undefined) {
  provider.account = account;
  const { url, cookie } = await start(at);
  change(url);
  const query = await passThrough(url.href, REDIRECT);
  return { answer: await complete(at, query, cookie), query, cookie };
}

async function invite(email: string, role: string): Promise<void> {
  const invited = await api.call(
    'POST',
    `/organisations/${api.owner.organisation.id}/invitations`,
    { email, role },
  );
  assert.is(invited.status, 201, invited.text);
}

oidc('people are told how they can sign in', async () => {
  const methods = async (at: Api) =>
    (await at.call('GET', '/api/v1/auth/methods', undefined, { key: null })).body.data;
  const mails = { password_reset: false };
  assert.equal(await methods(api), {
    password: true,
    ...mails,
    oidc: { label: 'single sign-on' },
  });
  assert.equal(await methods(open), { password: false, ...mails, oidc: { label: 'Keycloak' } });
});

oidc(
  'the browser is sent to the provider with state, nonce and a code challenge, and keeps a cookie for this host',
  async () => {
    const { url, cookie, answer } = await start(open);
    const asked = Object.fromEntries(url.searchParams);
    assert.equal(
      [url.origin, asked['redirect_uri'], asked['scope']],
      [provider.issuer, REDIRECT, 'openid email'],
    );
    assert.equal([asked['response_type'], asked['code_challenge_method']], ['code', 'S256']);
    for (const name of ['state', 'nonce', 'code_challenge'])
      assert.ok(asked[name]!.length >= 43, name);
    assert.match(
      answer.headers.get('set-cookie')!,
      /^__Host-gateway_sign_in=\S+; Path=\/; HttpOnly; SameSite=Strict; Secure; Expires=/,
    );
    for (const secret of [asked['state']!, asked['nonce']!]) assert.not.match(cookie, secret);
  },
);

oidc(
  'an invited person gets an account with the role of the invitation, and comes back to it under a changed address',
  async () => {
    await invite('ada@example.com', 'member');
    const account = {
      sub: 'ada-1',
      email: 'Ada@example.com',
      email_verified: true,
      given_name: 'Ada',
      family_name: 'Lovelace',
    };
    const { answer } = await signIn(api, account);
    assert.is(answer.status, 200, answer.text);
    const { user, organisations } = answer.body.data;
    assert.equal(
      [user.email, user.first_name, user.last_name],
      ['Ada@example.com', 'Ada', 'Lovelace'],
    );
    assert.equal(
      organisations.map((it: { uid: string; role: string }) => [it.uid, it.role]),
      [[api.owner.organisation.id, 'member']],
    );
    const [session, forgotten] = answer.headers.getSetCookie();
    assert.match(session!, /^__Host-gateway_session=gw_.*; HttpOnly; SameSite=Lax; Secure/);
    assert.match(forgotten!, /^__Host-gateway_sign_in=; /);
    const headers = { ...HEADERS, cookie: session!.split(';')[0]! };
    assert.is((await api.call('GET', '/projects', undefined, { key: null, headers })).status, 200);

    const again = await signIn(api, {
      sub: 'ada-1',
      email: 'countess@example.com',
      email_verified: false,
    });
    assert.equal([again.answer.status, again.answer.body.data.user.uid], [200, user.uid]);

    const { body } = await api.call(
      'GET',
      `/organisations/${api.owner.organisation.id}/audit-log?action=auth.login`,
    );
    const entries = body.data.content.filter(
      (it: { actor: { id: string } }) => it.actor.id === user.uid,
    );
    assert.equal(
      entries.map((it: { changes: object }) => it.changes),
      [{ method: { after: 'oidc' } }, { method: { after: 'oidc' }, role: { after: 'member' } }],
    );
  },
);

oidc(
  'a person with an account is found by a verified address, and nobody else gets in by the same one',
  async () => {
    const account = {
      sub: 'owner-1',
      email: api.owner.user.email.toUpperCase(),
      email_verified: true,
    };
    const { answer } = await signIn(api, account);
    assert.equal(
      [answer.status, answer.body.data.user.uid, answer.body.data.is_instance_admin],
      [200, api.owner.user.id, true],
    );
    const other = await signIn(api, { ...account, sub: 'owner-2' });
    assert.equal([other.answer.status, other.answer.body.code], [403, 'oidc_refused']);
    assert.match(other.answer.body.message, 'is linked to another identity');
  },
);

oidc(
  'a person whom nobody has invited, or whose address is not verified, is refused with a way out',
  async () => {
    await invite('eve@example.com', 'owner');
    const refusals = [
      [
        { sub: 'stranger', email: 'stranger@example.com', email_verified: true },
        'no one has invited this address',
      ],
      [
        { sub: 'eve', email: 'eve@example.com', email_verified: false },
        'the provider has not verified the address',
      ],
      [{ sub: 'eve', email: 'eve@example.com' }, 'the provider has not verified the address'],
      [{ sub: 'nameless' }, 'the provider returned no email address'],
      [
        { sub: 'eve', email: 'eve@example.com\0.', email_verified: true },
        'the provider returned no email address',
      ],
    ] as const;
    for (const [account, reason] of refusals) {
      const { answer } = await signIn(api, account);
      assert.equal([answer.status, answer.body.code], [403, 'oidc_refused'], reason);
      assert.match(answer.body.message, reason);
      assert.ok(answer.body.fix!.length > 10);
      assert.equal(answer.headers.getSetCookie(), []);
    }
    assert.is((await api.db.knex('users').where('email', 'like', 'eve%')).length, 0);
  },
);

oidc(
  'where people may join, a new one gets the role of the setting, of the allowed domains only',
  async () => {
    const joined = await signIn(open, { sub: 'joe', email: 'joe@EXAMPLE.com' });
    assert.is(joined.answer.status, 200, joined.answer.text);
    const [organisation] = joined.answer.body.data.organisations;
    assert.equal([organisation.uid, organisation.role], [JOINED, 'member']);
    for (const email of ['joe@example.org', 'joe@notexample.com', 'joe@sub.example.com']) {
      const { answer } = await signIn(open, { sub: `other ${email}`, email });
      assert.equal([answer.status, answer.body.code], [403, 'oidc_refused'], email);
    }
    const moved = await signIn(open, { sub: 'joe', email: 'joe@example.org' });
    assert.is(moved.answer.status, 403, 'the domain counts each time');
    const denied = await signIn(open, {
      sub: 'jim',
      email: 'jim@example.com',
      email_verified: false,
    });
    assert.match(denied.answer.body.message, 'has not verified');

    await open.db
      .knex('organisation_members')
      .where({ user_id: joined.answer.body.data.user.uid })
      .delete();
    const removed = await signIn(open, { sub: 'joe', email: 'joe@example.com' });
    assert.equal(
      [removed.answer.status, removed.answer.body.code],
      [403, 'forbidden'],
      'who was removed does not join again',
    );
  },
);

oidc('an answer counts once, for the browser and the sign-in that it belongs to', async () => {
  const account = { sub: 'owner-1', email: api.owner.user.email, email_verified: true };
  const { answer, query, cookie } = await signIn(api, account);
  assert.is(answer.status, 200);
  const failures: [string, Promise<Answer>][] = [];
  const other = await start(api);
  failures.push(['the code, which is valid once', complete(api, query, cookie)]);
  failures.push(['belongs to another sign-in', complete(api, query, other.cookie)]);
  failures.push([
    'belongs to another sign-in',
    complete(api, query.replace(/state=./, 'state=-'), cookie),
  ]);
  failures.push(['another browser', complete(api, query, '')]);
  failures.push(['another browser', complete(api, query, `${cookie.slice(0, -4)}AAAA`)]);
  const state = other.url.searchParams.get('state')!;
  failures.push([
    'the provider refused it (access_denied)',
    complete(
      api,
      `?error=access_denied&error_description=Evil&state=${state}&iss=${provider.issuer}`,
      other.cookie,
    ),
  ]);
  failures.push([
    'not valid',
    complete(api, `?code=x&state=${state}&iss=https://evil.example.com`, other.cookie),
  ]);
  for (const [reason, one] of failures) {
    const failed = await one;
    assert.equal([failed.status, failed.body.code], [401, 'oidc_failed'], reason);
    assert.match(failed.body.message, reason);
    assert.not.match(failed.text, 'Evil');
    assert.equal(failed.headers.getSetCookie(), []);
  }
});

oidc(
  'an ID token that is not signed by the provider, or is for another nonce, gets nobody in',
  async () => {
    const account = { sub: 'owner-1', email: api.owner.user.email, email_verified: true };
    const parts = (tokens: Record<string, unknown>) =>
      String(tokens['id_token']).split('.') as [string, string, string];
    const tampers: Record<string, (tokens: Record<string, unknown>) => void> = {
      'another subject': (tokens) => {
        const [head, body, signature] = parts(tokens);
        const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as object;
        tokens['id_token'] = [
          head,
          Buffer.from(JSON.stringify({ ...claims, sub: 'ada-1' })).toString('base64url'),
          signature,
        ].join('.');
      },
      'no signature': (tokens) => {
        const [, body] = parts(tokens);
        tokens['id_token'] = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${body}.`;
      },
      'it signs ID tokens with "HS256"; select an algorithm with a public key': (tokens) => {
        const [, body] = parts(tokens);
        const signed = `${Buffer.from('{"alg":"HS256"}').toString('base64url')}.${body}`;
        const signature = createHmac('sha256', provider.clientSecret).update(signed);
        tokens['id_token'] = `${signed}.${signature.digest('base64url')}`;
      },
      'no ID token': (tokens) => delete tokens['id_token'],
    };
    try {
      for (const [what, tamper] of Object.entries(tampers)) {
        provider.tamper = tamper;
        const { answer } = await signIn(api, account);
        assert.equal([answer.status, answer.body.code], [401, 'oidc_failed'], what);
        if (what.startsWith('it signs')) {
          assert.match(answer.body.message, what);
          assert.match(lines.at(-1)!, 'HS256');
        }
      }
    } finally {
      provider.tamper = undefined;
    }
    const nonce = await signIn(api, account, (url) => url.searchParams.set('nonce', 'another'));
    assert.equal([nonce.answer.status, nonce.answer.body.code], [401, 'oidc_failed']);
    assert.match(lines.at(-1)!, 'nonce');
    const challenge = await signIn(api, account, (url) =>
      url.searchParams.set('code_challenge', 'A'.repeat(43)),
    );
    assert.equal([challenge.answer.status, challenge.answer.body.code], [401, 'oidc_failed']);
  },
);

oidc('without passwords the provider is the only way in', async () => {
  const { user, password, organisation } = open.owner;
  const refused = await open.call(
    'POST',
    '/api/v1/auth/login',
    { email: user.email, password },
    { key: null },
  );
  assert.equal(
    [refused.status, refused.body.message],
    [403, 'passwords are disabled: sign in with Keycloak'],
  );
  const invited = await open.call('POST', `/organisations/${organisation.id}/invitations`, {
    email: 'bob@example.com',
    role: 'viewer',
  });
  const accepted = { token: invited.body.data.token, password: 'a long enough word' };
  assert.is(
    (await open.call('POST', '/api/v1/auth/accept-invitation', accepted, { key: null })).status,
    403,
  );
  const { answer } = await signIn(open, {
    sub: 'bob',
    email: 'bob@example.com',
    email_verified: true,
  });
  assert.equal(
    answer.body.data.organisations.map((it: { uid: string; role: string }) => [it.uid, it.role]),
    [
      [JOINED, 'member'],
      [organisation.id, 'viewer'],
    ],
  );
});

oidc('an address that guesses is locked out, as with passwords', async () => {
  const { cookie, url } = await start(open);
  const state = url.searchParams.get('state')!;
  const codes = [];
  for (let k = 0; k < 4; k++)
    codes.push(
      (await complete(open, `?code=guessed&state=${state}&iss=${provider.issuer}`, cookie)).body
        .code,
    );
  assert.equal(codes, ['oidc_failed', 'oidc_failed', 'oidc_failed', 'too_many_logins']);
});

oidc(
  'a provider that is down, refused by the address guard or wrong is told in our words, and in the log with its cause',
  async () => {
    const cases = [
      [{ issuer: `http://127.0.0.1:${await freePort()}` }, 'nothing listens there'],
      [{ allowed_networks: ['10.0.0.0/8'] }, 'oidc.allowed_networks'],
      [{ issuer: `${provider.issuer}/other` }, 'unexpected HTTP response status code'],
      [{ issuer: `${provider.issuer}/large` }, 'exceeds 1048576 bytes'],
    ] as const;
    for (const [fields, cause] of cases) {
      lines.length = 0;
      const down = (await opened(settings(fields)))!;
      const problem = await down.begin().then(
        () => undefined,
        (error: unknown) => error,
      );
      assert.ok(isGatewayError(problem, 'oidc_unavailable'), String(problem));
      assert.not.match(problem.message, /127\.0\.0\.1|oidc\./);
      assert.match(lines.join('\n'), cause);
      await down.close();
    }
  },
);

oidc(
  'credentials that the provider rejects are the fault of the operator, and are not logged',
  async () => {
    provider.account = { sub: 'owner-1' };
    const rejected = (await opened(settings({ client_secret: 'another secret' })))!;
    const { url, pending } = await rejected.begin();
    try {
      await rejected.complete(await passThrough(url, REDIRECT), pending);
      assert.unreachable();
    } catch (error) {
      assert.ok(isGatewayError(error, 'oidc_unavailable'), String(error));
      assert.match(error.message, 'does not accept the credentials of this gateway');
    }
    assert.not.match(lines.join('\n'), 'another secret');
    await rejected.close();
  },
);

oidc('a server does not start with settings by which nobody could sign in', async () => {
  const sentences = async (file: Record<string, unknown>) =>
    (await refusal(configOf(api.db, file), 'invalid_settings')).message;
  const { host: _, ...hostless } = settings();
  assert.match(await sentences(hostless), 'oidc.issuer is set without host');
  assert.match(
    await sentences(settings({ issuer: 'http://login.example.com' })),
    'must begin with https://',
  );
  assert.match(
    await sentences({ ...settings(), dashboard: { enabled: false } }),
    'dashboard.enabled',
  );
  assert.match(
    await sentences({ ...settings(), server: { auth: { native: false } } }),
    'no session is accepted',
  );
  assert.throws(
    () => configOf(api.db, settings({ organisation: 'everybody' })),
    /oidc\.organisation must be an id/,
  );
  assert.match(await sentences({ server: { auth: { passwords: false } } }), 'no one can sign in');
});

function opened(file: Record<string, unknown>) {
  const config = configOf(api.db, file);
  return openOidc({ config, sealer: sealer(config.encryption_key), links: linksOf(config), log });
}

oidc('nothing that was logged holds the secret, a code or a token', () => {
  const text = lines.join('\n');
  assert.ok(text.length > 0);
  assert.not.match(text, provider.clientSecret);
  assert.not.match(text, /eyJ|code=/);
});

oidc.run();
