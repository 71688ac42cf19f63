import { createHash, timingSafeEqual } from 'node:crypto';

/** The secrets of a verifier of signatures. */
export interface Signing {
  readonly secret?: string | undefined;
  readonly hmac?: { readonly secret?: string | undefined } | undefined;
}

/** The bytes of a secret of Standard Webhooks; undefined when it is no base64, or shorter than 16 bytes. */
export function keyOf(secretText: string): Buffer | undefined {
  const text = secretText.replace(/^whsec_/, '');
  const key = Buffer.from(text, 'base64');
  // Decoding skips what is no base64, and would make a key that the sender does not have.
  const isWhole = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  return isWhole && key.byteLength >= 16 ? key : undefined;
}

/** The signing secret of a source, as text. */
export function secretOf({ secret, hmac }: Signing): string {
  return secret ?? hmac?.secret ?? '';
}

/** Compares digests, which have one length, so that nothing is told of the length either. */
export function isSame(one: Uint8Array, other: Uint8Array): boolean {
  const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest();
  return timingSafeEqual(digest(one), digest(other));
}
