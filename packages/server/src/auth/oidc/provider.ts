import type * as Client from 'openid-client';
import type { Config, Links } from '@gateway/core/config';
import type { Sealer } from '@gateway/core/crypto';
import type { Log } from '@gateway/core/logging';
import { discover } from './discovery.js';
import { discoveryFailure, failed, signInFailure } from './failure.js';
import { personOf, type OidcPerson } from './person.js';
import { providerFetch } from './provider-fetch.js';

const CALLBACK = '/sign-in/callback';
const PENDING_MS = 10 * 60_000;
/** The discovery document rarely changes, and its keys are reloaded when one is missing. */
const KNOWN_MS = 3_600_000;
const PLACE = ['cookies', 'sign-in'] as const;

/** Stored sealed in the browser until the provider responds. */
interface Pending {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
  readonly untilMs: number;
}

/**
 * Authorization code flow with PKCE, state and nonce:
 * https://openid.net/specs/openid-connect-core-1_0.html
 */
export interface OidcProvider {
  /**
   * `pending` is the sealed state to store in the browser. Throws `oidc_unavailable` if the
   * provider's discovery document cannot be used.
   */
  begin(): Promise<{ readonly url: string; readonly pending: string; readonly expiresAt: Date }>;
  /**
   * Throws `oidc_unavailable` if the provider or the settings are at fault, otherwise
   * `oidc_failed`.
   * @param query the query string of the provider's redirect
   * @param pending the sealed state from the browser
   */
  complete(query: string, pending: string | undefined): Promise<OidcPerson>;
  close(): Promise<void>;
}

/**
 * Undefined without `oidc.issuer`. Sends no request before the first sign-in.
 */
export async function openOidc({
  config,
  sealer,
  links,
  log,
}: {
  config: Config;
  sealer: Sealer;
  links: Links;
  log: Log;
}): Promise<OidcProvider | undefined> {
  const { issuer, scopes } = config.oidc;
  if (issuer === undefined) return undefined;
  const client = await import('openid-client');
  const http = providerFetch(config);
  const callback = links.base + CALLBACK;
  const scope = [...new Set(['openid', ...scopes])].join(' ');

  let known:
    { readonly configuration: Promise<Client.Configuration>; readonly untilMs: number } | undefined;
  function discovered(): Promise<Client.Configuration> {
    if (known && performance.now() < known.untilMs) return known.configuration;
    const configuration = discover(client, config, http);
    const own = (known = { configuration, untilMs: performance.now() + KNOWN_MS });
    configuration.catch(() => {
      if (known === own) known = undefined;
    });
    return configuration.catch((error: unknown) => {
      throw discoveryFailure(error, log);
    });
  }

  return {
    async begin() {
      const configuration = await discovered();
      const pending: Pending = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
        untilMs: Date.now() + PENDING_MS,
      };
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: callback,
        scope,
        state: pending.state,
        nonce: pending.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(pending.verifier),
        code_challenge_method: 'S256',
      });
      // This URL comes from the provider's document, but browsers must only be sent to HTTP or
      // HTTPS.
      if (!/^https?:$/.test(url.protocol))
        throw discoveryFailure(new Error('its authorization_endpoint is not an HTTP URL'), log);
      return {
        url: url.href,
        pending: sealer.seal(JSON.stringify(pending), PLACE),
        expiresAt: new Date(pending.untilMs),
      };
    },
    async complete(query, sealed) {
      const { state, nonce, verifier } = opened(sealer, sealed);
      const answer = new URL(`${callback}?${query.replace(/^\?/, '')}`);
      if (answer.searchParams.get('state') !== state)
        throw failed('the response of the provider belongs to another sign-in');
      const configuration = await discovered();
      try {
        const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier };
        const tokens = await client.authorizationCodeGrant(configuration, answer, checks);
        const claims = tokens.claims()!;
        // Some providers return the email address only from the userinfo endpoint.
        const isUnsaid =
          claims['email'] === undefined &&
          configuration.serverMetadata().userinfo_endpoint !== undefined;
        const more = isUnsaid
          ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
          : {};
        return personOf({ ...more, ...claims });
      } catch (error) {
        throw signInFailure(error, log);
      }
    },
    close: () => http.close(),
  };
}

function opened(sealer: Sealer, sealed: string | undefined): Pending {
  const late = failed('it took longer than ten minutes, or was started in another browser');
  if (sealed === undefined) throw late;
  let pending: Pending;
  try {
    pending = JSON.parse(sealer.open(sealed, PLACE)) as Pending;
  } catch {
    throw late;
  }
  if (pending.untilMs < Date.now()) throw late;
  return pending;
}
