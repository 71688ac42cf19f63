import { hash, randomBytes, timingSafeEqual } from 'node:crypto';

const SHAPE = /^gw_([0-9a-f]{16})_[A-Za-z0-9_-]{43}$/;

/**
 * The key is shown once; its public mask and SHA-256 hash are stored. A single round of hashing
 * suffices for 256 random bits.
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

/** Undefined if the text does not look like an API key. */
export function maskOfApiKey(key: string): string | undefined {
  return SHAPE.exec(key)?.[1];
}

/** Constant time. */
export function matchesApiKey(key: string, hash: Uint8Array): boolean {
  const given = hashApiKey(key);
  return given.length === hash.length && timingSafeEqual(given, hash);
}

function hashApiKey(key: string): Buffer {
  return hash('sha256', key, 'buffer');
}
