// long
import { existsSync, readFileSync } from 'node:fs';
import { Sandbox, type RefusalCode, type TransformResult } from '@gateway/sandbox';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until, within } from '../support/until.js';
import { alive, guestProcesses, stateOf } from './processes.js';

// Functions that attack the sandbox, its other functions or its host. Each is in the middle of a
// batch of good payloads: it must be contained and refused with a sentence, and the other payloads
// must be processed. The time until the refusal is printed: less than two deadlines on an idle
// machine; the tests allow more, for busy ones.

const test = suite('sandbox/hostile');

const DEADLINE_MS = 120;
const sandbox = new Sandbox({ deadlineMs: DEADLINE_MS, memoryMb: 64 });
test.after(() => sandbox.close());

interface Hostile {
  readonly name: string;
  /** Statements; run for one payload of the batch. */
  readonly body: string;
  /** The refusals that contain it. Several where memory and time run out together. */
  readonly refused?: readonly RefusalCode[];
  /** The sentence for its author, if only one refusal is possible. */
  readonly says?: RegExp;
  /**
   * Its result if there is nothing to refuse: the function gets its output, and no other call is
   * affected.
   */
  readonly gives?: unknown;
}

const outOfBounds: RefusalCode[] = ['timeout', 'memory'];
const late = {
  refused: ['timeout'],
  says: /did not return within its deadline of 120 ms/,
} as const;

const spins: Hostile[] = [
  { name: 'a loop', body: 'for (;;);', ...late },
  {
    name: 'a loop that catches everything',
    body: 'for (;;) try { for (;;); } catch { continue; } finally { continue; }',
    ...late,
  },
  {
    name: 'a native loop: the join of an object of a huge length',
    body: 'Array.prototype.join.call({ length: 2 ** 32 - 1 }, "");',
    ...late,
  },
  {
    name: 'the join of a huge array that is empty',
    body: 'return { a: Array(1e9).join("") };',
    gives: { a: '' },
  },
  {
    name: 'the join of a huge array that would be a huge text',
    body: 'return { a: Array(1e9).join() };',
    refused: [...outOfBounds, 'threw'],
  },
  {
    name: 'a native loop over an object of a huge length',
    body: 'Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1);',
    ...late,
  },
  {
    name: 'a sort that never agrees',
    body: 'return { a: new Array(1e6).fill(1).sort(() => { for (;;); }) };',
    ...late,
  },
  {
    name: 'a regular expression that backtracks',
    body: 'return { a: /^(a+)+$/.test("a".repeat(40) + "b") };',
    ...late,
  },
  {
    name: 'a regular expression that backtracks in a replacement',
    body: 'return { a: "x".repeat(3e4).replace(/(x*x*)*y/g, "") };',
    ...late,
  },
  {
    name: 'a BigInt that grows',
    body: 'let n = 2n; for (;;) n = n * n;',
    refused: [...outOfBounds, 'threw'],
  },
];

