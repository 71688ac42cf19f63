import { GatewayError } from '@gateway/core/errors';
import { plainOf } from '@gateway/core/json';
import type { Log } from '@gateway/core/logging';
import { UnreachableError } from './provider-fetch.js';

/** Values of `error`: https://www.rfc-editor.org/rfc/rfc6749#section-5.2 */
interface ClientFailure extends Error {
  readonly code?: string;
  readonly error?: string;
  readonly status?: number;
}

/** The gateway's settings cause these, not the person. */
const OWN_FAULT = [
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
];

/**
 * Logs the cause. The person sees the gateway's own words: `oidc_unavailable` if the provider or
 * the settings are at fault, otherwise `oidc_failed`.
 */
export function signInFailure(
  error: unknown,
  log: Log,
): GatewayError<'oidc_unavailable' | 'oidc_failed'> {
  const { code, error: given } = error as ClientFailure;
  const said = typeof given === 'string' && /^\w{1,40}$/.test(given) ? given : undefined;
  const cause = causeOf(error);
  log.warn(
    { code, ...(said && { provider_error: said }), cause },
    'Sign-in with the OpenID Connect provider failed.',
  );
  if ([...chainOf(error)].some((it) => it instanceof UnreachableError))
    return unavailable('its response is not valid OpenID Connect');
  if (
    code === 'OAUTH_WWW_AUTHENTICATE_CHALLENGE' ||
    (said !== undefined && OWN_FAULT.includes(said))
  )
    return unavailable('it does not accept the credentials of this gateway');
  const mismatch = mismatchOf(error);
  if (mismatch !== undefined) return failed(mismatch);
  if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR')
    return failed(`the provider refused it${said ? ` (${said})` : ''}`);
  if (code === 'OAUTH_RESPONSE_BODY_ERROR')
    return failed(
      'the provider does not accept the code, which is valid once and for a short time',
    );
  return failed('the response of the provider is not valid');
}

/** For a document that is unreadable or names another issuer. */
export function discoveryFailure(error: unknown, log: Log): GatewayError<'oidc_unavailable'> {
  log.warn(
    { cause: causeOf(error) },
    'Could not read the discovery document of the OpenID Connect provider. Check oidc.issuer and oidc.allowed_networks.',
  );
  return unavailable(mismatchOf(error) ?? 'its response is not valid OpenID Connect');
}

function unavailable(reason: string) {
  return new GatewayError('oidc_unavailable', { reason });
}

export function failed(reason: string) {
  return new GatewayError('oidc_failed', { reason });
}

/** For operators. The library's messages contain nothing from the provider's responses. */
export function causeOf(error: unknown): string {
  const mismatch = mismatchOf(error);
  return [...chainOf(error)]
    .map(({ message }) => message)
    .concat(mismatch ?? [])
    .join(': ');
}

/** The library puts these in the `cause` of its errors. */
interface Compared {
  readonly attribute?: string;
  readonly claim?: string;
  readonly expected?: unknown;
  readonly body?: { readonly issuer?: unknown };
  readonly claims?: { readonly iss?: unknown };
  readonly header?: { readonly alg?: unknown };
  readonly alg?: unknown;
}

const SYMMETRIC = /^(HS\d+|none)$/;

/** Explains an unexpected issuer or signature algorithm. Undefined for other errors. */
function mismatchOf(error: unknown): string | undefined {
  const last = [...chainOf(error)].at(-1);
  if (last instanceof AlgorithmError) return last.message;
  const { attribute, claim, expected, body, claims, header, alg } = (last?.cause ?? {}) as Compared;
  if (attribute === 'issuer' || claim === 'iss') {
    const named = shown(attribute === 'issuer' ? body?.issuer : claims?.iss);
    return `it names itself ${named}, and oidc.issuer is ${shown(expected)}; if this is the right provider, set oidc.issuer to the former, to the last slash`;
  }
  const algorithm = header?.alg ?? alg;
  return algorithm === undefined ? undefined : algorithmSentence([algorithm]);
}

/** No ID token of the provider has a signature that the gateway can verify. */
export class AlgorithmError extends Error {
  override readonly name = 'AlgorithmError';
}

export function assertAsymmetric(algorithms: readonly string[] | undefined): void {
  if (algorithms?.every((it) => SYMMETRIC.test(it)))
    throw new AlgorithmError(algorithmSentence(algorithms));
}

function algorithmSentence(algorithms: readonly unknown[]): string {
  return `it signs ID tokens with ${algorithms.slice(0, 5).map(shown).join(', ')}; select an algorithm with a public key for this client there, such as RS256 or ES256`;
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(plainOf(value).slice(0, 200)) : 'nothing';
}

function* chainOf(error: unknown): Generator<Error> {
  for (let it = error; it instanceof Error; it = it.cause) yield it;
}
