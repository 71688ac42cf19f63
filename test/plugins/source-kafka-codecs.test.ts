import zlib from 'node:zlib';
import { addCodecs, BATCH_MAX_BYTES, BatchTooLargeError } from '#source-kafka/codecs';
import { explain } from '#source-kafka/explain';
import kafkajs from 'kafkajs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

// What the broker stored with each codec is read in `source-kafka.test.ts`. Here: batches that hold far more than they look.

const codecs = suite('plugins/source-kafka-codecs');

addCodecs();
const { CompressionCodecs, CompressionTypes } = kafkajs;
const decompress = (type: keyof typeof CompressionCodecs, batch: Buffer) =>
  (CompressionCodecs[type]() as { decompress(batch: Buffer): Promise<Buffer> }).decompress(batch);

const MEGABYTE = 1024 * 1024;
/** A number as Snappy writes it: seven bits a byte, the lowest first. */
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
  Buffer.concat([Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0, 0, 0, 0, 1, 0, 0, 0, 1]), ...blocks.map(sized)]);
/** "one", and a block that says that it holds as much as a batch may. */
const [small, huge] = [Buffer.from([3, 2 << 2, 0x6f, 0x6e, 0x65]), Buffer.concat([varint(BATCH_MAX_BYTES), Buffer.from([0])])];

const member = zlib.gzipSync(Buffer.alloc(MEGABYTE));
const bombs: readonly (readonly [what: string, type: keyof typeof CompressionCodecs, batch: Buffer])[] = [
  ['gzip', CompressionTypes.GZIP, Buffer.concat(Array<Buffer>(BATCH_MAX_BYTES / MEGABYTE + 1).fill(member))],
  ['Snappy', CompressionTypes.Snappy, Buffer.concat([varint(BATCH_MAX_BYTES + 1), Buffer.from([0])])],
  ['Snappy, together with the blocks before', CompressionTypes.Snappy, frameOfSnappy([small, huge])],
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
  assert.is((await decompress(CompressionTypes.GZIP, Buffer.concat([member, member]))).length, 2 * MEGABYTE);
  assert.is((await decompress(CompressionTypes.Snappy, frameOfSnappy([small, small]))).toString(), 'oneone');
});

codecs('a batch that is broken says what is wrong with it', async () => {
  const says = (type: keyof typeof CompressionCodecs, sentence: RegExp) =>
    decompress(type, Buffer.from('no batch')).then(
      () => assert.unreachable('it was read'),
      (error: Error) => assert.match(error.message, sentence),
    );
  await says(CompressionTypes.GZIP, /incorrect header/);
  await says(CompressionTypes.Snappy, /Invalid Snappy/);
  await says(CompressionTypes.LZ4, /not an LZ4 frame/);
});

codecs('an operator reads which topic it is, and what to do', () => {
  const crash = new Error('wrapped by the client', { cause: new BatchTooLargeError() });
  const { message, fix } = explain(crash, { brokers: ['kafka-1:9092'], topic_name: 'orders' }, 'group');
  assert.match(message, /"orders" has a batch that holds more than 256 MB/);
  assert.match(fix, /kafka-delete-records/);
});

codecs.run();
