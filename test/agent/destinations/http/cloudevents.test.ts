import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readCloudEvents } from '@gateway/plugin/cloudevents';
import { Webhook } from 'standardwebhooks';
import { RequestBuilder } from '#agent/destinations/http/build-request';
import type { InFlightDelivery } from '#agent/model/delivery';
import { resolveConfig } from '#core/config/config';
import { sealer } from '#core/crypto/sealing';
import type { CloudEventsFormat } from '#store/config/endpoints';
import { sdks } from '../../../clients/cloudevents/sdks.js';
import { cachedEndpoint, ENCRYPTION_KEY, makeSecret, secretRecord } from '../../records.js';

const out = suite('agent/destinations/http/cloudevents');

const { open } = sealer(ENCRYPTION_KEY);
const { config: texts } = resolveConfig({ env: {}, file: {} });
const builder = new RequestBuilder({ open, version: '1.2.3', texts });
const SECRET = makeSecret();
const projectId = '0190c0de-0000-7000-8000-000000000001';
const eventId = '0190c0de-0000-8000-8000-000000000004';
const data = '{ "id":9007199254740993, "name":"Zürich", "price":1.10 }';

/** The signed request for an event with these headers. */
function sent(format: CloudEventsFormat, body = data, given: Record<string, string> = {}) {
  const delivery: InFlightDelivery = {
    projectId,
    id: '0190c0de-0000-8000-8000-000000000003',
    occurredAtMs: Date.UTC(2026, 0, 31),
    eventId,
    endpointId: '0190c0de-0000-7000-8000-000000000002',
    subscriptionId: null,
    isTransformed: false,
    attempts: 0,
    eventType: 'order.paid',
    sourceId: null,
    traceparent: null,
    orderKey: null,
    headers: given,
    body: Buffer.from(body),
    agentId: 1,
  };
  const endpoint = cachedEndpoint({ secrets: [secretRecord(SECRET)], format });
  const { headers: list, body: bytes } = builder.build(endpoint, delivery, Date.now());
  const headers: Record<string, string> = {};
  for (let k = 0; k < list.length; k += 2) {
    assert.not.ok(list[k]! in headers, `${list[k]} comes twice`);
    headers[list[k]!] = list[k + 1]!;
  }
  // It parses what it has verified.
  if (/json/.test(headers['content-type']!)) new Webhook(SECRET).verify(bytes.toString(), headers);
  return { headers, text: bytes.toString(), base64: Buffer.from(bytes).toString('base64') };
}

/** The headers and data of the event that a CloudEvent becomes. */
function received(event: object): { headers: Record<string, string>; data: string } {
  const bytes = Buffer.from(JSON.stringify(event));
  const text = readCloudEvents({ bytes, headers: {} }) as string;
  const { custom_headers: headers } = JSON.parse(text) as {
    custom_headers: Record<string, string>;
  };
  return { headers, data: /,"data":([^]*)\}$/.exec(text)![1]! };
}

const CAME = {
  specversion: '1.0',
  id: 'a-1',
  source: '/shop',
  type: 'before',
  subject: 'Zürich 100%',
  time: '2025-01-01T00:00:00Z',
  tenant: 'acme',
};

out('an event of the gateway becomes a CloudEvent, with the bytes of its data', () => {
  const { headers, text } = sent('cloudevents');
  assert.is(headers['content-type'], 'application/cloudevents+json');
  assert.is(
    text,
    `{"specversion":"1.0","id":"${eventId}","source":"urn:uuid:${projectId}","type":"order.paid","time":"2026-01-31T00:00:00.000Z","datacontenttype":"application/json","data":${data}}`,
  );
  const binary = sent('cloudevents_binary');
  assert.is(binary.text, data);
  assert.equal(
    Object.entries(binary.headers).filter(([name]) => /^(ce-|content-type)/.test(name)),
    [
      ['content-type', 'application/json'],
      ['ce-specversion', '1.0'],
      ['ce-id', eventId],
      ['ce-source', `urn:uuid:${projectId}`],
      ['ce-type', 'order.paid'],
      ['ce-time', '2026-01-31T00:00:00.000Z'],
    ],
  );
});

out('what came as a CloudEvent keeps its attributes; a function may have changed the type', () => {
  const { headers } = received({ ...CAME, data: {} });
  const { text, headers: of } = sent('cloudevents', '{"n":1}', { ...headers, ce_id: 'a-1' });
  assert.equal(JSON.parse(text), {
    ...CAME,
    type: 'order.paid',
    datacontenttype: 'application/json',
    data: { n: 1 },
  });
  assert.not.ok(Object.keys(of).some((name) => /^ce[-_]/.test(name)));
  const binary = sent('cloudevents_binary', '{"n":1}', headers);
  assert.is(binary.headers['ce-subject'], 'Z%C3%BCrich%20100%25');
});

out('data that was no object leaves as it came, in both modes', () => {
  for (const content of [
    { data: [1, 'a'] },
    { data: { data: 1 } },
    { data: 'text' },
    { data: '<a/>', datacontenttype: 'text/xml' },
    { data_base64: 'iVBORwA=', datacontenttype: 'image/png' },
  ]) {
    const { headers, data: stored } = received({ ...CAME, ...content });
    const { text } = sent('cloudevents', stored, headers);
    const { data: value, data_base64, datacontenttype = 'application/json' } = JSON.parse(text);
    const given = { datacontenttype: 'application/json', ...content };
    assert.equal({ datacontenttype, ...(data_base64 ? { data_base64 } : { data: value }) }, given);
    const binary = sent('cloudevents_binary', stored, headers);
    assert.is(binary.headers['content-type'], datacontenttype);
    const { data: plain, data_base64: base64 } = content as Record<string, unknown>;
    if (base64 !== undefined) assert.is(binary.base64, base64);
    else assert.is(binary.text, datacontenttype === 'text/xml' ? plain : JSON.stringify(plain));
  }
  const own = '{"data":1}';
  assert.is(sent('cloudevents_binary', own).text, own, 'of an event that was no CloudEvent');
});

for (const { name, run } of await sdks())
  out(`the SDK for ${name} reads both modes`, () => {
    const came = received({ ...CAME, subject: 'order-7', data: JSON.parse(data) });
    const image = received({ ...CAME, data_base64: 'iVBORwA=', datacontenttype: 'image/png' });
    const { read } = run(
      (['cloudevents', 'cloudevents_binary'] as const).flatMap((format) => [
        sent(format),
        sent(format, data, { ...came.headers }),
        sent(format, image.data, image.headers),
      ]),
    );
    for (const [at, { attributes, data: seen }] of read.entries()) {
      const { id, source, type, subject, tenant } = attributes;
      const isOwn = at % 3 === 0;
      assert.equal(
        [id, source, type],
        isOwn ? [eventId, `urn:uuid:${projectId}`, 'order.paid'] : ['a-1', '/shop', 'order.paid'],
      );
      if (at % 3 === 1) assert.equal([subject, tenant], ['order-7', 'acme']);
      if (at % 3 === 2) assert.equal(seen, { base64: 'iVBORwA=' });
      else assert.equal(seen, JSON.parse(data));
    }
    assert.is(read.length, 6);
  });

out.run();
