import { createHmac, hash, sign } from 'node:crypto';
import type { SignatureScheme } from '@gateway/store/config';
import type { SigningKey } from './signature.js';

export interface SignedMessage {
  readonly url: string;
  readonly body: Buffer;
  /** Signed too: lower-case names, with values. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Epoch seconds. */
  readonly created: number;
}

/**
 * Returns the headers `content-digest`, `signature-input` and `signature`, with one signature per
 * live secret and scheme. The scheme of the URL is not signed, because a proxy in front of the
 * receiver may end TLS.
 * https://www.rfc-editor.org/rfc/rfc9421
 * https://www.rfc-editor.org/rfc/rfc9530
 */
export function messageSignature(
  keys: readonly SigningKey[],
  schemes: ReadonlySet<SignatureScheme>,
  { url, body, headers, created }: SignedMessage,
): string[] {
  const { host, pathname, search } = new URL(url);
  const digest = `sha-256=:${hash('sha256', body, 'base64')}:`;
  const components = [
    ['@method', 'POST'],
    ['@authority', host],
    ['@path', pathname],
    ['@query', search || '?'],
    ['content-digest', digest],
    ...headers,
  ] as const;
  const base = components.map(([name, value]) => `"${name}": ${value.trim()}\n`).join('');
  const covered = components.map(([name]) => `"${name}"`).join(' ');
  const inputs: string[] = [];
  const signatures: string[] = [];
  const add = (key: SigningKey, algorithm: string, signed: (text: string) => Buffer) => {
    const label = `sig${inputs.length + 1}`;
    const input = `(${covered});created=${created};keyid="${key.id}";alg="${algorithm}";tag="webhook"`;
    inputs.push(`${label}=${input}`);
    const signature = signed(`${base}"@signature-params": ${input}`);
    signatures.push(`${label}=:${signature.toString('base64')}:`);
  };
  for (const key of keys) {
    const { ed25519, standard } = key;
    if (ed25519 && schemes.has('rfc9421-ed25519'))
      add(key, 'ed25519', (text) => sign(null, Buffer.from(text), ed25519));
    if (schemes.has('rfc9421-hmac'))
      add(key, 'hmac-sha256', (text) => createHmac('sha256', standard).update(text).digest());
  }
  return [
    'content-digest',
    digest,
    'signature-input',
    inputs.join(', '),
    'signature',
    signatures.join(', '),
  ];
}
