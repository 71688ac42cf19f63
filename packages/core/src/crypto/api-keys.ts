import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

const SHAPE = /^gw_([0-9a-f]{16})_[A-Za-z0-9_-]{43}$/;

/**
 * Creates an API key, shown once, with its public mask and its SHA-256 for storage. One round is
 * enough for 256 random bits.
 */
export function newApiKey(): {
  readonly mask: string;
  readonly key: string;
  readonly hash: Buffer;
} {
  const mask = randomBytes(8).toString('hex');
  const key = `gw_${mask}_${randomBytes(32).toString('base64url')}`;
  return { mask, key, hash: hashApiKey(key) };
}

/** Returns the mask if the text looks like an API key. */
export function maskOfApiKey(key: string): string | undefined {
  return SHAPE.exec(key)?.[1];
}

/** Compares in constant time. */
export function matchesApiKey(key: string, hash: Uint8Array): boolean {
  const given = hashApiKey(key);
  return given.length === hash.length && timingSafeEqual(given, hash);
}

function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}