const fills: Hostile[] = [
  {
    name: 'an array that grows',
    body: 'const all = []; for (;;) all.push({ a: [1, 2, 3] });',
    refused: outOfBounds,
  },
  {
    name: 'a huge array joined',
    body: 'return { a: new Array(3e8).fill("x").join("y") };',
    refused: outOfBounds,
  },
  {
    name: 'huge sparse arrays as texts',
    body: 'const all = []; for (;;) { const s = String(new Array(2 ** 28)); all.push(s, s.charCodeAt(2 ** 27)); }',
    refused: [...outOfBounds, 'threw'],
  },
  {
    name: 'a huge array filled at once',
    body: 'return new Array(4e9 | 0).fill({});',
    refused: [...outOfBounds, 'threw', 'output_too_large'],
  },
  {
    name: 'a string that doubles',
    body: 'let s = "x"; for (;;) { s += s; s.charCodeAt(s.length >> 1); }',
    refused: [...outOfBounds, 'threw'],
  },
  {
    name: 'many strings that double',
    body: 'const all = []; for (;;) all.push("ab".repeat(1e6).split("").join("-"));',
    refused: outOfBounds,
  },
  { name: 'arrays in arrays', body: 'let a = []; for (;;) a = [a, a, [a]];', refused: outOfBounds },
  {
    name: 'a replacement that multiplies',
    body: 'let s = "aaaa"; for (;;) s = s.replace(/a/g, "aaaaaaaa");',
    refused: [...outOfBounds, 'threw'],
  },
  {
    name: 'a generator without end',
    body: 'function* forever() { for (;;) yield 1; } return { a: [...forever()] };',
    refused: [...outOfBounds, 'threw'],
  },
  {
    name: 'a Map that grows',
    body: 'const all = new Map(); for (let i = 0; ; i += 1) all.set(i, {});',
    refused: [...outOfBounds, 'threw'],
  },
  {
    name: 'a symbol registry that grows',
    body: 'for (let i = 0; ; i += 1) Symbol.for("s" + i);',
    refused: outOfBounds,
  },
  {
    name: 'a tail of a text kept from a large one',
    body: 'const all = []; for (;;) all.push(("x".repeat(1e6) + all.length).slice(-20));',
    refused: outOfBounds,
  },
  {
    name: 'memory outside the heap: an ArrayBuffer',
    body: 'return { a: new ArrayBuffer(2 ** 33) };',
    refused: ['threw'],
    says: /ArrayBuffer is not a constructor on line 2\. .*there is no ArrayBuffer/,
  },
  {
    name: 'memory outside the heap: a typed array',
    body: 'const all = []; for (;;) all.push(new Uint8Array(2 ** 30));',
    refused: ['threw'],
    says: /Uint8Array is not a constructor on line 2\. .*there is no Uint8Array/,
  },
  {
    name: 'memory outside the heap: copies of the bytes of the message',
    body: 'const all = []; for (;;) all.push(message.bytes.slice());',
    refused: ['threw'],
    says: /bytes\.slice is not a function on line 2\. .*have no method slice: take a part of them with subarray/,
  },
  {
    name: 'memory outside the heap: copies of the buffer of the bytes',
    body: 'const all = []; for (;;) all.push(message.bytes.buffer.slice());',
    refused: ['threw'],
    says: /undefined/,
  },
  {
    name: 'memory outside the heap: the buffer by the getter of the prototype of a part',
    body: `const owner = (it) => (Object.hasOwn(it, 'buffer') ? it : owner(Object.getPrototypeOf(it)));
      const { get } = Object.getOwnPropertyDescriptor(owner(message.bytes.subarray(1)), 'buffer');
      const all = []; for (;;) all.push(get.call(message.bytes).slice());`,
    refused: ['threw'],
  },
  {
    name: 'memory outside the heap: the species of a part',
    body: `const all = []; message.bytes.constructor = { [Symbol.species]: function () { return Array.from({ length: 9 }); } };
      for (;;) all.push(message.bytes.subarray(1));`,
    refused: ['threw'],
  },
  {
    name: 'views of the bytes of the message',
    body: 'const all = []; for (;;) all.push(message.bytes.subarray());',
    refused: outOfBounds,
  },
];

const stacks: Hostile[] = [
  {
    name: 'recursion without end',
    body: 'return transform(payload);',
    refused: ['threw'],
    says: /Maximum call stack size exceeded/,
  },
  {
    name: 'recursion that catches its own end',
    body: 'const f = () => { try { f(); } finally { f(); } }; f();',
    refused: ['timeout', 'threw'],
  },
  {
    name: 'recursion through a getter of the output',
    body: 'const a = { get a() { return a; } }; return a;',
    refused: ['not_json'],
  },
  {
    name: 'recursion through a Proxy that is its own prototype chain',
    body: 'const p = new Proxy({}, { getPrototypeOf: () => p, get: (_, k, r) => Reflect.get(r, k) }); return p;',
    refused: ['not_json', 'threw', 'timeout'],
  },
  {
    name: 'a text that nests deeper than a parser goes',
    body: 'return JSON.parse("[".repeat(1e5));',
    refused: ['threw', ...outOfBounds],
  },
];

