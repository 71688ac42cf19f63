import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { certificateBlocks, PRIVATE_KEY } from './pem.js';

/** A PEM chain, leaf first, and its PEM key. */
export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

type CheckedCertificate =
  | { readonly cert: string; readonly expiresAt: Date }
  /** The end of a sentence. */
  | { readonly part: 'cert' | 'key'; readonly problem: string };

/**
 * Checks that a certificate is usable now. Returns its chain without other text. Takes about 1 ms.
 */
export function checkClientCertificate(
  { cert, key }: ClientCertificate,
  now = new Date(),
): CheckedCertificate {
  const ofCert = (problem: string) => ({ part: 'cert', problem }) as const;
  const ofKey = (problem: string) => ({ part: 'key', problem }) as const;
  const chain = certificateBlocks(cert);
  if (chain.length === 0)
    return ofCert('holds no PEM certificate, which begins with -----BEGIN CERTIFICATE-----');
  let own: X509Certificate;
  try {
    [own] = chain.map((block) => new X509Certificate(block)) as [X509Certificate];
  } catch {
    return ofCert('holds a certificate that is damaged');
  }
  const expiresAt = new Date(own.validTo);
  if (expiresAt <= now) return ofCert(`expired at ${expiresAt.toISOString()}`);
  if (!PRIVATE_KEY.test(key))
    return ofKey('holds no PEM private key, which begins with -----BEGIN PRIVATE KEY-----');
  let privateKey: KeyObject;
  try {
    privateKey = createPrivateKey(key);
  } catch {
    return ofKey(
      key.includes('ENCRYPTED') ? 'is locked with a passphrase; give it without one' : 'is damaged',
    );
  }
  if (!own.checkPrivateKey(privateKey))
    return ofKey('is not the key of the first certificate in client_cert');
  try {
    createSecureContext({ cert: chain.join('\n'), key });
  } catch (error) {
    // OpenSSL rejects short keys, for example.
    const { reason = 'OpenSSL refuses it' } = error as { reason?: string };
    return ofCert(`cannot be used for TLS: ${reason}`);
  }
  return { cert: chain.join('\n'), expiresAt };
}
