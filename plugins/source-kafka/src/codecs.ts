import zlib from 'node:zlib';
import { promisify } from 'node:util';
import kafkajs from 'kafkajs';
import { decompressLz4 } from './lz4.js';

/** What kafkajs wants of a codec. It brings gzip, and refuses the others until somebody registers them. This package only reads. */
interface Codec {
  decompress(compressed: Buffer): Promise<Buffer>;
}

/** The frame that the Java client puts around blocks of Snappy: https://github.com/xerial/snappy-java (SnappyCodec). */
const FRAME_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const FRAME_HEADER_BYTES = 16;
const BLOCK_LENGTH_BYTES = 4;

const snappy: Codec = {
  async decompress(compressed) {
    // Most topics do without it.
    const { default: library } = await import('snappyjs');
    return Buffer.concat(snappyBlocks(compressed).map((block) => library.uncompress(block)));
  },
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

const lz4: Codec = { decompress: async (compressed) => decompressLz4(compressed) };

/** Node has Zstandard from 22.15 on: https://nodejs.org/api/zlib.html#zlibzstddecompressbuffer-options-callback */
const { zstdDecompress } = zlib as { zstdDecompress?: (compressed: Buffer, done: (error: Error | null, bytes: Buffer) => void) => void };

/** Teaches kafkajs to read Snappy, LZ4 and, where Node can, Zstandard. */
export function addCodecs(): void {
  const { CompressionCodecs, CompressionTypes } = kafkajs;
  CompressionCodecs[CompressionTypes.Snappy] = () => snappy;
  CompressionCodecs[CompressionTypes.LZ4] = () => lz4;
  if (!zstdDecompress) return;
  const zstd: Codec = { decompress: promisify(zstdDecompress) };
  CompressionCodecs[CompressionTypes.ZSTD] = () => zstd;
}
