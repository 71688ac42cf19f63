import zlib from 'node:zlib';
import { promisify } from 'node:util';
import kafkajs from 'kafkajs';
import { decompressLz4 } from './lz4.js';

/** Decompressed bytes that a batch may hold: far more than any producer means to send; a few kilobytes can hold gigabytes. */
export const BATCH_MAX_BYTES = 256 * 1024 * 1024;

/** A batch holds more than `BATCH_MAX_BYTES` when decompressed. `cause` is the error of the codec. */
export class BatchTooLargeError extends Error {
  override readonly name = 'BatchTooLargeError';

  constructor(cause?: unknown) {
    super('A batch is too large when decompressed', { cause });
  }
}

/** Decompresses a batch; fails when it holds more than `maxOutputLength` bytes. */
type Decompress = (batch: Buffer, options: { readonly maxOutputLength: number }) => Buffer | Promise<Buffer>;

/** Node has Zstandard since 22.15: https://nodejs.org/api/zlib.html#zlibzstddecompressbuffer-options-callback */
const { zstdDecompress } = zlib as { zstdDecompress?: typeof zlib.unzip };

type Compression = Exclude<keyof typeof kafkajs.CompressionTypes, 'None'>;

/** Every compression that Kafka has. kafkajs itself has only gzip, without a limit. */
const codecs: Readonly<Record<Compression, Decompress>> = {
  GZIP: promisify(zlib.unzip),
  Snappy: decompressSnappy,
  LZ4: (batch, { maxOutputLength }) => decompressLz4(batch, maxOutputLength),
  ZSTD: zstdDecompress ? promisify(zstdDecompress) : decompressZstdHere,
};

/** How a codec says that a batch is too large: an error code of Node, and the message of `snappyjs`. */
const TOO_LARGE = /ERR_BUFFER_TOO_LARGE|is too big, expect at most/;

/** Registers the codecs with kafkajs. */
export function addCodecs(): void {
  for (const [name, decompress] of Object.entries(codecs)) {
    const codec = {
      async decompress(batch: Buffer) {
        try {
          return await decompress(batch, { maxOutputLength: BATCH_MAX_BYTES });
        } catch (error) {
          const { code = '', message } = error as NodeJS.ErrnoException;
          throw TOO_LARGE.test(`${code} ${message}`) ? new BatchTooLargeError(error) : error;
        }
      },
    };
    kafkajs.CompressionCodecs[kafkajs.CompressionTypes[name as Compression]] = () => codec;
  }
}

async function decompressZstdHere(batch: Buffer, { maxOutputLength }: { readonly maxOutputLength: number }): Promise<Buffer> {
  // Few topics need it.
  const { decompressZstd } = await import('./zstd.js');
  return decompressZstd(batch, maxOutputLength);
}

/** The header of the frame that the Java client puts around Snappy blocks (SnappyCodec): https://github.com/xerial/snappy-java */
const FRAME_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const FRAME_HEADER_BYTES = 16;

/** A batch is a frame of blocks, each with its length before it, or, of other clients, one block. */
async function decompressSnappy(batch: Buffer, { maxOutputLength }: { readonly maxOutputLength: number }): Promise<Buffer> {
  // Few topics need it.
  const { default: snappy } = await import('snappyjs');
  if (!batch.subarray(0, FRAME_MAGIC.length).equals(FRAME_MAGIC)) return snappy.uncompress(batch, maxOutputLength);
  const blocks: Buffer[] = [];
  let left = maxOutputLength;
  for (let at = FRAME_HEADER_BYTES; at < batch.length;) {
    const from = at + 4;
    at = from + batch.readUInt32BE(at);
    if (at > batch.length) throw new RangeError('A Snappy block is truncated');
    const block = snappy.uncompress(batch.subarray(from, at), left);
    left -= block.length;
    blocks.push(block);
  }
  return Buffer.concat(blocks);
}
