import { Sandbox } from '@gateway/sandbox';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { within } from '../../support/until.js';

const test = suite('sandbox/child/guest-globals');

const sandbox = new Sandbox({ processes: 1 });
test.after(() => sandbox.close());

/**
 * Runs the body of a transform for each payload. Returns its result, or the sentence of its
 * refusal.
 */
async function run(body: string, { top = '', payloads = ['{"a":[1]}'] } = {}): Promise<unknown[]> {
  const text = `${top}\nfunction transform(payload, message) {\n${body}\n}`;
  const results = await within(sandbox.run({ key: text, text }, payloads), 30_000, 'answers');
  return results.map((result) =>
    result.kind === 'object'
      ? JSON.parse(result.json)
      : result.kind === 'refused'
        ? result.reason
        : result.kind,
  );
}

// Collects everything that code of a function can reach without calling the sandbox's functions:
// prototypes, properties, getters and setters.
const walk = `
  const start = [globalThis, payload, console, message, message.bytes, message.bytes.buffer, /x/, function () {}, () => {}, function* () {}, class {}, new Date(), new Map().entries(),
    new Set().values(), [].values(), ''[Symbol.iterator](), 'x'.matchAll(/x/g), new Error('x'), Symbol('x'), 1n,
    (function () { return arguments; })(),
    new Proxy({}, {}), (() => { try { null.x; } catch (error) { return error; } })()].map(Object);
  const seen = new Set();
  const names = new Map();
  const visit = (value, path) => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) return;
    seen.add(value);
    names.set(value, path);
    queue.push([value, path]);
  };
  const queue = [];
  for (const [index, value] of start.entries()) visit(value, 'start' + index);
  while (queue.length > 0) {
    const [value, path] = queue.pop();
    visit(Object.getPrototypeOf(value), path + '.[[prototype]]');
    for (const key of Reflect.ownKeys(value)) {
      const property = Reflect.getOwnPropertyDescriptor(value, key);
      const at = path + '.' + String(key);
      visit(property.value, at);
      visit(property.get, at + '(get)');
      visit(property.set, at + '(set)');
    }
  }
`;

test('nothing but the language can be reached', async () => {
  const [found] = await run(`${walk}
    return { names: [...seen].filter((value) => typeof value === 'function').map((value) => String(value.name)) };`);
  const { names } = found as { names: string[] };
  assert.ok(
    names.length > 400,
    `only ${names.length} functions were found: the walk does not work`,
  );
  const forbidden = [
    ...[
      'ArrayBuffer',
      'SharedArrayBuffer',
      'DataView',
      'TypedArray',
      'Uint8Array',
      'Float64Array',
      'BigInt64Array',
      'TextEncoder',
      'TextDecoder',
    ],
    ...[
      'Promise',
      'fromAsync',
      'AsyncFunction',
      'WeakRef',
      'FinalizationRegistry',
      'WebAssembly',
      'Atomics',
      'Intl',
      'Temporal',
      'Compartment',
      'eval',
    ],
    ...[
      'lockdown',
      'require',
      'fetch',
      'setTimeout',
      'setImmediate',
      'queueMicrotask',
      'structuredClone',
      'Buffer',
      'process',
      'exit',
    ],
    ...['evaluate', 'ModuleSource', 'readSync', 'writeSync'],
    ...[
      'get buffer',
      'get maxByteLength',
      'resize',
      'transfer',
      'transferToFixedLength',
      'sliceToImmutable',
      'transferToImmutable',
    ],
  ];
  assert.equal(
    forbidden.filter((name) => names.includes(name)),
    [],
  );
});

test('everything that two calls have in common is frozen', async () => {
  // A call may change its own objects (the start of the traversal), which it shares with no other
  // call.
  const [found] = await run(`${walk}
    const own = start.filter((value) => value !== globalThis && value !== console);
    const loose = [...seen].filter((value) => !Object.isFrozen(value) && !own.includes(value)).map((value) => names.get(value));
    return { count: seen.size, loose };`);
  const { count, loose } = found as { count: number; loose: string[] };
  assert.ok(count > 500, `only ${count} objects were found: the walk does not work`);
  // Payload and message are created per call; functions and classes have a fresh prototype;
  // transform itself is unreachable.
  assert.equal(
    loose.filter((path) => !/^start\d+\.(a|prototype|lastIndex|stack|0|bytes\(get\)$)/.test(path)),
    [],
  );
});

