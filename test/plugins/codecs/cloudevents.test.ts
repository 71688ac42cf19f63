import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import cloudEvents from '@gateway/codec-cloudevents';
import { codecConformance, codecRules } from '@gateway/plugin-conformance';
import { readCloudEvents } from '@gateway/plugin/cloudevents';
import fc from 'fast-check';
import { sdks } from '../../clients/cloudevents/sdks.js';
import { judged } from '../../conformance/judged.js';
import { seed } from '../../support/seed.js';

const codec = suite('plugins/codecs/cloudevents');

const STRUCTURED = { 'content-type': 'application/cloudevents+json; charset=utf-8' };
const BATCH = { 'content-type': 'application/cloudevents-batch+json' };
const needed = { specversion: '1.0', id: '1', source: '/shop', type: 'order.paid' };

const read = (body: unknown, headers: Record<string, string> = STRUCTURED, isHttp = false) => {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return readCloudEvents({ bytes: Buffer.from(text), headers, isHttp });
};
const one = (...given: Parameters<typeof read>) =>
  JSON.parse(read(...given) as string) as Record<string, Record<string, unknown>>;

function why(...given: Parameters<typeof read>): string {
  try {
    read(...given);
  } catch (error) {
    const { message, fix } = error as Error & { fix: string };
    assert.ok(fix);
    return message;
  }
  return 'nothing';
}

