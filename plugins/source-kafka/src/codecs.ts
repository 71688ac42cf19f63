import zlib from 'node:zlib';
import { promisify } from 'node:util';
import kafkajs from 'kafkajs';
import { BATCH_MAX_BYTES, BatchTooLargeError } from './batch-too-large.js';
import { decompressLz4 } from './lz4.js';

/** Makes a batch what it was, of at most so many bytes; throws or rejects when it is more. */
type Decompress = (compressed: Buffer, options: { readonly maxOutputLength: number }) => Buffer | Promise<Buffer>;

/** The frame that the Java client puts around blocks of Snappy: https://github.com/xerial/snappy-java (SnappyCodec). */
const FRAME_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const FRAME_HEADER_BYTES = 16;
const BLOCK_LENGTH_BYTES = 4;

const snappy: Decompress = async (compressed, { maxOutputLength }) => {
  // Most topics do without it.
  const { default: library } = await import('snappyjs');
  let left = maxOutputLength;
  const blocks = snappyBlocks(compressed).map((block) => {
    const bytes = library.uncompress(block, left);
    left -= bytes.length;
    return bytes;
  });
  return Buffer.concat(blocks);
};

/** The blocks of a batch: those of the frame, or the whole, which is what other clients write. Throws when a block is cut off. */
function snappyBlocks(compressed: Buffer): Buffer[] {
  if (!compressed.subarray(0, FRAME_MAGIC.length).equals(FRAME_MAGIC)) return [compressed];
  const blocks: Buffer[] = [];
  for (let at = FRAME_HEADER_BYTES; at < compressed.length;) {
    const from = at + BLOCK_LENGTH_BYTES;
    at = from + compressed.readUInt32BE(at);
    if (at > compressed.length) throw new RangeError('A block of Snappy is cut off');
    blocks.push(compressed.subarray(from, at));
  }
  return blocks;
}

const lz4: Decompress = (compressed, { maxOutputLength }) => decompressLz4(compressed, maxOutputLength);

/** Node has Zstandard from 22.15 on: https://nodejs.org/api/zlib.html#zlibzstddecompressbuffer-options-callback */
const { zstdDecompress } = zlib as { zstdDecompress?: typeof zlib.unzip };

/** How others say that it would be too much: an error code of Node, and the sentence of `snappyjs`. */
const TOO_MUCH = /ERR_BUFFER_TOO_LARGE|is too big, expect at most/;

/** Teaches kafkajs to read Snappy, LZ4 and, where Node can, Zstandard, and of each batch, also of gzip, no more than `BATCH_MAX_BYTES`. */
export function addCodecs(): void {
  const { CompressionCodecs, CompressionTypes } = kafkajs;
  const add = (type: keyof typeof CompressionCodecs, decompress: Decompress) => {
    const codec = {
      async decompress(compressed: Buffer) {
        try {
          return await decompress(compressed, { maxOutputLength: BATCH_MAX_BYTES });
        } catch (error) {
          const { code = '', message } = error as NodeJS.ErrnoException;
          throw TOO_MUCH.test(`${code} ${message}`) ? new BatchTooLargeError(error) : error;
        }
      },
    };
    CompressionCodecs[type] = () => codec;
  };
  add(CompressionTypes.GZIP, promisify(zlib.unzip));
  add(CompressionTypes.Snappy, snappy);
  add(CompressionTypes.LZ4, lz4);
  if (zstdDecompress) add(CompressionTypes.ZSTD, promisify(zstdDecompress));
}