// Also calls what it reaches, since a prototype may be reached by the result of a call alone, and
// provokes errors of each kind. Marks everything, and prints the marks of an earlier call.
const leaks = `
  const seen = new Map();
  const queue = [];
  const visit = (value, path, depth) => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || seen.has(value)) return;
    seen.set(value, path);
    queue.push([value, path, depth]);
  };
  const look = (thunk, path, depth = 1) => { try { visit(thunk(), path, depth); } catch (error) { visit(error, path + '!', depth); } };
  const deep = (then) => { let left = 20; const g = () => { try { g(); } finally { if (left-- > 0) then(); } }; return () => { try { g(); } catch (error) { return error; } }; };
  const cycle = {}; cycle.cycle = cycle;
  const starts = {
    globalThis, payload, console, message, bytes: message.bytes, part: message.bytes.subarray(0), regexp: /x/, symbol: Object(Symbol('x')), bigint: Object(1n), date: new Date(0),
    map: new Map([[1, {}]]), set: new Set([1]), weakMap: new WeakMap(), array: [{ a: 1 }, 2], string: Object('abc'), proxy: new Proxy({}, {}), generator: (function* () { yield 1; })(), error: new Error('x'),
    f: function () {}, arrow: () => {}, generators: function* () {}, late: async () => {}, lateGenerators: async function* () {}, C: class { static #a = 1; static get a() { return this.#a; } },
    args: (function () { return arguments; })(), sloppy: Function.prototype, raw: ((strings) => strings)\`x\`, match: 'x'.match(/(?<a>x)/d), iterator: [].values(), sticky: 'x'.matchAll(/x/g),
    promise: (async () => {})(), results: (async function* () { yield 1; })().next(), helper: [].values().map?.((x) => x), wrapped: Iterator?.from?.({ next() {} }),
  };
  const faults = [
    () => null.x, () => { let s = 'x'.repeat(1e8); for (;;) s += s; }, () => new Array(-1), () => 'x'.repeat(-1), () => 'x'.repeat(2 ** 30), () => JSON.parse('{'), () => JSON.parse('[1]', () => null.x),
    () => JSON.stringify(cycle), () => JSON.stringify(1n), () => JSON.parse('['.repeat(1e5)), () => new RegExp('('), () => RegExp('x', 'zz'), () => BigInt(1.5), () => BigInt('x'), () => 1n + 1, () => 1n / 0n, () => 2n ** (2n ** 40n), () => BigInt.asIntN(-1, 1n),
    () => decodeURIComponent('%'), () => encodeURI('\\ud800'), () => Symbol() + '', () => { early; let early; }, () => { const c = 1; c = 2; }, () => (0).toFixed(101), () => (0).toString(99), () => (1).toLocaleString('!!'), () => (1).toLocaleString('en', { style: 'currency' }),
    () => 'x'.localeCompare('y', '!!'), () => 'x'.toLocaleUpperCase('!!'), () => new Date(0).toLocaleString('en', { timeZone: 'No/Zone' }), () => 'x'.normalize('x'), () => new Date(NaN).toISOString(), () => new Date(0).toTemporalInstant(), () => Reflect.construct(1), () => new (class { constructor() { this.x(); } })(),
    () => new (class extends Object { constructor() {} })(), () => starts.C(), () => Object.create(starts.C).a, () => new (class extends null {})(), () => [...1], () => { const [a] = null; }, () => ({}) instanceof 1, () => 'a' in 'b', () => undeclared.x, () => { undeclared = 1; },
    () => { const g = (function* () { g.next(); })(); g.next(); }, () => Object.defineProperty(Object.freeze({}), 'a', {}), () => Object.setPrototypeOf(Object.preventExtensions({}), {}), () => Proxy.revocable({}, {}).revoke() || 1, () => { const r = Proxy.revocable({}, {}); r.revoke(); r.proxy.x; },
    () => new Proxy(Object.freeze({ a: 1 }), { get: () => 2 }).a, () => structuredClone(() => {}), () => new URL('x'), () => Function('x'), () => (0, eval)('x'), () => new Function('return 1')(), () => (async () => {}).constructor('x'), () => arguments.callee, () => (() => {}).caller, () => Error.prepareStackTrace(new Error('x'), []),
    () => Error.captureStackTrace(1), () => { const o = {}; Error.captureStackTrace(o); return o; }, () => new AggregateError(1), () => new AggregateError([new Error('x', { cause: {} })]), () => message.bytes.set([1], 9e9), () => message.bytes.with(0, 1), () => message.bytes.subarray(1n), () => new message.bytes.constructor(9e9),
    () => message.bytes.fill(1n, Symbol()), () => message.bytes.sort(() => null.x), () => message.bytes.at(1n), () => Object.getOwnPropertyDescriptor(message, 'bytes').get.call(1), () => console.log({ toString: null }), () => console.log({ toJSON() { throw cycle; } }), () => console.log(Symbol()), () => new console.log(),
    () => console.log(Object.create(null)), () => [].sort(1), () => [].reduce((x) => x), () => [1].values().map(1), () => Object.fromEntries([1]), () => new Map([1]), () => new WeakMap([[1, 1]]), () => new WeakSet([1]), () => Array.from({ length: 2 ** 53 }), () => Object.groupBy(1, 1), () => 'x'.matchAll(/x/), () => 'x'.replaceAll(/x/, ''),
    () => String.raw(null), () => /(?:x+)+y/.exec('x'.repeat(9)), deep(() => message.bytes), deep(() => console.log.call(1, {})), deep(() => Math.random()), deep(() => JSON.stringify(starts.array)), deep(() => new Date().toLocaleString()), deep(() => new Error('x').stack), deep(() => [3, 1].sort()), deep(() => 'x'.replace(/x/, () => null.x)),
  ];
  for (const [name, value] of Object.entries(starts)) visit(value, name, 0);
  for (const [index, fault] of faults.entries()) look(fault, 'fault ' + String(fault).slice(0, 60));
  const skipped = ['repeat', 'padStart', 'padEnd', 'Array', 'log', 'info', 'warn', 'error', 'debug', 'trace', 'write'];
  const someThis = [undefined, starts.array, starts.map, starts.set, starts.date, starts.string, starts.regexp, starts.bytes, starts.generator, starts.promise, starts.f];
  const someArguments = [[], [starts.array, 'x'], [(x) => x, starts.error]];
  const pump = () => {
    while (queue.length > 0) {
      const [value, path, depth] = queue.pop();
      try { visit(Object.getPrototypeOf(value), path + '.[[prototype]]', depth); } catch {}
      let keys = []; try { keys = Reflect.ownKeys(value); } catch {}
      for (const key of keys) {
        const { get, set, value: member } = Reflect.getOwnPropertyDescriptor(value, key) ?? {};
        for (const each of [get, set, member]) visit(each, path + '.' + String(key), depth);
      }
      let name; try { name = value.name; } catch {}
      if (typeof value !== 'function' || depth > 1 || skipped.includes(name)) continue;
      for (const args of someArguments) {
        for (const self of someThis) look(() => Reflect.apply(value, self, args), path + '()', depth + 1);
        look(() => Reflect.construct(value, args), 'new ' + path, depth + 1);
      }
    }
  };
  const marked = [];
  const mark = () => {
    for (const [value, path] of seen) {
      const isMarked = [() => Object.hasOwn(value, 'leaked'), () => Map.prototype.has.call(value, 'leaked'), () => Set.prototype.has.call(value, 'leaked'), () => Date.prototype.getTime.call(value) === 123456]
        .some((has) => { try { return has(); } catch { return false; } });
      if (isMarked) marked.push(path);
      for (const put of [() => Object.defineProperty(value, 'leaked', { value: 1 }), () => Map.prototype.set.call(value, 'leaked', 1), () => Set.prototype.add.call(value, 'leaked'), () => Date.prototype.setTime.call(value, 123456)])
        try { put(); } catch {}
    }
  };
  pump();
  (async () => {
    for (const thunk of [...faults, () => new Proxy({}, { get() { throw cycle; } })]) try { await (async () => thunk())(); } catch (error) { visit(error, 'rejected ' + thunk, 1); }
    try { for await (const each of [starts.promise, 1]) visit(each, 'awaited', 1); } catch (error) { visit(error, 'awaited!', 1); }
    pump();
    mark();
    console.log(JSON.stringify({ count: seen.size, marked: marked.slice(0, 10) }));
  })();
  return {};`;

