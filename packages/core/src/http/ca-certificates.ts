import * as tls from 'node:tls';
import { readCertificates } from './pem.js';

/** Node 22.15 and newer tell which authorities they believe by default, those of NODE_EXTRA_CA_CERTS among them. */
const { getCACertificates } = tls as { getCACertificates?: (kind: 'default') => string[] };

/**
 * TLS that believes the usual authorities and those of a file. Made once: it takes long.
 *
 * @throws GatewayError `tls_file` when the file cannot be read or holds no certificate
 */
export function withAuthorities(path: string): tls.SecureContext {
  const added = readCertificates({ path, setting: 'delivery.ca_file', flag: 'GATEWAY_DELIVERY_CA_FILE' });
  return tls.createSecureContext({ ca: [...(getCACertificates?.('default') ?? tls.rootCertificates), ...added] });
}
