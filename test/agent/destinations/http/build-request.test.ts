import { createHmac, generateKeyPairSync } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RequestBuilder } from '#agent/destinations/http/build-request';
import { plainSignature, signingKey, standardSignature } from '#agent/destinations/http/signature';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { verify, verifyMessage } from '@gateway/client';
import { resolveConfig } from '#core/config/config';
import { sealer } from '#core/crypto/sealing';
import { newId } from '#core/events/ids';
import { isHeaderName, isHeaderValue, travellingHeaders } from '#core/events/headers';
import type { InFlightDelivery } from '#agent/model/delivery';
import type { Endpoint } from '#ingest/routing/project';
import { SIGNATURE_SCHEMES, type SecretRecord } from '#store/config/endpoints';
import { seed } from '../../../support/seed.js';
import { cachedEndpoint, ENCRYPTION_KEY, makeSecret, sealed, secretRecord } from '../../records.js';

const request = suite('agent/destinations/http/build-request');

const { open } = sealer(ENCRYPTION_KEY);
const SECRET = makeSecret();
const data = '{ "id":9007199254740993, "price":1.10 }';

const endpoint = (fields: Partial<Endpoint> = {}) =>
  cachedEndpoint({ secrets: [secretRecord(SECRET)], ...fields });

function delivery(headers: Record<string, string> = {}): InFlightDelivery {
  return {
    projectId: '0190c0de-0000-7000-8000-000000000001',
    id: '0190c0de-0000-8000-8000-000000000003',
    occurredAtMs: 0,
    eventId: '0190c0de-0000-8000-8000-000000000004',
    endpointId: '0190c0de-0000-7000-8000-000000000002',
    subscriptionId: null,
    isTransformed: false,
    attempts: 0,
    eventType: 'order.paid',
    sourceId: null,
    traceparent: null,
    orderKey: null,
    headers,
    body: Buffer.from(data),
    agentId: 1,
  };
}

const { config: texts } = resolveConfig({ env: {}, file: {} });
const builder = () => new RequestBuilder({ open, version: '1.2.3', texts });

/** Returns headers by name; fails on a repeated name. */
function headersOf(
  of: Endpoint,
  headers: Record<string, string> = {},
  nowMs = Date.now(),
  by = builder(),
): Record<string, string> {
  const { headers: list } = by.build(of, delivery(headers), nowMs);
  const found: Record<string, string> = {};
  for (let k = 0; k < list.length; k += 2) {
    const name = list[k]!.toLowerCase();
    assert.not.ok(name in found, `${name} comes twice`);
    found[name] = list[k + 1]!;
  }
  return found;
}

request('it carries the exact bytes to the URL of the endpoint', () => {
  const { url, body } = builder().build(endpoint(), delivery(), Date.now());
  assert.is(url, 'https://example.com/hooks?a=1');
  assert.is(body.toString(), data);
});

request('a secret URL is where it goes, and a format makes the body, which is signed', () => {
  const slack = endpoint({
    format: 'slack',
    authentication: {
      type: 'secret_url',
      secret_url: { url: sealed('https://hooks.example.com/T1') },
    },
  });
  const made = builder().build(slack, delivery({ 'content-type': 'text/plain' }), Date.now());
  assert.is(made.url, 'https://hooks.example.com/T1');
  assert.match(JSON.parse(made.body.toString()).text, /^order.*paid/);
  const named = headersOf(slack, { 'content-type': 'text/plain' });
  assert.is(named['content-type'], 'application/json');
  assert.not.throws(() => new Webhook(SECRET).verify(made.body.toString(), named));

  const alerts = endpoint({
    format: 'opsgenie',
    url: 'https://api.eu.opsgenie.com',
    authentication: { type: 'bearer', bearer: { token: sealed('K1') } },
  });
  assert.is(builder().build(alerts, delivery(), 0).url, 'https://api.eu.opsgenie.com/v2/alerts');
  assert.is(headersOf(alerts)['authorization'], 'GenieKey K1');
});

request('it says what it is, and a library of Standard Webhooks verifies it', () => {
  const headers = headersOf(endpoint());
  assert.is(headers['content-type'], 'application/json');
  assert.is(headers['user-agent'], 'gateway/1.2.3');
  assert.is(headers['webhook-id'], delivery().id);
  assert.ok(Math.abs(Number(headers['webhook-timestamp']) * 1000 - Date.now()) < 60_000);
  assert.not.throws(() => new Webhook(SECRET).verify(data, headers));
});

