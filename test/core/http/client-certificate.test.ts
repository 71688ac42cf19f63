import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { checkClientCertificate } from '#core/http/client-certificate';
import { authority, type Authority } from '../../support/authority.js';
import { issued } from '../../support/client-certificates.js';
import { discard, tempFolder } from '../../support/start/keep.js';

const certificate = suite('core/http/client-certificate');

let trusted: Authority;
certificate.before(() => {
  trusted = authority();
});
certificate.after(() => trusted.close());

const problem = (given: { cert: string; key: string }, now?: Date) => {
  const checked = checkClientCertificate(given, now);
  return 'problem' in checked ? [checked.part, checked.problem] : [];
};

certificate('a certificate and its key are accepted until it expires, as the PEM alone', () => {
  const { cert, key } = issued(trusted, 'shop');
  const chain = `Bag Attributes\n  friendlyName: shop\n${cert}\nand its authority\n${fs.readFileSync(trusted.file, 'utf8')}`;
  const checked = checkClientCertificate({ cert: chain, key });
  if ('problem' in checked) throw new Error(checked.problem);
  assert.is(checked.cert.match(/BEGIN CERTIFICATE/g)?.length, 2);
  assert.not.match(checked.cert, 'friendlyName');
  assert.is(checked.expiresAt.toISOString(), '2099-12-31T00:00:00.000Z');
  assert.equal(problem({ cert, key }, new Date('2100-01-01')), [
    'cert',
    'expired at 2099-12-31T00:00:00.000Z',
  ]);
  assert.equal(problem(issued(trusted, 'old', { expired: true })), [
    'cert',
    'expired at 2020-01-02T00:00:00.000Z',
  ]);
});

certificate('what cannot be used is refused with its part and the reason', () => {
  const { cert, key } = issued(trusted, 'store');
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const other = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const locked = privateKey.export({
    type: 'pkcs8',
    format: 'pem',
    cipher: 'aes-256-cbc',
    passphrase: 'x',
  });
  const half = (pem: string) => pem.replace(/\n.{20}/, '\nAAAA');
  assert.equal(problem({ cert: 'x', key }), [
    'cert',
    'holds no PEM certificate, which begins with -----BEGIN CERTIFICATE-----',
  ]);
  assert.equal(problem({ cert: half(cert), key }), ['cert', 'holds a certificate that is damaged']);
  assert.equal(problem({ cert, key: cert }), [
    'key',
    'holds no PEM private key, which begins with -----BEGIN PRIVATE KEY-----',
  ]);
  assert.equal(problem({ cert, key: half(key) }), ['key', 'is damaged']);
  assert.equal(problem({ cert, key: String(locked) }), [
    'key',
    'is locked with a passphrase; give it without one',
  ]);
  assert.equal(problem({ cert, key: String(other) }), [
    'key',
    'is not the key of the first certificate in client_cert',
  ]);
});

certificate('a key that is too short for TLS is refused', () => {
  const folder = tempFolder('short');
  try {
    const args = [
      'req',
      '-x509',
      '-newkey',
      'rsa:512',
      '-nodes',
      '-subj',
      '/CN=short',
      '-days',
      '2',
      '-keyout',
      'k.pem',
      '-out',
      'c.pem',
    ];
    execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
    const [cert, key] = ['c.pem', 'k.pem'].map((name) =>
      fs.readFileSync(`${folder}/${name}`, 'utf8'),
    ) as [string, string];
    assert.match(problem({ cert, key }).join(), /^cert,cannot be used for TLS: .+ key too small$/);
  } finally {
    discard(folder);
  }
});

certificate.run();