test('no call finds what another one left, in anything that it can reach, call or make fail', async () => {
  const slow = new Sandbox({ processes: 1, deadlineMs: 60_000, memoryMb: 512 });
  try {
    for (const project of ['one', 'other']) {
      const text = `function transform(payload, message) {${leaks}\n/* ${project} */}`;
      const [result] = await within(
        slow.run({ key: project, text, project }, ['{"a":[1]}']),
        120_000,
        'the walk',
      );
      const { count, marked } = JSON.parse(result!.logs.at(-1) ?? JSON.stringify(result)) as {
        count: number;
        marked: string[];
      };
      assert.ok(count > 2000, `only ${count} objects were found: the walk does not work`);
      assert.equal(marked, []);
    }
  } finally {
    await slow.close();
  }
});

test('random numbers of one call do not follow from those of another', async () => {
  const numbers = (await run(
    'return { all: Array.from({ length: 2000 }, () => Math.random()) };',
  )) as [{ all: number[] }];
  const { all } = numbers[0];
  assert.is(new Set(all).size, 2000);
  assert.ok(all.every((each) => each >= 0 && each < 1));
  assert.ok(Math.abs(all.reduce((sum, each) => sum + each) / 2000 - 0.5) < 0.1);
  // V8's own generator gives numbers with 52 bits, of which the last of 53 is always zero.
  assert.ok(all.some((each) => (each * 2 ** 53) % 2 === 1));
});