const floods: Hostile[] = [
  {
    name: 'an output of hundreds of megabytes',
    body: 'return { a: new Array(100).fill("x".repeat(1e6)) };',
    refused: [...outOfBounds, 'output_too_large'],
  },
  {
    name: 'an output just over the limit',
    body: 'return { a: "x".repeat(1024 * 1024) };',
    refused: ['output_too_large'],
    says: /an object of 1048584 bytes as JSON text, and 1048576 are allowed/,
  },
  {
    name: 'a million keys',
    body: 'const a = {}; for (let i = 0; i < 1e6; i += 1) a["k" + i] = i; return a;',
    refused: [...outOfBounds, 'output_too_large'],
  },
  {
    name: 'a sparse array of the largest length, returned',
    body: 'return new Array(2 ** 32 - 1);',
    refused: ['output_too_large'],
    says: /an array of 4294967295 items, and 10000 are allowed/,
  },
  {
    name: 'a sparse array of the largest length, within the output',
    body: 'const a = []; a[2 ** 32 - 2] = 1; return { a };',
    refused: [...outOfBounds, 'threw', 'not_json'],
  },
  {
    name: 'a Proxy of an array that says it has no end',
    body: 'return new Proxy([], { get: (_, key) => key === "length" ? Infinity : {} });',
    refused: ['output_too_large'],
  },
  {
    name: 'a Proxy of an array within the output whose length is no number',
    body: 'return { a: new Proxy([], { get: (_, key) => key === "length" ? 2 ** 53 : 1 }) };',
    refused: [...outOfBounds, 'not_json'],
  },
  {
    name: 'a flood of the console',
    body: 'for (;;) console.log("x".repeat(1000), payload);',
    ...late,
  },
  {
    name: 'a console line that explodes',
    body: 'const a = []; for (let i = 0; i < 50; i += 1) a.push(a.slice()); console.log(a); return { a: 1n };',
    refused: [...outOfBounds, 'not_json'],
  },
  {
    name: 'a console line that loops',
    body: 'console.log({ toJSON() { for (;;); } }); return {};',
    ...late,
  },
];

