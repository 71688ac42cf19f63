import type * as Client from 'openid-client';
import type { Config } from '@gateway/core/config';
import { assertAsymmetric, causeOf } from './failure.js';
import { providerFetch, type ProviderFetch } from './provider-fetch.js';

const TIMEOUT_SECONDS = 10;

type OidcSettings = Pick<Config, 'oidc' | 'delivery'>;

/**
 * Requires `oidc.issuer` and `oidc.client_id`.
 * https://openid.net/specs/openid-connect-discovery-1_0.html
 */
export async function discover(
  client: typeof Client,
  { oidc }: OidcSettings,
  http: ProviderFetch,
): Promise<Client.Configuration> {
  const { issuer = '', client_id: clientId = '', client_secret: secret } = oidc;
  const configuration = await client.discovery(
    new URL(issuer),
    clientId,
    undefined,
    authentication(client, secret),
    {
      [client.customFetch]: (...given) => http.fetch(...given),
      timeout: TIMEOUT_SECONDS,
      execute: [
        // Verifies the signature of ID tokens instead of relying on the connection alone.
        client.enableNonRepudiationChecks,
        ...(issuer.startsWith('http:') ? [client.allowInsecureRequests] : []),
      ],
    },
  );
  assertAsymmetric(configuration.serverMetadata().id_token_signing_alg_values_supported);
  return configuration;
}

/** For `gateway utils doctor`. The error states the cause. */
export async function checkProvider(config: OidcSettings): Promise<void> {
  const client = await import('openid-client');
  const http = providerFetch(config);
  try {
    await discover(client, config, http);
  } catch (error) {
    throw new Error(causeOf(error), { cause: error });
  } finally {
    await http.close();
  }
}

/**
 * HTTP Basic if the provider supports it or declares no method, otherwise the secret in the body.
 */
function authentication(client: typeof Client, secret: string | undefined): Client.ClientAuth {
  if (secret === undefined) return client.None();
  const [basic, post] = [client.ClientSecretBasic(secret), client.ClientSecretPost(secret)];
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic'];
    return (methods.includes('client_secret_basic') ? basic : post)(server, ...rest);
  };
}
