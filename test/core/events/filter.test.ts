import fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compileFilter, FilterBudget, filterOperators } from '#core/events/filter';
import { seed } from '../../support/seed.js';

const filter = suite('core/events/filter');

function holds(document: Record<string, unknown>, ...values: unknown[]): boolean[] {
  const compiled = compileFilter(document);
  return values.map((value) => compiled(value, new FilterBudget()));
}

filter('a value stands for equality, and all members must hold', () => {
  assert.equal(
    holds({ a: 1, b: 'x' }, { a: 1, b: 'x', c: 0 }, { a: 1 }, { a: '1', b: 'x' }, { a: 2, b: 'x' }),
    [true, false, false, false],
  );
  assert.equal(holds({ a: null }, { a: null }, {}, { a: 0 }), [true, false, false]);
  assert.equal(holds({ a: true }, { a: true }, { a: 1 }), [true, false]);
});

filter('lists and objects are equal by their content', () => {
  assert.equal(
    holds(
      { a: [1, { b: 2 }] },
      { a: [1, { b: 2 }] },
      { a: [{ b: 2 }, 1] },
      { a: [1] },
      { a: { 0: 1, 1: { b: 2 } } },
    ),
    [true, false, false, false],
  );
  assert.equal(
    holds(
      { a: { $eq: { x: 1, y: 2 } } },
      { a: { y: 2, x: 1 } },
      { a: { x: 1 } },
      { a: { x: 1, y: 2, z: 3 } },
    ),
    [true, false, false],
  );
  assert.equal(holds({ a: { $eq: {} } }, { a: {} }, { a: [] }, { a: null }), [true, false, false]);
});

filter('nested members are named by objects or by dots, list members by their number', () => {
  const value = { order: { lines: [{ sku: 'a' }, { sku: 'b' }] } };
  assert.equal(holds({ order: { lines: { 1: { sku: 'b' } } } }, value), [true]);
  assert.equal(holds({ 'order.lines.0.sku': 'a' }, value), [true]);
  assert.equal(holds({ 'order.lines.2.sku': 'a' }, value), [false]);
  assert.equal(holds({ 'order.lines.0.sku.length': 1 }, value), [false]);
});

filter('a name that has a dot is found where no nested member has the path', () => {
  const dotted = { 'a.b': 1, order: { 'http.status': 200 } };
  assert.equal(holds({ 'a.b': 1 }, dotted, { a: { b: 1 } }, { a: { b: 2 }, 'a.b': 1 }), [
    true,
    true,
    false,
  ]);
  assert.equal(holds({ 'a.b': { $exist: false } }, dotted, { a: { b: 1 } }, { a: {} }), [
    false,
    false,
    true,
  ]);
  assert.equal(holds({ 'order.http.status': { $gte: 200 } }, dotted), [true]);
  assert.equal(holds({ order: { 'http.status': { $neq: 200 } } }, dotted), [false]);
  assert.equal(holds({ 'a\\.b': 1 }, dotted, { a: { b: 1 } }, { a: { b: 2 }, 'a.b': 1 }), [
    true,
    false,
    true,
  ]);
  assert.equal(holds({ a: { b: 1 } }, dotted, { a: { b: 1 } }), [false, true]);
  assert.equal(holds({ 'a\\.b.c': 1 }, { 'a.b': { c: 1 } }, { a: { b: { c: 1 } } }), [true, false]);
});

filter('an operator holds for a list if it holds for an element, as in MongoDB', () => {
  const tags = [{ tags: ['vip', 'eu'] }, { tags: ['eu'] }, { tags: [] }, { tags: 'vip' }, {}];
  for (const [operand, expected] of [
    ['vip', [true, false, false, true, false]],
    [{ $eq: 'vip' }, [true, false, false, true, false]],
    [{ $neq: 'vip' }, [false, true, true, false, true]],
    [{ $in: ['x', 'vip'] }, [true, false, false, true, false]],
    [{ $nin: ['x', 'vip'] }, [false, true, true, false, true]],
    [{ $gt: 'u' }, [true, false, false, true, false]],
    [{ $exist: true }, [true, true, true, true, false]],
    [['eu'], [false, true, false, false, false]],
    [{ $or: [{ $eq: 'vip' }, { $eq: ['eu'] }] }, [true, true, false, true, false]],
  ] as const)
    assert.equal(holds({ tags: operand }, ...tags), expected, JSON.stringify(operand));
  assert.equal(holds({ a: [1] }, { a: [[1], 2] }, { a: [[[1]]] }), [true, false]);
});