request(
  'during a rotation the old and the new secret verify, and the plain signature is of the new one',
  () => {
    const newest = makeSecret();
    const rotating = endpoint({
      secrets: [secretRecord(newest), secretRecord(SECRET, new Date(Date.now() + 60_000))],
    });
    const headers = headersOf(rotating);
    for (const secret of [newest, SECRET])
      assert.not.throws(() => new Webhook(secret).verify(data, headers));
    assert.is(
      headers['x-gateway-signature'],
      createHmac('sha256', newest).update(data).digest('hex'),
    );
  },
);

request('a secret signs until it expires, although it was opened before', () => {
  const newest = makeSecret();
  const nowMs = Date.now();
  const rotating = endpoint({
    secrets: [secretRecord(newest), secretRecord(SECRET, new Date(nowMs + 1_000))],
  });
  const by = builder();
  assert.is(headersOf(rotating, {}, nowMs, by)['webhook-signature']?.split(' ').length, 2);
  const after = headersOf(rotating, {}, nowMs + 1_000, by);
  assert.is(after['webhook-signature']?.split(' ').length, 1);
  assert.not.throws(() => new Webhook(newest).verify(data, after));
  assert.throws(() => new Webhook(SECRET).verify(data, after));
});

const { publicKey, privateKey } = generateKeyPairSync('ed25519');
const withKey = (secret: string): SecretRecord => ({
  ...secretRecord(secret),
  ed25519: {
    public_key: Buffer.from(publicKey.export({ format: 'jwk' }).x!, 'base64url').toString('base64'),
    private_key: sealed(privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64'), [
      'endpoints',
      endpoint().id,
      'secrets',
    ]),
  },
});

request('each combination of signatures verifies, by the secret and by the key', async () => {
  const record = withKey(SECRET);
  const key = `whpk_${record.ed25519!.public_key}`;
  const body = Buffer.from(data);
  await fc.assert(
    fc.asyncProperty(
      fc.subarray([...SIGNATURE_SCHEMES], { minLength: 1 }),
      fc.constantFrom(null, 'svix', 'x-gateway'),
      fc.webUrl({ withQueryParameters: true }),
      async (signatures, prefix, url) => {
        const of = endpoint({ url, signatures, signaturePrefix: prefix, secrets: [record] });
        const headers = headersOf(of, { signature: 'of the message' });
        const names = { prefix: prefix ?? 'webhook' };
        const isHmac = signatures.includes('hmac');
        const standard = `${names.prefix}-signature` in headers;
        assert.is(standard, isHmac || signatures.includes('ed25519'));
        if (isHmac) await verify(body, headers, SECRET, names);
        if (signatures.includes('ed25519')) await verify(body, headers, key, names);
        assert.is('x-gateway-signature' in headers, isHmac || (prefix === 'x-gateway' && standard));
        const isMessage = signatures.some((it) => it.startsWith('rfc9421'));
        assert.is('content-digest' in headers, isMessage);
        for (const [scheme, by] of [
          ['rfc9421-hmac', SECRET],
          ['rfc9421-ed25519', key],
        ] as const)
          if (signatures.includes(scheme)) await verifyMessage({ url, headers, body }, by);
      },
    ),
    { seed, numRuns: 50 },
  );
});

request('static headers are sent, instead of those of the message', () => {
  const place = ['endpoints', endpoint().id, 'headers'] as const;
  const of = endpoint({
    headers: [
      { name: 'x-tenant', value: sealed('north', place) },
      { name: 'x-gateway-signature', value: sealed('forged', place) },
    ],
  });
  const headers = headersOf(of, { 'x-tenant': 'south' });
  assert.is(headers['x-tenant'], 'north');
  assert.match(headers['x-gateway-signature']!, /^[0-9a-f]{64}$/);
});

request('an endpoint whose secrets have all expired is not sent to unsigned', () => {
  const expired = endpoint({ secrets: [secretRecord(SECRET, new Date(Date.now() - 1))] });
  assert.throws(() => builder().build(expired, delivery(), Date.now()), /no valid secret/);
  assert.throws(
    () => builder().build(endpoint({ secrets: [] }), delivery(), Date.now()),
    /no valid secret/,
  );
});

request('the plain signature has the name, hash and encoding of the project', () => {
  for (const [hash, encoding] of [
    ['SHA256', 'hex'],
    ['SHA256', 'base64'],
    ['SHA512', 'hex'],
    ['SHA512', 'base64'],
  ] as const) {
    const headers = headersOf(endpoint({ signature: { header: 'X-Shop-Hmac', hash, encoding } }));
    assert.is(
      headers['x-shop-hmac'],
      createHmac(hash.toLowerCase(), SECRET).update(data).digest(encoding),
    );
    assert.is(headers['x-gateway-signature'], undefined);
  }
});

request('headers of the event travel with it', () => {
  const headers = headersOf(endpoint(), {
    'x-shop': '7',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  });
  assert.is(headers['x-shop'], '7');
  assert.is(headers['traceparent'], '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01');
});

