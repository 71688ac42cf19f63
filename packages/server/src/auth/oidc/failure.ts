import { GatewayError } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { UnreachableError } from './provider-fetch.js';

/**
 * An error from the OpenID Connect library. Values of `error`:
 * https://www.rfc-editor.org/rfc/rfc6749#section-5.2
 */
interface ClientFailure extends Error {
  readonly code?: string;
  readonly error?: string;
  readonly status?: number;
}

/** Values of `error` caused by the gateway's settings, not by the person. */
const OWN_FAULT = [
  'invalid_client',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
];

/**
 * Logs the cause of a failed sign-in and returns the error shown to the person, in the gateway's
 * own words: `oidc_unavailable` if the provider or the settings are at fault, otherwise
 * `oidc_failed`.
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
    'A sign-in with the OpenID Connect provider has failed.',
  );
  if ([...chainOf(error)].some((it) => it instanceof UnreachableError))
    return unavailable('its response is not valid OpenID Connect');
  if (
    code === 'OAUTH_WWW_AUTHENTICATE_CHALLENGE' ||
    (said !== undefined && OWN_FAULT.includes(said))
  )
    return unavailable('it does not accept the credentials of this gateway');
  if (code === 'OAUTH_AUTHORIZATION_RESPONSE_ERROR')
    return failed(`the provider refused it${said ? ` (${said})` : ''}`);
  if (code === 'OAUTH_RESPONSE_BODY_ERROR')
    return failed(
      'the provider does not accept the code, which is valid once and for a short time',
    );
  return failed('the response of the provider is not valid');
}

/**
 * Logs and returns the error for a discovery document that is unreadable or names another issuer.
 */
export function discoveryFailure(error: unknown, log: Log): GatewayError<'oidc_unavailable'> {
  log.warn(
    { cause: causeOf(error) },
    'The document of the OpenID Connect provider could not be read. Check oidc.issuer and oidc.allowed_networks.',
  );
  return unavailable('its response is not valid OpenID Connect');
}

function unavailable(reason: string) {
  return new GatewayError('oidc_unavailable', { reason });
}

export function failed(reason: string) {
  return new GatewayError('oidc_failed', { reason });
}

/**
 * Returns the cause of an error for operators. The library's messages contain nothing from the
 * provider's responses.
 */
export function causeOf(error: unknown): string {
  return [...chainOf(error)].map(({ message }) => message).join(': ');
}

function* chainOf(error: unknown): Generator<Error> {
  for (let it = error; it instanceof Error; it = it.cause) yield it;
}
