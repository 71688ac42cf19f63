import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';

const SHAPE = /^gw_([0-9a-f]{16})_[A-Za-z0-9_-]{43}$/;

/** An API key: `gw_<mask>_<43 characters of base64url>`. Only mask and hash are stored. */
export interface ApiKey {
  /** The public part, for lookup and display. */
  readonly mask: string;
  /** The whole key, shown once. */
  readonly key: string;
  /** SHA-256 of the whole key: one round is enough for 256 random bits. */
  readonly hash: Buffer;
}

export function newApiKey(): ApiKey {
  const mask = randomBytes(8).toString('hex');
  const key = `gw_${mask}_${randomBytes(32).toString('base64url')}`;
  return { mask, key, hash: hashApiKey(key) };
}

/** The mask of a text that looks like an API key, or undefined. */
export function maskOfApiKey(key: string): string | undefined {
  return SHAPE.exec(key)?.[1];
}

/** Whether the key has this hash, compared in constant time. */
export function matchesApiKey(key: string, hash: Uint8Array): boolean {
  const given = hashApiKey(key);
  return given.length === hash.length && timingSafeEqual(given, hash);
}

function hashApiKey(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}