const tricks: Hostile[] = [
  { name: 'a getter that loops', body: 'return { get a() { for (;;); } };', ...late },
  {
    name: 'a getter that throws',
    body: 'return { get a() { throw new Error("odd"); } };',
    refused: ['not_json'],
    says: /Error: odd on line 2/,
  },
  {
    name: 'a getter that returns something else each time',
    body: 'let n = 0; return { get a() { n += 1; return n; } };',
    gives: { a: 1 },
  },
  {
    name: 'a getter that changes what is written',
    body: 'const a = { get first() { a.last = { late: true }; delete a.middle; return 1; }, middle: 2, last: 3 }; return a;',
    gives: { first: 1, last: { late: true } },
  },
  { name: 'a toJSON that loops', body: 'return { toJSON() { for (;;); } };', ...late },
  {
    name: 'a toJSON that returns itself anew',
    body: 'const f = () => ({ a: { toJSON: f } }); return f();',
    refused: ['not_json', ...outOfBounds],
  },
  {
    name: 'a Proxy that loops when it is looked at',
    body: 'return new Proxy({}, { get() { for (;;); } });',
    ...late,
  },
  {
    name: 'a Proxy with fields without end',
    body: 'return new Proxy({}, { ownKeys() { for (;;); } });',
    ...late,
  },
  {
    name: 'a Proxy of an array that loops',
    body: 'return new Proxy([], { get(_, key) { if (key === "length") return 1; for (;;); } });',
    ...late,
  },
  {
    name: 'a Proxy that was revoked',
    body: 'const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy;',
    refused: ['threw', 'not_json'],
  },
  {
    name: 'a Proxy that was revoked, thrown',
    body: 'const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); throw proxy;',
    refused: ['threw'],
  },
  {
    name: 'a Proxy of an array whose length changes',
    body: 'let n = 0; return new Proxy([{}, {}], { get: (a, key) => key === "length" ? (n += 1) : a[0] });',
    gives: [{}],
  },
  { name: 'a thenable that loops', body: 'return { get then() { for (;;); } };', ...late },
  { name: 'an error whose message loops', body: 'throw { get message() { for (;;); } };', ...late },
  {
    name: 'an error whose stack loops',
    body: 'throw Object.defineProperty({}, "stack", { get() { for (;;); } });',
    ...late,
  },
  {
    name: 'an error whose message explodes',
    body: 'throw { toString: () => "x", get message() { return { toString: () => "x".repeat(2 ** 29 - 24) }; } };',
    refused: ['threw', ...outOfBounds],
  },
  {
    name: 'an error whose stack throws',
    body: 'throw { get stack() { throw 1; } };',
    refused: ['threw'],
    says: /threw an object\./,
  },
  {
    name: 'a symbol thrown',
    body: 'throw Symbol("x");',
    refused: ['threw'],
    says: /threw the value Symbol\(x\)/,
  },
  {
    name: 'symbols as fields and values',
    body: 'return { [Symbol("x")]: 1, a: Symbol("y"), b: 2 };',
    gives: { b: 2 },
  },
  {
    name: 'a BigInt in the output',
    body: 'return { a: 2n ** 64n };',
    refused: ['not_json'],
    says: /BigInt/,
  },
  {
    name: 'a cycle',
    body: 'const a = { b: {} }; a.b.a = a; return a;',
    refused: ['not_json'],
    says: /circular/,
  },
  {
    name: '__proto__ as a field',
    body: 'const a = {}; Object.defineProperty(a, "__proto__", { value: { b: 1 }, enumerable: true }); return { a };',
    gives: JSON.parse('{"a":{"__proto__":{"b":1}}}') as unknown,
  },
];

const escapes: Hostile[] = [
  {
    name: 'the process through the constructor of a constructor',
    body: 'return { a: ({}).constructor.constructor("return process")() };',
    refused: ['threw'],
    says: /on line 2/,
  },
  {
    name: 'the constructor of an iterator',
    body: 'return { a: [][Symbol.iterator]().next.constructor("return process")() };',
    refused: ['threw'],
    says: /on line 2/,
  },
  {
    name: 'the constructor of an asynchronous generator, by its prototype',
    body: 'return { a: Object.getPrototypeOf(async function* () {}).constructor("yield process")() };',
    refused: ['threw'],
    says: /on line 2/,
  },
  {
    name: 'the frames of the host through Error.prepareStackTrace',
    body: 'let f; Error.prepareStackTrace = (_, frames) => { f = frames; }; new Error("x").stack; return { a: f[0].getFunction() };',
    refused: ['threw'],
    says: /on line 2/,
  },
  {
    name: 'the caller',
    body: 'return { a: arguments.callee.caller };',
    refused: ['threw'],
    says: /'caller', 'callee', and 'arguments' properties may not be accessed/,
  },
  {
    name: 'a changed prototype',
    body: 'Object.prototype.got = 1; return {};',
    refused: ['threw'],
    says: /TypeError: .* on line 2/,
  },
  {
    name: 'a changed builtin',
    body: 'JSON.stringify = () => "{}"; return {};',
    refused: ['threw'],
    says: /TypeError: .* on line 2/,
  },
  {
    name: 'an array that answers for all arrays',
    body: '[].__proto__.toJSON = () => ({ got: 1 }); return {};',
    refused: ['threw'],
  },
];