filter('a path leads through lists to the members of their elements', () => {
  const items = [
    {
      items: [
        { sku: 'a', qty: 1, tags: ['x'] },
        { sku: 'b', qty: 5 },
      ],
    },
    { items: [{ sku: 'c', qty: 2 }] },
    { items: [] },
    { items: [['a'], null, 'a'] },
  ];
  for (const [document, expected] of [
    [{ 'items.sku': 'a' }, [true, false, false, false]],
    [{ items: { sku: 'a' } }, [true, false, false, false]],
    [{ 'items.sku': { $neq: 'a' } }, [false, true, true, true]],
    [{ 'items.sku': { $nin: ['a', 'c'] } }, [false, false, true, true]],
    [{ 'items.sku': { $exist: false } }, [false, false, true, true]],
    [{ 'items.qty': { $gt: 4 } }, [true, false, false, false]],
    [{ 'items.tags': 'x' }, [true, false, false, false]],
    [{ items: { tags: 'x' } }, [true, false, false, false]],
    [{ 'items.1.sku': 'b' }, [true, false, false, false]],
  ] as const)
    assert.equal(holds(document, ...items), expected, JSON.stringify(document));
});

filter('lists in an event cost the budget what they hold', () => {
  const long = { a: Array.from({ length: 1_000 }, (_, b) => ({ b })) };
  for (const document of [
    { 'a.b': 1_001 },
    { a: 1 },
    { a: { $gt: 1 } },
    { 'a.c': { $exist: true } },
  ])
    assert.throws(() => compileFilter(document)(long, new FilterBudget(500)), /compare more/);
});

filter('a member that is missing matches nothing, and nothing is inherited', () => {
  assert.equal(
    holds(
      { 'a.b.c': 1 },
      {},
      { a: null },
      { a: 'text' },
      { a: { b: [] } },
      null,
      undefined,
      7,
      'a.b.c',
    ),
    Array(8).fill(false),
  );
  assert.equal(holds({ constructor: { $exist: true } }, {}), [false]);
  assert.equal(holds({ toString: { $neq: 1 } }, {}), [true]);
  assert.equal(holds({ ['__proto__.a']: 1 }, JSON.parse('{"__proto__":{"a":1}}'), {}), [
    true,
    false,
  ]);
});

filter('order is that of numbers or of strings; other kinds have none', () => {
  assert.equal(holds({ a: { $gt: 5 } }, { a: 6 }, { a: 5 }, { a: '6' }, { a: null }, {}), [
    true,
    false,
    false,
    false,
    false,
  ]);
  assert.equal(holds({ a: { $gte: 5, $lt: 7 } }, { a: 5 }, { a: 6.99 }, { a: 7 }, { a: 4 }), [
    true,
    true,
    false,
    false,
  ]);
  assert.equal(holds({ a: { $lte: 'b' } }, { a: 'a' }, { a: 'b' }, { a: 'c' }, { a: 1 }), [
    true,
    true,
    false,
    false,
  ]);
  assert.equal(holds({ a: { $gt: NaN } }, { a: 1 }), [false]);
});

filter('membership, inequality and existence', () => {
  assert.equal(
    holds({ a: { $in: ['x', 2, [3]] } }, { a: 'x' }, { a: 2 }, { a: [3] }, { a: '2' }, {}),
    [true, true, true, false, false],
  );
  assert.equal(holds({ a: { $nin: ['x'] } }, { a: 'y' }, {}, { a: 'x' }), [true, true, false]);
  assert.equal(holds({ a: { $neq: 1 } }, { a: 2 }, {}, { a: 1 }), [true, true, false]);
  assert.equal(holds({ a: { $exist: true } }, { a: null }, {}), [true, false]);
  assert.equal(holds({ a: { $exist: false } }, { a: null }, {}), [false, true]);
});

filter('alternatives and conjunctions nest, at every depth', () => {
  const document = {
    $or: [{ type: 'a' }, { $and: [{ type: 'b' }, { amount: { $gte: 10 } }] }],
    live: true,
  };
  assert.equal(
    holds(
      document,
      { type: 'a', live: true },
      { type: 'b', amount: 10, live: true },
      { type: 'b', amount: 9, live: true },
      { type: 'a' },
    ),
    [true, true, false, false],
  );
  assert.equal(holds({ a: { $or: [{ $gt: 10 }, { $lt: 0 }] } }, { a: 11 }, { a: -1 }, { a: 5 }), [
    true,
    true,
    false,
  ]);
  assert.equal(holds({ $or: [] }, {}), [false]);
  assert.equal(holds({ $and: [] }, {}), [true]);
});

filter('an empty filter holds for everything', () => {
  assert.equal(holds({}, {}, { a: 1 }, null, 'x'), [true, true, true, true]);
});

filter(
  'a mistake is refused with a sentence when the filter is compiled, not met when an event comes',
  () => {
    assert.throws(() => compileFilter({ a: { $regex: '.*' } }), /\$regex is not an operator.*\$eq/);
    assert.throws(() => compileFilter({ $or: { a: 1 } }), /\$or takes a list of filters/);
    assert.throws(() => compileFilter({ $and: 'x' }), /\$and takes a list of filters/);
    for (const operator of filterOperators) {
      const operand = operator === '$exist' ? true : /or|and|in/.test(operator) ? [] : 1;
      assert.type(compileFilter({ a: { [operator]: operand } }), 'function', operator);
    }
  },
);

