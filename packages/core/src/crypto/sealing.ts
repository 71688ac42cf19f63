import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { GatewayError } from '../errors/errors.js';

const PREFIX = 'sealed:v1:';
const IV_BYTES = 12;
const TAG_BYTES = 16;

export type Sealer = Readonly<ReturnType<typeof sealer>>;

/** Encrypts secrets for storage with a key of 32 bytes in base64; throws `encryption_key_missing`, `encryption_key_invalid`. */
export function sealer(encryptionKey: string | undefined) {
  const key = keyBytes(encryptionKey);
  return {
    /** AES-256-GCM with a fresh nonce: `sealed:v1:` and base64url of nonce, tag and ciphertext. */
    seal(text: string): string {
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv, { authTagLength: TAG_BYTES });
      const body = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
      return PREFIX + Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url');
    },
    /** Throws `not_unsealable` if the text was sealed with another key, was changed, or is not sealed. */
    open(sealed: string): string {
      if (!isSealed(sealed)) throw new GatewayError('not_unsealable');
      const bytes = Buffer.from(sealed.slice(PREFIX.length), 'base64url');
      try {
        const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, IV_BYTES), { authTagLength: TAG_BYTES });
        decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
        return decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8');
      } catch (cause) {
        throw new GatewayError('not_unsealable', {}, { cause });
      }
    },
  };
}

/** True for text with the prefix that `seal` writes. Does not decrypt. */
export function isSealed(text: string): boolean {
  return text.startsWith(PREFIX);
}

function keyBytes(encryptionKey: string | undefined): Buffer {
  const text = encryptionKey?.trim();
  if (!text) throw new GatewayError('encryption_key_missing');
  if (!/^[A-Za-z0-9+/_-]+={0,2}$/.test(text)) throw new GatewayError('encryption_key_invalid');
  const key = Buffer.from(text, 'base64');
  if (key.length !== 32) throw new GatewayError('encryption_key_invalid', { bytes: key.length });
  return key;
}
