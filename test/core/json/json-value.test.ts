import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  rawJsonAt,
  rawJsonElements,
  rawJsonValue,
  isTooDeep,
  nesting,
} from '#core/json/json-value';
import { seed } from '../../support/seed.js';

const member = suite('core/json/json-value');

/** Deterministic pseudo-random numbers (mulberry32). */
function draws(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/**
 * Generates random JSON texts: every escape, odd numbers, spaces everywhere, repeated and escaped
 * names.
 */
class Writer {
  readonly #draw: (below: number) => number;

  constructor(seed: number) {
    this.#draw = draws(seed);
  }

  pick<T>(list: readonly T[]): T {
    return list[this.#draw(list.length)] as T;
  }

  space(): string {
    return this.pick(['', '', '', ' ', '\n', '\t', '\r\n', '  \n ']);
  }

  string(): string {
    const parts = [
      'a',
      'data',
      '\\"',
      '\\\\',
      '\\/',
      '\\b',
      '\\f',
      '\\n',
      '\\r',
      '\\t',
      '\\u0000',
      '\\u00e9',
      '\\ud83d\\ude00',
      '\\ud800',
      '😀',
      'é',
      '\u2028',
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      ' ',
      '\\\\\\"',
    ];
    let text = '';
    for (let n = this.#draw(5); n > 0; n--) text += this.pick(parts);
    return `"${text}"`;
  }

  name(): string {
    return this.pick([
      '"data"',
      '"d\\u0061ta"',
      '"\\u0064\\u0061\\u0074\\u0061"',
      '"dat"',
      '"data "',
      '"Data"',
      '"event_type"',
      '""',
      '"\\\\data"',
      '"data\\""',
      this.string(),
    ]);
  }

  value(depth: number): string {
    const kind = this.#draw(depth > 4 ? 3 : 5);
    if (kind === 0)
      return this.pick([
        '0',
        '-0',
        '9007199254740993',
        '1.10',
        '1e5',
        '-1.5E-10',
        '123456789012345678901234567890',
        '0.1000',
      ]);
    if (kind === 1) return this.pick(['true', 'false', 'null']);
    if (kind === 2) return this.string();
    const inner = Array.from({ length: this.#draw(4) }, () =>
      kind === 3 ? this.value(depth + 1) : this.pair(depth + 1),
    );
    return kind === 3 ? `[${this.join(inner)}]` : `{${this.join(inner)}}`;
  }

  pair(depth: number): string {
    return `${this.name()}${this.space()}:${this.space()}${this.value(depth)}`;
  }

  join(parts: readonly string[]): string {
    return this.space() + parts.map((part) => part + this.space()).join(`,${this.space()}`);
  }

  object(): string {
    return `${this.space()}{${this.join(Array.from({ length: this.#draw(6) }, () => this.pair(1)))}}${this.space()}`;
  }
}

member(
  'the text of a member is what JSON.parse makes of it, in fifty thousand random objects',
  () => {
    const writer = new Writer(1);
    let found = 0;
    for (let n = 0; n < 50_000; n++) {
      const text = writer.object();
      const parsed = JSON.parse(text) as Record<string, unknown>;
      for (const name of ['data', 'event_type', '', 'dat', 'missing']) {
        const value = rawJsonValue(text, name);
        if (value === undefined) assert.not.ok(Object.hasOwn(parsed, name), text);
        else {
          found++;
          assert.ok(text.includes(value));
          assert.equal(JSON.parse(value), parsed[name], text);
        }
      }
    }
    assert.ok(
      found > 10_000,
      `only ${found} members were found: the texts are not what they should be`,
    );
  },
);

member(
  'the bytes of a value survive: large integers, trailing zeros, order, spaces and escapes',
  () => {
    const data =
      '{ "id":9007199254740993,\t"price" : 1.10,"z":{"b":1,"a":2},\n"e":"\\u00e9\\/", "big":1E400 }';
    for (const text of [
      `{"event_type":"a","data":${data}}`,
      `{"data":${data},"event_type":"a"}`,
      ` {\n"x":"data",\n "data" :  ${data}  ,"y":[]}\n`,
    ]) {
      assert.is(rawJsonValue(text, 'data'), data);
    }
  },
);

member('of a repeated name the last value counts, however the name is written', () => {
  assert.is(rawJsonValue('{"data":1,"data":{"a":2}}', 'data'), '{"a":2}');
  assert.is(rawJsonValue('{"data":{"a":2},"d\\u0061ta":3}', 'data'), '3');
  assert.is(rawJsonValue('{"d\\u0061ta":3,"data":{"a":2}}', 'data'), '{"a":2}');
});

member('a member of an inner object is not a member', () => {
  assert.is(
    rawJsonValue('{"a":{"data":1},"b":["data",{"data":2}],"c":"\\"data\\":3"}', 'data'),
    undefined,
  );
  assert.is(rawJsonValue('{}', 'data'), undefined);
});

member('the time of a look-up grows with the text, not with the text times its members', () => {
  const time = (count: number): number => {
    const text = `{${Array.from({ length: count }, (_, n) => `"m${n}":${n}`).join(',')},"data":{"a":1},"last":"\\n"}`;
    return Math.min(
      ...Array.from({ length: 5 }, () => {
        // CPU time of this process, independent of the machine's load.
        const before = process.cpuUsage();
        assert.is(rawJsonValue(text, 'data'), '{"a":1}');
        return process.cpuUsage(before).user / 1000;
      }),
    );
  };
  time(1_000);
  const [small, large] = [time(5_000), time(80_000)];
  // Sixteen times the members must take about sixteen times as long, not two hundred and fifty-six.
  assert.ok(
    large < 80 * Math.max(small, 0.5),
    `${small} ms for 5,000 members, ${large} ms for 80,000`,
  );
});

member('nesting counts objects and arrays, not what looks like them in strings', () => {
  assert.is(nesting('1'), 0);
  assert.is(nesting('"[[["'), 0);
  assert.is(nesting('{}'), 1);
  assert.is(nesting('{"a":[{"b":"]]}}"}],"c":[]}'), 3);
  assert.is(nesting('["\\"[[", "\\\\", [[]]]'), 3);
  assert.is(nesting('['.repeat(100_000)), 100_000);
});

member('a text is too deep beyond 200 levels, however many brackets it has', () => {
  const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
  const wide = `[${'{},'.repeat(1_000)}"[["]`;
  for (const text of ['', '1', '{"a":[]}', deep(200), wide, `${'"['.repeat(400)}`])
    assert.not(isTooDeep(text), text.slice(0, 20));
  for (const text of [deep(201), '{"a":'.repeat(101) + '['.repeat(100), `[${wide},${deep(200)}]`])
    assert.ok(isTooDeep(text), text.slice(0, 20));
});

member('nesting of what is no JSON is read to its end all the same', () => {
  for (const text of ['', '"', '"\\', '}}}}', '{"a', '\\"[']) assert.type(nesting(text), 'number');
  assert.is(nesting(']]]][[[['), 0);
});

member('the elements of an array keep their text, whatever they hold', () => {
  assert.equal(rawJsonElements('[]'), []);
  assert.equal(rawJsonElements(' [ 1.10 , "a,]\\"" ,[2, [3]],{ "b":"]" } ,null ]'), [
    '1.10',
    '"a,]\\""',
    '[2, [3]]',
    '{ "b":"]" }',
    'null',
  ]);
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.nat(3), (values, indent) => {
      assert.equal(
        rawJsonElements(JSON.stringify(values, null, indent)).map((text) =>
          JSON.stringify(JSON.parse(text)),
        ),
        values.map((value) => JSON.stringify(value)),
      );
    }),
    { seed },
  );
});

member('the raw value at a path of names and indexes keeps its digits', () => {
  const text =
    ' {"a": {"b.c": 1, "b": [ {"id": 1830000000000000001}, "x" ], "a": null}, "__proto__": 7.0} ';
  const at = (path: string) => rawJsonAt(text, path.split('.'));
  assert.equal(
    [
      'a.b.0.id',
      'a.b.1',
      'a.a',
      '__proto__',
      'a.b.2',
      'a.b.length',
      'a.b.0.id.x',
      'a.b.c',
      'constructor',
    ].map(at),
    ['1830000000000000001', '"x"', 'null', '7.0', ...Array<undefined>(5).fill(undefined)],
  );
  assert.is(rawJsonAt('7', ['a']), undefined);
});

member.run();
