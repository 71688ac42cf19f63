import { createHash, createPublicKey, verify, type KeyObject } from 'node:crypto';
import { GatewayError } from '../errors/errors.js';
import { isObject } from '../json/json-value.js';
import type { InstalledPlugin } from './manifest.js';

/** Sources, transforms, filters and the dashboard need none. */
export const COMMUNITY_ENTITLEMENTS: readonly string[] = ['otel', 'errtrack', 'pullmetrics'];

export interface Licence {
  readonly kind: 'community' | 'licensed';
  readonly organisation?: string;
  readonly entitlements: ReadonlySet<string>;
  readonly issuedAt?: Date;
  readonly expiresAt?: Date;
  /** Undefined if the token is valid or there is none. */
  readonly problem?: GatewayError;
}

/** How far this machine's clock may be behind the issuer's. */
const CLOCK_TOLERANCE_MS = 10 * 60_000;
const SIGNATURE_BYTES = 64;
const PUBLIC_KEY_FIX =
  'set license_public_key / GATEWAY_LICENSE_PUBLIC_KEY to the key that your distributor publishes';

/**
 * Reads a token offline: the base64url of its fields as JSON, a dot, and the base64url of its
 * Ed25519 signature. docs/guides/licence.md describes the fields. Never throws: without a
 * valid token, returns the community licence, with the problem if there is one.
 */
export function readLicence(given: {
  token: string | undefined;
  publicKey: string | undefined;
  now?: Date;
}): Licence {
  const { token, publicKey, now = new Date() } = given;
  if (!token) return community();
  try {
    if (!publicKey)
      throw invalid('license_public_key is not set, so it cannot be checked', PUBLIC_KEY_FIX);
    return licenceOf(verified(token.trim(), keyOf(publicKey)), now);
  } catch (error) {
    return community(
      error instanceof GatewayError ? error : invalid('it cannot be read', undefined, error),
    );
  }
}

type Plugins = readonly Pick<InstalledPlugin, 'manifest'>[];

/** Sorted. */
export function unknownEntitlements(
  { kind, entitlements }: Licence,
  plugins: Plugins,
): readonly string[] {
  if (kind === 'community') return [];
  const known = new Set(plugins.map(({ manifest }) => manifest.entitlement));
  return [...entitlements].filter((it) => !known.has(it)).sort();
}

const DAY_MS = 86_400_000;

/** `problem` explains why the token is not valid, or is null. */
export function licenceRecord(licence: Licence, plugins: Plugins) {
  const { kind, organisation, entitlements, issuedAt, expiresAt, problem } = licence;
  return {
    kind,
    organisation: organisation ?? null,
    entitlements: [...entitlements].sort(),
    /** No installed plugin requires these. */
    unknown_entitlements: unknownEntitlements(licence, plugins),
    issued_at: issuedAt?.toISOString() ?? null,
    expires_at: expiresAt?.toISOString() ?? null,
    days_left: expiresAt ? Math.round((expiresAt.getTime() - Date.now()) / DAY_MS) : null,
    problem: problem ? { code: problem.code, sentence: problem.message, fix: problem.fix } : null,
  };
}

/** The start of the hash of the key's 32 bytes in base64. */
function publicKeyId(key: KeyObject): string {
  const text = key.export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64');
  return createHash('sha256').update(text).digest('hex').slice(0, 8);
}

function community(problem?: GatewayError): Licence {
  return {
    kind: 'community',
    entitlements: new Set(COMMUNITY_ENTITLEMENTS),
    ...(problem ? { problem } : {}),
  };
}

function invalid(reason: string, fix?: string, cause?: unknown): GatewayError {
  return new GatewayError('licence_invalid', { reason, ...(fix ? { fix } : {}) }, { cause });
}

/**
 * @throws GatewayError `licence_invalid` if the token is damaged, forged or signed with another key
 */
function verified(token: string, key: KeyObject): Record<string, unknown> {
  const [body = '', signature = '', ...rest] = token.split('.');
  if (!body || !signature || rest.length > 0) throw invalid('it is not a token of two parts');
  const bytes = Buffer.from(signature, 'base64url');
  const fields = contentOf(body);
  if (bytes.length !== SIGNATURE_BYTES || !fields)
    throw invalid('it is damaged: a part of it is missing or was changed');
  if (verify(null, Buffer.from(body), key, bytes)) return fields;
  const [signed, ours] = [fields['key_id'], publicKeyId(key)];
  if (typeof signed === 'string' && /^[0-9a-f]{8}$/.test(signed) && signed !== ours) {
    throw invalid(
      `it is signed with the key ${signed}, and license_public_key is the key ${ours}`,
      PUBLIC_KEY_FIX,
    );
  }
  throw invalid('its signature is wrong');
}

/** Untrusted until the signature is verified. */
function contentOf(body: string): Record<string, unknown> | undefined {
  try {
    const content: unknown = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'));
    return isObject(content) ? content : undefined;
  } catch {
    return undefined;
  }
}

/** PEM, or 32 bytes in base64 (https://www.rfc-editor.org/rfc/rfc8037#section-2). */
function keyOf(publicKey: string): KeyObject {
  try {
    const x = Buffer.from(publicKey, 'base64').toString('base64url');
    const pem = publicKey.includes('-----BEGIN');
    const key = createPublicKey(
      pem ? publicKey : { key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' },
    );
    if (key.asymmetricKeyType !== 'ed25519')
      throw new Error(`a key of type ${key.asymmetricKeyType}`);
    return key;
  } catch (cause) {
    throw invalid('license_public_key is not an Ed25519 public key', PUBLIC_KEY_FIX, cause);
  }
}

function licenceOf(
  { organisation, entitlements, issued_at: issued, expires_at: expires }: Record<string, unknown>,
  now: Date,
): Licence {
  const expiresAt = timeOf(expires);
  const issuedAt = timeOf(issued);
  if (typeof organisation !== 'string') throw invalid('it has no organisation');
  if (!Array.isArray(entitlements) || !entitlements.every((it) => typeof it === 'string'))
    throw invalid('it has no list of entitlements');
  if (!expiresAt) throw invalid('it has no expires_at');
  if (issued !== undefined && !issuedAt) throw invalid('its issued_at is not a time');
  const clock = now.toISOString();
  if (issuedAt && issuedAt.getTime() > now.getTime() + CLOCK_TOLERANCE_MS) {
    throw new GatewayError('licence_not_yet', {
      issuedAt: issuedAt.toISOString(),
      organisation,
      now: clock,
    });
  }
  if (expiresAt <= now)
    throw new GatewayError('licence_expired', {
      expiredAt: expiresAt.toISOString(),
      organisation,
      now: clock,
    });
  return {
    kind: 'licensed',
    organisation,
    entitlements: new Set(entitlements),
    ...(issuedAt ? { issuedAt } : {}),
    expiresAt,
  };
}

function timeOf(value: unknown): Date | undefined {
  const time = new Date(typeof value === 'string' ? value : NaN);
  return Number.isNaN(time.getTime()) ? undefined : time;
}
