import { createPrivateKey, X509Certificate, type KeyObject } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as tls from 'node:tls';
import { GatewayError } from '../errors/errors.js';
import { fileReason } from '../errors/connection-errors.js';

interface PemFile {
  readonly path: string;
  /** The setting, or the part of a setting, that names the file. */
  readonly setting: string;
  readonly flag: string;
}

/** The end of a sentence about the PEM text. */
export class PemProblem extends Error {}

/** @throws PemProblem if there are none or one is damaged */
export function certificatesIn(text: string): string[] {
  const blocks =
    text.match(/-----BEGIN ([A-Z0-9 ]*CERTIFICATE)-----[\s\S]*?-----END \1-----/g) ?? [];
  if (blocks.length === 0)
    throw new PemProblem('holds no PEM certificate, which begins with -----BEGIN CERTIFICATE-----');
  try {
    for (const block of blocks) new X509Certificate(block);
  } catch (cause) {
    throw new PemProblem('holds a certificate that is damaged', { cause });
  }
  return blocks;
}

/** @throws PemProblem if there is none, or it is encrypted or damaged */
export function privateKeyIn(text: string): KeyObject {
  if (!/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(text))
    throw new PemProblem('holds no PEM private key, which begins with -----BEGIN PRIVATE KEY-----');
  try {
    return createPrivateKey(text);
  } catch (cause) {
    const isLocked = text.includes('ENCRYPTED');
    throw new PemProblem(
      isLocked ? 'is locked with a passphrase; give it without one' : 'is damaged',
      { cause },
    );
  }
}

/** @throws GatewayError `tls_file` */
export function readCertificates(file: PemFile): string[] {
  return readPem('certificate', file, certificatesIn);
}

/** @throws GatewayError `tls_file` if a file cannot be used or they do not match */
export function readClientCertificate(
  certificate: PemFile,
  key: PemFile,
): { cert: string; key: string } {
  const chain = readCertificates(certificate);
  const [text, privateKey] = readPem('key', key, (text) => [text, privateKeyIn(text)] as const);
  if (!new X509Certificate(chain[0]!).checkPrivateKey(privateKey))
    throw unusable('key', key, `it is not the key of the certificate in ${certificate.path}`);
  return { cert: chain.join('\n'), key: text };
}

/** Available since Node.js 22.15. Its result includes NODE_EXTRA_CA_CERTS. */
const { getCACertificates } = tls as { getCACertificates?: (kind: 'default') => string[] };

/**
 * The default certificate authorities and those in the `delivery.ca_file` at `path`.
 * @throws GatewayError `tls_file`
 */
export function authoritiesWith(path: string): string[] {
  const added = readCertificates({
    path,
    setting: 'delivery.ca_file',
    flag: 'GATEWAY_DELIVERY_CA_FILE',
  });
  return [...(getCACertificates?.('default') ?? tls.rootCertificates), ...added];
}

/**
 * Slow, so reuse the result.
 * @throws GatewayError `tls_file`
 */
export function withAuthorities(path: string): tls.SecureContext {
  return tls.createSecureContext({ ca: authoritiesWith(path) });
}

function readPem<Content>(
  what: 'certificate' | 'key',
  file: PemFile,
  parse: (text: string) => Content,
): Content {
  try {
    return parse(readFileSync(file.path, 'utf8'));
  } catch (error) {
    const reason = error instanceof PemProblem ? `it ${error.message}` : fileReason(error);
    throw unusable(what, file, reason, error);
  }
}

function unusable(
  what: 'certificate' | 'key',
  { path, setting, flag }: PemFile,
  reason: string,
  cause?: unknown,
): GatewayError {
  return new GatewayError(
    'tls_file',
    { what, path, reason, setting, flag },
    cause === undefined ? undefined : { cause },
  );
}
