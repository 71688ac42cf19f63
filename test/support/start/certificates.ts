import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { installed } from './packages.js';

/**
 * PEM files of a temporary certificate authority and of a server certificate for localhost and
 * 127.0.0.1.
 */
export interface Certificates {
  readonly ca: string;
  readonly key: string;
  readonly certificate: string;
}

/**
 * Creates the files in a folder, with openssl.
 * @throws `Unavailable` without openssl
 */
export function certificates(folder: string): Certificates {
  installed('openssl', ['openssl'], 'for the tests over TLS');
  fs.mkdirSync(folder, { recursive: true });
  const file = (name: string) => path.join(folder, name);
  const openssl = (...args: string[]) =>
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const days = ['-days', '30'];
  openssl(
    'req',
    '-x509',
    '-newkey',
    'rsa:2048',
    '-nodes',
    ...days,
    '-subj',
    '/CN=test authority',
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
  );
  openssl(
    'req',
    '-newkey',
    'rsa:2048',
    '-nodes',
    '-subj',
    '/CN=localhost',
    '-keyout',
    'server.key',
    '-out',
    'server.csr',
  );
  fs.writeFileSync(file('server.ext'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  const signing = [
    '-CA',
    'ca.pem',
    '-CAkey',
    'ca.key',
    '-CAcreateserial',
    '-extfile',
    'server.ext',
  ];
  openssl('x509', '-req', '-in', 'server.csr', ...signing, ...days, '-out', 'server.pem');
  return { ca: file('ca.pem'), key: file('server.key'), certificate: file('server.pem') };
}
