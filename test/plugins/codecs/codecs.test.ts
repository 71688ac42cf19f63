import { spawnSync } from 'node:child_process';
import http from 'node:http';
import { deflateSync } from 'node:zlib';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import avro from '@gateway/codec-avro';
import jsonSchema from '@gateway/codec-json-schema';
import protobuf from '@gateway/codec-protobuf';
import type { Codec, CodecPlugin, Missing } from '@gateway/plugin';
import { codecConformance, codecRules } from '@gateway/plugin-conformance';
import { judged } from '../../conformance/judged.js';
import { own } from '../../support/services.js';

const codecs = suite('plugins/codecs/codecs');

const ENCODE = fileURLToPath(new URL('encode.py', import.meta.url));
const python = await own.python('fastavro==1.13.1', 'confluent-kafka[avro,protobuf]==2.16.1');
const registry = await own.registry();
codecs.after(() => registry.close());

const { stdout, stderr } = spawnSync(python, [ENCODE, registry.url], { encoding: 'utf8' });
assert.ok(stdout.includes('protobuf nested'), stderr);
const encoded = new Map(
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { name: string; base64: string })
    .map(({ name, base64 }) => [name, Buffer.from(base64, 'base64')]),
);

const settings = { registry: { url: registry.url, framing: 'confluent' } } as const;
const log = { debug() {}, info() {}, warn() {}, error() {} };

async function decoded(codec: Codec, bytes: Uint8Array, headers = {}): Promise<string> {
  const made = codec.decode({ bytes, headers, maxLength: 1e6 }) as string | Missing;
  if (typeof made === 'string') return made;
  await codec.load!(made.missing, { signal: AbortSignal.timeout(10_000) });
  return decoded(codec, bytes, headers);
}

function open<Settings>(plugin: CodecPlugin<Settings>, more: Partial<Settings> = {}): Codec {
  const whole = { numbers: 'strings', unions: 'plain', ...settings, ...more };
  return plugin.open(whole as unknown as Settings, { log });
}

const inner = {
  id: '9007199254740993',
  small: -7,
  total: '-12345678901234567890.05',
  rate: '0.1000',
  at: '2024-02-29T12:00:00.123Z',
  exact_at: '1969-12-31T23:59:59.999999Z',
  day: '2024-02-29',
  time: '23:59:59.001',
  uid: '00112233-4455-6677-8899-aabbccddeeff',
  ratio: 0.1,
  weight: 0.1,
  paid: true,
  blob: 'AP8=',
  state: 'DONE',
  tags: ['a', 'Zürich'],
  counts: { big: '-9223372036854775808' },
  note: null,
  either: 'text',
};
const AVRO = { ...inner, parent: { ...inner, parent: null } };
const PROTOBUF = {
  id: '-9223372036854775808',
  unsigned: '18446744073709551615',
  small: -7,
  fixed: '-1',
  ratio: 0.1,
  paid: true,
  blob: 'AP8=',
  state: 'DONE',
  lines: [
    { sku: 'a', amount: -1 },
    { sku: 'Zürich', amount: 0 },
  ],
  numbers: [1, -2, 3],
  stock: { '5': 'five' },
  at: '2024-02-29T12:00:00.000000001Z',
  lasts: '-1.500s',
  any: { list: [1, null, { deep: true }], text: 'x' },
  wrapped: '9007199254740993',
  email: 'a@example.com',
  zero: 0,
};

codecs('Avro of the client of Confluent loses no digit', async () => {
  const text = await decoded(open(avro), encoded.get('avro')!);
  assert.equal(JSON.parse(text), AVRO);
});

codecs('numbers can be exact JSON numbers, and unions name their branch', async () => {
  const codec = open(avro, { numbers: 'exact', unions: 'tagged' });
  const text = await decoded(codec, encoded.get('avro')!);
  assert.match(text, /"id":9007199254740993,.*"total":-12345678901234567890\.05,/);
  assert.match(text, /"either":\{"string":"text"\},"parent":\{"com\.example\.Order":\{"id"/);
});

codecs('a schema finds the types of those that it refers to', async () => {
  assert.is(await decoded(open(avro), encoded.get('avro reference')!), '{"sum":{"cents":"5"}}');
});

codecs('Protobuf of the client of Confluent loses no digit', async () => {
  const text = await decoded(open(protobuf), encoded.get('protobuf')!);
  assert.equal(JSON.parse(text), PROTOBUF);
});

codecs('a message of Protobuf is found by its indexes', async () => {
  const text = await decoded(open(protobuf), encoded.get('protobuf nested')!);
  assert.equal(JSON.parse(text), { sku: 'b', amount: 2 });
});

/** The id of a schema, registered under a subject of its own. */
async function registered(schema: string, schemaType: string): Promise<number> {
  const response = await fetch(`${registry.url}/subjects/${schemaType}-value/versions`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ schema, schemaType }),
  });
  return ((await response.json()) as { id: number }).id;
}

