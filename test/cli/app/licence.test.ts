import { generateKeyPairSync } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { publicKeyText, readLicence } from '#core/plugins/licence';
import { generateLicenceKey, issueLicence } from '#cli/app/licence';
import { discard, tempFolder } from '../../support/start/keep.js';

const issue = suite('cli/app/licence');
const folder = tempFolder('licence');
issue.after(() => discard(folder));

const file = (name: string) => path.join(folder, name);
const fields = {
  organisation: 'Acme',
  entitlements: ['apm'],
  issuedAt: new Date('2026-11-20T00:00:00Z'),
  expiresAt: new Date('2027-01-01T00:00:00Z'),
};

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    assert.ok(isGatewayError(error, 'licence_key_file'), String(error));
    return error.message;
  }
  throw new Error('it is to be refused');
}

issue('a licence that is issued with a new key is in force where its public key is set', () => {
  const publicKey = generateLicenceKey(file('new.pem'));
  assert.is(fs.statSync(file('new.pem')).mode & 0o777, 0o600);
  const { token, publicKey: same } = issueLicence(file('new.pem'), fields);
  assert.is(publicKeyText(same), publicKeyText(publicKey));
  const licence = readLicence({
    token,
    publicKey: publicKeyText(publicKey),
    now: new Date('2026-12-01'),
  });
  assert.is(licence.problem, undefined);
  assert.equal(
    [licence.kind, licence.organisation, [...licence.entitlements]],
    ['licensed', 'Acme', ['apm']],
  );
  assert.equal([licence.issuedAt, licence.expiresAt], [fields.issuedAt, fields.expiresAt]);
});

issue('a key that already exists is never written over', () => {
  generateLicenceKey(file('kept.pem'));
  const before = fs.readFileSync(file('kept.pem'));
  assert.match(
    refusal(() => generateLicenceKey(file('kept.pem'))),
    /kept\.pem already exists/,
  );
  assert.equal(fs.readFileSync(file('kept.pem')), before);
  assert.match(
    refusal(() => generateLicenceKey(file('no/such/folder.pem'))),
    /cannot be written: there is no such file or folder/,
  );
});

issue('what is no Ed25519 private key is refused with what it is', () => {
  const rsa = generateKeyPairSync('rsa', { modulusLength: 1024 });
  fs.writeFileSync(file('rsa.pem'), rsa.privateKey.export({ format: 'pem', type: 'pkcs8' }));
  fs.writeFileSync(file('text.pem'), 'hello');
  for (const [name, sentence] of [
    ['missing.pem', 'cannot be read: there is no such file or folder'],
    ['rsa.pem', 'holds a private key of type rsa, not Ed25519'],
    ['text.pem', 'holds no private key in PEM that can be read without a password'],
    ['', 'cannot be read: it is a folder'],
  ] as const) {
    assert.is(
      refusal(() => issueLicence(file(name), fields)),
      `the key file ${file(name)} ${sentence}`,
    );
  }
});

issue.run();
