import type { IncomingMessage } from 'node:http';
import { maskOfApiKey, matchesApiKey } from '@gateway/core/crypto';
import { GatewayError } from '@gateway/core/errors';
import type { Account, LoginGuard } from './login-guard.js';
import type { Caller, ProcessCredentials } from './process-credentials.js';
import type { RecordCache } from './record-cache.js';
import type { SessionCookies } from './session-cookie.js';

interface SignInContext {
  readonly credentials: ProcessCredentials;
  readonly logins: LoginGuard;
  readonly records: RecordCache;
  readonly sessions: SessionCookies;
}

/** They need no CSRF token. */
const READS = ['GET', 'HEAD', 'OPTIONS'];

/**
 * @throws GatewayError `unauthorized`, `csrf_token_missing`, or `too_many_logins` for a client that
 *   could be guessing
 */
export async function authenticate(
  request: IncomingMessage,
  context: SignInContext,
): Promise<Caller> {
  const { credentials, logins, sessions } = context;
  const header = request.headers.authorization ?? '';
  const unauthorized = (reason: string) =>
    new GatewayError('unauthorized', { reason, fix: credentials.how });
  if (header === '') {
    const session = credentials.native ? sessions.read(request) : undefined;
    if (session === undefined)
      throw unauthorized(
        credentials.basic ? 'the request has no credentials' : 'the request has no API key',
      );
    return authenticateSession(request, session, context);
  }
  const [, pair] = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header) ?? [];
  if (pair !== undefined && credentials.basic) {
    const text = Buffer.from(pair, 'base64').toString();
    const account: Account = { kind: 'basic', name: text.split(':', 1)[0]!, credential: header };
    const caller = await logins.check(request, account, async () => credentials.ofBasic(text));
    if (!caller) throw unauthorized('the username or the password is wrong');
    return caller;
  }
  const [, key] = /^Bearer +(\S+)$/i.exec(header) ?? [];
  if (key === undefined)
    throw unauthorized(
      `the Authorization header is not of the form Bearer${credentials.basic ? ' or Basic' : ''}`,
    );
  const mask = maskOfApiKey(key);
  const account: Account =
    mask === undefined
      ? { kind: 'bearer', name: '', credential: header }
      : { kind: 'key', name: mask, credential: header };
  const caller = await logins.check(
    request,
    account,
    async () =>
      credentials.ofBearer(key) ??
      (credentials.native && mask !== undefined ? storedKey(key, mask, context) : undefined),
  );
  // Writes of a session also need the CSRF token, so it is not valid as a bearer token.
  if (caller && caller.type !== 'session') return caller;
  if (!credentials.native && mask !== undefined)
    throw unauthorized(
      'this process does not accept the API keys of the database: server.auth.native is off',
    );
  throw unauthorized(
    credentials.native && mask === undefined
      ? 'the Authorization header contains no API key of this gateway: they begin with gw_'
      : 'the API key is unknown',
  );
}

async function authenticateSession(
  request: IncomingMessage,
  key: string,
  context: SignInContext,
): Promise<Caller> {
  const mask = maskOfApiKey(key);
  const ended = new GatewayError('unauthorized', {
    reason: 'the session has ended',
    fix: 'sign in again',
  });
  if (mask === undefined) throw ended;
  const caller = await context.logins.check(
    request,
    { kind: 'session', name: mask, credential: key },
    () => storedKey(key, mask, context, () => ended),
  );
  if (caller?.type !== 'session') throw ended;
  if (!READS.includes(request.method ?? '') && !context.sessions.hasCsrfToken(request, mask))
    throw new GatewayError('csrf_token_missing');
  return caller;
}

/**
 * Undefined for an unknown key or a wrong secret. Throws `unauthorized` if it was revoked or has
 * expired.
 */
async function storedKey(
  key: string,
  mask: string,
  { records, credentials }: SignInContext,
  refused = (what: string) =>
    new GatewayError('unauthorized', {
      reason: `the API key gw_${mask}_… ${what}`,
      fix: credentials.how,
    }),
) {
  const found = await records.apiKey(mask);
  if (!found || !matchesApiKey(key, found.hash)) return undefined;
  if (found.revoked_at) throw refused('was revoked');
  if (found.row.expires_at !== null && !(found.row.expires_at > new Date()))
    throw refused('has expired');
  return found.row;
}
