import {
  ErrorChain,
  explainNetwork,
  PluginError,
  tokenRequest,
  type TokenClient,
} from '@gateway/plugin';
import type { Mechanism } from 'kafkajs';

const SEPARATOR = '\u0001';
const REQUEST_MS = 5_000;
/** A token is renewed after this share of its lifetime. */
const RENEW_AT = 0.8;
/** Decompressed. */
const ANSWER_MAX_BYTES = 256 * 1024;
/**
 * These error codes are shown (https://www.rfc-editor.org/rfc/rfc6749#section-5.2). Other parts of
 * a response are not, because the endpoint may be any server.
 */
const REFUSALS = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
];
/** If the response states no lifetime. */
const EXPIRES_IN_SECONDS = 300;

export interface ClientCredentials extends Omit<TokenClient, 'audience'> {
  readonly token_endpoint: string;
}

/**
 * A token per login (RFC 7628). kafkajs's own mechanism ignores the response: it treats a rejection
 * as success, and the next request fails for no apparent reason.
 * @param extensions for the broker (RFC 7628, 3.1), such as the cluster behind a shared address
 */
export function oauthBearer(
  tokenOf: () => Promise<string>,
  extensions: Readonly<Record<string, string>> = {},
): Mechanism {
  const pairs = Object.entries(extensions).map(([name, value]) => `${name}=${value}${SEPARATOR}`);
  return {
    mechanism: 'oauthbearer',
    authenticationProvider: ({ saslAuthenticate }) => ({
      authenticate: async () => {
        const login = `n,,${SEPARATOR}auth=Bearer ${await tokenOf()}${SEPARATOR}${pairs.join('')}${SEPARATOR}`;
        const challenge = await saslAuthenticate({ request: framed(login), response: text });
        // A challenge means that the token was rejected. The broker fails the login after this
        // acknowledgement.
        if (challenge) await saslAuthenticate({ request: framed(SEPARATOR), response: text });
      },
    }),
  };
}

/** With Kafka's length prefix. */
function framed(message: string) {
  const bytes = Buffer.from(message);
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes.length);
  return { encode: () => Buffer.concat([length, bytes]) };
}

const text = {
  decode: (framedBytes: Buffer) => framedBytes.subarray(4),
  parse: (bytes: Buffer) => bytes.toString(),
};

/** The client credentials grant (RFC 6749, 4.4). Rejects with a `PluginError`. */
export function clientCredentials(client: ClientCredentials): () => Promise<string> {
  return renewed(() => askForToken(client));
}

export interface Token {
  readonly value: string;
  /** Epoch milliseconds. */
  readonly askedAt: number;
  readonly endsAt: number;
}

/**
 * Caches a token until near its expiry. Concurrent callers share one request. Rejects if `ask`
 * does.
 */
export function renewed(ask: () => Promise<Token>): () => Promise<string> {
  let token: Token | undefined;
  // A monotonic time, because the wall clock may be changed in the meantime.
  let freshUntilMs = 0;
  let asking: Promise<Token> | undefined;
  const askNow = async () => {
    const askedAtMs = performance.now();
    token = await ask();
    freshUntilMs = askedAtMs + (token.endsAt - token.askedAt) * RENEW_AT;
    return token;
  };
  return async () => {
    const isFresh = token && performance.now() < freshUntilMs;
    return (isFresh ? token! : await (asking ??= askNow().finally(() => (asking = undefined))))
      .value;
  };
}

async function askForToken(client: ClientCredentials): Promise<Token> {
  const { token_endpoint: endpoint, client_id: id } = client;
  const place = `The token endpoint ${endpoint}`;
  const askedAt = Date.now();
  let status: number;
  let answer: { access_token?: unknown; expires_in?: unknown; error?: unknown };
  try {
    const response = await fetch(endpoint, {
      method: 'POST',
      ...tokenRequest(client),
      redirect: 'error',
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    ({ status } = response);
    answer = await jsonOf(response);
  } catch (cause) {
    throw (
      explainNetwork(new ErrorChain(cause), {
        place: endpoint,
        authority: 'a known authority',
        fixes: NETWORK_FIXES,
      }) ?? failed(place, cause)
    );
  }
  const { access_token: value, expires_in: expiresIn, error } = answer;
  if (typeof value === 'string' && value !== '') {
    const livesMs = (Number(expiresIn ?? EXPIRES_IN_SECONDS) || 0) * 1000;
    return { value, askedAt, endsAt: askedAt + livesMs };
  }
  const reason = REFUSALS.find((it) => it === error) ?? `status ${status} without a token`;
  if (status < 500) {
    throw new PluginError(`${place} refused the client "${id}": ${reason}.`, {
      fix: 'Check auth.client_id, auth.client_secret, auth.client_auth and auth.scope, that the client may use the client credentials grant, and that this is the token endpoint.',
    });
  }
  throw new PluginError(`${place} gave no token: ${reason}.`, {
    fix: 'Check the health of the identity provider.',
  });
}

/** Empty if the response is not a JSON object or too long. */
async function jsonOf(
  response: Response,
): Promise<{ access_token?: unknown; expires_in?: unknown; error?: unknown }> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    if ((bytes += chunk.byteLength) > ANSWER_MAX_BYTES) return {};
    chunks.push(chunk);
  }
  try {
    const answer: unknown = JSON.parse(Buffer.concat(chunks).toString());
    return typeof answer === 'object' && answer !== null ? answer : {};
  } catch {
    return {};
  }
}

const trusted =
  'Give it a certificate that this machine trusts (NODE_EXTRA_CA_CERTS names further authorities).';
const NETWORK_FIXES = {
  wrongHost: trusted,
  expired: trusted,
  untrusted: trusted,
  noTls: 'Check auth.token_endpoint: http:// and https://.',
  unresolved: 'Check auth.token_endpoint, and the name service of this machine.',
  refused: 'Check auth.token_endpoint, and that the identity provider runs.',
  silent: 'Check auth.token_endpoint, and that a firewall lets this machine reach it.',
};

function failed(place: string, cause: unknown): PluginError {
  const [reason] = new ErrorChain(cause).messages.split('\n').slice(-1);
  return new PluginError(`${place} could not be asked for a token.`, {
    fix: 'Check auth.token_endpoint.',
    cause,
    said: reason,
  });
}
