import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { GatewayError } from '../errors/errors.js';

/** A file that a setting names, and how the setting is given. */
export interface PemFile {
  readonly path: string;
  /** The key of the setting, or the part of one that names the file. */
  readonly setting: string;
  /** The flag or variable. */
  readonly flag: string;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user may not read it',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is no folder',
};

/**
 * The certificates of a PEM file, one or more.
 *
 * @throws GatewayError `tls_file` when the file cannot be read or holds no certificate
 */
export function readCertificates(file: PemFile): string[] {
  const blocks = read('certificate', file).match(/-----BEGIN ([A-Z0-9 ]*CERTIFICATE)-----[\s\S]*?-----END \1-----/g) ?? [];
  if (blocks.length === 0)
    throw unusable('certificate', file, 'it holds no PEM certificate, which begins with -----BEGIN CERTIFICATE-----');
  for (const block of blocks) {
    try {
      new X509Certificate(block);
    } catch (error) {
      throw unusable('certificate', file, 'a certificate in it is damaged', error);
    }
  }
  return blocks;
}

/**
 * The private key of a PEM file.
 *
 * @throws GatewayError `tls_file` when the file cannot be read, holds no key, or one that is locked with a passphrase
 */
export function readPrivateKey(file: PemFile): string {
  const text = read('key', file);
  if (!/-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/.test(text)) throw unusable('key', file, 'it holds no PEM private key');
  try {
    createPrivateKey(text);
  } catch (error) {
    const locked = /ENCRYPTED/.test(text);
    throw unusable('key', file, locked ? 'it is locked with a passphrase; write it without one' : 'the key in it is damaged', error);
  }
  return text;
}

/**
 * A certificate with its key, as a client shows it.
 *
 * @throws GatewayError `tls_file` when one of the files cannot be used, or the two do not belong together
 */
export function readClientCertificate(certificate: PemFile, key: PemFile): { cert: string; key: string } {
  const chain = readCertificates(certificate);
  const privateKey = readPrivateKey(key);
  if (!new X509Certificate(chain[0]!).checkPrivateKey(createPrivateKey(privateKey))) {
    throw unusable('key', key, `it is not the key of the certificate in ${certificate.path}`);
  }
  return { cert: chain.join('\n'), key: privateKey };
}

function read(what: string, file: PemFile): string {
  try {
    return readFileSync(file.path, 'utf8');
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    throw unusable(what, file, REASONS[code ?? ''] ?? message, error);
  }
}

function unusable(what: string, { path, setting, flag }: PemFile, reason: string, cause?: unknown): GatewayError {
  return new GatewayError('tls_file', { what, path, reason, setting, flag }, cause === undefined ? undefined : { cause });
}
