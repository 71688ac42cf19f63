import { createPublicKey, verify, type KeyObject } from 'node:crypto';
import { GatewayError } from './errors.js';

/** What the community licence entitles to. Sources, transforms, filters and the dashboard need no entitlement. */
export const COMMUNITY_ENTITLEMENTS: readonly string[] = ['otel', 'errtrack', 'pullmetrics'];

export interface Licence {
  readonly kind: 'community' | 'licensed';
  readonly organisation?: string;
  readonly entitlements: ReadonlySet<string>;
  readonly expiresAt?: Date;
  /** Why a token that was given is not in force; the process says so and runs as community. */
  readonly problem?: GatewayError;
}

/**
 * Reads a licence token, offline: base64url of its JSON `{ organisation, entitlements, expires_at }`, a dot, and base64url of the Ed25519
 * signature over the first part. Never throws: a token that is missing gives the community licence, one that is forged, damaged or expired gives it
 * with the problem.
 */
export function readLicence({
  token,
  publicKey,
  now = new Date(),
}: {
  token: string | undefined;
  publicKey: string | undefined;
  now?: Date;
}): Licence {
  if (!token) return community();
  try {
    if (!publicKey) throw invalid('license_public_key is not set, so it cannot be checked');
    const [body, signature, ...rest] = token.trim().split('.');
    if (!body || !signature || rest.length > 0) throw invalid('it is not a token of two parts');
    if (!verify(null, Buffer.from(body), keyOf(publicKey), Buffer.from(signature, 'base64url'))) throw invalid('its signature is wrong');
    const { organisation, entitlements, expiresAt } = fieldsOf(body);
    if (expiresAt <= now) throw new GatewayError('licence_expired', { expiredAt: expiresAt.toISOString(), organisation });
    return { kind: 'licensed', organisation, entitlements: new Set(entitlements), expiresAt };
  } catch (error) {
    return community(error instanceof GatewayError ? error : invalid('it cannot be read', error));
  }
}

function community(problem?: GatewayError): Licence {
  return { kind: 'community', entitlements: new Set(COMMUNITY_ENTITLEMENTS), ...(problem ? { problem } : {}) };
}

function invalid(reason: string, cause?: unknown): GatewayError {
  return new GatewayError('licence_invalid', { reason }, { cause });
}

/** An Ed25519 key as PEM, or its 32 bytes in base64 (https://www.rfc-editor.org/rfc/rfc8037#section-2). */
function keyOf(publicKey: string): KeyObject {
  try {
    const x = Buffer.from(publicKey, 'base64').toString('base64url');
    const pem = publicKey.includes('-----BEGIN');
    const key = createPublicKey(pem ? publicKey : { key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
    if (key.asymmetricKeyType !== 'ed25519') throw new Error(`a key of type ${key.asymmetricKeyType}`);
    return key;
  } catch (cause) {
    throw invalid('license_public_key is not an Ed25519 public key', cause);
  }
}

function fieldsOf(body: string): { organisation: string; entitlements: string[]; expiresAt: Date } {
  const fields = JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as Record<string, unknown>;
  const { organisation, entitlements, expires_at: expires } = fields;
  const expiresAt = new Date(typeof expires === 'string' ? expires : NaN);
  if (typeof organisation !== 'string') throw invalid('it has no organisation');
  if (!Array.isArray(entitlements) || !entitlements.every((it) => typeof it === 'string')) throw invalid('it has no list of entitlements');
  if (Number.isNaN(expiresAt.getTime())) throw invalid('it has no expires_at');
  return { organisation, entitlements, expiresAt };
}
