import { generateKeyPairSync } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  COMMUNITY_ENTITLEMENTS,
  readLicence,
  unknownEntitlements,
  type Licence,
} from '#core/plugins/licence';
import type { InstalledPlugin } from '#core/plugins/manifest';
import { licensing } from '../../support/licensing.js';

const licence = suite('core/plugins/licence');
const ours = licensing();
const theirs = licensing();
const { publicKey, token } = ours;
const now = new Date('2026-11-20T00:00:00Z');
const fields = {
  organisation: 'Acme',
  entitlements: ['apm', 'otel'],
  expires_at: '2027-01-01T00:00:00Z',
};

const read = (text: string | undefined, key: string | undefined = publicKey) =>
  readLicence({ token: text, publicKey: key, now });

/** Expects the community licence, and the reason. */
function refused(it: Licence, code: string, sentence: string): void {
  assert.is(it.kind, 'community');
  assert.equal([...it.entitlements], COMMUNITY_ENTITLEMENTS);
  assert.is(it.problem?.code, code);
  assert.is(it.problem?.message, sentence);
}

licence('without a token the community licence applies, and there is nothing to say', () => {
  const it = read(undefined);
  assert.is(it.kind, 'community');
  assert.equal([...it.entitlements].sort(), ['errtrack', 'otel', 'pullmetrics']);
  assert.is(it.problem, undefined);
});

licence('a signed token entitles to exactly what it lists', () => {
  const it = read(token(fields));
  assert.is(it.kind, 'licensed');
  assert.is(it.organisation, 'Acme');
  assert.equal([...it.entitlements], ['apm', 'otel']);
  assert.equal(it.expiresAt, new Date(fields.expires_at));
  assert.is(it.problem, undefined);
});

licence('the public key may be PEM or the bare bytes', () => {
  const der = `MCowBQYDK2VwAyEA${publicKey}`;
  const pem = `-----BEGIN PUBLIC KEY-----\n${der}\n-----END PUBLIC KEY-----\n`;
  assert.is(read(token(fields), pem).kind, 'licensed');
});

licence('an expired token runs as community and says when it ended', () => {
  refused(
    read(token({ ...fields, expires_at: '2026-11-19T23:59:59Z' })),
    'licence_expired',
    'the licence of Acme expired at 2026-11-19T23:59:59.000Z; the community licence applies',
  );
});

const forged: Readonly<Record<string, [() => Licence, string]>> = {
  'signed with another key': [() => read(theirs.token(fields)), 'its signature is wrong'],
  'whose text was changed': [
    () =>
      read(
        `${Buffer.from(JSON.stringify({ ...fields, entitlements: ['all'] })).toString('base64url')}.${token(fields).split('.')[1]}`,
      ),
    'its signature is wrong',
  ],
  'without signature': [() => read(token(fields).split('.')[0]), 'it is not a token of two parts'],
  'with an empty signature': [
    () => read(`${token(fields).split('.')[0]}.`),
    'it is not a token of two parts',
  ],
  'that is rubbish': [
    () => read('rubbish.rubbish'),
    'it is damaged: a part of it is missing or was changed',
  ],
  'whose end was cut off': [
    () => read(token(fields).slice(0, -9)),
    'it is damaged: a part of it is missing or was changed',
  ],
  'whose beginning was cut off': [
    () => read(token(fields).slice(9)),
    'it is damaged: a part of it is missing or was changed',
  ],
  'of three parts': [() => read(`${token(fields)}.x`), 'it is not a token of two parts'],
  'that names another key than ours': [
    () => read(theirs.token({ ...fields, key_id: theirs.keyId })),
    `it is signed with the key ${theirs.keyId}, and license_public_key is the key ${ours.keyId}`,
  ],
  'that names our key and is signed with another': [
    () => read(theirs.token({ ...fields, key_id: ours.keyId })),
    'its signature is wrong',
  ],
  'whose time of issue is nonsense': [
    () => read(token({ ...fields, issued_at: 'yesterday' })),
    'its issued_at is not a time',
  ],
  'without organisation': [
    () => read(token({ ...fields, organisation: 1 })),
    'it has no organisation',
  ],
  'without entitlements': [
    () => read(token({ ...fields, entitlements: 'all' })),
    'it has no list of entitlements',
  ],
  'without end': [() => read(token({ ...fields, expires_at: 'never' })), 'it has no expires_at'],
  'whose text is no object': [
    () => read(token('x')),
    'it is damaged: a part of it is missing or was changed',
  ],
  'that cannot be checked': [
    () => readLicence({ token: token(fields), publicKey: undefined, now }),
    'license_public_key is not set, so it cannot be checked',
  ],
  'checked with a wrong key': [
    () => read(token(fields), 'abc'),
    'license_public_key is not an Ed25519 public key',
  ],
  'checked with a key of another sort': [
    () =>
      read(
        token(fields),
        String(
          generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({
            format: 'pem',
            type: 'spki',
          }),
        ),
      ),
    'license_public_key is not an Ed25519 public key',
  ],
};

for (const [what, [reading, reason]] of Object.entries(forged)) {
  licence(`a token ${what} runs as community and says why`, () => {
    refused(
      reading(),
      'licence_invalid',
      `the licence is not valid: ${reason}; the community licence applies`,
    );
  });
}

licence('a token of the future runs as community, and the clock of this machine is told', () => {
  refused(
    read(token({ ...fields, issued_at: '2026-11-20T00:10:01Z' })),
    'licence_not_yet',
    'the licence of Acme was issued at 2026-11-20T00:10:01.000Z, but the clock of this machine says 2026-11-20T00:00:00.000Z; the community licence applies',
  );
});

licence('a clock that is a few minutes behind the issuer is no reason', () => {
  const it = read(token({ ...fields, issued_at: '2026-11-20T00:09:59Z' }));
  assert.is(it.kind, 'licensed');
  assert.equal(it.issuedAt, new Date('2026-11-20T00:09:59Z'));
});

licence('what is to be done about a wrong key names the setting of the key', () => {
  for (const it of [
    read(token(fields), 'abc'),
    read(theirs.token({ ...fields, key_id: '00000000' })),
  ]) {
    assert.match(it.problem?.fix ?? '', 'GATEWAY_LICENSE_PUBLIC_KEY');
  }
  assert.match(read(theirs.token(fields)).problem?.fix ?? '', 'GATEWAY_LICENSE_KEY');
  assert.match(
    read(token({ ...fields, expires_at: '2026-11-19' })).problem?.fix ?? '',
    'which says 2026-11-20T00:00:00.000Z',
  );
});

licence('entitlements of a token that no plugin declares are unknown', () => {
  const plugin = (entitlement?: string) =>
    ({ manifest: { entitlement } }) as unknown as InstalledPlugin;
  const plugins = [plugin('otel'), plugin('b'), plugin(), plugin('otel')];
  assert.equal(unknownEntitlements(read(token(fields)), plugins), ['apm']);
  assert.equal(
    unknownEntitlements(read(undefined), []),
    [],
    'what a plugin that is not installed would need is no mistake of the community licence',
  );
});

licence.run();
