import { hash, randomBytes } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verifierProblems } from '#source-http/check';
import type { Verifier } from '#source-http/connection';
import { PROVIDERS } from '#source-http/providers';
import { whyUnverified } from '#source-http/verify';
import { sign } from '../server/ingest/http-source.js';
import { connectionSchema } from './source-http-schema.js';

const verify = suite('plugins/source-http-verify');

const BODY = Buffer.from('{"id":"evt_1","amount":1.50}');
const NOW_MS = 1_700_000_000_000;
const SECONDS = String(NOW_MS / 1000);
const URL_USED = `https://example.com/hook?bodySHA256=${hash('sha256', BODY)}`;
const why = (
  verifier: Verifier,
  headers: Record<string, string>,
  body: Uint8Array = BODY,
  url = URL_USED,
) => whyUnverified(verifier, { headers, body, url }, NOW_MS);

const key = randomBytes(24);
const whsec = `whsec_${key.toString('base64')}`;
const basic = (pair: string) => ({
  authorization: `Basic ${Buffer.from(pair).toString('base64')}`,
});

/** A verifier, the headers of a valid request, and the verifier with another secret. */
const rows: Record<string, [Verifier, Record<string, string>]> = {
  github: [
    { type: 'github', secret: 's3cret' },
    { 'x-hub-signature-256': `sha256=${sign('s3cret', BODY)}` },
  ],
  shopify: [
    { type: 'shopify', secret: 's3cret' },
    { 'x-shopify-hmac-sha256': sign('s3cret', BODY, 'base64') },
  ],
  'shopify without X-': [
    { type: 'shopify', secret: 's3cret' },
    { 'shopify-hmac-sha256': sign('s3cret', BODY, 'base64') },
  ],
  twilio: [
    { type: 'twilio', secret: 's3cret' },
    { 'x-twilio-signature': sign('s3cret', URL_USED, 'base64', 'sha1') },
  ],
  intercom: [
    { type: 'intercom', secret: 's3cret' },
    { 'x-hub-signature': `sha1=${sign('s3cret', BODY, 'hex', 'sha1')}` },
  ],
  vercel: [
    { type: 'vercel', secret: 's3cret' },
    { 'x-vercel-signature': sign('s3cret', BODY, 'hex', 'sha1') },
  ],
  'hmac with SHA-1': [
    { type: 'hmac', hmac: { header: 'X-Sig', hash: 'SHA1', encoding: 'hex', secret: 's3cret' } },
    { 'x-sig': `sha1=${sign('s3cret', BODY, 'hex', 'sha1')}` },
  ],
  stripe: [
    { type: 'stripe', secret: 's3cret' },
    { 'stripe-signature': `t=${SECONDS},v1=${sign('s3cret', `${SECONDS}.${String(BODY)}`)},v0=00` },
  ],
  standard_webhooks: [
    { type: 'standard_webhooks', secret: whsec },
    {
      'webhook-id': 'msg_1',
      'webhook-timestamp': SECONDS,
      'webhook-signature': `v1a,xxxx v1,${sign(key, `msg_1.${SECONDS}.${String(BODY)}`, 'base64')}`,
    },
  ],
  'standard_webhooks of Svix': [
    { type: 'standard_webhooks', secret: key.toString('base64') },
    {
      'svix-id': 'msg_1',
      'svix-timestamp': SECONDS,
      'svix-signature': `v1,${sign(key, `msg_1.${SECONDS}.${String(BODY)}`, 'base64')}`,
    },
  ],
  slack: [
    { type: 'slack', secret: 's3cret' },
    {
      'x-slack-request-timestamp': SECONDS,
      'x-slack-signature': `v0=${sign('s3cret', `v0:${SECONDS}:${String(BODY)}`)}`,
    },
  ],
  zoom: [
    { type: 'zoom', secret: 's3cret' },
    {
      'x-zm-request-timestamp': SECONDS,
      'x-zm-signature': `v0=${sign('s3cret', `v0:${SECONDS}:${String(BODY)}`)}`,
    },
  ],
  hmac: [
    {
      type: 'hmac',
      hmac: { header: 'X-Sig', hash: 'SHA512', encoding: 'base64', secret: 's3cret' },
    },
    { 'x-sig': sign('s3cret', BODY, 'base64', 'sha512') },
  ],
  basic_auth: [
    { type: 'basic_auth', basic_auth: { username: 'ada', password: 'p:w' } },
    basic('ada:p:w'),
  ],
  api_key: [
    { type: 'api_key', api_key: { header_name: 'X-Key', header_value: 'k-1' } },
    { 'x-key': 'k-1' },
  ],
};

