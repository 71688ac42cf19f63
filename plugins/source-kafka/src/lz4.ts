// Decodes LZ4: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md and lz4_Block_format.md.
// Checksums are not verified: old producers write a wrong header checksum (KAFKA-3160), and few
// write others.

const FRAME_MAGIC = 0x184d2204;
/** The first of 16 for skippable frames. */
const SKIPPABLE_MAGIC = 0x184d2a50;
const VERSION = 0b01;
/** A flag in the block size: the bytes are not compressed. */
const IS_STORED = 0x8000_0000;
/** Maximum distance of a match into earlier blocks. */
const HISTORY_BYTES = 64 * 1024;
const MIN_MATCH_BYTES = 4;
/** A loop is faster than a call for fewer bytes. */
const FEW = 24;

/**
 * Decodes consecutive frames.
 * @throws RangeError; with code `ERR_BUFFER_TOO_LARGE`, as in `node:zlib`, above `maxBytes`
 */
export function decompressLz4(frames: Buffer, maxBytes: number): Buffer {
  let content = Buffer.allocUnsafe(4 * frames.length);
  let [at, length] = [0, 0];
  /** Advances and returns the previous position. */
  const skip = (bytes: number): number => {
    if (at + bytes > frames.length) throw truncated();
    at += bytes;
    return at - bytes;
  };
  const uint32 = () => frames.readUInt32LE(skip(4));

  while (at < frames.length) {
    const magic = uint32();
    if (magic >= SKIPPABLE_MAGIC && magic < SKIPPABLE_MAGIC + 16) {
      skip(uint32());
      continue;
    }
    if (magic !== FRAME_MAGIC) throw new RangeError('This is not an LZ4 frame');
    const flags = frames[skip(1)]!;
    const sizeId = (frames[skip(1)]! >> 4) & 0b111;
    if (flags >> 6 !== VERSION)
      throw new RangeError(`An LZ4 frame has the unknown version ${flags >> 6}`);
    if (flags & 0b1) throw new RangeError('An LZ4 frame needs a dictionary');
    if (sizeId < 4) throw new RangeError(`An LZ4 frame has the unknown block size ${sizeId}`);
    const blockMaxBytes = 1 << (8 + 2 * sizeId);
    const areLinked = (flags & 0b10_0000) === 0;
    // The content size and the header checksum.
    skip((flags & 0b1000 ? 8 : 0) + 1);
    const frameStart = length;
    for (let size = uint32(); size !== 0; size = uint32()) {
      const block = frames.subarray(skip(size % IS_STORED), at);
      if (length + blockMaxBytes > content.length) {
        const larger = Buffer.allocUnsafe(Math.max(length + blockMaxBytes, 2 * content.length));
        content.copy(larger, 0, 0, length);
        content = larger;
      }
      if (size < IS_STORED) {
        const history = areLinked ? Math.max(frameStart, length - HISTORY_BYTES) : length;
        length = decodeBlock(block, content, length, history, length + blockMaxBytes);
      } else {
        if (block.length > blockMaxBytes) throw blockTooLarge();
        length += block.copy(content, length);
      }
      if (length > maxBytes)
        throw Object.assign(new RangeError('LZ4 frames hold too much'), {
          code: 'ERR_BUFFER_TOO_LARGE',
        });
      if (flags & 0b1_0000) skip(4);
    }
    if (flags & 0b100) skip(4);
  }
  return content.subarray(0, length);
}

/**
 * Writes a block to `to` at `at` and returns its end, at most `most`. Matches start at `from` or
 * later.
 */
function decodeBlock(block: Buffer, to: Buffer, at: number, from: number, most: number): number {
  let next = 0;
  /** Four bits of the token; if all are set, plus bytes up to one that is not 255. */
  const length = (bits: number): number => {
    if (bits < 15) return bits;
    for (let sum = bits; ;) {
      const byte = block[next++];
      if (byte === undefined) throw truncated();
      sum += byte;
      if (byte < 255) return sum;
    }
  };
  for (;;) {
    const token = block[next++];
    if (token === undefined) throw truncated();

    const literals = length(token >> 4);
    if (next + literals > block.length) throw truncated();
    if (at + literals > most) throw blockTooLarge();
    if (literals < FEW) for (let k = 0; k < literals; k++) to[at + k] = block[next + k]!;
    else block.copy(to, at, next, next + literals);
    at += literals;
    next += literals;
    // The last sequence has only literals.
    if (next === block.length) return at;

    const low = block[next++];
    const high = block[next++];
    if (low === undefined || high === undefined) throw truncated();
    const back = low | (high << 8);
    if (back === 0 || at - back < from)
      throw new RangeError('An LZ4 block repeats bytes before its beginning');
    const repeated = length(token & 0b1111) + MIN_MATCH_BYTES;
    if (at + repeated > most) throw blockTooLarge();
    // An overlapping match is copied byte by byte.
    if (repeated < FEW || back < repeated)
      for (let k = 0; k < repeated; k++) to[at + k] = to[at - back + k]!;
    else to.copyWithin(at, at - back, at - back + repeated);
    at += repeated;
  }
}

const truncated = () => new RangeError('An LZ4 frame is truncated');
const blockTooLarge = () => new RangeError('An LZ4 block is larger than its frame allows');
