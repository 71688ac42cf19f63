import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import type { SignatureConfig } from '@gateway/store/config';

/** `createHmac` of Node 24 takes 16 µs with the bytes of a key, and 3 µs with a key object. */
export interface SigningKey {
  /** UTF-8 bytes of the secret. */
  readonly plain: KeyObject;
  readonly standard: KeyObject;
}

/** The standard key is the base64 after `whsec_`, not validated, or else the UTF-8 bytes. */
export function signingKey(secret: string): SigningKey {
  const [, base64] = /^whsec_(.*)$/s.exec(secret) ?? [];
  const plain = createSecretKey(Buffer.from(secret));
  return {
    plain,
    standard: base64 === undefined ? plain : createSecretKey(Buffer.from(base64, 'base64')),
  };
}

/**
 * Returns one signature per live secret: receivers verify during a rotation.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 *
 * @param timestamp seconds since the epoch
 */
export function standardSignature(
  keys: readonly SigningKey[],
  id: string,
  timestamp: number,
  body: Buffer,
): string {
  let value = '';
  for (const key of keys) {
    const signature = createHmac('sha256', key.standard)
      .update(`${id}.${timestamp}.`)
      .update(body)
      .digest('base64');
    value += value === '' ? `v1,${signature}` : ` v1,${signature}`;
  }
  return value;
}

/** Returns the plain HMAC of the body, keyed with the whole newest secret. */
export function plainSignature(
  key: SigningKey,
  body: Buffer,
  { hash, encoding }: SignatureConfig,
): string {
  return createHmac(hash === 'SHA512' ? 'sha512' : 'sha256', key.plain)
    .update(body)
    .digest(encoding);
}
