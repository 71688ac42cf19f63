import { generateKeyPairSync, sign } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { remoteKeys, verify, verifyMessage, VerificationError } from '@gateway/client';

const verification = suite('client/verify-keys');

const now = 1_618_884_473_000;
const refused = (promise: Promise<unknown>) =>
  promise.then(
    () => 'verified',
    (error: Error) => (error instanceof VerificationError ? error.message : String(error)),
  );

const pair = () => {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const jwk = publicKey.export({ format: 'jwk' });
  const raw = Buffer.from(jwk.x!, 'base64url').toString('base64');
  return { privateKey, jwk, text: `whpk_${raw}` };
};
const [old, fresh] = [pair(), pair()];
const body = '{"a":1}';
const signed = ({ privateKey }: typeof old, prefix = 'webhook') => {
  const at = String(now / 1000);
  const signature = sign(null, Buffer.from(`m1.${at}.${body}`), privateKey).toString('base64');
  return {
    [`${prefix}-id`]: 'm1',
    [`${prefix}-timestamp`]: at,
    [`${prefix}-signature`]: `v1,AAAA v1a,${signature}`,
  };
};

verification('a public key or a key set verifies v1a, and another one does not', async () => {
  assert.equal(await verify(body, signed(old), old.text, { now }), { a: 1 });
  const set = { keys: [{ kty: 'RSA', n: 'x' }, fresh.jwk, old.jwk] };
  assert.equal(await verify(body, signed(old), set, { now }), { a: 1 });
  assert.equal(await verify(body, signed(old, 'svix'), old.text, { now, prefix: 'svix' }), {
    a: 1,
  });
  const none = 'No signature of the request is by one of these keys.';
  assert.is(await refused(verify(body, signed(old), fresh.text, { now })), none);
  assert.is(await refused(verify(`${body} `, signed(old), old.text, { now })), none);
  assert.is(await refused(verify(body, signed(old), old.text.slice(5), { now })), none);
  assert.match(
    await refused(verify(body, signed(old), 'whpk_AAAA', { now })),
    'A public key has 32 bytes, and this one has 3.',
  );
});

verification('a key set is fetched once, and again for a new key, but not at will', async () => {
  let reads = 0;
  let keys = [old.jwk];
  const get = async () => {
    reads++;
    return Response.json({ keys });
  };
  const remote = remoteKeys('https://gateway.example.com/jwks.json', { fetch: get });
  await Promise.all([1, 2].map(() => verify(body, signed(old), remote, { now })));
  assert.is(reads, 1);
  keys = [fresh.jwk, old.jwk];
  assert.match(await refused(verify(body, signed(fresh), remote, { now })), 'No signature');
  assert.is(reads, 1, 'a stranger cannot make it fetch');
  const clock = Date.now;
  try {
    Date.now = () => clock() + 11_000;
    assert.equal(await verify(body, signed(fresh), remote, { now }), { a: 1 });
  } finally {
    Date.now = clock;
  }
  assert.is(reads, 2);
  const broken = remoteKeys('https://x.example', {
    fetch: async () => new Response('', { status: 503 }),
  });
  assert.match(await refused(verify(body, signed(old), broken, { now })), 'it answered 503');
});

// RFC 9421, appendix B.2.6, whose signature is by test-key-ed25519.
const example = {
  method: 'POST',
  url: 'https://example.com/foo?param=Value&Pet=dog',
  headers: {
    Date: 'Tue, 20 Apr 2021 02:07:55 GMT',
    'Content-Type': 'application/json',
    'Content-Digest':
      'sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:',
    'Content-Length': '18',
    'Signature-Input':
      'sig-b26=("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"',
    Signature:
      'sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:',
  },
  body: '{"hello": "world"}',
};
const set = {
  keys: [
    {
      kty: 'OKP',
      crv: 'Ed25519',
      kid: 'test-key-ed25519',
      x: 'JrQLj5P_89iXES9-vFgrIy29clF9CC_oPPsw3c5D0bs',
    },
  ],
};
const components = ['@method', '@authority'];

verification('the example of RFC 9421 is verified, and nothing that differs from it', async () => {
  assert.equal(await verifyMessage(example, set, { now, components }), { hello: 'world' });
  const change = (fields: Partial<typeof example>) =>
    refused(verifyMessage({ ...example, ...fields }, set, { now, components }));
  const none = 'No signature of the request is by one of these keys.';
  assert.is(await change({ method: 'PUT' }), none);
  assert.is(await change({ url: 'https://example.org/foo' }), none);
  assert.is(await change({ headers: { ...example.headers, 'Content-Type': 'text/plain' } }), none);
  assert.match(await change({ body: '{"hello": "World"}' }), 'The body is not the one');
  assert.match(
    await refused(verifyMessage(example, set, { now })),
    'No signature covers @method, @authority, @path, @query, content-digest.',
  );
  assert.match(
    await refused(verifyMessage(example, set, { now: now + 301_000, components })),
    'The request is 301 seconds off',
  );
  const other = { keys: [{ ...set.keys[0], kid: 'another' }] };
  assert.is(await refused(verifyMessage(example, other, { now, components })), none);
  const { Signature: _, ...unsigned } = example.headers;
  const bare = { ...example, headers: unsigned as typeof example.headers };
  assert.is(
    await refused(verifyMessage(bare, set, { now })),
    'The request has no header signature.',
  );
});

verification.run();
