import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { plainSignature, signingKey, standardSignature } from '#agent/request/build-request';
import { makeSecret } from '../records.js';

const sign = suite('agent/request/sign');

const ID = '0190c0de-0000-8000-8000-000000000001';
const body = Buffer.from('{ "id":9007199254740993,"price":1.10,"name":"José 😀" }');
const now = () => Math.floor(Date.now() / 1000);

/** The headers that the library of Standard Webhooks reads. */
function headers(signature: string, timestamp: number, id = ID): Record<string, string> {
  return { 'webhook-id': id, 'webhook-timestamp': String(timestamp), 'webhook-signature': signature };
}

sign('the library of Standard Webhooks verifies what is signed', () => {
  const secret = makeSecret();
  const timestamp = now();
  const signature = standardSignature([signingKey(secret)], ID, timestamp, body);
  assert.equal(new Webhook(secret).verify(body, headers(signature, timestamp)), JSON.parse(body.toString()));
  assert.is(signature, new Webhook(secret).sign(ID, new Date(timestamp * 1000), body.toString()));
});

sign('it refuses another body, id, time or secret', () => {
  const secret = makeSecret();
  const timestamp = now();
  const signature = standardSignature([signingKey(secret)], ID, timestamp, body);
  const webhook = new Webhook(secret);
  assert.throws(() => webhook.verify(Buffer.concat([body, Buffer.from(' ')]), headers(signature, timestamp)));
  assert.throws(() => webhook.verify(body, headers(signature, timestamp + 1)));
  assert.throws(() => webhook.verify(body, headers(signature, timestamp, ID.replace('1', '2'))));
  assert.throws(() => new Webhook(makeSecret()).verify(body, headers(signature, timestamp)));
});

sign('with two secrets both verify, newest first', () => {
  const [newest, oldest] = [makeSecret(), makeSecret()];
  const timestamp = now();
  const signature = standardSignature([signingKey(newest), signingKey(oldest)], ID, timestamp, body);
  assert.is(signature.split(' ').length, 2);
  for (const secret of [newest, oldest]) assert.not.throws(() => new Webhook(secret).verify(body, headers(signature, timestamp)));
  assert.is(signature.split(' ')[0], standardSignature([signingKey(newest)], ID, timestamp, body));
});

sign('keys of every length that the standard allows verify', () => {
  for (let bytes = 24; bytes <= 64; bytes++) {
    const secret = `whsec_${Buffer.alloc(bytes, bytes).toString('base64')}`;
    const timestamp = now();
    assert.not.throws(
      () => new Webhook(secret).verify(body, headers(standardSignature([signingKey(secret)], ID, timestamp, body), timestamp)),
      `${bytes} bytes`,
    );
  }
});

sign('the plain signature is the HMAC of the body alone, keyed with the whole text of the secret', () => {
  const secret = makeSecret();
  for (const hash of ['SHA256', 'SHA512'] as const) {
    for (const encoding of ['hex', 'base64'] as const) {
      const expected = createHmac(hash.toLowerCase(), secret).update(body).digest(encoding);
      assert.is(plainSignature(signingKey(secret), body, { header: 'X-Any', hash, encoding }), expected);
    }
  }
});

sign.run();
