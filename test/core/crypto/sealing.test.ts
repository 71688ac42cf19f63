import { randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { isSealed, sealer } from '#core/crypto/sealing';

const sealing = suite('core/crypto/sealing');
const key = randomBytes(32).toString('base64');

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
    const sealed = seal(text);
    assert.match(sealed, /^sealed:v1:[A-Za-z0-9_-]+$/);
    assert.ok(isSealed(sealed));
    assert.is(open(sealed), text);
  }
});

sealing('the same text seals differently each time', () => {
  const { seal } = sealer(key);
  assert.is.not(seal('secret'), seal('secret'));
});

sealing('another key does not open it, and says so', () => {
  const sealed = sealer(key).seal('secret');
  assert.is(
    code(() => sealer(randomBytes(32).toString('base64')).open(sealed)),
    'not_unsealable',
  );
});

sealing('a changed, cut or plain text does not open', () => {
  const { seal, open } = sealer(key);
  const sealed = seal('secret');
  const bytes = Buffer.from(sealed.slice('sealed:v1:'.length), 'base64url');
  for (let i = 0; i < bytes.length; i++) {
    const changed = Buffer.from(bytes);
    changed[i]! ^= 1;
    assert.is(
      code(() => open(`sealed:v1:${changed.toString('base64url')}`)),
      'not_unsealable',
      `byte ${i}`,
    );
  }
  for (const text of ['secret', 'sealed:v1:', 'sealed:v1:AAAA', sealed.slice(0, -6), `sealed:v2:${sealed.slice(10)}`]) {
    assert.is(
      code(() => open(text)),
      'not_unsealable',
      text,
    );
  }
});

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
  assert.is(sealer(`${key}\n`).open(sealer(key).seal('secret')), 'secret');
});

sealing.run();