test('the globals of Node and the web are absent', async () => {
  const names = [
    'require',
    'process',
    'global',
    'fetch',
    'Buffer',
    'setTimeout',
    'setImmediate',
    'queueMicrotask',
    'WebAssembly',
    'Atomics',
    'Promise',
  ];
  const more = [
    'ArrayBuffer',
    'SharedArrayBuffer',
    'Uint8Array',
    'DataView',
    'TextEncoder',
    'URL',
    'crypto',
    'performance',
    'structuredClone',
    'Intl',
    'eval',
  ];
  const all = [...names, ...more];
  const [found] = await run(
    `return { found: [${all.map((name) => `typeof ${name}`).join(', ')}] };`,
  );
  assert.equal(found, { found: all.map(() => 'undefined') });
});

const escapes: Record<string, string> = {
  'the constructor of a function': `return (function () {}).constructor('return globalThis')();`,
  'the constructor of an arrow function': `return (() => {}).constructor('return 1')();`,
  'the constructor of a generator function': `return (function* () {}).constructor('yield 1')().next();`,
  'the constructor of an async function': `return (async () => {}).constructor('return 1')();`,
  'the constructor of an async generator': `return (async function* () {}).constructor('yield 1')();`,
  'the constructor of a console method': `return console.log.constructor('return globalThis')();`,
  'the constructor of Date': `return Date.constructor('return globalThis')();`,
  'the constructor of a method of Math': `return Math.random.constructor('return globalThis')();`,
  'the constructor of the payload': `return payload.constructor.constructor('return globalThis')();`,
  'the constructor of an error': `try { null.x; } catch (error) { return error.constructor.constructor('return globalThis')(); }`,
  'the constructor of an error of too deep recursion': `
    const f = () => f();
    try { f(); } catch (error) { return error.constructor.constructor('return globalThis')(); }`,
  'the global Function': `return Function('return globalThis')();`,
  'new Function': `return new Function('return globalThis')();`,
  'a subclass of Function': `return new (class extends Function {})('return globalThis')();`,
  'Reflect.construct of Function': `return Reflect.construct(Function, ['return globalThis'])();`,
};

for (const [name, body] of Object.entries(escapes)) {
  test(`${name} makes no code`, async () => {
    const [said] = await run(body);
    assert.match(String(said), /^The function threw (TypeError|EvalError): .*on line \d/);
  });
}

test('this is undefined, and callers cannot be seen', async () => {
  const [found] = await run(`
    const tries = [() => transform.caller, () => transform.arguments, () => arguments.callee];
    const seen = tries.map((look) => { try { return typeof look(); } catch (error) { return error.name; } });
    return { self: typeof this, seen };`);
  const { self, seen } = found as { self: string; seen: string[] };
  assert.is(self, 'undefined');
  assert.ok(
    seen.every((each) => each === 'TypeError' || each === 'undefined'),
    seen.join(),
  );
});