for (const { name, run } of await sdks())
  codec(`what the SDK for ${name} makes keeps attributes, digits and bytes`, () => {
    for (const { name: mode, headers, base64 } of run([]).made) {
      const made = readCloudEvents({ bytes: Buffer.from(base64, 'base64'), headers });
      const texts = typeof made === 'string' ? [made] : made;
      assert.is(texts.length, mode === 'http batch' ? 2 : 1, mode);
      for (const text of texts) {
        const { event_type, idempotency_key, custom_headers: of, data } = JSON.parse(text);
        assert.is(event_type, 'order.paid');
        assert.is(idempotency_key, `https://shop.example.com/orders ${of['ce-id']}`);
        assert.equal([of['ce-subject'], of['ce-tenant']], ['order-7', 'acme']);
        assert.match(of['ce-time'], /^2026-01-31T12:00:00\.123456(Z|\+00:00)$/);
        if (of['ce-datacontenttype'] === 'image/png')
          assert.equal(data, { data_base64: 'iVBORwA=' }, mode);
        else assert.match(text, /"data":\{"id": ?9007199254740993, ?"name": ?"Z/, mode);
      }
    }
  });

codec('data keeps its text, and what is no object is the only member of one', () => {
  const dataOf = (data: string) =>
    /,"data":([^]*)\}$/.exec(
      read(`{"data": ${data},${JSON.stringify(needed).slice(1)}`) as string,
    )![1];
  assert.is(dataOf('{ "n": 1.10, "s":"\\u0041,}" }'), '{ "n": 1.10, "s":"\\u0041,}" }');
  assert.is(dataOf('[1.0]'), '{"data":[1.0]}');
  assert.is(dataOf('1e400'), '{"data":1e400}');
  assert.is(dataOf('{"data":1}'), '{"data":{"data":1}}');
  assert.is(dataOf('{"data_base64":"AA=="}'), '{"data":{"data_base64":"AA=="}}');
  assert.is(dataOf('{"data":1,"more":2}'), '{"data":1,"more":2}');
  assert.is(dataOf('null'), '{}');
  assert.equal(one(needed)['data'], {});
  assert.equal(one({ ...needed, data_base64: 'AP8=' })['data'], { data_base64: 'AP8=' });
  const xml = { ...needed, datacontenttype: 'text/xml', data: '<a/>' };
  const { custom_headers: headers, data } = one(xml);
  assert.equal(data, { data: '<a/>' });
  assert.equal(
    [headers!['content-type'], headers!['ce-datacontenttype']],
    ['application/json', 'text/xml'],
  );
  assert.is(
    one({ ...needed, datacontenttype: 'application/order+json', data: {} })['custom_headers']![
      'content-type'
    ],
    'application/order+json',
  );
});

codec(
  'attributes come from headers of Kafka, SQS and AMQP as text, of HTTP percent-encoded',
  () => {
    for (const prefix of ['ce_', 'ce-', 'cloudEvents:', 'cloudEvents_']) {
      const given = { ...needed, subject: 'Zürich 100%' };
      const headers = Object.fromEntries(
        Object.entries(given).map(([name, value]) => [prefix + name, value]),
      );
      const { custom_headers: of } = one('{"n":1}', headers);
      assert.is(of!['ce-subject'], 'Z%C3%BCrich%20100%25', prefix);
    }
    const http = Object.fromEntries(Object.entries(needed).map(([name, of]) => [`ce-${name}`, of]));
    const subject = (text: string) =>
      one('{}', { ...http, 'ce-subject': text }, true)['custom_headers']!['ce-subject'];
    assert.is(subject('Z%C3%BCrich%20100%25'), 'Z%C3%BCrich%20100%25');
    assert.is(subject('"a \\"b"'), 'a%20%22b');
    const png = { ...http, 'content-type': 'image/png' };
    assert.equal(one('x', png)['data'], { data_base64: 'eA==' });
    assert.equal(one('not json', http)['data'], { data_base64: 'bm90IGpzb24=' });
    assert.equal(one('', http)['data'], {});
  },
);

codec('what is no CloudEvent is refused with the name of the attribute', () => {
  const lacking = (name: string) => JSON.stringify({ ...needed, [name]: undefined });
  for (const name of Object.keys(needed))
    assert.is(why(lacking(name)), `The attribute ${name} is missing.`);
  assert.is(why({ ...needed, id: '' }), 'The attribute id is empty.');
  assert.is(
    why({ ...needed, specversion: '0.3' }),
    'The attribute specversion must be 1.0, not 0.3.',
  );
  assert.is(why({ ...needed, id: 7 }), 'The attribute id must be a string.');
  assert.is(
    why({ ...needed, source: 'a b' }),
    'The attribute source must be a URI reference, without blanks.',
  );
  assert.match(why({ ...needed, time: 'yesterday' }), 'The attribute time must be');
  assert.match(
    why({ ...needed, partition_key: 'a' }),
    'The attribute partition_key must have a name of',
  );
  assert.match(why({ ...needed, tenant: {} }), 'The attribute tenant must be a string, boolean');
  assert.match(why({ ...needed, tenant: 'a\nb' }), 'The attribute tenant has a control character');
  assert.match(why({ ...needed, data_base64: '*' }), 'The attribute data_base64 must be base64');
  assert.match(why({ ...needed, data: 1, data_base64: '' }), 'data_base64 must not stand beside');
  assert.is(why([needed]), 'The message is an array.');
  assert.is(why(needed, BATCH), 'The message is not an array.');
  assert.is(
    why([needed, { ...needed, type: '' }], BATCH),
    'CloudEvent 2 of 2: The attribute type is empty.',
  );
  assert.match(why('<e/>', { 'content-type': 'application/cloudevents+xml' }), 'The format xml');
  assert.match(why('{}', {}), 'The attribute specversion is missing.');
  assert.match(why('x', {}), 'specversion is missing, and the message is not JSON');
  const headers = { ce_specversion: '1.0', ce_id: '1', ce_source: '/', ce_type: 't' };
  const json = { ...headers, 'content-type': 'application/json' };
  assert.match(why('{', json), 'The data is not JSON, which the attribute datacontenttype says');
});

codec('any batch is taken apart where JSON.parse would', () => {
  const event = fc.record({
    specversion: fc.constant('1.0'),
    id: fc.uuid(),
    source: fc.constant('/a'),
    type: fc.constant('t'),
    data: fc.dictionary(fc.string(), fc.jsonValue(), { minKeys: 2 }),
  });
  fc.assert(
    fc.property(fc.array(event), fc.constantFrom(undefined, 1), (events, indent) => {
      const texts = read(JSON.stringify(events, null, indent), BATCH) as string[];
      assert.equal(
        texts.map((text) => JSON.parse(text).data),
        JSON.parse(JSON.stringify(events.map(({ data }) => data))),
      );
    }),
    { seed, numRuns: 200 },
  );
});

const sample = JSON.stringify({ ...needed, data: { n: 1 } });
const rig = {
  settings: () => ({}),
  samples: [
    { bytes: Buffer.from(sample), headers: STRUCTURED, json: read(sample) as string },
    { bytes: Buffer.from(`[${sample}]`), headers: BATCH, json: `[${read(sample) as string}]` },
  ],
  undecodable: [{ bytes: Buffer.from('{"specversion":"1.0"}') }],
};
judged(codec, codecRules, () => codecConformance(cloudEvents, rig), [
  'holds-while-the-registry-is-away',
]);

codec.run();
