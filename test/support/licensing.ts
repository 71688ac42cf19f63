import path from 'node:path';
import { publicKeyText } from '#core/plugins/licence';
import { generateLicenceKey, issueLicence } from '#cli/app/licence';
import { discard, tempFolder } from './start/keep.js';

export const DAY_MS = 86_400_000;

/** A private distribution: the public key for `license_public_key`, and licences signed with it. */
export interface Licensing {
  readonly publicKey: string;
  /** The token of a licence for Acme; times are relative to now. */
  licence(fields?: {
    entitlements?: readonly string[];
    issuedInMs?: number;
    expiresInMs?: number;
  }): string;
  close(): void;
}

export function licensing(): Licensing {
  const folder = tempFolder('licensing');
  const key = path.join(folder, 'key.pem');
  const publicKey = publicKeyText(generateLicenceKey(key));
  return {
    publicKey,
    licence: ({
      entitlements = ['apm'],
      issuedInMs = -2 * DAY_MS,
      expiresInMs = 30 * DAY_MS,
    } = {}) => {
      const at = (inMs: number) => new Date(Date.now() + inMs);
      return issueLicence(key, {
        organisation: 'Acme',
        entitlements,
        issuedAt: at(issuedInMs),
        expiresAt: at(expiresInMs),
      }).token;
    },
    close: () => discard(folder),
  };
}
