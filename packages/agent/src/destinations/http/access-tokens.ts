import type { Open } from '@gateway/core/crypto';
import { isHeaderValue } from '@gateway/core/events';
import { VERSION } from '@gateway/core/process';
import { whyNotOpened, type Endpoint } from '@gateway/ingest/routing/project';
import { tokenRequest } from '@gateway/plugin';
import { NO_ACCESS_TOKEN } from '@gateway/store/deliveries';
import { unsendable, type RequestResult, type RequestSender } from './sender.js';

const UNSAID_SECONDS = 300;
/** A token is replaced this long before its expiry, but not before half of its lifetime. */
const MARGIN_SECONDS = 60;
const TOKEN_MAX = 16 * 1024;

type OnToken = (token: string | null, failure: RequestResult | null) => void;

interface CachedToken {
  token: string | null;
  untilMs: number;
  waiting: OnToken[] | undefined;
}

/**
 * Requests and caches access tokens with OAuth 2.0 client credentials:
 * https://www.rfc-editor.org/rfc/rfc6749#section-4.4
 */
export class AccessTokens {
  /**
   * Tokens by endpoint. A configuration change creates new endpoint objects, so a changed secret
   * applies immediately.
   */
  readonly #tokens = new WeakMap<Endpoint, CachedToken>();

  constructor(
    private readonly options: { readonly sender: Pick<RequestSender, 'send'>; readonly open: Open },
  ) {}

  /**
   * Calls `done` once with the endpoint's token or a failure, possibly before returning. Both are
   * null if the endpoint needs no token.
   */
  of(endpoint: Endpoint, done: OnToken): void {
    if (endpoint.authentication?.type !== 'oauth2') return done(null, null);
    let cached = this.#tokens.get(endpoint);
    if (!cached)
      this.#tokens.set(endpoint, (cached = { token: null, untilMs: 0, waiting: undefined }));
    if (cached.token !== null && performance.now() < cached.untilMs)
      return done(cached.token, null);
    if (cached.waiting) return void cached.waiting.push(done);
    cached.waiting = [done];
    this.#request(endpoint, cached);
  }

  /** Discards a token that the endpoint rejected, because it may have been revoked. */
  forget(endpoint: Endpoint): void {
    const cached = this.#tokens.get(endpoint);
    if (cached) cached.untilMs = 0;
  }

  #request(endpoint: Endpoint, cached: CachedToken): void {
    const settle = (token: string | null, failure: RequestResult | null) => {
      const waiting = cached.waiting ?? [];
      cached.waiting = undefined;
      for (const done of waiting) done(token, failure);
    };
    const { oauth2 } = endpoint.authentication as Extract<
      Endpoint['authentication'],
      { type: 'oauth2' }
    >;
    let secret: string;
    try {
      secret = this.options.open(oauth2.client_secret, [
        'endpoints',
        endpoint.id,
        'authentication',
      ]);
    } catch (error) {
      return settle(null, { ...unsendable(whyNotOpened(error)), unsent: 'unreadable' });
    }
    const { url } = oauth2;
    const { headers, body } = tokenRequest({ ...oauth2, client_secret: secret });
    this.options.sender.send(
      {
        projectId: endpoint.projectId,
        url,
        headers: ['user-agent', `gateway/${VERSION}`, ...Object.entries(headers).flat()],
        body: Buffer.from(body),
        timeoutMs: endpoint.timeoutMs,
      },
      (answer) => {
        const token = answer.failure === null ? tokenOf(answer) : undefined;
        if (!token) return settle(null, failureOf(answer, new URL(url).host));
        const { text, seconds } = token;
        cached.token = text;
        cached.untilMs = performance.now() + Math.max(seconds / 2, seconds - MARGIN_SECONDS) * 1000;
        settle(text, null);
      },
    );
  }
}

function tokenOf({ status, body }: RequestResult): { text: string; seconds: number } | undefined {
  if (status !== 200) return undefined;
  const { access_token: text, expires_in: seconds } = parsed(body);
  if (typeof text !== 'string' || text === '' || text.length > TOKEN_MAX || !isHeaderValue(text))
    return undefined;
  // Some servers send `expires_in` as a string.
  const given = Number(seconds ?? NaN);
  return { text, seconds: Number.isFinite(given) && given > 0 ? given : UNSAID_SECONDS };
}

/** Converts a token server's response to a failure, quoting only an RFC error code. */
function failureOf(answer: RequestResult, host: string): RequestResult {
  const { failure, status, body, remark, unsent } = answer;
  if (unsent) return answer;
  const { error } = parsed(body);
  const code = typeof error === 'string' && /^\w{1,40}$/.test(error) ? ` ${error}` : '';
  const reason =
    failure?.message ??
    (status === 200 && remark ? remark : undefined) ??
    (status === 200
      ? 'its response has no access_token that fits into a header.'
      : `it answered ${status}${code}. Check url, client_id, client_secret, client_auth and scope of the authentication.`);
  // The status and body are those of the token server, so they are not recorded.
  return {
    ...unsendable(''),
    failure: {
      class: failure?.class ?? 'unsendable',
      message: `${NO_ACCESS_TOKEN}${host}: ${reason}`,
    },
  };
}

function parsed(body: string): {
  readonly access_token?: unknown;
  readonly expires_in?: unknown;
  readonly error?: unknown;
} {
  try {
    return (JSON.parse(body) as object | null) ?? {};
  } catch {
    return {};
  }
}