const later: Hostile[] = [
  {
    name: 'a promise that loops afterwards',
    body: '(async () => { await 0; for (;;); })(); return {};',
    ...late,
  },
  {
    name: 'promises without end',
    body: 'const again = async () => { await 0; again(); }; again(); return {};',
    refused: outOfBounds,
  },
  {
    name: 'a promise that never settles',
    body: 'return (async () => { await { then() {} }; })();',
    refused: ['promise'],
    says: /returned a promise\. Nothing in the sandbox is asynchronous/,
  },
  { name: 'a thenable', body: 'return { then() { for (;;); } };', refused: ['promise'] },
  {
    name: 'a timer',
    body: 'setTimeout(() => { for (;;); }, 0); return {};',
    refused: ['threw'],
    says: /setTimeout is not a function on line 2\. .*there is no setTimeout/,
  },
  {
    name: 'a loop of microtasks',
    body: 'const f = () => queueMicrotask(f); f(); return {};',
    refused: ['threw'],
    says: /queueMicrotask is not a function on line 2\. .*there is no queueMicrotask/,
  },
];

const AT = 10;
const COUNT = 30;
const good = Array.from({ length: COUNT }, (_, n) => ({ got: n })).filter(({ got }) => got !== AT);

function shown(result: TransformResult | undefined): unknown {
  if (result?.kind === 'object') return JSON.parse(result.json);
  return result?.kind === 'array'
    ? result.items.map((item) => JSON.parse(item) as unknown)
    : result;
}

for (const { name, body, refused, says, gives } of [
  ...spins,
  ...fills,
  ...stacks,
  ...floods,
  ...tricks,
  ...escapes,
  ...later,
]) {
  test(`${name} is contained, and its neighbours are answered`, async () => {
    const text = `function transform(payload, message) {\n  if (payload.hostile) { ${body} }\n  return { got: payload.n };\n}`;
    const payloads = Array.from({ length: COUNT }, (_, n) =>
      JSON.stringify(n === AT ? { n, hostile: true } : { n }),
    );
    const startedAt = performance.now();
    let offenderMs = 0;
    const told = (index: number) => {
      if (index === AT) offenderMs = Math.round(performance.now() - startedAt);
    };
    const results = await within(
      sandbox.run({ key: name, text }, payloads, told),
      60 * DEADLINE_MS,
      `the end of ${name}`,
    );
    const allMs = Math.round(performance.now() - startedAt);
    const [result] = results.splice(AT, 1);
    console.log(
      `  ${offenderMs} ms, all ${allMs} ms: ${name}: ${result?.kind === 'refused' ? result.code : result?.kind}`,
    );
    if (refused) {
      assert.ok(
        result?.kind === 'refused',
        `it was taken: ${JSON.stringify(result).slice(0, 200)}`,
      );
      assert.ok(
        refused.includes(result.code),
        `it was refused as ${result.code}: ${result.reason}`,
      );
      assert.match(result.reason, says ?? /^\S.*\. \S.*\.$/);
    } else assert.equal(shown(result), gives);
    assert.ok(offenderMs < 30 * DEADLINE_MS, `it was refused after ${offenderMs} ms`);
    assert.equal(results.map(shown), good);
  });
}

test('after all of them the pool has its two processes and no others, and the host is what it was', async () => {
  await until('two processes', async () => (await guestProcesses()).length === 2);
  const [result] = await within(
    sandbox.run({ key: 'after', text: 'function transform(payload) { return payload; }' }, [
      '{"a":1}',
    ]),
    10_000,
    'an answer',
  );
  assert.equal(shown(result), { a: 1 });
  assert.is(sandbox.processes, 2);
  assert.equal(Object.keys(Object.prototype), []);
});

const spin = 'function transform() { for (;;); }';
const fill = 'function transform() { const all = []; for (;;) all.push({ a: [1, 2, 3] }); }';

