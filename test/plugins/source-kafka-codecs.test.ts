// long
import crypto from 'node:crypto';
import zlib from 'node:zlib';
import plugin from '@gateway/source-kafka';
import { addCodecs, BatchTooLargeError } from '#source-kafka/codecs';
import { explain } from '#source-kafka/explain';
import { SOURCE_MAX_BYTES } from '#source-kafka/memory';
import { decompressZstd } from '#source-kafka/zstd';
import kafkajs, { Partitioners } from 'kafkajs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { kafka, randomName } from '../support/kafka.js';
import { own } from '../support/services.js';
import { KAFKA_BEFORE, KAFKA_VERSION } from '../support/start/kafka-jars.js';
import { until } from '../support/until.js';
import { reading } from './reading.js';

const codecs = suite('plugins/source-kafka-codecs');

const MEGABYTE = 1024 * 1024;

const server = await own.kafka({ version: KAFKA_BEFORE });
const brokers = { [KAFKA_VERSION]: await kafka(), [KAFKA_BEFORE]: await kafka({ server }) };
codecs.after(async () => {
  for (const broker of Object.values(brokers)) await broker.close();
  await server.close();
});

for (const [version, broker] of Object.entries(brokers))
  for (const compression of ['uncompressed', 'gzip', 'snappy', 'lz4', 'zstd'])
    codecs(`reads what Kafka ${version} stored with the compression ${compression}`, async () => {
      const topic = await broker.topic({ configEntries: { 'compression.type': compression } });
      // More than one block of a frame: some highly compressible, some incompressible.
      const bodies = [
        ...Array.from({ length: 300 }, (_, at) => String(at).repeat(500)),
        ...Array.from({ length: 20 }, () => crypto.randomBytes(5000).toString('base64')),
      ];
      await broker.produce(topic, bodies);
      const connection = {
        brokers: [broker.listeners.plaintext],
        topic_name: topic,
        consumer_group_id: randomName('group'),
      };
      const run = reading(plugin, connection);
      await until('the messages', () => run.messages.length === bodies.length, {
        withinMs: 20_000,
      });
      await run.stop();
      assert.ok(
        run.bodies().every((body, at) => body === bodies[at]),
        'every body is as it was sent',
      );
    });

codecs(
  'a fetch of many batches, each of them within its limit, is decoded as memory permits',
  async () => {
    const broker = brokers[KAFKA_VERSION];
    const topic = await broker.topic();
    const count = 60;
    const { CompressionCodecs: all, CompressionTypes: types } = kafkajs;
    all[types.GZIP] = () => ({
      compress: ({ buffer }: { buffer: Buffer }) => Promise.resolve(zlib.gzipSync(buffer)),
    });
    const producer = broker
      .client()
      .producer({ createPartitioner: Partitioners.DefaultPartitioner });
    await producer.connect();
    const value = Buffer.alloc(8 * MEGABYTE);
    for (let n = 0; n < count; n++)
      await producer.send({ topic, compression: types.GZIP, messages: [{ value }] });
    await producer.disconnect();
    const used = () => process.memoryUsage().arrayBuffers / MEGABYTE;
    const before = used();
    let peak = 0;
    const sampling = setInterval(() => (peak = Math.max(peak, used())), 1);
    let read = 0;
    const handle = () => {
      read++;
      peak = Math.max(peak, used());
      return new Promise<'accepted'>((resolve) => setImmediate(resolve, 'accepted'));
    };
    const abort = new AbortController();
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const of = {
      settings: {},
      sourceId: 'source-1',
      window: 10,
      workers: 1,
      clientId: randomName('client'),
      log,
      report() {},
    };
    const connection = {
      brokers: [broker.listeners.plaintext],
      topic_name: topic,
      consumer_group_id: randomName('group'),
    };
    const run = plugin.run(connection, handle, { ...of, signal: abort.signal });
    try {
      await until('the messages', () => read === count);
    } finally {
      clearInterval(sampling);
      abort.abort();
      await run;
    }
    console.log(
      `${Math.round(peak - before)} MB more in use for ${(count * value.length) / MEGABYTE} MB`,
    );
    assert.ok(peak - before < 300, `${Math.round(peak - before)} MB`);
  },
);

// Decompression bombs.

addCodecs();
const { CompressionCodecs, CompressionTypes } = kafkajs;
const decompress = (type: keyof typeof CompressionCodecs, batch: Buffer) =>
  (CompressionCodecs[type]() as { decompress(batch: Buffer): Promise<Buffer> }).decompress(batch);

/** A number in Snappy's format: seven bits per byte, lowest first. */
function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value > 127; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
  return Buffer.from([...bytes, value]);
}
const sized = (block: Buffer) => {
  const size = Buffer.alloc(4);
  size.writeUInt32BE(block.length);
  return Buffer.concat([size, block]);
};
const frameOfSnappy = (blocks: readonly Buffer[]) =>
  Buffer.concat([
    Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
    ...blocks.map(sized),
  ]);