/** List members that are no signature can be anything. */
const IGNORED = ['v0', 'xv1a,'];

for (const [name, [verifier, headers]] of Object.entries(rows))
  verify(
    `${name}: a right request passes; one without the header, with another body or another secret does not`,
    () => {
      assert.is(why(verifier, headers), undefined);
      for (const missing of Object.keys(headers)) {
        const rest = Object.fromEntries(Object.entries(headers).filter(([it]) => it !== missing));
        assert.type(why(verifier, rest), 'string', `without ${missing}`);
        for (const wrong of [
          '',
          'x',
          headers[missing]!.slice(0, -3),
          `${headers[missing]}x`,
          `x${headers[missing]}`,
        ])
          if (!IGNORED.some((it) => wrong.includes(it)))
            assert.type(
              why(verifier, { ...headers, [missing]: wrong }),
              'string',
              `${missing}: ${wrong}`,
            );
      }
      const isOfBody = !['basic_auth', 'api_key'].includes(name);
      if (isOfBody) assert.type(why(verifier, headers, Buffer.from(`${String(BODY)} `)), 'string');
      const other = JSON.parse(
        JSON.stringify(verifier).replaceAll(/s3cret|p:w|k-1/g, 'other'),
      ) as Verifier;
      const rotated = name.startsWith('standard_webhooks')
        ? { ...verifier, secret: `whsec_${randomBytes(24).toString('base64')}` }
        : other;
      assert.type(why(rotated, headers), 'string');
    },
  );

verify(
  'a signature with a timestamp is refused when it is older or newer than the tolerance, also if it is right',
  () => {
    for (const [off, isRight] of [
      [-299, true],
      [299, true],
      [-301, false],
      [301, false],
    ] as const) {
      const at = String(NOW_MS / 1000 + off);
      const stripe = why(
        { type: 'stripe', secret: 's' },
        { 'stripe-signature': `t=${at},v1=${sign('s', `${at}.${String(BODY)}`)}` },
      );
      assert.is(stripe === undefined, isRight, `${off}: ${stripe}`);
    }
    const unsigned = { 'stripe-signature': `v1=${sign('s', `.${String(BODY)}`)}` };
    assert.is(why({ type: 'stripe', secret: 's' }, unsigned), 'it has no signing time');
  },
);

verify(
  'of several signatures one that is right is enough, as while a provider rotates its secret',
  () => {
    const right = sign('new', `${SECONDS}.${String(BODY)}`);
    const both = `t=${SECONDS},v1=${sign('old', `${SECONDS}.${String(BODY)}`)},v1=${right}`;
    assert.is(why({ type: 'stripe', secret: 'new' }, { 'stripe-signature': both }), undefined);
    const many = `t=${SECONDS},${'v1=00,'.repeat(20)}v1=${right}`;
    assert.type(why({ type: 'stripe', secret: 'new' }, { 'stripe-signature': many }), 'string');
  },
);

verify('a MAC is taken in the spellings that providers use, and no other', () => {
  const hmac = { header: 'X-Sig', hash: 'SHA256', encoding: 'hex', secret: 's' } as const;
  const [right, wrong] = [sign('s', BODY), sign('t', BODY)];
  const spelled = ['', 'sha256=', 'sha256= ', 'SHA256=', 'v1='].flatMap((it) => [
    it + right,
    it + right.toUpperCase(),
  ]);
  const several = [
    `sha256=${wrong}, sha256=${right}`,
    `sha256=${wrong},sha256=${right}`,
    `${wrong} ${right}`,
  ];
  for (const text of [...spelled, ...several])
    assert.is(why({ type: 'hmac', hmac }, { 'x-sig': text }), undefined, text);
  for (const text of [wrong, `${right}00`, `sha256 =${right}x`, 'sha256=', ',', `x=${right}`])
    assert.type(why({ type: 'hmac', hmac }, { 'x-sig': text }), 'string', text);
  const inBase64 = { ...hmac, encoding: 'base64' } as const;
  const base64 = sign('s', BODY, 'base64');
  for (const text of [base64, `sha256=${base64}`, `sha256= ${base64}`])
    assert.is(why({ type: 'hmac', hmac: inBase64 }, { 'x-sig': text }), undefined, text);
  assert.is(
    why({ type: 'github', secret: 's' }, { 'x-hub-signature-256': `sha256= ${right}` }),
    undefined,
  );
});

