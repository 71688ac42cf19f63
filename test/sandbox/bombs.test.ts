import { Sandbox, type RefusalCode, type TransformResult } from '@gateway/sandbox';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { within } from '../support/until.js';

// Functions that are out to break the sandbox, its other functions or its host. Each stands in the middle of a batch of good payloads:
// it has to be contained, and its neighbours have to be answered. How long each took is printed: two to three deadlines at most on an
// idle machine; the test itself waits longer, because a busy one is no failure.

const test = suite('sandbox/bombs');

const DEADLINE_MS = 500;
const sandbox = new Sandbox({ deadlineMs: DEADLINE_MS, memoryMb: 64 });
test.after(() => sandbox.close());

const killed: RefusalCode[] = ['timeout', 'memory'];

interface Bomb {
  name: string;
  /** Statements; `payload.bomb` is true where they are run. */
  body: string;
  /** The refusals that contain it. Where memory and time run out together, either will do. */
  codes: RefusalCode[];
}

const bombs: Bomb[] = [
  { name: 'a loop', body: 'for (;;);', codes: ['timeout'] },
  {
    name: 'a loop that catches everything',
    body: 'for (;;) try { for (;;); } catch { continue; } finally { continue; }',
    codes: ['timeout'],
  },
  { name: 'an array that grows', body: 'const all = []; for (;;) all.push({ a: [1, 2, 3] });', codes: killed },
  { name: 'a huge array joined', body: 'return { a: new Array(3e8).fill("x").join("y") };', codes: killed },
  {
    name: 'huge sparse arrays as texts',
    body: 'const all = []; for (;;) { const s = String(new Array(2 ** 28)); all.push(s, s.charCodeAt(2 ** 27)); }',
    codes: [...killed, 'threw'],
  },
  { name: 'a huge array filled at once', body: 'return new Array(4e9 | 0).fill({});', codes: [...killed, 'threw', 'output_too_large'] },
  { name: 'a string that doubles', body: 'let s = "x"; for (;;) { s += s; s.charCodeAt(s.length >> 1); }', codes: [...killed, 'threw'] },
  { name: 'many strings that double', body: 'const all = []; for (;;) all.push("ab".repeat(1e6).split("").join("-"));', codes: killed },
  { name: 'arrays in arrays', body: 'let a = []; for (;;) a = [a, a, [a]];', codes: killed },
  { name: 'a regular expression that backtracks', body: 'return { a: /^(a+)+$/.test("a".repeat(40) + "b") };', codes: ['timeout'] },
  { name: 'a replacement that multiplies', body: 'let s = "aaaa"; for (;;) s = s.replace(/a/g, "aaaaaaaa");', codes: [...killed, 'threw'] },
  { name: 'recursion without end', body: 'return transform(payload);', codes: ['threw'] },
  {
    name: 'recursion that catches its own end',
    body: 'const f = () => { try { f(); } finally { f(); } }; f();',
    codes: ['timeout', 'threw'],
  },
  {
    name: 'an output of hundreds of megabytes',
    body: 'return { a: new Array(100).fill("x".repeat(1e6)) };',
    codes: [...killed, 'output_too_large'],
  },
  { name: 'an output just over the limit', body: 'return { a: "x".repeat(1024 * 1024) };', codes: ['output_too_large'] },
  { name: 'a flood of the console', body: 'for (;;) console.log("x".repeat(1000), payload);', codes: ['timeout'] },
  {
    name: 'a console line that explodes',
    body: 'const a = []; for (let i = 0; i < 50; i += 1) a.push(a.slice()); console.log(a); return { a: 1n };',
    codes: [...killed, 'not_json'],
  },
  { name: 'a getter that loops', body: 'return { get a() { for (;;); } };', codes: ['timeout'] },
  { name: 'a toJSON that loops', body: 'return { toJSON() { for (;;); } };', codes: ['timeout'] },
  {
    name: 'a toJSON that returns itself anew',
    body: 'const f = () => ({ a: { toJSON: f } }); return f();',
    codes: ['not_json', ...killed],
  },
  { name: 'a Proxy that loops when it is looked at', body: 'return new Proxy({}, { get() { for (;;); } });', codes: ['timeout'] },
  { name: 'a Proxy with fields without end', body: 'return new Proxy({}, { ownKeys() { for (;;); } });', codes: ['timeout'] },
  {
    name: 'a Proxy of an array that loops',
    body: 'return new Proxy([], { get(_, key) { if (key === "length") return 1; for (;;); } });',
    codes: ['timeout'],
  },
  { name: 'a thenable that loops', body: 'return { get then() { for (;;); } };', codes: ['timeout'] },
  { name: 'an error whose message loops', body: 'throw { get message() { for (;;); } };', codes: ['timeout'] },
  {
    name: 'an error whose message explodes',
    body: 'throw { toString: () => "x", get message() { return { toString: () => "x".repeat(2 ** 29 - 24) }; } };',
    codes: ['threw', ...killed],
  },
  { name: 'a promise that loops afterwards', body: '(async () => { await 0; for (;;); })(); return {};', codes: ['timeout'] },
  { name: 'promises without end', body: 'const again = async () => { await 0; again(); }; again(); return {};', codes: killed },
  {
    name: 'a generator without end',
    body: 'function* forever() { for (;;) yield 1; } return { a: [...forever()] };',
    codes: [...killed, 'threw'],
  },
  { name: 'a sort that never agrees', body: 'return { a: new Array(1e6).fill(1).sort(() => { for (;;); }) };', codes: ['timeout'] },
  { name: 'a BigInt that grows', body: 'let n = 2n; for (;;) n = n * n;', codes: [...killed, 'threw'] },
  { name: 'a Map that grows', body: 'const all = new Map(); for (let i = 0; ; i += 1) all.set(i, {});', codes: [...killed, 'threw'] },
  { name: 'a symbol registry that grows', body: 'for (let i = 0; ; i += 1) Symbol.for("s" + i);', codes: killed },
  {
    name: 'a tail of a text kept from a large one',
    body: 'const all = []; for (;;) all.push(("x".repeat(1e6) + all.length).slice(-20));',
    codes: killed,
  },
];

