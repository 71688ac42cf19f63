import { createHmac, type KeyObject, randomBytes, timingSafeEqual } from 'node:crypto';

const RANDOM_BYTES = 16;
const TAG_BYTES = 6;
const FORM = /^[\w-]{30}$/;

/**
 * 128 random bits and a tag that authenticates them, so that made-up ids cost no query.
 * @param key the same on every server
 */
export function newMaskId(key: KeyObject): string {
  const random = randomBytes(RANDOM_BYTES).toString('base64url');
  return random + tagOf(random, key).toString('base64url');
}

export function isMaskId(text: string, key: KeyObject): boolean {
  if (!FORM.test(text)) return false;
  const random = text.slice(0, 22);
  return timingSafeEqual(Buffer.from(text.slice(22), 'base64url'), tagOf(random, key));
}

function tagOf(random: string, key: KeyObject): Buffer {
  return createHmac('sha256', key).update(random).digest().subarray(0, TAG_BYTES);
}
