import { createHash, timingSafeEqual } from 'node:crypto';
import type { Verifier } from './connection.js';

/** Standard Webhooks. Undefined unless the secret is base64 of 16 bytes or more. */
export function keyOf(secretText: string): Buffer | undefined {
  const text = secretText.replace(/^whsec_/, '');
  const key = Buffer.from(text, 'base64');
  // Decoding skips invalid base64, which would give a key that the sender does not have.
  const isWhole = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  return isWhole && key.byteLength >= 16 ? key : undefined;
}

export function secretOf({ secret, hmac }: Pick<Verifier, 'secret' | 'hmac'>): string {
  return secret ?? hmac?.secret ?? '';
}

/** Constant time, by digest, which also hides the lengths. */
export function isSame(one: Uint8Array, other: Uint8Array): boolean {
  const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();
  return timingSafeEqual(digest(one), digest(other));
}
