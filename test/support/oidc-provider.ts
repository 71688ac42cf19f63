import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import Provider from 'oidc-provider';
import { loopback } from './ports.js';

export interface Account {
  readonly sub: string;
  readonly email?: string;
  readonly email_verified?: boolean;
  readonly given_name?: string;
  readonly family_name?: string;
}

export interface TestProvider {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: string;
  /** The signed-in user; the provider shows no forms. */
  account: Account;
  /** Modifies the token endpoint's response. */
  tamper: ((tokens: Record<string, unknown>) => void) | undefined;
  /** Modifies the discovery document. */
  discovery: ((document: Record<string, unknown>) => void) | undefined;
  close(): Promise<void>;
}

/**
 * A real OpenID Connect provider on 127.0.0.1.
 *
 * @param options.redirectUri registered for the client
 * @param options.inIdToken adds the email address to the ID token; by default only the userinfo
 * endpoint returns it
 */
export async function oidcProvider({
  redirectUri,
  inIdToken = false,
}: {
  redirectUri: string;
  inIdToken?: boolean;
}): Promise<TestProvider> {
  let answer: (request: IncomingMessage, response: ServerResponse) => void = () => undefined;
  const server = http.createServer((request, response) => answer(request, response));
  const issuer = `http://127.0.0.1:${await loopback(server)}`;
  const it: TestProvider = {
    issuer,
    clientId: 'gateway',
    clientSecret: 'a-secret-that-nobody-may-see-0123456789',
    account: { sub: 'nobody' },
    tamper: undefined,
    discovery: undefined,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const provider = new Provider(issuer, {
    clients: [
      { client_id: it.clientId, client_secret: it.clientSecret, redirect_uris: [redirectUri] },
    ],
    cookies: { keys: ['a key of the test'] },
    claims: {
      openid: ['sub'],
      email: ['email', 'email_verified'],
      profile: ['given_name', 'family_name'],
    },
    conformIdTokenClaims: !inIdToken,
    features: { devInteractions: { enabled: false } },
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ ...it.account, sub }) }),
    loadExistingGrant: async ({ oidc }) => {
      const grant = new provider.Grant({
        clientId: oidc.client!.clientId,
        accountId: oidc.session!.accountId!,
      });
      grant.addOIDCScope('openid email profile');
      await grant.save();
      return grant;
    },
    ttl: {
      AccessToken: 60,
      AuthorizationCode: 60,
      Grant: 60,
      IdToken: 60,
      Interaction: 60,
      Session: 60,
    },
  });
  const serve = provider.callback();
  answer = (request, response) => {
    const { pathname } = new URL(request.url!, issuer);
    if (pathname.startsWith('/interaction/')) {
      void provider.interactionFinished(request, response, {
        login: { accountId: it.account.sub },
      });
      return;
    }
    if (pathname.startsWith('/large/')) {
      response.end(`{"issuer":"${'x'.repeat(2 * 1024 * 1024)}"}`);
      return;
    }
    if (pathname === '/token' && it.tamper) tamperWith(response, it.tamper);
    if (pathname.endsWith('/openid-configuration') && it.discovery)
      tamperWith(response, it.discovery);
    void serve(request, response);
  };
  return it;
}

function tamperWith(response: ServerResponse, tamper: NonNullable<TestProvider['tamper']>): void {
  const end = response.end.bind(response) as (text: string) => ServerResponse;
  response.end = ((text: string) => {
    const tokens = JSON.parse(String(text)) as Record<string, unknown>;
    tamper(tokens);
    const changed = JSON.stringify(tokens);
    response.setHeader('content-length', Buffer.byteLength(changed));
    return end(changed);
  }) as typeof response.end;
}

/** Follows redirects like a browser, up to the redirect URI. Returns its query. */
export async function passThrough(url: string, redirectUri: string): Promise<string> {
  const cookies = new Map<string, string>();
  for (let steps = 0; steps < 10; steps++) {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    const location = response.headers.get('location');
    if (!location) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
    url = new URL(location, url).href;
    if (url.startsWith(redirectUri)) return new URL(url).search;
  }
  throw new Error('the provider redirects without an end');
}
