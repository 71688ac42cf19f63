import { createHash, generateKeyPairSync, sign } from 'node:crypto';

export const DAY_MS = 86_400_000;

/** A private distribution: the public key for `license_public_key`, and licences signed with it. */
export interface Licensing {
  readonly publicKey: string;
  /** The first digits of the public key's hash, which its tokens have as `key_id`. */
  readonly keyId: string;
  /** Signs any fields as a token. */
  token(fields: unknown): string;
  /** The token of a licence for Acme; times are relative to now. */
  licence(fields?: {
    entitlements?: readonly string[];
    issuedInMs?: number;
    expiresInMs?: number;
  }): string;
}

export function licensing(): Licensing {
  const keys = generateKeyPairSync('ed25519');
  const publicKey = keys.publicKey
    .export({ format: 'der', type: 'spki' })
    .subarray(-32)
    .toString('base64');
  const keyId = createHash('sha256').update(publicKey).digest('hex').slice(0, 8);
  const token = (fields: unknown) => {
    const body = Buffer.from(JSON.stringify(fields)).toString('base64url');
    return `${body}.${sign(null, Buffer.from(body), keys.privateKey).toString('base64url')}`;
  };
  return {
    publicKey,
    keyId,
    token,
    licence: ({
      entitlements = ['apm'],
      issuedInMs = -2 * DAY_MS,
      expiresInMs = 30 * DAY_MS,
    } = {}) => {
      const at = (inMs: number) => new Date(Date.now() + inMs).toISOString();
      return token({
        organisation: 'Acme',
        entitlements,
        issued_at: at(issuedInMs),
        expires_at: at(expiresInMs),
        key_id: keyId,
      });
    },
  };
}
