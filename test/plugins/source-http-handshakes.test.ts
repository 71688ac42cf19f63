import { createHmac } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { verifierProblems } from '#source-http/check';
import type { Verifier } from '#source-http/connection';
import { HANDSHAKES, handshakeAnswer } from '#source-http/handshakes';
import { connectionSchema } from './source-http-schema.js';

const handshakes = suite('plugins/source-http-handshakes');

interface Request {
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly query?: string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}
type HandshakeFields = NonNullable<Verifier['handshake']>;
const ask = (
  handshake: HandshakeFields,
  { method = 'GET', query = '', headers = {}, body }: Request,
  verifier: Partial<Verifier> = {},
) =>
  handshakeAnswer(
    { type: 'noop', ...verifier, handshake },
    {
      ...{ method, headers },
      url: `/ingest/x?${query}`,
      body: Buffer.from(typeof body === 'string' ? body : (JSON.stringify(body) ?? '')),
    },
  );
const mac = (text: string, encoding: 'hex' | 'base64') =>
  createHmac('sha256', 's3cret').update(text).digest(encoding);

const HUB = 'hub.mode=subscribe&hub.challenge=%3Cb%3E42&hub.verify_token=t-1';
const grid = (eventType: string) => [{ eventType, data: { validationCode: 'c-1' } }];

/**
 * A handshake with its token, a valid request, the response, and requests that are no handshake.
 */
const rows: Record<string, [HandshakeFields, Request, string | object, Request[]]> = {
  hub_challenge: [
    { type: 'hub_challenge', token: 't-1' },
    { query: HUB },
    '<b>42',
    [{}, { query: HUB.replace('subscribe', 'unsubscribe') }],
  ],
  websub: [
    { type: 'websub' },
    { query: HUB },
    '<b>42',
    [{ query: 'hub.mode=denied&hub.challenge=1' }],
  ],
  slack: [
    { type: 'slack' },
    { method: 'POST', body: { type: 'url_verification', challenge: '42', token: 'x' } },
    '42',
    [
      { method: 'POST', body: { type: 'event_callback', challenge: '42' } },
      { method: 'POST', body: 'challenge' },
    ],
  ],
  monday: [
    { type: 'monday' },
    { method: 'POST', body: { challenge: '42' } },
    { challenge: '42' },
    [{ method: 'POST', body: { challenge: '42', event: {} } }],
  ],
  microsoft_graph: [
    { type: 'microsoft_graph' },
    { method: 'POST', query: 'validationToken=a%20b' },
    'a b',
    [{ method: 'POST', body: {} }],
  ],
  event_grid: [
    { type: 'event_grid' },
    { method: 'POST', body: grid('Microsoft.EventGrid.SubscriptionValidationEvent') },
    { validationResponse: 'c-1' },
    [
      { method: 'POST', body: grid('Other') },
      { method: 'POST', body: [] },
    ],
  ],
  dropbox: [{ type: 'dropbox' }, { query: 'challenge=42' }, '42', [{}, { query: 'challenge=' }]],
  okta: [
    { type: 'okta' },
    { headers: { 'x-okta-verification-challenge': '42' } },
    { verification: '42' },
    [{}],
  ],
  zoom: [
    { type: 'zoom' },
    {
      method: 'POST',
      body: { event: 'endpoint.url_validation', payload: { plainToken: 'qgg8vlvZRS6UYooatFL8Aw' } },
    },
    { plainToken: 'qgg8vlvZRS6UYooatFL8Aw', encryptedToken: mac('qgg8vlvZRS6UYooatFL8Aw', 'hex') },
    // The response would be the signature of a webhook.
    [
      {
        method: 'POST',
        body: { event: 'endpoint.url_validation', payload: { plainToken: 'v0:1700000000:{}' } },
      },
    ],
  ],
  x: [
    { type: 'x' },
    { query: 'crc_token=ab-1' },
    { response_token: `sha256=${mac('ab-1', 'base64')}` },
    [{ query: 'crc_token=%7B%22a%22:1%7D' }],
  ],
  reachable: [{ type: 'reachable' }, { method: 'HEAD' }, 'ok', [{ method: 'POST', body: {} }]],
};

for (const [name, [fields, request, wanted, others]] of Object.entries(rows))
  handshakes(`${name}: its request is answered, and others are webhooks`, () => {
    const verifier = { type: 'github', secret: 's3cret' } as const;
    assert.equal(ask(fields, request, verifier), {
      contentType: typeof wanted === 'string' ? 'text/plain' : 'application/json',
      body: typeof wanted === 'string' ? wanted : JSON.stringify(wanted),
    });
    const method = HANDSHAKES[name]!.method === 'GET' ? ('POST' as const) : ('GET' as const);
    for (const other of [...others, { ...request, method }])
      assert.is(ask(fields, other, verifier), undefined, JSON.stringify(other));
    const bare = { method: 'GET', headers: {}, url: '/ingest/x', body: Buffer.alloc(0) } as const;
    assert.is(handshakeAnswer(verifier, bare), undefined);
    assert.equal(verifierProblems({ ...verifier, handshake: fields }), []);
  });

handshakes('there is a row for each, which the schema offers', () => {
  assert.equal(Object.keys(rows).sort(), Object.keys(HANDSHAKES).sort());
  const { handshake } = connectionSchema.properties.verifier.properties;
  assert.equal(handshake.properties.type.enum, Object.keys(HANDSHAKES));
});

handshakes('a wrong token, or none, is refused, and what is too long is no handshake', () => {
  for (const type of ['hub_challenge', 'websub'])
    for (const query of [
      HUB.replace('t-1', 't-2'),
      HUB.replace('&hub.verify_token=t-1', ''),
      `${HUB}x`,
    ])
      assert.throws(
        () => ask({ type, token: 't-1' }, { query }),
        /hub\.verify_token does not match the token/,
      );
  assert.is(ask({ type: 'dropbox' }, { query: `challenge=${'x'.repeat(2_001)}` }), undefined);
});

handshakes('a source without what its handshake needs is refused when it is saved', () => {
  const problems = (verifier: object) =>
    verifierProblems(verifier as Verifier).map(({ field, sentence }) => `${field} ${sentence}`);
  assert.equal(problems({ type: 'noop', handshake: { type: 'hub_challenge' } }), [
    'verifier.handshake.token is missing',
  ]);
  assert.equal(problems({ type: 'noop', handshake: { type: 'websub' } }), []);
  assert.match(
    problems({ type: 'noop', handshake: { type: 'dropbox', token: 't' } }).join(),
    'does not belong to the handshake dropbox',
  );
  assert.match(
    problems({ type: 'noop', handshake: { type: 'x' } }).join(),
    'signature secret, which the type noop does not have',
  );
});

handshakes.run();
