import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  sign,
  type KeyObject,
} from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { fileReason, GatewayError } from '@gateway/core/errors';
import { publicKeyId, type LicenceFields } from '@gateway/core/plugins';

/**
 * Generates a distribution's key pair and writes the private key to a new file with mode 0600.
 * Returns the public key. Throws `licence_key_file` if the file exists or cannot be written.
 */
export function generateLicenceKey(path: string): KeyObject {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  try {
    writeFileSync(path, privateKey.export({ format: 'pem', type: 'pkcs8' }), {
      flag: 'wx',
      mode: 0o600,
    });
  } catch (cause) {
    const exists = (cause as { code?: string }).code === 'EEXIST';
    const reason = exists
      ? 'already exists, and a key in use must not be overwritten'
      : `cannot be written: ${fileReason(cause)}`;
    const fix = 'name a new file in a folder that this user can write to';
    throw new GatewayError('licence_key_file', { path, reason, fix }, { cause });
  }
  return publicKey;
}

interface LicenceRequest {
  readonly organisation: string;
  readonly entitlements: readonly string[];
  readonly issuedAt: Date;
  readonly expiresAt: Date;
}

/**
 * Signs a licence. Throws `licence_key_file` if the private key cannot be read or is not Ed25519.
 *
 * @param path the PEM file with the private key
 * @returns the token, and the public key to verify it
 */
export function issueLicence(
  path: string,
  request: LicenceRequest,
): { token: string; publicKey: KeyObject } {
  const privateKey = readLicenceKey(path);
  const publicKey = createPublicKey(privateKey);
  const fields: LicenceFields = {
    organisation: request.organisation,
    entitlements: request.entitlements,
    issued_at: request.issuedAt.toISOString(),
    expires_at: request.expiresAt.toISOString(),
    key_id: publicKeyId(publicKey),
  };
  const body = Buffer.from(JSON.stringify(fields)).toString('base64url');
  return {
    token: `${body}.${sign(null, Buffer.from(body), privateKey).toString('base64url')}`,
    publicKey,
  };
}

function readLicenceKey(path: string): KeyObject {
  const refused = (reason: string, cause?: unknown) =>
    new GatewayError('licence_key_file', { path, reason }, { cause });
  let pem: string;
  try {
    pem = readFileSync(path, 'utf8');
  } catch (cause) {
    throw refused(`cannot be read: ${fileReason(cause)}`, cause);
  }
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch (cause) {
    throw refused('holds no private key in PEM that can be read without a password', cause);
  }
  if (key.asymmetricKeyType !== 'ed25519')
    throw refused(`holds a private key of type ${key.asymmetricKeyType}, not Ed25519`);
  return key;
}
