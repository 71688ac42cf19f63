import zlib from 'node:zlib';
import { promisify } from 'node:util';
import { setTimeout as sleep } from 'node:timers/promises';
import kafkajs from 'kafkajs';
import { decompressLz4 } from './lz4.js';
import { currentFetch, SOURCE_MAX_BYTES } from './memory.js';

/** The batch exceeds `SOURCE_MAX_BYTES` when decompressed. */
export class BatchTooLargeError extends Error {
  override readonly name = 'BatchTooLargeError';

  constructor(cause?: unknown) {
    super('A batch is too large when decompressed', { cause });
  }
}

/** Fails if the result exceeds `maxOutputLength` bytes. */
type Decompress = (
  batch: Buffer,
  options: { readonly maxOutputLength: number },
) => Buffer | Promise<Buffer>;

/**
 * Undefined before Node.js 22.15:
 * https://nodejs.org/api/zlib.html#zlibzstddecompressbuffer-options-callback
 */
const { zstdDecompress } = zlib as { zstdDecompress?: typeof zlib.unzip };

type Compression = Exclude<keyof typeof kafkajs.CompressionTypes, 'None'>;

/** kafkajs itself supports only gzip, without a size limit. */
const codecs: Readonly<Record<Compression, Decompress>> = {
  GZIP: promisify(zlib.unzip),
  Snappy: decompressSnappy,
  LZ4: (batch, { maxOutputLength }) => decompressLz4(batch, maxOutputLength),
  ZSTD: zstdDecompress ? promisify(zstdDecompress) : decompressZstdHere,
};

/** A Node.js error code and a `snappyjs` message. */
const TOO_LARGE = /ERR_BUFFER_TOO_LARGE|is too big, expect at most/;

const FULL_MS = 100;

const tooLarge = () => Object.assign(new Error('no room'), { code: 'ERR_BUFFER_TOO_LARGE' });

export function addCodecs(): void {
  for (const [name, decompress] of Object.entries(codecs)) {
    const codec = {
      async decompress(batch: Buffer) {
        const fetch = currentFetch.getStore();
        const room = fetch?.room ?? SOURCE_MAX_BYTES;
        try {
          if (room === 0) throw tooLarge();
          const bytes = await decompress(batch, { maxOutputLength: room });
          fetch?.take(bytes.length);
          return bytes;
        } catch (error) {
          const { code = '', message } = error as NodeJS.ErrnoException;
          if (!TOO_LARGE.test(`${code} ${message}`)) throw error;
          if (!fetch || room === SOURCE_MAX_BYTES) throw new BatchTooLargeError(error);
          // The batch is fetched again after the decoded part has been read. If nothing was
          // decoded, wait before the next fetch.
          if (fetch.isEmpty) await sleep(FULL_MS);
          throw Object.assign(new Error('There is no room for this batch now'), {
            name: 'KafkaJSPartialMessageError',
          });
        }
      },
    };
    kafkajs.CompressionCodecs[kafkajs.CompressionTypes[name as Compression]] = () => codec;
  }
}

async function decompressZstdHere(
  batch: Buffer,
  { maxOutputLength }: { readonly maxOutputLength: number },
): Promise<Buffer> {
  // Loaded on demand, because few topics need it.
  const { decompressZstd } = await import('./zstd.js');
  return decompressZstd(batch, maxOutputLength);
}

/**
 * A frame of Snappy blocks from the Java client (SnappyCodec):
 * https://github.com/xerial/snappy-java
 */
const FRAME_MAGIC = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0x00]);
const FRAME_HEADER_BYTES = 16;

/** The Java client writes a frame of length-prefixed blocks, others a single block. */
async function decompressSnappy(
  batch: Buffer,
  { maxOutputLength }: { readonly maxOutputLength: number },
): Promise<Buffer> {
  // Loaded on demand, because few topics need it.
  const { default: snappy } = await import('snappyjs');
  if (!batch.subarray(0, FRAME_MAGIC.length).equals(FRAME_MAGIC))
    return snappy.uncompress(batch, maxOutputLength);
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
