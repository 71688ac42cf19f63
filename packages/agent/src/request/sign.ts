import { createHmac } from 'node:crypto';
import type { SignatureConfig } from '@gateway/store/config';

/** A secret of an endpoint, ready to sign with. */
export interface SigningKey {
  /** As shown to the owner of the endpoint, `whsec_…`. */
  readonly secret: string;
  /** The decoded base64 after `whsec_`: the key of the Standard Webhooks signature. */
  readonly bytes: Buffer;
}

export function signingKey(secret: string): SigningKey {
  return { secret, bytes: Buffer.from(secret.replace(/^whsec_/, ''), 'base64') };
}

/**
 * The value of `webhook-signature`: one signature per live secret, so that receivers verify during a rotation.
 * https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 *
 * @param timestamp seconds since the epoch, as in `webhook-timestamp`
 */
export function standardSignature(keys: readonly SigningKey[], id: string, timestamp: number, body: Buffer): string {
  let value = '';
  for (const key of keys) {
    const signature = createHmac('sha256', key.bytes).update(`${id}.${timestamp}.`).update(body).digest('base64');
    value += value === '' ? `v1,${signature}` : ` v1,${signature}`;
  }
  return value;
}

/** The plain HMAC of the body. Its key is the whole text of the newest secret. */
export function plainSignature(key: SigningKey, body: Buffer, { hash, encoding }: SignatureConfig): string {
  return createHmac(hash === 'SHA512' ? 'sha512' : 'sha256', key.secret)
    .update(body)
    .digest(encoding);
}