/** Sorted durations in milliseconds of sequential calls of a good function. */
async function latencies(pool: Sandbox, count: number): Promise<number[]> {
  const neighbour = {
    key: 'neighbour',
    text: 'function transform(payload) { return { got: payload }; }',
  };
  const all: number[] = [];
  for (let n = 0; n < count; n += 1) {
    const startedAt = performance.now();
    const [result] = await within(pool.run(neighbour, [`${n}`]), 10_000, 'a neighbour');
    all.push(performance.now() - startedAt);
    assert.equal(shown(result), { got: n });
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  return all.sort((a, b) => a - b);
}

const p99 = (sorted: readonly number[]): number => sorted[Math.floor(sorted.length * 0.99)] ?? 0;

test('while two functions loop and fill the memory, call after call, the answers of a third come as quickly as before', async () => {
  const pool = new Sandbox({ deadlineMs: 100, processes: 2 });
  try {
    await latencies(pool, 100);
    const alone = p99(await latencies(pool, 500));
    let over = false;
    const hostile = [spin, fill].map(async (text) => {
      // Both are known after their first call, and then share one process.
      while (!over) await pool.run({ key: text, text }, ['1', '2']);
    });
    await pool.run({ key: spin, text: spin }, ['1']);
    await pool.run({ key: fill, text: fill }, ['1']);
    const beside = p99(await latencies(pool, 500));
    over = true;
    await within(Promise.all(hostile), 30_000, 'the hostile calls');
    console.log(
      `  p99 of a neighbour: ${alone.toFixed(2)} ms alone, ${beside.toFixed(2)} ms beside a loop and a memory bomb`,
    );
    // A neighbour that had to wait for a process would wait for a deadline, or for a start.
    assert.ok(beside < 5 * alone + 50, `${alone} ms alone, ${beside} ms beside them`);
  } finally {
    await pool.close();
  }
});

test('while a project loops in ten functions that are renewed all the time, a neighbour has its process and is tried at once', async () => {
  const pool = new Sandbox({ deadlineMs: 500, processes: 2 });
  const neighbour = {
    key: 'neighbour',
    text: 'function transform(payload) { return { got: payload }; }',
    project: 'good',
  };
  // Good at first, so that it is not isolated.
  const loop = 'function transform(n) { if (n > 1) for (;;); return {}; }';
  let over = false;
  try {
    await pool.run(neighbour, ['0']);
    const attack = Array.from({ length: 10 }, async (_, source) => {
      for (let version = 0; !over; version += 1) {
        const fn = { key: `${source}:${version}`, text: `${loop} // ${version}`, project: 'bad' };
        const ended = pool.run(fn, ['0', '1', '2', '3']).catch(() => undefined);
        await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 300))]);
        pool.cancel(fn.key, 'waiting');
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const waits: number[] = [];
    const firsts: number[] = [];
    for (let n = 0; n < 300; n += 1) {
      const fn = n % 60 === 30 ? { ...neighbour, key: `new ${n}` } : neighbour;
      const startedAt = performance.now();
      assert.equal((await within(pool.run(fn, [`${n}`]), 10_000, 'a neighbour')).map(shown), [
        { got: n },
      ]);
      (fn === neighbour ? waits : firsts).push(performance.now() - startedAt);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    over = true;
    await Promise.all(attack);
    const sorted = [waits, firsts].map((all) => all.sort((a, b) => a - b));
    const [most, first] = sorted.map((all) => all.at(-1) ?? 0) as [number, number];
    console.log(
      `  p99 of a neighbour ${p99(sorted[0]!).toFixed(1)} ms, at most ${most.toFixed(0)}; first calls at most ${first.toFixed(0)} ms`,
    );
    // The loops share one process: a call behind one of them waits for 700 ms.
    assert.ok(p99(sorted[0]!) < 250, `${p99(sorted[0]!)} ms`);
  } finally {
    over = true;
    await pool.close();
  }
});

async function residentMb(): Promise<number> {
  const kilobytes = (pid: number) => {
    const status = existsSync(`/proc/${pid}/status`)
      ? readFileSync(`/proc/${pid}/status`, 'utf8')
      : '';
    return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0);
  };
  return (await guestProcesses()).map(kilobytes).reduce((sum, each) => sum + each, 0) / 1024;
}