function good(results: readonly TransformResult[]): unknown[] {
  return results.map((result) => (result.kind === 'object' ? JSON.parse(result.json) : result));
}

for (const { name, body, codes } of bombs) {
  test(`${name} is contained, and its neighbours are answered`, async () => {
    const text = `function transform(payload) {\n  if (payload.bomb) { ${body} }\n  return { got: payload.n };\n}`;
    const payloads = Array.from({ length: 30 }, (_, n) => JSON.stringify(n === 10 ? { n, bomb: true } : { n }));
    const startedAt = performance.now();
    const results = await within(sandbox.run({ key: name, text }, payloads), 60 * DEADLINE_MS, `the end of ${name}`);
    const tookMs = Math.round(performance.now() - startedAt);
    const [bomb] = results.splice(10, 1);
    console.log(`  ${tookMs} ms: ${name}: ${bomb?.kind === 'refused' ? bomb.code : bomb?.kind}`);
    assert.ok(bomb?.kind === 'refused', `it was taken: ${JSON.stringify(bomb).slice(0, 200)}`);
    assert.ok(codes.includes(bomb.code), `it was refused as ${bomb.code}: ${bomb.reason}`);
    assert.equal(
      good(results),
      Array.from({ length: 30 }, (_, n) => ({ got: n })).filter(({ got }) => got !== 10),
    );
  });
}

test('after all of them the sandbox answers at once, and the host is what it was', async () => {
  const text = 'function transform(payload) { return payload; }';
  const results = await within(sandbox.run({ key: 'after', text }, ['{"a":1}']), 10_000, 'an answer');
  assert.equal(good(results), [{ a: 1 }]);
  assert.equal(Object.keys(Object.prototype), []);
});

test.run();
