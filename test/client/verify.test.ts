import { Webhook } from 'standardwebhooks';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verify, VerificationError } from '@gateway/client';

const verification = suite('client/verify');

// Signed with the library `standardwebhooks` 1.1.1.
const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const body = '{"test": 2432232314}';
const headers = {
  'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
  'webhook-timestamp': '1614265330',
  'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
};
const now = 1_614_265_330_000;

const reason = (promise: Promise<unknown>) =>
  promise.then(
    () => 'verified',
    (error: Error) =>
      error instanceof VerificationError ? error.message : `${error.name}: ${error.message}`,
  );

verification(
  'a signed body is verified as text and as bytes, with each kind of headers',
  async () => {
    for (const given of [
      headers,
      new Headers(headers),
      { ...headers, 'Webhook-Id': [headers['webhook-id']] },
    ])
      assert.equal(await verify(body, given, secret, { now }), { test: 2432232314 });
    assert.equal(await verify(new TextEncoder().encode(body), headers, secret, { now }), {
      test: 2432232314,
    });
  },
);

verification('of several secrets and signatures one must fit', async () => {
  const other = `whsec_${btoa('x'.repeat(24))}`;
  assert.equal(await verify(body, headers, [other, secret], { now }), { test: 2432232314 });
  const signatures = {
    ...headers,
    'webhook-signature': `v2,abc v1,%% ${headers['webhook-signature']}`,
  };
  assert.equal(await verify(body, signatures, secret, { now }), { test: 2432232314 });
  assert.is(
    await reason(verify(body, headers, [other], { now })),
    'No signature of the request is by one of these keys.',
  );
});

verification('a changed body, id or time is not', async () => {
  const none = 'No signature of the request is by one of these keys.';
  assert.is(await reason(verify(`${body} `, headers, secret, { now })), none);
  assert.is(
    await reason(verify(body, { ...headers, 'webhook-id': 'msg_other' }, secret, { now })),
    none,
  );
  assert.is(
    await reason(verify(body, { ...headers, 'webhook-timestamp': '1614265331' }, secret, { now })),
    none,
  );
});

verification('a secret that is not base64 is a mistake of the receiver, and says so', async () => {
  const error = await verify(body, headers, 'whsec_%%', { now }).catch((cause: unknown) => cause);
  assert.instance(error, TypeError);
  assert.is((error as Error).message, 'The secret after whsec_ is not base64.');
});

verification('an old request is not, nor one of the future', async () => {
  for (const seconds of [-301, 301])
    assert.match(
      await reason(verify(body, headers, secret, { now: now + seconds * 1000 })),
      'The request is 301 seconds off',
    );
  assert.is(
    await reason(verify(body, headers, secret, { now: now + 301_000, toleranceSeconds: 600 })),
    'verified',
  );
});

verification('a secret that the endpoint was given as a text verifies by its bytes', async () => {
  const text = 'endpoint-sécret';
  const signature = new Webhook(new TextEncoder().encode(text), { format: 'raw' }).sign(
    headers['webhook-id'],
    new Date(now),
    body,
  );
  assert.equal(await verify(body, { ...headers, 'webhook-signature': signature }, text, { now }), {
    test: 2432232314,
  });
});

verification('a missing header, and a secret that is none, are named', async () => {
  const { 'webhook-id': _, ...others } = headers;
  assert.is(
    await reason(verify(body, others, secret, { now })),
    'The request has no header webhook-id.',
  );
  const timestamp = { ...headers, 'webhook-timestamp': 'yesterday' };
  assert.is(
    await reason(verify(body, timestamp, secret, { now })),
    'The header webhook-timestamp is not a number of seconds.',
  );
  assert.is(await reason(verify(body, headers, '', { now })), 'TypeError: The secret is empty.');
});

verification.run();
