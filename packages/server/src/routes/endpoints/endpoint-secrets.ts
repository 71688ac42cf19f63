import type { Sealer } from '@gateway/core/crypto';
import { MASK } from '@gateway/core/logging';
import {
  liveSecrets,
  withSecret,
  type EndpointAuthentication,
  type SecretRecord,
} from '@gateway/store/config';

export interface ShownSecret {
  readonly id: string;
  readonly secret: string;
}

/** Shorter secrets in plain text can be guessed from a signature. */
const TEXT_MIN = 12;

/**
 * The end of a sentence. A valid secret is `whsec_` with base64 of 24 to 64 bytes, or any other
 * text of at least 12 characters.
 */
export function secretProblem(secret: string): string | undefined {
  if (!secret.startsWith('whsec_')) {
    return secret.length >= TEXT_MIN
      ? undefined
      : `must have at least ${TEXT_MIN} characters; omit it to generate one`;
  }
  const base64 = secret.slice('whsec_'.length);
  const bytes = Buffer.from(base64, 'base64');
  if (bytes.toString('base64') !== base64)
    return 'is not base64 after whsec_, as Standard Webhooks writes secrets';
  return bytes.length >= 24 && bytes.length <= 64
    ? undefined
    : `holds ${bytes.length} bytes; a secret has 24 to 64`;
}

/** Live secrets, masked except for `shown`. */
export function secretViews(secrets: readonly SecretRecord[], shown?: ShownSecret): unknown[] {
  return liveSecrets(secrets).map(({ id, created_at, expires_at, ed25519 }) => ({
    uid: id,
    value: id === shown?.id ? shown.secret : `whsec_${MASK}`,
    public_key: ed25519 ? `whpk_${ed25519.public_key}` : null,
    created_at,
    expires_at,
  }));
}

export function authenticationView(
  authentication: EndpointAuthentication | null,
): EndpointAuthentication | null {
  return authentication && withSecret(authentication, () => MASK);
}

/**
 * Binds the secret to this endpoint. A mask keeps the stored secret of the same type; without one,
 * the result is undefined.
 */
export function sealAuthentication(
  given: EndpointAuthentication,
  stored: EndpointAuthentication | null,
  endpointId: string,
  { seal, bind }: Sealer,
): EndpointAuthentication | undefined {
  const kept = stored?.type === given.type ? secretOf(stored) : undefined;
  if (isMasked(given) && kept === undefined) return undefined;
  const place = ['endpoints', endpointId, 'authentication'] as const;
  return withSecret(given, (secret) =>
    secret === MASK ? bind(kept!, place) : seal(secret, place),
  );
}

export function isMasked(authentication: EndpointAuthentication): boolean {
  return secretOf(authentication) === MASK;
}

function secretOf(authentication: EndpointAuthentication): string {
  let found = '';
  withSecret(authentication, (secret) => (found = secret));
  return found;
}