function framed(id: number, text: string): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(id, 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

const jsonId = await registered(
  '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"type":"number"}}}',
  'JSON',
);

codecs('JSON with a schema stays as it is written', async () => {
  const text = '{ "n": 9007199254740993 }';
  assert.is(await decoded(open(jsonSchema), framed(jsonId, text)), text);
});

codecs('an unknown schema is the fault of the message, with its id', async () => {
  for (const plugin of [avro, protobuf, jsonSchema] as CodecPlugin<never>[])
    await decoded(open(plugin), framed(987_654, 'x')).then(
      () => assert.unreachable(),
      (error: Error) => {
        assert.is(error.message, 'The schema registry has no schema id 987654.');
        assert.is((error as { isUndecodable?: boolean }).isUndecodable, true);
      },
    );
});

codecs('a message without a frame says so', () => {
  const decode = () => open(avro).decode({ bytes: Buffer.from('{}'), headers: {}, maxLength: 99 });
  assert.throws(
    decode,
    /does not begin with a zero byte and a schema id of 4 bytes, but with the bytes 7b7d/,
  );
});

codecs(
  'Apicurio names a schema by its global id of 8 bytes, and the type of a message',
  async () => {
    const artifact = async (id: string, type: string, text: string) => {
      const response = await fetch(`${registry.ownUrl}/groups/default/artifacts`, {
        method: 'POST',
        headers: {
          'x-registry-artifactid': id,
          'x-registry-artifacttype': type,
          'content-type': 'application/json',
        },
        body: text,
      });
      return ((await response.json()) as { globalId: number }).globalId;
    };
    const framed8 = async (schema: Promise<number>, rest: readonly number[]) => {
      const head = Buffer.alloc(9);
      head.writeBigInt64BE(BigInt(await schema), 1);
      return Buffer.concat([head, Buffer.from(rest)]);
    };
    const own = { registry: { url: registry.ownUrl, framing: 'apicurio' } } as const;
    const long = await framed8(artifact('own', 'AVRO', '"long"'), [4]);
    assert.is(await decoded(open(avro, own), long), '"2"');
    const proto =
      'syntax = "proto3"; package p; message A { string s = 1; } message B { int32 n = 1; }';
    const named = [3, 10, 1, 66, 8, 5];
    const text = await decoded(
      open(protobuf, own),
      await framed8(artifact('b', 'PROTOBUF', proto), named),
    );
    assert.is(text, '{"n":5}');
    await avro.check!(
      { ...own, numbers: 'strings', unions: 'plain' },
      { signal: AbortSignal.timeout(9_000) },
    );
  },
);

codecs('AWS Glue names a schema by a UUID, and may compress; requests are signed', async () => {
  const version = '00112233-4455-6677-8899-aabbccddeeff';
  const asked: string[] = [];
  const glue = http.createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      asked.push(`${request.headers['x-amz-target']} ${request.headers.authorization} ${body}`);
      const isKnown = body.includes(version);
      response.statusCode = isKnown ? 200 : 400;
      response.end(
        JSON.stringify(
          isKnown ? { SchemaDefinition: '"long"' } : { __type: 'EntityNotFoundException' },
        ),
      );
    });
  });
  await new Promise<void>((listening) => glue.listen(0, '127.0.0.1', listening));
  try {
    const { port } = glue.address() as { port: number };
    const own = {
      registry: {
        url: `http://127.0.0.1:${port}`,
        framing: 'glue',
        username: 'KEY',
        password: 'secret',
        region: 'eu-west-1',
      },
    } as const;
    const id = Buffer.from(version.replaceAll('-', ''), 'hex');
    const codec = open(avro, own);
    assert.is(
      await decoded(codec, Buffer.concat([Buffer.from([3, 0]), id, Buffer.from([4])])),
      '"2"',
    );
    assert.is(
      await decoded(codec, Buffer.concat([Buffer.from([3, 5]), id, deflateSync(Buffer.from([6]))])),
      '"3"',
    );
    assert.is(asked.length, 1);
    assert.match(
      asked[0]!,
      /^AWSGlue\.GetSchemaVersion AWS4-HMAC-SHA256 Credential=KEY\/\d{8}\/eu-west-1\/glue\/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=[0-9a-f]{64} /,
    );
    const bomb = Buffer.concat([Buffer.from([3, 5]), id, deflateSync(Buffer.alloc(10_000_000))]);
    assert.throws(
      () => codec.decode({ bytes: bomb, headers: {}, maxLength: 1e6 }),
      /does not become a message of up to 1000000 bytes/,
    );
  } finally {
    glue.close();
  }
});

/** Cut off by a port on which nothing listens. */
function conforms<Settings>(
  plugin: CodecPlugin<Settings>,
  samples: readonly { readonly bytes: Buffer; readonly json: string }[],
): void {
  const own = { ...settings.registry };
  const rig = {
    settings: () =>
      ({ numbers: 'strings', unions: 'plain', registry: { ...own } }) as unknown as Settings,
    samples,
    undecodable: [{ bytes: framed(987_654, '') }],
    cutOff: () => {
      const { url } = own;
      Object.assign(own, { url: 'http://127.0.0.1:1' });
      return Promise.resolve(() => Promise.resolve(void Object.assign(own, { url })));
    },
  };
  judged(codecs, codecRules, () => codecConformance(plugin, rig));
}

conforms(avro, [{ bytes: encoded.get('avro')!, json: JSON.stringify(AVRO) }]);
conforms(protobuf, [{ bytes: encoded.get('protobuf')!, json: JSON.stringify(PROTOBUF) }]);
conforms(jsonSchema, [{ bytes: framed(jsonId, '{"a":1}'), json: '{"a":1}' }]);

codecs.run();