request('headers of the event override nothing that the gateway or the endpoint sets', () => {
  const authentication = {
    type: 'api_key',
    api_key: { header_name: 'X-Api-Key', header_value: sealed('right') },
  } as const;
  const mine = endpoint({
    authentication,
    signature: { header: 'X-Shop-Hmac', hash: 'SHA256', encoding: 'hex' },
  });
  const forged = Object.fromEntries(
    ['webhook-id', 'webhook-timestamp', 'webhook-signature', 'x-shop-hmac', 'x-api-key'].map(
      (name) => [name, 'forged'],
    ),
  );
  const headers = headersOf(mine, forged);
  assert.not.ok(Object.values(headers).includes('forged'));
  assert.is(headers['x-api-key'], 'right');
});

request(
  'an endpoint authenticates with an API key, with basic credentials or with a bearer token',
  () => {
    const apiKey = {
      type: 'api_key',
      api_key: { header_name: 'X-Api-Key', header_value: sealed('hunter2') },
    } as const;
    assert.is(headersOf(endpoint({ authentication: apiKey }))['x-api-key'], 'hunter2');
    const basic = {
      type: 'basic',
      basic: { username: 'shop', password: sealed('häsli:2') },
    } as const;
    assert.is(
      headersOf(endpoint({ authentication: basic }))['authorization'],
      `Basic ${Buffer.from('shop:häsli:2').toString('base64')}`,
    );
    const bearer = { type: 'bearer', bearer: { token: sealed('abc.def') } } as const;
    assert.is(
      headersOf(endpoint({ authentication: bearer }), { authorization: 'Bearer forged' })[
        'authorization'
      ],
      'Bearer abc.def',
    );
  },
);

request(
  'a secret that was sealed with another key is refused in a sentence without any of it',
  () => {
    const foreign = sealer(Buffer.alloc(32, 1).toString('base64')).seal(SECRET, [
      'endpoints',
      endpoint().id,
      'secrets',
    ]);
    const wrong = endpoint({ secrets: [{ ...secretRecord(SECRET), value: foreign }] });
    let message = '';
    try {
      builder().build(wrong, delivery(), Date.now());
    } catch (error) {
      message = (error as Error).message;
    }
    assert.ok(message.length > 10);
    assert.not.ok(message.includes(foreign.slice(12)) || message.includes(SECRET));
  },
);

request(
  'a secret or an authentication that was moved here from another endpoint in the database is not used',
  () => {
    const secret = endpoint({ id: newId() });
    assert.throws(() => builder().build(secret, delivery(), Date.now()), /cannot be decrypted/);
    const token = {
      type: 'bearer',
      bearer: { token: sealed('abc.def', ['endpoints', newId(), 'authentication']) },
    } as const;
    assert.throws(
      () => builder().build(endpoint({ authentication: token }), delivery(), Date.now()),
      /cannot be decrypted/,
    );
  },
);

request('secrets are opened once per endpoint, and again when the endpoint has changed', () => {
  let opened = 0;
  const by = new RequestBuilder({
    open: (...sealed) => (opened++, open(...sealed)),
    version: '1',
    texts,
  });
  const one = endpoint();
  for (let n = 0; n < 5; n++) by.build(one, delivery(), Date.now());
  assert.is(opened, 1);
  const newest = makeSecret();
  const changed = endpoint({ secrets: [secretRecord(newest)] });
  assert.not.throws(() => new Webhook(newest).verify(data, headersOf(changed, {}, Date.now(), by)));
  assert.is(opened, 2);
});

request('the content type and user agent of the message replace those of the gateway', () => {
  const headers = headersOf(endpoint(), {
    'content-type': 'application/cloudevents+json',
    'user-agent': 'shop/7',
  });
  assert.equal(
    [headers['content-type'], headers['user-agent']],
    ['application/cloudevents+json', 'shop/7'],
  );
});