if (process.platform === 'linux')
  test('the memory of processes that functions have filled comes back within five seconds', async () => {
    const pool = new Sandbox({ deadlineMs: 30_000, memoryMb: 192, processes: 2 });
    try {
      const good = ['a', 'b'].map((key) => ({ key, text: 'function transform() { return {}; }' }));
      for (const fn of good) await pool.run(fn, ['1']);
      await until('both processes', () => pool.processes === 2);
      const before = await residentMb();
      let most = 0;
      const looking = setInterval(
        () => void residentMb().then((mb) => (most = Math.max(most, mb))),
        50,
      );
      const results = await within(
        Promise.all([1, 2, 3].map((n) => pool.run({ key: `fill ${n}`, text: fill }, ['1']))),
        60_000,
        'the fills',
      );
      clearInterval(looking);
      assert.equal(
        results.flat().map((result) => result.kind === 'refused' && result.code),
        ['memory', 'memory', 'memory'],
      );
      assert.ok(most > before + 100, `${most} MB at most, ${before} before`);
      await until('the memory to be back', async () => (await residentMb()) < before + 40, {
        withinMs: 5_000,
      });
    } finally {
      await pool.close();
    }
  });
else
  console.log(
    'skipped, it needs /proc: the memory of processes that functions have filled comes back within five seconds',
  );

test('after an overrun the pool is back to its strength at once, without anybody waiting for a start', async () => {
  const pool = new Sandbox({ deadlineMs: 100, processes: 2 });
  const busyMs = 30;
  const busy = (key: string) => ({
    key,
    text: `function transform() { const end = Date.now() + ${busyMs}; while (Date.now() < end); return {}; } // ${key}`,
  });
  /** The duration of concurrent calls on every process. */
  const allBusy = async () => {
    const startedAt = performance.now();
    await within(
      Promise.all(['a', 'b'].map((key) => pool.run(busy(key), ['1']))),
      10_000,
      'both processes',
    );
    return performance.now() - startedAt;
  };
  try {
    await allBusy();
    const before = await guestProcesses();
    const usualMs = await allBusy();
    await pool.run({ key: spin, text: spin }, ['1']);
    const backMs = Math.max(0, (await allBusy()) - usualMs);
    console.log(`  back to full strength ${Math.round(backMs)} ms after the refusal`);
    assert.ok(backMs < 3000, `${backMs} ms`);
    const after = await guestProcesses();
    assert.is(after.length, before.length, 'as many as before');
    assert.is(before.filter(alive).length, before.length - 1, 'one of them is another one');
  } finally {
    await pool.close();
  }
});

test('a function that had a process killed leaves room for others while it works, and has its whole deadline all the same', async () => {
  const pool = new Sandbox({ deadlineMs: 1000, processes: 2 });
  const text =
    'function transform(n) { if (n === 0) for (;;); let a = 0; for (let k = 0; k < n; k += 1) a = (a * 31 + k) % 1000003; return { a }; }';
  const others = await guestProcesses();
  /** The result of a call, and how often a process was seen stopped and running meanwhile. */
  const run = async (n: number) => {
    const seen = { stopped: 0, running: 0 };
    const mine = (await guestProcesses()).filter((pid) => !others.includes(pid));
    const timer = setInterval(() => {
      const states = mine.map(stateOf);
      if (states.includes('T')) seen.stopped += 1;
      else if (states.includes('R')) seen.running += 1;
    }, 3);
    const startedAt = performance.now();
    try {
      const [result] = await within(
        pool.run({ key: 'suspect', text }, [`${n}`]),
        20_000,
        'an answer',
      );
      return { ...seen, ms: performance.now() - startedAt, kind: result?.kind };
    } finally {
      clearInterval(timer);
    }
  };
  try {
    await run(1);
    const sample = 10_000_000;
    const { ms } = await run(sample);
    const quick = await run(sample);
    assert.equal([quick.stopped, quick.kind], [0, 'object'], 'nobody suspects it');
    // A third of its deadline, to leave enough on a busy machine.
    const third = Math.round((sample * 333) / Math.min(ms, quick.ms));
    assert.is((await run(0)).kind, 'refused');
    const slow = await run(third);
    console.log(
      `  a suspect's call of ${Math.round((third / sample) * Math.min(ms, quick.ms))} ms took ${Math.round(slow.ms)} ms`,
    );
    assert.is(slow.kind, 'object');
    if (process.platform === 'linux')
      assert.ok(
        slow.stopped > 5 && slow.running > 5,
        `seen ${slow.stopped} times stopped, ${slow.running} running`,
      );
    assert.ok(!(await guestProcesses()).map(stateOf).includes('T'), 'it is let go');
    assert.is((await run(1)).kind, 'object');
  } finally {
    await pool.close();
  }
});