test('a stack tells nothing of the host, whatever hooks a function sets', async () => {
  const [found] = await run(`
    let frames = 'none';
    const hook = (_, all) => { frames = all; return 'mine'; };
    const tries = [() => { Error.prepareStackTrace = hook; }, () => { Error.stackTraceLimit = 100; }];
    for (const each of tries) try { each(); } catch {}
    const holder = {};
    try { Error.captureStackTrace(holder); } catch {}
    let inner;
    try { null.x; } catch (error) { inner = error.stack; }
    return { stack: new Error('x').stack ?? '', inner: inner ?? '', holder: holder.stack ?? '', frames };`);
  assert.equal(found, { stack: '', inner: '', holder: '', frames: 'none' });
});

const tampering: Record<string, { body: string; top?: string }> = {
  'a variable at the top of the text': {
    top: 'let count = 0;',
    body: 'count += 1; return { seen: count };',
  },
  'a table at the top of the text': {
    top: 'const all = [];',
    body: 'all.push(payload); return { seen: all.length };',
  },
  'a property of transform': {
    body: 'transform.count = (transform.count ?? 0) + 1; return { seen: transform.count };',
  },
  'a static field of a class': {
    top: 'class Counter { static count = 0; }',
    body: 'Counter.count += 1; return { seen: Counter.count };',
  },
  'a property of a template object': {
    body: 'const at = (strings) => strings; const s = at`x`; try { s.count = 1; } catch {} return { seen: 1 + (s.count ?? 0) };',
  },
  'the payload': { body: 'payload.a.push(1); return { seen: payload.a.length - 1 };' },
  'the last index of a regular expression': {
    body: 'const r = /1/g; r.test("1"); return { seen: r.lastIndex };',
  },
};

for (const [name, { top = '', body }] of Object.entries(tampering)) {
  test(`${name} is fresh in every call`, async () => {
    assert.equal(await run(body, { top, payloads: ['{"a":[1]}', '{"a":[1]}', '{"a":[1]}'] }), [
      { seen: 1 },
      { seen: 1 },
      { seen: 1 },
    ]);
  });
}

test('prototypes, globals and the console cannot be changed', async () => {
  const writes = [
    'globalThis.leak = 1',
    'Object.prototype.leak = 1',
    'Array.prototype.push = () => 1',
    'String.prototype.leak = 1',
    'Function.prototype.leak = 1',
    'JSON.parse = () => 1',
    'JSON.stringify = () => "{}"',
    'Math.leak = 1',
    'Date.now = () => 1',
    'Date.prototype.toISOString = () => 1',
    'console.log = () => 1',
    'console.log.leak = 1',
    'Error.prototype.message = 1',
    'Object.defineProperty(Object.prototype, "leak", { get: () => 1 })',
    'Object.setPrototypeOf(Object.prototype, { leak: 1 })',
    'Object.setPrototypeOf(Array.prototype, { leak: 1 })',
    '({}).__proto__.leak = 1',
    '[].constructor.leak = 1',
    'Symbol.iterator.constructor.leak = 1',
    'Reflect.set(globalThis, "leak", 1) || (() => { throw new TypeError(); })()',
    'delete globalThis.JSON',
    'globalThis.JSON = {}',
    'globalThis[Symbol.unscopables] = { JSON: true }',
    'Function("leak = 1")()',
  ];
  const attempts = writes.map((each) => `() => { ${each}; }`).join(',\n');
  const [tried] = await run(`
    return { done: [${attempts}].flatMap((attempt, index) => { try { attempt(); return [index]; } catch { return []; } }) };`);
  assert.equal(
    (tried as { done: number[] }).done.map((index) => writes[index]),
    [],
  );
  const [after] = await run(
    'return { leak: typeof leak, own: [{}.leak, [].leak, "".leak, Date.leak] , text: JSON.stringify([1]), now: Date.now() > 1 };',
  );
  assert.equal(after, { leak: 'undefined', own: [null, null, null, null], text: '[1]', now: true });
});

test('old records of regular expressions are gone', async () => {
  const [found] = await run(
    '/(secret)/.test("secret"); return { found: [typeof RegExp.$1, typeof RegExp.lastMatch, typeof RegExp.input] };',
  );
  assert.equal(found, { found: ['undefined', 'undefined', 'undefined'] });
});

