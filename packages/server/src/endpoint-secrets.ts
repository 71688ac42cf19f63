import { randomBytes } from 'node:crypto';
import { MASK, newId, type Sealer } from '@gateway/core';
import type { EndpointAuthentication, SecretRecord } from '@gateway/store';

/** Secrets that sign at a time: each adds a signature to every request. */
export const LIVE_SECRETS_MAX = 5;

/** A secret as Standard Webhooks wants it: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
export function generateSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** What is wrong with a given secret, undefined when it is right. */
export function secretProblem(secret: string): string | undefined {
  const [, base64] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret) ?? [];
  const bytes = base64 === undefined ? undefined : Buffer.from(base64, 'base64');
  if (bytes === undefined || bytes.toString('base64') !== base64)
    return 'must be whsec_ and base64, as Standard Webhooks writes secrets; leave it out to have one made';
  return bytes.length >= 24 && bytes.length <= 64 ? undefined : `holds ${bytes.length} bytes; a secret has 24 to 64`;
}

export function sealSecret(secret: string, { seal }: Sealer): SecretRecord {
  return { id: newId(), value: seal(secret), created_at: new Date().toISOString(), expires_at: null };
}

/** The secrets that still sign. */
export function liveSecrets(secrets: readonly SecretRecord[], now = new Date()): SecretRecord[] {
  return secrets.filter(({ expires_at }) => expires_at === null || new Date(expires_at) > now);
}

/** The new secret before the live ones, which sign for `overlapMs` more and then end. */
export function rotated(secrets: readonly SecretRecord[], fresh: SecretRecord, overlapMs: number): SecretRecord[] {
  const end = new Date(Date.now() + overlapMs);
  const old = liveSecrets(secrets).map((secret) =>
    secret.expires_at !== null && new Date(secret.expires_at) < end ? secret : { ...secret, expires_at: end.toISOString() },
  );
  return [fresh, ...liveSecrets(old)];
}

/** The secrets as answers show them: masked, but for one that was just made or given. */
export function secretViews(secrets: readonly SecretRecord[], shown?: { id: string; secret: string }): unknown[] {
  return liveSecrets(secrets).map(({ id, created_at, expires_at }) => ({
    uid: id,
    value: id === shown?.id ? shown.secret : `whsec_${MASK}`,
    created_at,
    expires_at,
  }));
}

/** The value of an authentication that is a secret, replaced. */
function withSecret(authentication: EndpointAuthentication, change: (secret: string) => string): EndpointAuthentication {
  switch (authentication.type) {
    case 'api_key':
      return { type: 'api_key', api_key: { ...authentication.api_key, header_value: change(authentication.api_key.header_value) } };
    case 'basic':
      return { type: 'basic', basic: { ...authentication.basic, password: change(authentication.basic.password) } };
    case 'bearer':
      return { type: 'bearer', bearer: { token: change(authentication.bearer.token) } };
  }
}

export function authenticationView(authentication: EndpointAuthentication | null): EndpointAuthentication | null {
  return authentication && withSecret(authentication, () => MASK);
}

/** Sealed for storage. A masked value stands for the one that is stored for the same type; undefined when there is none. */
export function sealAuthentication(
  given: EndpointAuthentication,
  stored: EndpointAuthentication | null,
  { seal }: Sealer,
): EndpointAuthentication | undefined {
  const kept = stored?.type === given.type ? secretOf(stored) : undefined;
  if (secretOf(given) === MASK && kept === undefined) return undefined;
  return withSecret(given, (secret) => (secret === MASK ? kept! : seal(secret)));
}

function secretOf(authentication: EndpointAuthentication): string {
  let found = '';
  withSecret(authentication, (secret) => (found = secret));
  return found;
}
