import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { discard, tempFolder } from './start/keep.js';
import { installed } from './start/packages.js';

export interface Issued {
  readonly certificate: string;
  readonly key: string;
}

/** A temporary certificate authority. */
export interface Authority {
  /** PEM file of the authority's certificate. */
  readonly file: string;
  /**
   * Issues a certificate.
   * @param names subject alternative names, `DNS:localhost`
   * @param options.expired expired yesterday
   */
  issue(name: string, names: readonly string[], options?: { expired?: boolean }): Issued;
  close(): void;
}

/**
 * Creates an authority in a temp folder, with openssl.
 * @throws `Unavailable` without openssl
 */
export function authority(): Authority {
  installed('openssl', ['openssl'], 'for the tests over TLS');
  const folder = tempFolder('authority');
  fs.chmodSync(folder, 0o755);
  const file = (name: string) => path.join(folder, name);
  const openssl = (...args: string[]) =>
    execFileSync('openssl', args, { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl(
    'req',
    '-x509',
    ...newKey,
    '-days',
    '30',
    '-subj',
    '/CN=test authority',
    '-keyout',
    'ca.key',
    '-out',
    'ca.pem',
  );
  fs.writeFileSync(
    file('ca.cnf'),
    '[ca]\ndefault_ca=own\n[own]\ndatabase=index.txt\nserial=serial\ndefault_md=sha256\npolicy=any\n[any]\ncommonName=supplied\n',
  );
  fs.writeFileSync(file('index.txt'), '');
  fs.writeFileSync(file('serial'), '1000\n');
  return {
    file: file('ca.pem'),
    issue(name, names, { expired = false } = {}) {
      const end = expired ? '20200102000000Z' : '20991231000000Z';
      openssl(
        'req',
        ...newKey,
        '-subj',
        `/CN=${name}`,
        '-keyout',
        `${name}.key`,
        '-out',
        `${name}.csr`,
      );
      fs.writeFileSync(
        file(`${name}.ext`),
        names.length > 0 ? `subjectAltName=${names.join(',')}\n` : 'basicConstraints=CA:FALSE\n',
      );
      const signing = [
        '-config',
        'ca.cnf',
        '-cert',
        'ca.pem',
        '-keyfile',
        'ca.key',
        '-extfile',
        `${name}.ext`,
        '-outdir',
        folder,
      ];
      const times = ['-startdate', '20200101000000Z', '-enddate', end];
      openssl(
        'ca',
        '-batch',
        '-notext',
        ...signing,
        ...times,
        '-in',
        `${name}.csr`,
        '-out',
        `${name}.pem`,
      );
      return { certificate: file(`${name}.pem`), key: file(`${name}.key`) };
    },
    close: () => discard(folder),
  };
}