test('import is no way out, neither as a call nor as meta', async () => {
  assert.match(String((await run('return import("node:fs");'))[0]), /import\( on line 3/);
  assert.match(String((await run('return import /* x */ ("node:fs");'))[0]), /import\( on line 3/);
  assert.match(
    String((await run('return { url: import.meta.url };'))[0]),
    /Cannot use 'import\.meta' outside a module on line 3/,
  );
});

test('import is refused with its line, however it is written', async () => {
  const spellings = [
    "import.source('x')",
    "import.defer('x')",
    "import . source ('x')",
    "import/* ( */.source('x')",
    "import//\n.source('x')",
    "import\u2028('x')",
    "import\ufeff('x')",
    "import\n('x')",
    "\\u0069mport('x')",
    "\\u{69}mport.source('x')",
    "im\\u0070ort.source('x')",
    '\\u0069mport.meta',
    "`§{import.source('x')}`",
    "`§{`§{1}§{import('x')}`}`",
    "1 / import.source('x') / 2",
    "/[/]/.test(import.source('x'))",
    "{}/import.source('x')/1",
    "(() => {})?.import(import.source('x'))",
    '[...import.source("x")]',
    "new (import.source)('x')",
    "import?.('x')",
    "new import('x')",
    'import.meta.url',
    "{ import: import.source('x') }",
    "class { static [import.source('x')] = 1 }",
    "(a = import.source('x')) => a",
  ];
  for (const spelling of spellings) {
    const [said] = await run(`\n\nreturn [${spelling.replaceAll('§', '$')}];`);
    assert.match(
      String(said),
      /^The text (does not compile: .*|has import\() ?on line [56]/,
      spelling,
    );
  }
  for (const line of [
    'import x from "y";',
    'import defer * as x from "y";',
    'import source x from "y";',
    'import "x";',
  ])
    assert.match(
      String((await run('', { top: line }))[0]),
      /not compile: .*import.* on line 1.* is not a module/,
      line,
    );
});

test('import is a name like others', async () => {
  const [found] = await run(`
    class C { 'import'() { return 1; } static import = 2; #import = 3; get own() { return this.#import; } }
    const { import: four } = { import: 4 }; // import
    return { all: [new C().import(), C.import, new C().own, four, payload?.import ?? 5, "import", /import/.source, \`import.source\${6}\`] };`);
  assert.equal(found, { all: [1, 2, 3, 4, 5, 'import', 'import', 'import.source6'] });
});

test('syntax beyond ES2025 is refused, whatever the version of Node knows', async () => {
  for (const body of [
    'using a = null;',
    '(async () => { await using a = null; })();',
    '{ using a = { [Symbol.dispose]() {} }; }',
    'for (using a of []);',
    '@a class B {}',
    'const m = module {};',
  ])
    assert.match(String((await run(body))[0]), /^The text does not compile: .* on line 3/, body);
});

test('a long message of an error is cut between characters', async () => {
  for (const [thrown, end] of [
    ["'x' + '😀'.repeat(300)", /x(😀)+…\. Change/],
    ["'👨‍👩‍👧‍👦'.repeat(300)", /: (👨‍👩‍👧‍👦)+…\. Change/],
    ["'a'.repeat(290) + '&amp;&amp;'", /: a+…\. Change/],
  ] as const) {
    const [said] = (await run(`throw new Error(${thrown});`)) as [string];
    assert.match(said.replace(' on line 3', ''), end);
  }
});

test('callbacks of promises run in the time of their own call only', async () => {
  const body = `
    (async () => { for (let i = 0; i < 1000; i += 1) await 0; console.log('late', payload); })();
    return { got: payload };`;
  const text = `function transform(payload) { ${body} }`;
  const payloads = ['1', '2', '3'];
  const results = await within(sandbox.run({ key: text, text }, payloads), 30_000, 'answers');
  assert.equal(
    results.map(({ logs }) => logs),
    [['late 1'], ['late 2'], ['late 3']],
  );
});

test('the word async cannot be hidden from the sandbox', async () => {
  for (const body of [
    'const f = \\u0061sync () => 1; return f;',
    '\\u0061sync function f() {} return f;',
    'return { \\u0061sync f() {} };',
  ]) {
    assert.match(String((await run(body))[0]), /^The text does not compile/);
  }
});

test('a rejected promise that nobody handles harms nobody', async () => {
  const found = await run(
    '(async () => { throw new Error("unheard"); })(); return { got: payload };',
    { payloads: ['1', '2'] },
  );
  assert.equal(found, [{ got: 1 }, { got: 2 }]);
});

test.run();
