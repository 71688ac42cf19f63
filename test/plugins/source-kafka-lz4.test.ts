import fs from 'node:fs';
import { decompressLz4 as decompress } from '#source-kafka/lz4';
import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const lz4 = suite('plugins/source-kafka-lz4');

const decompressLz4 = (frames: Buffer) => decompress(frames, Infinity);

/** The content of the fixture's frames. */
const contents: Readonly<Record<string, string>> = {
  // Many distant repetitions, and blocks that end within one.
  lines: Array.from({ length: 40 }, (_, n) =>
    `order ${n % 11} of shop ${n % 7} is paid; `.repeat(200),
  ).join(''),
  short: 'one',
  nothing: '',
  // Incompressible.
  noise:
    '1f40fc92da241694750979ee6cf582f2d5d7d28e18335de05abc54d0560e0f5302860c652bf08d560252aa5e74',
};

/** Created with `lz4` 1.9.4, the project's command, with these flags. */
const golden = JSON.parse(
  fs.readFileSync(new URL('../fixtures/lz4/frames.json', import.meta.url), 'utf8'),
) as readonly {
  readonly flags: string;
  readonly content: string;
  readonly frame: string;
}[];
const frameOf = ({ frame }: (typeof golden)[number]) => Buffer.from(frame, 'base64');

for (const made of golden)
  lz4(`what \`lz4 ${made.flags}\` made of ${made.content} is read`, () => {
    assert.is(decompressLz4(frameOf(made)).toString(), contents[made.content]);
  });

const word = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value >>> 0);
  return bytes;
};

lz4('frames one after the other are one content, and those that say so are skipped', () => {
  const frames = golden.map(frameOf);
  const skipped = Buffer.concat([word(0x184d2a57), word(3), Buffer.from('any')]);
  const all = decompressLz4(
    Buffer.concat([skipped, ...frames.flatMap((frame) => [frame, skipped])]),
  );
  assert.is(all.toString(), golden.map(({ content }) => contents[content]).join(''));
  assert.is(decompressLz4(Buffer.alloc(0)).length, 0);
});

/** Appends the part of a length that exceeds the token's four bits. */
function longer(bytes: number[], length: number): void {
  for (let left = length - 15; left >= 0; left -= 255) bytes.push(Math.min(left, 255));
}

interface Sequence {
  readonly literals: Uint8Array;
  /** The distance back, from 0, the shortest, to 1, the start of the content. */
  readonly back: number;
  readonly repeated: number;
}

/** An encoded block and its content, by a deliberately simple implementation. */
function block(
  sequences: readonly Sequence[],
  last: Uint8Array,
): { readonly bytes: Buffer; readonly content: Buffer } {
  const bytes: number[] = [];
  const content: number[] = [];
  for (const { literals, back, repeated } of sequences) {
    content.push(...literals);
    if (content.length === 0) continue;
    const distance = 1 + Math.floor(back * (Math.min(content.length, 65_535) - 1));
    bytes.push((Math.min(literals.length, 15) << 4) | Math.min(repeated - 4, 15));
    longer(bytes, literals.length);
    bytes.push(...literals, distance & 0xff, distance >> 8);
    longer(bytes, repeated - 4);
    for (let k = 0; k < repeated; k++) content.push(content[content.length - distance]!);
  }
  bytes.push(Math.min(last.length, 15) << 4);
  longer(bytes, last.length);
  bytes.push(...last);
  content.push(...last);
  return { bytes: Buffer.from(bytes), content: Buffer.from(content) };
}

const framed = (blocks: readonly Buffer[], flags = 0b0110_0000) =>
  Buffer.concat([
    word(0x184d2204),
    Buffer.from([flags, 4 << 4, 0]),
    ...blocks.flatMap((it) => [word(it.length), it]),
    word(0),
  ]);

const bytes = (maxLength: number) => fc.uint8Array({ maxLength });
const sequence = fc.record({
  literals: fc.oneof({ weight: 9, arbitrary: bytes(40) }, { weight: 1, arbitrary: bytes(600) }),
  back: fc.double({ min: 0, max: 1, noNaN: true }),
  repeated: fc.oneof(
    { weight: 9, arbitrary: fc.integer({ min: 4, max: 60 }) },
    { weight: 1, arbitrary: fc.integer({ min: 4, max: 700 }) },
  ),
});