filter('a list of alternatives holds filters only', () => {
  for (const wrong of [null, 1, 'x', ['a']])
    assert.throws(() => compileFilter({ $or: [{ a: 1 }, wrong] }), /\$or takes a list of filters/);
});

filter('operators that take a list or a yes or no refuse anything else', () => {
  for (const operator of ['$in', '$nin'])
    assert.throws(
      () => compileFilter({ a: { [operator]: 'x' } }),
      new RegExp(`\\${operator} takes a list`),
    );
  assert.throws(() => compileFilter({ a: { $exist: 'true' } }), /\$exist takes true or false/);
});

const { document } = fc.letrec<{ document: Record<string, unknown>; operand: unknown }>((tie) => ({
  document: fc.dictionary(
    fc.oneof(
      fc.constantFrom(
        ...filterOperators,
        'a',
        'b',
        'a.b',
        'a.0',
        '__proto__',
        'constructor.name',
        '',
        '.',
      ),
      fc.string(),
    ),
    tie('operand'),
    { maxKeys: 3 },
  ),
  operand: fc.oneof(
    { depthSize: 'small' },
    fc.jsonValue({ maxDepth: 2 }),
    fc.array(tie('document'), { maxLength: 3 }),
    tie('document'),
  ),
}));

filter(
  'whatever a filter is and whatever it is asked about, it is refused with a sentence or answers yes or no',
  () => {
    fc.assert(
      fc.property(document, fc.jsonValue({ maxDepth: 4 }), (given, value) => {
        let compiled;
        try {
          compiled = compileFilter(given);
        } catch (error) {
          return /^.+\.$/s.test((error as Error).message);
        }
        return typeof compiled(value, new FilterBudget()) === 'boolean';
      }),
      { seed, numRuns: 1_000 },
    );
  },
);

filter('what an object inherits is no member of it', () => {
  const inherited = JSON.parse('{"__proto__":{}}') as object;
  assert.equal(holds({ a: { $eq: inherited } }, { a: inherited }, { a: { x: 1 } }), [true, false]);
});

filter('a value equals itself, $neq is the opposite of $eq, and $nin of $in', () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  fc.assert(
    fc.property(value, value, (one, other) => {
      assert.equal(holds({ a: { $eq: one } }, { a: structuredClone(one) }), [true]);
      assert.equal(
        holds({ a: { $eq: one } }, { a: other }),
        holds({ a: { $neq: one } }, { a: other }).map((it) => !it),
      );
      assert.equal(
        holds({ a: { $in: [one] } }, { a: other }),
        holds({ a: { $nin: [one] } }, { a: other }).map((it) => !it),
      );
    }),
    { seed, numRuns: 1_000 },
  );
});

filter(
  'the members of an object of the event are counted once, however many values it is compared with',
  () => {
    const large = Object.fromEntries(Array.from({ length: 60_000 }, (_, n) => [`k${n}`, n]));
    const empty = compileFilter({ a: { $in: Array.from({ length: 190 }, () => ({})) } });
    const budget = new FilterBudget(60_000 + 11 * 192);
    for (let n = 0; n < 11; n++) assert.is(empty({ a: large }, budget), false);
    assert.throws(() => empty({ a: large }, budget), /compare more than 100000 values/);
  },
);

filter('what a filter compares counts, in whatever operator', () => {
  const list = Array.from({ length: 50 }, (_, n) => [n]);
  const documents = [
    { $eq: list },
    { $neq: list },
    { $in: list.slice(0, 4).map((a) => [...a, 0]) },
    { $nin: list.slice(0, 4).map((a) => [...a, 0]) },
    { $or: list.map((a) => ({ a })) },
  ];
  for (const document of documents) {
    const compiled = compileFilter(document);
    const value = structuredClone(list);
    compiled(value, new FilterBudget(1_000));
    assert.throws(
      () => compiled(value, new FilterBudget(40)),
      /compare more/,
      JSON.stringify(document),
    );
  }
});

filter(
  'a filter has a bound on its bytes, its nodes and its depth, and each is told with the number',
  () => {
    const refused = (document: Record<string, unknown>, sentence: RegExp) =>
      assert.throws(() => compileFilter(document), sentence);
    const nested = (depth: number): Record<string, unknown> =>
      depth === 1 ? {} : { a: nested(depth - 1) };
    compileFilter(nested(20));
    refused(nested(21), /nests objects or lists 21 deep or more; at most 20/);
    compileFilter({ a: { $in: Array.from({ length: 198 }, () => 1) } });
    refused(
      { a: { $in: Array.from({ length: 199 }, () => 1) } },
      /has 201 nodes or more; at most 200/,
    );
    refused({ [Array.from({ length: 201 }, () => 'a').join('.')]: 1 }, /has 201 nodes/);
    compileFilter({ a: 'x'.repeat(16_384 - 8) });
    refused({ a: 'ü'.repeat(8_189) }, /has 16386 bytes of JSON; at most 16384/);
  },
);

filter.run();
