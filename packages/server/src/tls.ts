import { X509Certificate } from 'node:crypto';
import type { Server } from 'node:https';
import { createSecureContext } from 'node:tls';
import type { Config } from '@gateway/core/config';
import { GatewayError, isGatewayError } from '@gateway/core/errors';
import { readClientCertificate } from '@gateway/core/http';
import type { Log } from '@gateway/core/logging';

export interface TlsPair {
  readonly options: { readonly cert: string; readonly key: string; readonly minVersion: 'TLSv1.2' };
  readonly expiresAt: Date;
}

export interface TlsFiles {
  readonly certificate: string;
  readonly key: string;
}

const FLAGS = {
  certificate: {
    setting: 'server.http.ssl_cert_file (GATEWAY_SSL_CERT_FILE)',
    flag: '--ssl-cert-file',
  },
  key: { setting: 'server.http.ssl_key_file (GATEWAY_SSL_KEY_FILE)', flag: '--ssl-key-file' },
} as const;

/** Undefined if `server.http.ssl` is off. */
export function tlsFiles({
  ssl,
  ssl_cert_file: certificate = '',
  ssl_key_file: key = '',
}: Config['server']['http']): TlsFiles | undefined {
  return ssl ? { certificate, key } : undefined;
}

/** Throws `tls_file` if certificate chain and key are unusable or do not match. */
export function readTlsPair(files: TlsFiles): TlsPair {
  const { cert, key } = readClientCertificate(
    { path: files.certificate, ...FLAGS.certificate },
    { path: files.key, ...FLAGS.key },
  );
  const options = { cert, key, minVersion: 'TLSv1.2' } as const;
  try {
    createSecureContext(options);
  } catch (cause) {
    const reason = (cause as Error).message;
    throw new GatewayError(
      'tls_file',
      { what: 'certificate', path: files.certificate, reason, ...FLAGS.certificate },
      { cause },
    );
  }
  return { options, expiresAt: new Date(new X509Certificate(cert).validTo) };
}

/**
 * Reading two small files costs less than watching them, which does not work for network file
 * systems and Kubernetes secret volumes.
 */
const POLL_MS = 5_000;

/**
 * Renewed certificates apply to new connections. Unusable files are logged once. The returned
 * function stops reloading.
 */
export function reloadCertificates(
  server: Server,
  {
    files,
    inUse,
    log,
    pollMs = POLL_MS,
  }: { files: TlsFiles; inUse: TlsPair; log: Log; pollMs?: number },
): () => void {
  let present = '';
  let logged = '';
  const use = (pair: TlsPair) => {
    present = pair.options.cert + pair.options.key;
    logged = '';
    const expiredAt = pair.expiresAt.toISOString();
    if (pair.expiresAt <= new Date())
      log.warn(
        { expired_at: expiredAt },
        'The TLS certificate has expired: clients will reject it.',
      );
  };
  const reload = () => {
    try {
      const pair = readTlsPair(files);
      if (pair.options.cert + pair.options.key === present) return;
      server.setSecureContext(pair.options);
      log.info({ expires_at: pair.expiresAt.toISOString() }, 'Loaded the renewed TLS certificate.');
      use(pair);
    } catch (error) {
      if (!isGatewayError(error)) throw error;
      if (error.message !== logged)
        log.warn(
          { code: error.code, fix: error.fix },
          `Keeping the current TLS certificate: ${error.message}.`,
        );
      logged = error.message;
    }
  };
  use(inUse);
  const timer = setInterval(reload, pollMs);
  return () => clearInterval(timer);
}
