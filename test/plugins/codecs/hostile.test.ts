import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readSchema as readAvro } from '#codec-avro/schema';
import { toJson as avroToJson } from '#codec-avro/to-json';
import { readSchema as readProtobuf } from '#codec-protobuf/schema';
import { toJson as protobufToJson } from '#codec-protobuf/to-json';

const hostile = suite('plugins/codecs/hostile');
const MAX = 100_000;

function refuses(work: () => unknown, reason: RegExp): void {
  const startedMs = performance.now();
  assert.throws(work, reason);
  const tookMs = performance.now() - startedMs;
  assert.ok(tookMs < 2_000, `${tookMs} ms`);
}

const avro = (schema: unknown, bytes: readonly number[] | Uint8Array) =>
  avroToJson(readAvro(JSON.stringify(schema), []), Uint8Array.from(bytes), MAX, {
    numbers: 'strings',
    unions: 'plain',
  });
const protobuf = (schema: string, bytes: readonly number[] | Uint8Array) =>
  protobufToJson(
    readProtobuf({ text: `syntax = "proto3"; ${schema}`, references: [] }).messages[0]!.type,
    Uint8Array.from(bytes),
    MAX,
    { numbers: 'strings' },
  );

/** The zigzag varint of 2^40. */
const MANY = [0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01];

hostile('an array that claims to have 2^40 items of no bytes stops at the length limit', () => {
  const empty = { type: 'record', name: 'Empty', fields: [] };
  for (const items of ['null', empty, { type: 'fixed', name: 'F', size: 0 }])
    refuses(
      () => avro({ type: 'array', items }, MANY),
      /It is longer than 100000 characters as JSON/,
    );
});

hostile('an array that claims to have more items than bytes ends with the bytes', () => {
  refuses(() => avro({ type: 'array', items: 'int' }, MANY), /it ends too early/);
  refuses(() => avro('bytes', MANY), /it ends too early/);
  refuses(() => avro('string', [0x01]), /a length is -1/);
  refuses(
    () =>
      avro(
        'long',
        Array.from({ length: 11 }, () => 0xff),
      ),
    /more than 10 bytes/,
  );
});

hostile('a recursive schema has a depth', () => {
  const list = { type: 'record', name: 'L', fields: [{ name: 'l', type: ['null', 'L'] }] };
  refuses(() => avro(list, new Uint8Array(10_000).fill(2)), /nests more than 200 deep/);
  const endless = { type: 'record', name: 'E', fields: [{ name: 'e', type: 'E' }] };
  refuses(() => avro(endless, [0]), /nests more than 200 deep/);
  const nested = `${'['.repeat(50_000)}"null"${']'.repeat(50_000)}`;
  refuses(() => readAvro(nested, []), /nests more than 100 types|call stack/);
});

hostile('a deep message of Protobuf ends, and so does one of many empty messages', () => {
  const schema = 'message M { M m = 1; repeated M all = 2; int64 a = 3; int64 b = 4; }';
  let deep: number[] = [];
  for (let i = 0; i < 60; i++) deep = [0x0a, deep.length, ...deep];
  assert.ok(protobuf(schema, deep).startsWith('{"m":{"m":{'));
  const groups = new Uint8Array(50_000).fill(0x0b);
  refuses(() => protobuf(schema, groups), /nests more than 100 groups/);
  const many = Uint8Array.from({ length: 50_000 }, (_, i) => (i % 2 === 0 ? 0x12 : 0));
  refuses(() => protobuf(schema, many), /It is longer than 100000 characters as JSON/);
});

hostile('names of a schema are never code', () => {
  const name = 'a"];globalThis.hacked=true;//';
  const text = avro({ type: 'record', name: 'R', fields: [{ name, type: 'int' }] }, [2]);
  assert.equal(JSON.parse(text), { [name]: 1 });
  refuses(() => protobuf(`message M { int32 ${name} = 1; }`, [8, 1]), /illegal/);
  assert.is((globalThis as { hacked?: boolean }).hacked, undefined);
});

hostile.run();
