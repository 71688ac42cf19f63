import { Decompress } from 'fzstd';

// Decodes Zstandard (https://datatracker.ietf.org/doc/html/rfc8878) on Node.js versions before
// 22.15. Headers are parsed first, because fzstd, the decoder, allocates any window that a header
// declares.

const FRAME_MAGIC = 0xfd2fb528;
/** The first of the 16 magic numbers of a skippable frame. */
const SKIPPABLE_MAGIC = 0x184d2a50;
/** Bits of the frame header descriptor. */
const [IS_SINGLE_SEGMENT, HAS_CHECKSUM] = [0x20, 0x04];
const CHECKSUM_BYTES = 4;
const BLOCK_HEADER_BYTES = 3;
/** A block that repeats one byte. */
const RLE = 1;

/**
 * Consecutive frames.
 * @throws Error if the frames are invalid, or with the code `ERR_BUFFER_TOO_LARGE`, as in
 *   `node:zlib`, if the result exceeds `maxBytes`
 */
export function decompressZstd(frames: Buffer, maxBytes: number): Buffer {
  const parts: Uint8Array[] = [];
  let left = maxBytes;
  const decoder = () =>
    new Decompress((part) => {
      left -= part.length;
      if (left < 0) throw tooLarge(maxBytes);
      parts.push(part);
    });
  for (let at = 0; at < frames.length;) {
    const { end, windowBytes } = readFrame(frames, at);
    if (windowBytes > maxBytes) throw tooLarge(maxBytes);
    if (windowBytes > 0) decoder().push(frames.subarray(at, end), true);
    at = end;
  }
  return Buffer.concat(parts);
}

/** The window size is 0 for a skippable frame. */
function readFrame(
  frames: Buffer,
  start: number,
): { readonly end: number; readonly windowBytes: number } {
  const need = (end: number) => {
    if (end > frames.length) throw new RangeError('A Zstandard frame is truncated');
    return end;
  };
  need(start + 8);
  const magic = frames.readUInt32LE(start);
  if (magic >>> 4 === SKIPPABLE_MAGIC >>> 4)
    return { end: need(start + 8 + frames.readUInt32LE(start + 4)), windowBytes: 0 };
  if (magic !== FRAME_MAGIC) throw new RangeError('This is not a Zstandard frame');
  const descriptor = frames.readUInt8(start + 4);
  const isSingleSegment = (descriptor & IS_SINGLE_SEGMENT) !== 0;
  const sizeBytes = [isSingleSegment ? 1 : 0, 2, 4, 8][descriptor >> 6]!;
  const sizeAt = start + 5 + (isSingleSegment ? 0 : 1) + [0, 1, 2, 4][descriptor & 3]!;
  let at = need(sizeAt + sizeBytes);
  const windowBytes = isSingleSegment
    ? contentSize(frames, sizeAt, sizeBytes)
    : windowSize(frames.readUInt8(start + 5));
  for (let isLast = false; !isLast;) {
    const header = frames.readUIntLE(
      need(at + BLOCK_HEADER_BYTES) - BLOCK_HEADER_BYTES,
      BLOCK_HEADER_BYTES,
    );
    isLast = (header & 1) === 1;
    at = need(at + BLOCK_HEADER_BYTES + (((header >> 1) & 3) === RLE ? 1 : header >> 3));
  }
  return {
    end: need(at + (descriptor & HAS_CHECKSUM ? CHECKSUM_BYTES : 0)),
    windowBytes: Math.max(1, windowBytes),
  };
}

function contentSize(frames: Buffer, at: number, bytes: number): number {
  if (bytes === 8) return Number(frames.readBigUInt64LE(at));
  return frames.readUIntLE(at, bytes) + (bytes === 2 ? 256 : 0);
}

function windowSize(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3));
  return base + (base / 8) * (descriptor & 7);
}

function tooLarge(maxBytes: number): RangeError {
  return Object.assign(new RangeError(`Zstandard frames hold more than ${maxBytes} bytes`), {
    code: 'ERR_BUFFER_TOO_LARGE',
  });
}
