import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as tls from 'node:tls';
import { GatewayError } from '../errors/errors.js';
import { fileReason } from '../errors/connection-errors.js';

interface PemFile {
  readonly path: string;
  /** The setting, or the part of it, that names the file. */
  readonly setting: string;
  readonly flag: string;
}

export const PRIVATE_KEY = /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/;

/** Extracts PEM certificates. */
export function certificateBlocks(text: string): string[] {
  return text.match(/-----BEGIN ([A-Z0-9 ]*CERTIFICATE)-----[\s\S]*?-----END \1-----/g) ?? [];
}

/** Reads at least one certificate. All functions here throw GatewayError `tls_file`. */
export function readCertificates(file: PemFile): string[] {
  const blocks = certificateBlocks(read('certificate', file));
  if (blocks.length === 0)
    throw unusable(
      'certificate',
      file,
      'it holds no PEM certificate, which begins with -----BEGIN CERTIFICATE-----',
    );
  for (const block of blocks) {
    try {
      new X509Certificate(block);
    } catch (error) {
      throw unusable('certificate', file, 'a certificate in it is damaged', error);
    }
  }
  return blocks;
}

/** Reads a private key without a passphrase. */
function readPrivateKey(file: PemFile): string {
  const text = read('key', file);
  if (!PRIVATE_KEY.test(text)) throw unusable('key', file, 'it holds no PEM private key');
  try {
    createPrivateKey(text);
  } catch (error) {
    const locked = /ENCRYPTED/.test(text);
    throw unusable(
      'key',
      file,
      locked ? 'it is locked with a passphrase; store it without one' : 'the key in it is damaged',
      error,
    );
  }
  return text;
}

/** Reads a certificate chain and its key. */
export function readClientCertificate(
  certificate: PemFile,
  key: PemFile,
): { cert: string; key: string } {
  const chain = readCertificates(certificate);
  const privateKey = readPrivateKey(key);
  if (!new X509Certificate(chain[0]!).checkPrivateKey(createPrivateKey(privateKey))) {
    throw unusable('key', key, `it is not the key of the certificate in ${certificate.path}`);
  }
  return { cert: chain.join('\n'), key: privateKey };
}

/** Available since Node.js 22.15; includes NODE_EXTRA_CA_CERTS. */
const { getCACertificates } = tls as { getCACertificates?: (kind: 'default') => string[] };

/** Returns the default authorities and those of `delivery.ca_file`. */
export function authoritiesWith(path: string): string[] {
  const added = readCertificates({
    path,
    setting: 'delivery.ca_file',
    flag: 'GATEWAY_DELIVERY_CA_FILE',
  });
  return [...(getCACertificates?.('default') ?? tls.rootCertificates), ...added];
}

/** Creates a TLS context with these authorities. Reuse it: creation is slow. */
export function withAuthorities(path: string): tls.SecureContext {
  return tls.createSecureContext({ ca: authoritiesWith(path) });
}

function read(what: string, file: PemFile): string {
  try {
    return readFileSync(file.path, 'utf8');
  } catch (error) {
    throw unusable(what, file, fileReason(error), error);
  }
}

function unusable(
  what: string,
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
