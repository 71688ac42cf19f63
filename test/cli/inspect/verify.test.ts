import { createHmac, randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verifyDelivery } from '#cli/inspect/verify';

const verify = suite('cli/inspect/verify');

const secret = `whsec_${randomBytes(32).toString('base64')}`;
const id = '019ab3c4-5d6e-8f70-9123-456789abcdef';
const body = '{"amount":120.5,"city":"Zürich"}';
const timestamp = String(Math.floor(Date.now() / 1000));
const key = Buffer.from(secret.slice('whsec_'.length), 'base64');

function signature(by: Buffer | string = key, signed = `${id}.${timestamp}.${body}`): Buffer {
  return createHmac('sha256', by).update(signed).digest();
}

/** The sentence for a single signature; fails if a receiver would accept it. */
function refusal(given: string, received = body): string {
  const delivery = {
    id,
    timestamp,
    signature: given,
    plainSignature: '',
    body: Buffer.from(received),
  };
  const { valid, verdicts } = verifyDelivery(delivery, secret, { toleranceMs: 300_000 });
  assert.not.ok(valid, given);
  return verdicts[0]!.sentence;
}

for (const [name, given, sentence] of [
  ['a line break was added', `${body}\n`, 'adds a line break'],
  [
    'JSON was serialised again',
    JSON.stringify(JSON.parse(body), null, 2),
    'after the JSON is serialised again',
  ],
  ['something else was signed', '{}', 'another secret, or for another id, timestamp or body'],
] as const) {
  verify(`a body that is not what was signed is refused and explained: ${name}`, () => {
    assert.match(refusal(`v1,${signature().toString('base64')}`, given), sentence);
  });
}

verify('a key that was not decoded is explained', () => {
  assert.match(
    refusal(`v1,${signature(secret).toString('base64')}`),
    'the text of the secret instead of the bytes',
  );
});

verify(
  'a signature that is right but written otherwise is refused, as the library of receivers does',
  () => {
    const right = signature().toString('base64');
    const receiver = new Webhook(secret);
    const headers = (value: string) => ({
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': value,
    });
    receiver.verify(body, headers(`v1,${right}`));
    for (const written of [right.replace('=', ''), `${right}!`, signature().toString('hex')]) {
      assert.throws(() => receiver.verify(body, headers(`v1,${written}`)));
      assert.match(refusal(`v1,${written}`), 'it is correct but encoded');
    }
  },
);

verify('a signature by a secret that was given as a text is good', () => {
  const given = `v1,${signature('an old secret').toString('base64')}`;
  const delivery = { id, timestamp, signature: given, plainSignature: '', body: Buffer.from(body) };
  const { valid, problems } = verifyDelivery(delivery, 'an old secret', { toleranceMs: 300_000 });
  assert.equal([valid, problems], [true, []]);
  assert.not.ok(verifyDelivery(delivery, 'another secret', { toleranceMs: 300_000 }).valid);
});

verify.run();
