import { createHmac } from 'node:crypto';

/** A key for one purpose, the same in every process that has the encryption key; from it nobody finds the encryption key. */
export function derivedKey(encryptionKey: string | undefined, purpose: string): Buffer {
  return createHmac('sha256', Buffer.from((encryptionKey ?? '').trim(), 'base64'))
    .update(purpose)
    .digest();
}
