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