verify('a form of Twilio is signed with its URL and its fields in order', () => {
  // The example of Twilio's libraries.
  const form =
    'Digits=1234&CallSid=CA1234567890ABCDE&Caller=%2B14158675309&From=%2B14158675309&To=%2B18005551212';
  const url = 'https://mycompany.com/myapp.php?foo=1&bar=2';
  const headers = {
    'content-type': 'application/x-www-form-urlencoded; charset=UTF-8',
    'x-twilio-signature': 'RSOYDt4T1cUTdK1PDd93/VVr8B8=',
  };
  const twilio = { type: 'twilio', secret: '12345' } as const;
  const reason = (body: string, at = url) => why(twilio, headers, Buffer.from(body), at);
  assert.is(reason(form), undefined);
  assert.is(reason(form.split('&').reverse().join('&')), undefined);
  assert.type(reason(form.replace('1234', '1235')), 'string');
  assert.type(reason(`${form}&More=1`), 'string');
  assert.type(reason(form, url.replace('foo=1', 'foo=2')), 'string');
  const json = { ...headers, 'content-type': 'application/json' };
  assert.match(why(twilio, json, Buffer.from('{}'), url) ?? '', 'bodySHA256');
  const repeated = sign('12345', `${url}aAaBb1`, 'base64', 'sha1');
  assert.is(
    why(
      twilio,
      { ...headers, 'x-twilio-signature': repeated },
      Buffer.from('b=1&a=B&a=A&a=B'),
      url,
    ),
    undefined,
  );
});

verify('the id of one set of headers does not go with the signature of the other', () => {
  const [verifier, headers] = rows['standard_webhooks of Svix']!;
  assert.type(why(verifier, { ...headers, 'webhook-id': 'msg_2' }), 'string');
});

verify('a secret that cannot be the one of the provider is refused when it is saved', () => {
  const refused = (type: string, secret: string) =>
    verifierProblems({ type, secret })
      .map(({ sentence }) => sentence)
      .join();
  for (const right of [whsec, key.toString('base64'), key.toString('base64').replace(/=+$/, '')])
    assert.is(refused('standard_webhooks', right), '');
  assert.match(refused('standard_webhooks', `v1,${whsec}`), 'begins with "v1,"');
  for (const wrong of [
    'whsec_',
    'whsec_c2hvcnQ=',
    'not base64 at all, but long',
    `${whsec}!`,
    `whsec_whsec_${'a'.repeat(32)}`,
    `${whsec}====x`,
  ])
    assert.match(
      refused('standard_webhooks', wrong),
      'must be whsec_ and at least 16 bytes in base64',
      wrong,
    );
  for (const type of ['github', 'stripe', 'standard_webhooks'])
    for (const wrong of [`${whsec}\n`, ` ${whsec}`])
      assert.match(refused(type, wrong), 'begins or ends with a blank');
  assert.match(
    verifierProblems({ type: 'hmac', hmac: { secret: 'a ' } } as Verifier)[0]!.field,
    'verifier.hmac.secret',
  );
});

verify('no header, however odd, makes it throw', () => {
  const odd = [
    '',
    ',',
    '=',
    't=',
    't=,v1=',
    `t=${'9'.repeat(400)},v1=zz`,
    '\u00ff',
    'v1,v1,v1',
    `${'a,'.repeat(5000)}`,
  ];
  for (const [verifier, headers] of Object.values(rows))
    for (const name of Object.keys(headers))
      for (const text of odd) assert.type(why(verifier, { ...headers, [name]: text }), 'string');
});

verify('a verifier has what its type needs and nothing else', () => {
  const problems = (verifier: object) =>
    verifierProblems(verifier as Verifier).map(({ field, sentence }) => `${field} ${sentence}`);
  for (const [verifier] of Object.values(rows)) assert.equal(problems(verifier), []);
  assert.equal(problems({ type: 'noop', secret: 'x' }), [
    'verifier.secret does not belong to the type noop',
  ]);
  assert.equal(connectionSchema.properties.verifier.properties.type.enum.slice(4), [
    ...Object.keys(PROVIDERS),
  ]);
  for (const type of Object.keys(PROVIDERS))
    assert.equal(problems({ type }), ['verifier.secret is missing']);
  assert.equal(problems({ type: 'hmac', hmac: { header: 'x' } }), [
    'verifier.hmac.secret is missing',
  ]);
  assert.equal(problems({ type: 'standard_webhooks', secret: 'short' }), [
    'verifier.secret must be whsec_ and at least 16 bytes in base64',
  ]);
});

verify.run();
