import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseInSteps, type ParsedJson } from '#core/json/parse-in-steps';
import { seed } from '../../support/seed.js';

const parse = suite('core/json/parse-in-steps');

function parsed(text: string, pieceLength?: number): ParsedJson & { readonly steps: number } {
  const parsing = parseInSteps(text, pieceLength);
  for (let steps = 1; ; steps++) {
    const { done, value } = parsing.next();
    if (done) return { ...value, steps };
  }
}

parse(
  `what comes out is what JSON.parse makes of it, however small the pieces are (TEST_SEED=${seed})`,
  () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.integer({ min: 0, max: 40 }),
        fc.constantFrom('', ' ', '\n\t'),
        (value, pieceLength, indent) => {
          const text = indent + JSON.stringify(value, null, indent) + indent;
          assert.equal(
            JSON.stringify(parsed(text, pieceLength).value),
            JSON.stringify(JSON.parse(text)),
          );
        },
      ),
      { seed, numRuns: 2_000 },
    );
  },
);

parse('names and texts that look like something else are what they are', () => {
  for (const text of [
    '{"__proto__":{"a":1},"b":{"__proto__":[{},{}]}}',
    '{"a":1,"a":{"b":2},"a":[3],"c":0,"a":[4,{}]}',
    String.raw`{ "a:,{[" : [ "]}\\\",\"" , "\\" ] , "\u0061" : { } , "" : [ ] }`,
    '[[[[[],[]],[{}]]],{"a":{"b":{"c":[1]}}}]',
    '[   ]',
    '{"a":{      },"b":[      ]}',
    '"text"',
    '-1.5e3',
    ' null ',
  ])
    for (let pieceLength = 0; pieceLength < text.length + 2; pieceLength++) {
      const { value } = parsed(text, pieceLength);
      assert.equal(value, JSON.parse(text), `${text} in pieces of ${pieceLength}`);
      assert.equal(
        Object.keys(Object(value) as object),
        Object.keys(Object(JSON.parse(text)) as object),
      );
    }
});

parse('large objects come with their number of members, repeated names counted once', () => {
  const entries = Array.from({ length: 5_000 }, (_, n) => `"k${n % 3_000}":${n}`);
  const { value, sizes } = parsed(`{"a":{${entries.join(',')}},"b":{"c":1}}`);
  const { a } = value as { a: object };
  assert.is(sizes.get(a), 3_000);
  assert.is(Object.keys(a).length, 3_000);
});

parse('no step parses more than a few kilobytes, whatever a megabyte is made of', () => {
  const many = (count: number, of: (n: number) => string) =>
    Array.from({ length: count }, (_, n) => of(n)).join(',');
  const members = `{${many(60_000, (n) => `"k${n}":${n}`)}}`;
  const texts = [
    members,
    `[${many(300_000, () => '{}')}]`,
    `{"a":[${many(20_000, (n) => `{"a${n}":[[${n}],{"b":${n}}]}`)}]}`,
    `${'{"a":'.repeat(198)}${members}${'}'.repeat(198)}`,
    `${'{"a":'.repeat(198)}{}${`,"b":[${many(700, () => '1')}]}`.repeat(198)}`,
  ];
  const { parse: parseJson } = JSON;
  for (const text of texts) {
    let longest = 0;
    JSON.parse = (piece: string) => {
      longest = Math.max(longest, piece.length);
      return parseJson(piece) as unknown;
    };
    let got;
    try {
      got = parsed(text);
    } finally {
      JSON.parse = parseJson;
    }
    assert.ok(longest < 20_000, `${longest} characters were parsed at once`);
    assert.ok(got.steps > text.length / 20_000, `${got.steps} steps for ${text.length} characters`);
    assert.is(JSON.stringify(got.value), JSON.stringify(JSON.parse(text)));
  }
});

parse.run();
