import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { isSealed, sealer, type SecretPlace } from '#core/crypto/sealing';
import { sealedFirst } from '../../agent/records.js';

const sealing = suite('core/crypto/sealing');
const key = randomBytes(32).toString('base64');
const place: SecretPlace = ['endpoints', '0190c0de-0000-7000-8000-000000000002', 'secrets'];

function code(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (isGatewayError(error)) return error.code;
    throw error;
  }
  return 'nothing';
}

sealing('what was sealed opens to the same text', () => {
  const { seal, open } = sealer(key);
  for (const text of ['', 'whsec_x', 'ünïcödé 🔑', 'x'.repeat(100_000)]) {
    const sealed = seal(text, place);
    assert.match(sealed, /^sealed:v2:[A-Za-z0-9_-]+$/);
    assert.ok(isSealed(sealed));
    assert.is(open(sealed, place), text);
  }
});

sealing('the same text seals differently each time', () => {
  const { seal } = sealer(key);
  assert.is.not(seal('secret', place), seal('secret', place));
});

sealing('another key does not open it, and says so', () => {
  const sealed = sealer(key).seal('secret', place);
  assert.is(
    code(() => sealer(randomBytes(32).toString('base64')).open(sealed, place)),
    'not_unsealable',
  );
});

sealing('a changed, cut or plain text does not open', () => {
  const { seal, open } = sealer(key);
  const sealed = seal('secret', place);
  const bytes = Buffer.from(sealed.slice('sealed:v2:'.length), 'base64url');
  for (let i = 0; i < bytes.length; i++) {
    const changed = Buffer.from(bytes);
    changed[i]! ^= 1;
    assert.is(
      code(() => open(`sealed:v2:${changed.toString('base64url')}`, place)),
      'not_unsealable',
      `byte ${i}`,
    );
  }
  for (const text of [
    'secret',
    'sealed:v2:',
    'sealed:v2:AAAA',
    sealed.slice(0, -6),
    `sealed:v3:${sealed.slice(10)}`,
  ]) {
    assert.is(
      code(() => open(text, place)),
      'not_unsealable',
      text,
    );
  }
});

sealing(
  'a text opens in its place alone: in no other row, table or field, and not as one of the first version',
  () => {
    const { seal, open } = sealer(key);
    const [table, id, field] = place as [string, string, string];
    const sealed = seal('secret', place);
    for (const [text, other] of [
      [sealed, [table, '0190c0de-0000-7000-8000-000000000003', field]],
      [sealed, ['sources', id, field]],
      [sealed, [table, id, 'authentication']],
      [sealed, [table, id]],
      [sealed.replace('v2', 'v1'), place],
    ] as [string, SecretPlace][])
      assert.is(
        code(() => open(text, other)),
        'not_unsealable',
        other.join(),
      );
  },
);

sealing(
  'a text of the first version, which is bound to no place, still opens, and is bound when it is written again',
  () => {
    const { open, bind } = sealer(key);
    const first = sealedFirst('secret', key);
    assert.ok(isSealed(first));
    assert.is(open(first, place), 'secret');
    const bound = bind(first, place);
    assert.match(bound, /^sealed:v2:/);
    assert.is(open(bound, place), 'secret');
    assert.is(bind(bound, place), bound);
  },
);

sealing('a missing key and one of a wrong length are refused before anything is sealed', () => {
  for (const missing of [undefined, '', '  '])
    assert.is(
      code(() => sealer(missing)),
      'encryption_key_missing',
    );
  for (const bytes of [16, 31, 33, 64])
    assert.is(
      code(() => sealer(randomBytes(bytes).toString('base64'))),
      'encryption_key_invalid',
      `${bytes} bytes`,
    );
  for (const text of ['not base64!', 'päss'])
    assert.is(
      code(() => sealer(text)),
      'encryption_key_invalid',
      text,
    );
});

sealing('a key may have the line break that a command printed after it', () => {
  assert.is(sealer(`${key}\n`).open(sealer(key).seal('secret', place), place), 'secret');
});

sealing.run();
