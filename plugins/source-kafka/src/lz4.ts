import { Buffer } from 'node:buffer';
import { BatchTooLargeError } from './batch-too-large.js';

// LZ4, to be read only: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md and lz4_Block_format.md. Checksums are skipped, as that of
// the header is wrong in batches of old producers (KAFKA-3160), and few write the others.

const FRAME_MAGIC = 0x184d2204;
/** Frames with anything in them, to be skipped: sixteen magic numbers from this one on. */
const SKIPPABLE_MAGIC = 0x184d2a50;

const VERSION = 0b01;
const MAGIC_BYTES = 4;
const SIZE_BYTES = 4;
const CHECKSUM_BYTES = 4;
const CONTENT_SIZE_BYTES = 8;

/** In the size of a block: it is stored as it is. */
const IS_STORED = 0x8000_0000;
/** How far back a sequence may point into the blocks before its own. */
const HISTORY_BYTES = 64 * 1024;
/** The least that a sequence repeats. */
const MATCH_BYTES = 4;
/** A length in the four bits of a token that goes on in the bytes behind it, and such a byte that is not the last. */
const LONG = 15;
const LONGER = 255;
/** Fewer bytes are copied one by one: a call costs more. */
const FEW = 24;

/**
 * The content of the LZ4 frames, one after the other.
 *
 * Throws a RangeError that says what is wrong with them, and a BatchTooLargeError when their content is more than so many bytes. It reads no byte outside of them.
 */
export function decompressLz4(frames: Buffer, maxBytes: number): Buffer {
  const content = new Content(frames.length, maxBytes);
  let at = 0;
  while (at < frames.length) at = readFrame(frames, at, content);
  return content.bytes();
}

/** Bytes that grow. */
class Content {
  #bytes: Buffer;
  readonly #maxBytes: number;
  #length = 0;

  constructor(compressedBytes: number, maxBytes: number) {
    this.#bytes = Buffer.allocUnsafe(4 * compressedBytes);
    this.#maxBytes = maxBytes;
  }

  get length(): number {
    return this.#length;
  }

  /** Counts what was written behind `length`. */
  set length(length: number) {
    if (length > this.#maxBytes) throw new BatchTooLargeError();
    this.#length = length;
  }

  /** The buffer to write to at `length`, with room for so many bytes. */
  room(bytes: number): Buffer {
    if (this.length + bytes > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(this.length + bytes, 2 * this.#bytes.length));
      this.#bytes.copy(larger, 0, 0, this.length);
      this.#bytes = larger;
    }
    return this.#bytes;
  }

  bytes(): Buffer {
    return this.#bytes.subarray(0, this.length);
  }
}

/** Adds the content of the frame that begins at `at`, and gives the place behind it. */
function readFrame(frames: Buffer, at: number, content: Content): number {
  const magic = uint32(frames, at);
  if (magic >= SKIPPABLE_MAGIC && magic < SKIPPABLE_MAGIC + 16) {
    const size = uint32(frames, at + MAGIC_BYTES);
    return within(frames, at + MAGIC_BYTES + SIZE_BYTES + size);
  }
  if (magic !== FRAME_MAGIC) throw new RangeError('These are no frames of LZ4');
  at += MAGIC_BYTES;
  within(frames, at + 2);
  const [flags, sizes] = [frames[at]!, frames[at + 1]!];
  if (flags >> 6 !== VERSION) throw new RangeError(`A frame of LZ4 has version ${flags >> 6}, which nobody knows`);
  if (flags & 0b1) throw new RangeError('A frame of LZ4 needs a dictionary');
  const blockMaxBytes = blockSize((sizes >> 4) & 0b111);
  const areLinked = (flags & 0b10_0000) === 0;
  const blockChecksumBytes = flags & 0b1_0000 ? CHECKSUM_BYTES : 0;
  const contentChecksumBytes = flags & 0b100 ? CHECKSUM_BYTES : 0;
  // Behind the flags, the sizes and the size of the content there is a byte of checksum.
  at += 3 + (flags & 0b1000 ? CONTENT_SIZE_BYTES : 0);

  const frameStart = content.length;
  for (;;) {
    const word = uint32(frames, at);
    at += SIZE_BYTES;
    if (word === 0) return within(frames, at + contentChecksumBytes);
    const end = within(frames, at + (word % IS_STORED));
    const room = content.room(blockMaxBytes);
    if (word >= IS_STORED) {
      if (end - at > blockMaxBytes) throw tooLarge();
      content.length += frames.copy(room, content.length, at, end);
    } else {
      const from = areLinked ? Math.max(frameStart, content.length - HISTORY_BYTES) : content.length;
      content.length = readBlock(frames.subarray(at, end), room, content.length, from, content.length + blockMaxBytes);
    }
    at = within(frames, end + blockChecksumBytes);
  }
}

/**
 * Writes the content of a block to `to`, from `at` on.
 *
 * @param from the first byte of `to` that a sequence may point to
 * @param most the place in `to` that nothing may be written at any more
 * @returns the place behind the content
 */
function readBlock(block: Buffer, to: Buffer, at: number, from: number, most: number): number {
  let next = 0;
  const length = (bits: number): number => {
    if (bits < LONG) return bits;
    for (let sum = bits; ;) {
      const byte = block[next++];
      if (byte === undefined) throw cutOff();
      sum += byte;
      if (byte < LONGER) return sum;
    }
  };
  for (;;) {
    const token = block[next++];
    if (token === undefined) throw cutOff();

    const literals = length(token >> 4);
    if (next + literals > block.length) throw cutOff();
    if (at + literals > most) throw tooLarge();
    if (literals < FEW) for (let k = 0; k < literals; k++) to[at + k] = block[next + k]!;
    else block.copy(to, at, next, next + literals);
    at += literals;
    next += literals;
    // The last sequence has literals alone.
    if (next === block.length) return at;

    const low = block[next++];
    const high = block[next++];
    if (low === undefined || high === undefined) throw cutOff();
    const back = low | (high << 8);
    if (back === 0 || at - back < from) throw new RangeError('A block of LZ4 repeats what is before its beginning');
    const repeated = length(token & 0b1111) + MATCH_BYTES;
    if (at + repeated > most) throw tooLarge();
    // What is repeated may go on into what is being written: byte by byte, then.
    if (repeated < FEW || back < repeated) for (let k = 0; k < repeated; k++) to[at + k] = to[at - back + k]!;
    else to.copyWithin(at, at - back, at - back + repeated);
    at += repeated;
  }
}

/** The most that a block holds, by the number that its frame gives. */
function blockSize(id: number): number {
  if (id < 4) throw new RangeError(`A frame of LZ4 has blocks of size ${id}, which nobody knows`);
  return 1 << (8 + 2 * id);
}

function uint32(bytes: Buffer, at: number): number {
  within(bytes, at + 4);
  return bytes.readUInt32LE(at);
}

function within(bytes: Buffer, end: number): number {
  if (end > bytes.length) throw cutOff();
  return end;
}

function cutOff(): RangeError {
  return new RangeError('A frame of LZ4 is cut off');
}

function tooLarge(): RangeError {
  return new RangeError('A block of LZ4 is larger than its frame allows');
}