test('calls that each end their process lose no place in the pool', async () => {
  const pool = new Sandbox({ deadlineMs: 10, processes: 3 });
  try {
    const others = (await guestProcesses()).length;
    const keys = ['a', 'b', 'c', 'd'];
    const good = { key: 'good', text: 'function transform() { return {}; }' };
    await pool.run(good, ['1']);
    await pool.run({ ...good, key: 'other' }, ['1']);
    const many = Array.from({ length: 500 }, () => '1');
    await within(
      Promise.all([pool.run(good, many), pool.run({ ...good, key: 'other' }, many)]),
      30_000,
      'work for three',
    );
    assert.is(pool.processes, 3);
    const run = (key: string) => pool.run({ key, text: `${spin} // ${key}` }, ['1', '2', '3']);
    for (let round = 0; round < 2; round += 1) {
      const results = await within(Promise.all(keys.map(run)), 60_000, 'the overruns');
      assert.ok(
        results.flat().every((result) => result.kind === 'refused' && result.code === 'timeout'),
      );
    }
    await until(
      'all places to be taken again',
      async () => (await guestProcesses()).length === others + 3,
    );
    assert.is(pool.processes, 3);
    assert.is((await latencies(pool, 20)).length, 20);
  } finally {
    await pool.close();
  }
});

test('results come one by one: after an overrun its neighbours in the batch do not wait for the next one', async () => {
  const pool = new Sandbox({ deadlineMs: 200, processes: 2 });
  try {
    const text =
      'function transform(payload) { while (payload === 5 || payload === 8); return { got: payload }; }';
    const fn = { key: text, text };
    await pool.run(fn, ['0']);
    const order: number[] = [];
    await pool.run(
      fn,
      Array.from({ length: 10 }, (_, n) => `${n}`),
      (index) => order.push(index),
    );
    // On a busy machine the function is suspected from the start, and 0 to 4 precede 5.
    assert.equal(
      order.toSorted((a, b) => a - b),
      Array.from({ length: 10 }, (_, n) => n),
    );
    assert.equal(order.slice(8), [8, 9], 'all others come before the second overrun');
  } finally {
    await pool.close();
  }
});

test('a function that is cancelled is answered no more, gives its process back, and hurts nobody', async () => {
  const pool = new Sandbox({ deadlineMs: 60_000, processes: 2 });
  try {
    const text = 'function transform(payload) { while (payload > 0); return {}; }';
    await within(pool.run({ key: 'spin', text }, ['0']), 10_000, 'an answer');
    const before = await guestProcesses();
    const runs = [1, 2].map(() =>
      pool.run({ key: 'spin', text }, ['1', '2', '3']).then(
        () => 'answered',
        (error: unknown) => (error as Error).message,
      ),
    );
    pool.cancel('spin');
    assert.equal(await within(Promise.all(runs), 1000, 'the rejections'), [
      'The run was cancelled.',
      'The run was cancelled.',
    ]);
    await until('its process to be another one', async () => {
      const now = await guestProcesses();
      return now.length >= before.length && before.filter((pid) => !now.includes(pid)).length === 1;
    });
    assert.is((await latencies(pool, 20)).length, 20);
  } finally {
    await pool.close();
  }
});

test.run();
