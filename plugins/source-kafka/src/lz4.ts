// Decodes LZ4: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md and lz4_Block_format.md.
// Checksums are not verified, because old producers write a wrong header checksum (KAFKA-3160), and
// few producers write the other checksums.

const FRAME_MAGIC = 0x184d2204;
/** The first of the 16 magic numbers of a skippable frame. */
const SKIPPABLE_MAGIC = 0x184d2a50;
const VERSION = 0b01;
/** Marks an uncompressed block in its size. */
const IS_STORED = 0x8000_0000;
/** How far a match may reach into earlier blocks. */
const HISTORY_BYTES = 64 * 1024;
const MIN_MATCH_BYTES = 4;
/** Below this many bytes, a copy loop is faster than a function call. */
const FEW = 24;

/**
 * Consecutive frames.
 * @throws RangeError if the frames are invalid, or with the code `ERR_BUFFER_TOO_LARGE`, as in
 *   `node:zlib`, if the result exceeds `maxBytes`
 */
export function decompressLz4(frames: Buffer, maxBytes: number): Buffer {
  let content = Buffer.allocUnsafe(4 * frames.length);
  let [at, length] = [0, 0];
  /** Returns the previous position. Throws if the frame is truncated. */
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
    // Skip the content size, if any, and the header checksum.
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
 * Into `to` from `at`. Returns the position of the end, at most `most`. Matches start at `from` or
 * later.
 */
function decodeBlock(block: Buffer, to: Buffer, at: number, from: number, most: number): number {
  let next = 0;
  /**
   * The four bits of the token and, if all are set, the sum of those and the following bytes, up to
   * and including the first that is not 255.
   */
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
    // The last sequence of a block has only literals.
    if (next === block.length) return at;

    const low = block[next++];
    const high = block[next++];
    if (low === undefined || high === undefined) throw truncated();
    const back = low | (high << 8);
    if (back === 0 || at - back < from)
      throw new RangeError('An LZ4 block repeats bytes before its beginning');
    const repeated = length(token & 0b1111) + MIN_MATCH_BYTES;
    if (at + repeated > most) throw blockTooLarge();
    // A match that overlaps its copy must be copied byte by byte.
    if (repeated < FEW || back < repeated)
      for (let k = 0; k < repeated; k++) to[at + k] = to[at - back + k]!;
    else to.copyWithin(at, at - back, at - back + repeated);
    at += repeated;
  }
}

const truncated = () => new RangeError('An LZ4 frame is truncated');
const blockTooLarge = () => new RangeError('An LZ4 block is larger than its frame allows');