/** "one", and a block that claims the maximum size of a batch. */
const [small, huge] = [
  Buffer.from([3, 2 << 2, 0x6f, 0x6e, 0x65]),
  Buffer.concat([varint(SOURCE_MAX_BYTES), Buffer.from([0])]),
];

/** A Zstandard block that repeats one byte, and the frame of such blocks with a window of 1 MB. */
const repeated = (bytes: number, isLast = false) => {
  const block = Buffer.alloc(4, 'z');
  block.writeUIntLE(bytes * 8 + (1 << 1) + (isLast ? 1 : 0), 0, 3);
  return block;
};
const BLOCK = 128 * 1024;
const frameOfZstd = (blocks: number) =>
  Buffer.concat([
    Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x50]),
    ...Array<Buffer>(blocks - 1).fill(repeated(BLOCK)),
    repeated(BLOCK, true),
  ]);

const member = zlib.gzipSync(Buffer.alloc(MEGABYTE));
const bombs: readonly (readonly [
  what: string,
  type: keyof typeof CompressionCodecs,
  batch: Buffer,
])[] = [
  [
    'gzip',
    CompressionTypes.GZIP,
    Buffer.concat(Array<Buffer>(SOURCE_MAX_BYTES / MEGABYTE + 1).fill(member)),
  ],
  ['zstd', CompressionTypes.ZSTD, frameOfZstd(SOURCE_MAX_BYTES / BLOCK + 1)],
  [
    'Snappy',
    CompressionTypes.Snappy,
    Buffer.concat([varint(SOURCE_MAX_BYTES + 1), Buffer.from([0])]),
  ],
  [
    'Snappy, together with the blocks before',
    CompressionTypes.Snappy,
    frameOfSnappy([small, huge]),
  ],
];
for (const [what, type, batch] of bombs)
  codecs(`a small batch that holds more than any producer means is refused: ${what}`, async () => {
    assert.ok(batch.length < MEGABYTE, `${batch.length} bytes`);
    const error: unknown = await decompress(type, batch).then(
      () => 'it was read',
      (reason: unknown) => reason,
    );
    assert.instance(error, BatchTooLargeError);
  });

codecs('what is within the bounds is read', async () => {
  assert.is(
    (await decompress(CompressionTypes.GZIP, Buffer.concat([member, member]))).length,
    2 * MEGABYTE,
  );
  assert.is(
    (await decompress(CompressionTypes.Snappy, frameOfSnappy([small, small]))).toString(),
    'oneone',
  );
  assert.is(
    (await decompress(CompressionTypes.ZSTD, frameOfZstd(2))).toString(),
    'z'.repeat(2 * BLOCK),
  );
});

codecs(
  'Node without Zstandard reads frames one after the other, skips those to skip, and allocates no window that is too large',
  () => {
    const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3]);
    assert.is(
      decompressZstd(Buffer.concat([frameOfZstd(1), skippable, frameOfZstd(2)]), MEGABYTE).length,
      3 * BLOCK,
    );
    const windowOf2Gb = Buffer.concat([
      Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8]),
      repeated(1, true),
    ]);
    assert.throws(() => decompressZstd(windowOf2Gb, MEGABYTE), /more than 1048576 bytes/);
    assert.throws(() => decompressZstd(frameOfZstd(9), MEGABYTE), /more than 1048576 bytes/);
    for (const end of [4, 7, 12])
      assert.throws(() => decompressZstd(frameOfZstd(4).subarray(0, end), MEGABYTE), /truncated/);
  },
);

codecs('a batch that is broken says what is wrong with it', async () => {
  const says = (type: keyof typeof CompressionCodecs, sentence: RegExp) =>
    decompress(type, Buffer.from('no batch')).then(
      () => assert.unreachable('it was read'),
      (error: Error) => assert.match(error.message, sentence),
    );
  await says(CompressionTypes.GZIP, /incorrect header/);
  await says(CompressionTypes.Snappy, /Invalid Snappy/);
  await says(CompressionTypes.LZ4, /not an LZ4 frame/);
  await says(
    CompressionTypes.ZSTD,
    'zstdDecompress' in zlib ? /Unknown frame descriptor/ : /not a Zstandard frame/,
  );
});

codecs('an operator reads which topic it is, and what to do', () => {
  const crash = new Error('wrapped by the client', { cause: new BatchTooLargeError() });
  const { message, fix } = explain(
    crash,
    { brokers: ['kafka-1:9092'], topic_name: 'orders' },
    'group',
  );
  assert.match(message, /"orders" has a batch that holds more than 64 MB/);
  assert.match(fix, /kafka-delete-records/);
});

codecs.run();