request(
  'whatever headers a broker message has, each name stands once in the request, and nothing splits a line or forges what the gateway sets',
  () => {
    const own = [
      'Webhook-Id',
      'WEBHOOK-SIGNATURE',
      'webhook-timestamp',
      'X-Gateway-Signature',
      'Content-Type',
      'User-Agent',
      'X-Api-Key',
    ];
    const connection = [
      'Host',
      'Connection',
      'TE',
      'Transfer-Encoding',
      'Content-Length',
      'Upgrade',
      'Trailer',
      'Expect',
      'Keep-Alive',
    ];
    const names = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string(),
      fc.constantFrom(
        ...own,
        ...connection,
        '__proto__',
        'constructor',
        'x-a\r\nx-evil',
        'X-A',
        'x-a',
      ),
    );
    const values = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.string(),
      fc.constantFrom('forged', 'a\r\nx-evil: 1', '\0', '\ud800', 'é', '€'),
    );
    const authentication = {
      type: 'api_key',
      api_key: { header_name: 'X-Api-Key', header_value: sealed('right') },
    } as const;
    const mine = endpoint({ authentication });
    const by = builder();
    fc.assert(
      fc.property(fc.array(fc.tuple(names, values)), (pairs) => {
        // The headers as read back from the database.
        const travelling = JSON.parse(
          JSON.stringify(travellingHeaders(Object.fromEntries(pairs), {})),
        ) as Record<string, string>;
        const { headers } = by.build(mine, delivery(travelling), Date.now());
        const seen = new Set<string>();
        for (let k = 0; k < headers.length; k += 2) {
          const [name, value] = [headers[k]!, headers[k + 1]!];
          assert.ok(isHeaderName(name) && isHeaderValue(value), JSON.stringify([name, value]));
          assert.not.ok(seen.has(name.toLowerCase()), name);
          seen.add(name.toLowerCase());
          if (own.some((it) => it.toLowerCase() === name.toLowerCase()))
            assert.is.not(value, 'forged', name);
        }
        for (const name of connection) assert.not.ok(seen.has(name.toLowerCase()), name);
      }),
      { seed, numRuns: 1_000 },
    );
  },
);

const ID = '0190c0de-0000-8000-8000-000000000001';
const body = Buffer.from('{ "id":9007199254740993,"price":1.10,"name":"José 😀" }');
const now = () => Math.floor(Date.now() / 1000);

/** The headers that the Standard Webhooks library reads. */
function headers(signature: string, timestamp: number, id = ID): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signature,
  };
}

request('the library of Standard Webhooks verifies what is signed', () => {
  const secret = makeSecret();
  const timestamp = now();
  const signature = standardSignature([signingKey(secret)], ID, timestamp, body);
  assert.equal(
    new Webhook(secret).verify(body, headers(signature, timestamp)),
    JSON.parse(body.toString()),
  );
  assert.is(signature, new Webhook(secret).sign(ID, new Date(timestamp * 1000), body.toString()));
});

request('it refuses another body, id, time or secret', () => {
  const secret = makeSecret();
  const timestamp = now();
  const signature = standardSignature([signingKey(secret)], ID, timestamp, body);
  const webhook = new Webhook(secret);
  assert.throws(() =>
    webhook.verify(Buffer.concat([body, Buffer.from(' ')]), headers(signature, timestamp)),
  );
  assert.throws(() => webhook.verify(body, headers(signature, timestamp + 1)));
  assert.throws(() => webhook.verify(body, headers(signature, timestamp, ID.replace('1', '2'))));
  assert.throws(() => new Webhook(makeSecret()).verify(body, headers(signature, timestamp)));
});

request('with two secrets both verify, newest first', () => {
  const [newest, oldest] = [makeSecret(), makeSecret()];
  const timestamp = now();
  const signature = standardSignature(
    [signingKey(newest), signingKey(oldest)],
    ID,
    timestamp,
    body,
  );
  assert.is(signature.split(' ').length, 2);
  for (const secret of [newest, oldest])
    assert.not.throws(() => new Webhook(secret).verify(body, headers(signature, timestamp)));
  assert.is(signature.split(' ')[0], standardSignature([signingKey(newest)], ID, timestamp, body));
});

request(
  'a secret that was given as a text signs with its UTF-8 bytes, and the library verifies by them',
  () => {
    const timestamp = now();
    const signature = standardSignature([signingKey('endpoint-sécret')], ID, timestamp, body);
    const receiver = new Webhook(Buffer.from('endpoint-sécret'), { format: 'raw' });
    assert.not.throws(() => receiver.verify(body, headers(signature, timestamp)));
  },
);

request('keys of every length that the standard allows verify', () => {
  for (let bytes = 24; bytes <= 64; bytes++) {
    const secret = `whsec_${Buffer.alloc(bytes, bytes).toString('base64')}`;
    const timestamp = now();
    assert.not.throws(
      () =>
        new Webhook(secret).verify(
          body,
          headers(standardSignature([signingKey(secret)], ID, timestamp, body), timestamp),
        ),
      `${bytes} bytes`,
    );
  }
});

request(
  'the plain signature is the HMAC of the body alone, keyed with the whole text of the secret',
  () => {
    const secret = makeSecret();
    for (const hash of ['SHA256', 'SHA512'] as const) {
      for (const encoding of ['hex', 'base64'] as const) {
        const expected = createHmac(hash.toLowerCase(), secret).update(body).digest(encoding);
        assert.is(
          plainSignature(signingKey(secret), body, { header: 'X-Any', hash, encoding }),
          expected,
        );
      }
    }
  },
);

request.run();