lz4('any sequences of literals and repetitions come out as the format says', () => {
  fc.assert(
    fc.property(fc.array(sequence, { maxLength: 40 }), bytes(300), (sequences, last) => {
      const made = block(sequences, last);
      assert.ok(decompressLz4(framed([made.bytes])).equals(made.content));
    }),
    { numRuns: 500 },
  );
});

lz4(
  'a frame that is cut off, or with bytes that are not what they were, is refused or is some content, and nothing else happens',
  () => {
    const frames = golden.map(frameOf);
    let refused = 0;
    const read = (frame: Buffer) => {
      try {
        assert.ok(decompressLz4(frame).length <= 255 * frame.length + 255);
      } catch (error) {
        if (!(error instanceof RangeError)) throw error;
        assert.match(error.message, /LZ4/);
        refused++;
      }
    };
    for (const frame of frames)
      for (let end = 1; end < Math.min(frame.length, 400); end++) read(frame.subarray(0, end));
    assert.ok(refused > 500, `${refused} of those that are cut off`);
    const change = fc.record({ at: fc.nat(), to: fc.integer({ min: 0, max: 255 }) });
    fc.assert(
      fc.property(
        fc.constantFrom(...frames),
        fc.array(change, { minLength: 1, maxLength: 4 }),
        (frame, changes) => {
          const changed = Buffer.from(frame);
          for (const { at, to } of changes) changed[at % changed.length] = to;
          read(changed);
        },
      ),
      { numRuns: 2_000 },
    );
  },
);

const text = (...parts: (string | number)[]) =>
  Buffer.concat(parts.map((it) => (typeof it === 'string' ? Buffer.from(it) : Buffer.from([it]))));

const wrong: readonly (readonly [what: string, frame: Buffer, says: RegExp])[] = [
  ['something else', Buffer.from('no frame at all'), /not an LZ4 frame/],
  ['an unknown version', framed([], 0b1010_0000), /version 2/],
  ['a dictionary', framed([], 0b0110_0001), /dictionary/],
  [
    'an unknown size of blocks',
    Buffer.concat([word(0x184d2204), Buffer.from([0b0110_0000, 3 << 4, 0])]),
    /block size 3/,
  ],
  ['a repetition of nothing', framed([text(0x10, 'a', 0, 0)]), /before its beginning/],
  [
    'a repetition of what is before the content',
    framed([text(0x10, 'a', 2, 0)]),
    /before its beginning/,
  ],
  [
    'a repetition of another block that is not linked',
    framed([text(0x10, 'a'), text(0x10, 'b', 2, 0)]),
    /before its beginning/,
  ],
  [
    'more than a block holds',
    framed([text(0x1f, 'a', 1, 0, ...Array<number>(300).fill(255), 0)]),
    /larger than its frame/,
  ],
  [
    'a stored block that is too large',
    Buffer.concat([framed([]).subarray(0, 7), word(0x8001_0001), Buffer.alloc(65_537)]),
    /larger than its frame/,
  ],
];
for (const [what, frame, says] of wrong)
  lz4(`${what} is refused with its reason`, () => {
    assert.throws(
      () => decompressLz4(frame),
      (error: Error) => error instanceof RangeError && says.test(error.message),
    );
  });

lz4('more than is wanted is refused, before much of it is there', () => {
  const [frame] = golden.map(frameOf);
  assert.is(decompress(frame!, contents['lines']!.length).length, contents['lines']!.length);
  const much = Buffer.concat(Array<Buffer>(1_000).fill(frame!));
  assert.throws(
    () => decompress(much, 1_000_000),
    (error: NodeJS.ErrnoException) =>
      error instanceof RangeError && error.code === 'ERR_BUFFER_TOO_LARGE',
  );
});

lz4('a repetition of another block that is linked is read', () => {
  assert.is(
    decompressLz4(framed([text(0x10, 'a'), text(0x10, 'b', 2, 0, 0x00)], 0b0100_0000)).toString(),
    'ababab',
  );
});

lz4.run();
