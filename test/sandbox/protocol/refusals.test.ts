import { setTimeout as sleep } from 'node:timers/promises';
import { REFUSALS, Sandbox, type RefusalCode } from '@gateway/sandbox';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { within } from '../../support/until.js';
import { alive, guestProcesses } from '../processes.js';

const test = suite('sandbox/protocol/refusals');

const sandbox = new Sandbox({ processes: 1, deadlineMs: 400, maxOutputBytes: 10_000 });
test.after(() => sandbox.close());

interface Case {
  name: string;
  text: string;
  payload?: string;
  code: RefusalCode;
  says: RegExp;
}

const seen = new Set<RefusalCode>();

const cases: Case[] = [
  {
    name: 'a syntax error is refused with its line',
    text: 'function transform(payload) {\n  return { a: 1, ;\n}',
    code: 'not_compiled',
    says: /does not compile: Unexpected token ';' on line 2\./,
  },
  {
    name: 'a text that closes our braces is refused',
    text: '}); globalThis.leak = 1; (function () { return function transform() { return {}; };',
    code: 'not_compiled',
    says: /Unexpected token '\}' on line 1\./,
  },
  {
    name: 'a module is told to be a plain function',
    text: 'export default function transform(payload) { return {}; }',
    code: 'not_compiled',
    says: /Unexpected token 'export' on line 1\. A transform is not a module/,
  },
  {
    name: 'import with a bracket in a string is refused with its line',
    text: 'function transform() {\n\n  return { note: "import(x)" };\n}',
    code: 'not_compiled',
    says: /The text has import\( on line 3, which is not allowed even in strings and comments\./,
  },
  {
    name: 'eval with a bracket in a comment is refused with its line',
    text: '// no eval(x) here\nfunction transform() { return {}; }',
    code: 'not_compiled',
    says: /The text has eval\( on line 1,/,
  },
  {
    name: 'the start of an HTML comment is refused with its line',
    text: 'function transform() {\n  return { html: "<!-- x" };\n}',
    code: 'not_compiled',
    says: /The text has <!-- or --> on line 2,/,
  },
  {
    name: 'a text that names another source in a comment still gets its own lines',
    text: '//# sourceURL=other.js\nfunction transform() {\n  throw new Error("odd");\n}',
    code: 'threw',
    says: /Error: odd on line 3\./,
  },
  {
    name: 'a text longer than a function may be is refused',
    text: `function transform() { return {}; } // ${'x'.repeat(300_000)}`,
    code: 'not_compiled',
    says: /has 300\d\d\d characters, and 262144 are allowed\./,
  },
  {
    name: 'an empty text defines no transform',
    text: '',
    code: 'no_transform',
    says: /defines no function with the name transform\. Write: function/,
  },
  {
    name: 'a function with another name is no transform',
    text: 'function transfrom() { return {}; }',
    code: 'no_transform',
    says: /defines no function/,
  },
  {
    name: 'a transform that is no function is refused',
    text: 'const transform = "x";',
    code: 'no_transform',
    says: /transform is a text, not a function\./,
  },
  {
    name: 'an error is told with its message and its line',
    text: 'function transform(payload) {\n  const order = payload.order;\n  return { id: order.id };\n}',
    code: 'threw',
    says: /threw TypeError: Cannot read properties of undefined \(reading 'id'\) on line 3\./,
  },
  {
    name: 'an error of a builtin has the line that called it',
    text: 'function transform(payload) {\n  return JSON.parse("{");\n}',
    code: 'threw',
    says: /threw SyntaxError: .* on line 2\./,
  },
  {
    name: 'a thrown value that is no error is told',
    text: 'function transform() { throw 42; }',
    code: 'threw',
    says: /threw the value 42\./,
  },
  {
    name: 'a thrown object is told',
    text: 'function transform() { throw {}; }',
    code: 'threw',
    says: /threw an object\./,
  },
  {
    name: 'a thrown object whose message throws is told',
    text: 'function transform() { throw { get message() { throw this; } }; }',
    code: 'threw',
    says: /threw something that cannot be shown\./,
  },
  {
    name: 'a thrown message is cut, and control characters are taken out',
    text: 'function transform() { throw new Error("a\\n\\u001b[31m" + "x".repeat(5000)); }',
    code: 'threw',
    says: /^The function threw Error: a \[31mx{280,300}… on line 1\. Change the function/,
  },
  {
    name: 'an error at the top of the text is told',
    text: 'const table = null.x;\nfunction transform() { return {}; }',
    code: 'threw',
    says: /before transform could be called: TypeError: .* on line 1\./,
  },
  {
    name: 'a global that is absent is named',
    text: 'function transform() {\n  return fetch("http://x");\n}',
    code: 'threw',
    says: /fetch is not a function on line 2\. .*there is no fetch\./,
  },
  {
    name: 'deep recursion is an error of the function',
    text: 'function transform(payload) { return transform(payload); }',
    code: 'threw',
    says: /threw RangeError: Maximum call stack size exceeded/,
  },
  {
    name: 'a loop is a timeout',
    text: 'function transform() { for (;;); }',
    code: 'timeout',
    says: /did not return within its deadline of 400 ms[.,]/,
  },
  {
    name: 'an output over the limit is told with its size',
    text: 'function transform() { return { a: "ü".repeat(6000) }; }',
    code: 'output_too_large',
    says: /an object of 12008 bytes as JSON text, and 10000 are allowed\./,
  },
  {
    name: 'the items of an array count together',
    text: 'function transform() { return [{ a: "x".repeat(6000) }, { a: "x".repeat(6000) }]; }',
    code: 'output_too_large',
    says: /Item 1 of the array/,
  },
  {
    name: 'an array with too many items is refused',
    text: 'function transform() { return new Array(10001).fill({}); }',
    code: 'output_too_large',
    says: /array of 10001 items, and 10000 are allowed\./,
  },
  {
    name: 'an async function is told that nothing here waits',
    text: 'async function transform() { return {}; }',
    code: 'promise',
    says: /returned a promise\. .*remove async/,
  },
  {
    name: 'a thenable is a promise',
    text: 'function transform() { return { then() {} }; }',
    code: 'promise',
    says: /returned a promise/,
  },
  {
    name: 'a promise in an array is told with its place',
    text: 'const transform = () => [{}, (async () => ({}))()];',
    code: 'promise',
    says: /Item 1 of the array .* is a promise\./,
  },
  {
    name: 'nothing returned asks for a return',
    text: 'function transform() {}',
    code: 'not_an_object',
    says: /returned nothing \(undefined\)\. Is a return missing\?/,
  },
  {
    name: 'a text is no object',
    text: 'function transform() { return "{}"; }',
    code: 'not_an_object',
    says: /returned a text\./,
  },
  {
    name: 'a number is no object',
    text: 'function transform() { return 1; }',
    code: 'not_an_object',
    says: /returned a number\./,
  },
  {
    name: 'a BigInt is no object',
    text: 'function transform() { return 1n; }',
    code: 'not_an_object',
    says: /returned a bigint\./,
  },
  {
    name: 'a function is no object',
    text: 'function transform() { return transform; }',
    code: 'not_an_object',
    says: /returned a function\./,
  },
  {
    name: 'a Map would lose its entries',
    text: 'function transform() { return new Map([[1, 2]]); }',
    code: 'not_an_object',
    says: /returned a Map\./,
  },
  {
    name: 'a Date is no object',
    text: 'function transform() { return new Date(0); }',
    code: 'not_an_object',
    says: /returned a Date\./,
  },
  {
    name: 'an item that is no object is told with its place',
    text: 'function transform() { return [{}, 5]; }',
    code: 'not_an_object',
    says: /Item 1 of the array that the function returned is a number\./,
  },
  {
    name: 'an item that is null is told',
    text: 'function transform() { return [null]; }',
    code: 'not_an_object',
    says: /Item 0 of the array that the function returned is null\./,
  },
  {
    name: 'an array in an array is told',
    text: 'function transform() { return [[{}]]; }',
    code: 'not_an_object',
    says: /Item 0 of the array that the function returned is an array\./,
  },
  {
    name: 'toJSON that gives a text is no object',
    text: 'function transform() { return { toJSON: () => "x" }; }',
    code: 'not_an_object',
    says: /toJSON gave no object/,
  },
  {
    name: 'a BigInt inside has no JSON text',
    text: 'function transform() { return { a: 1n }; }',
    code: 'not_json',
    says: /no JSON text: TypeError: Do not know how to serialize a BigInt/,
  },
  {
    name: 'a cycle has no JSON text',
    text: 'function transform() { const a = {}; a.a = a; return a; }',
    code: 'not_json',
    says: /no JSON text: TypeError: Converting circular structure/,
  },
  {
    name: 'toJSON that gives nothing has no JSON text',
    text: 'function transform() { return { toJSON() {} }; }',
    code: 'not_json',
    says: /toJSON gave nothing/,
  },
  {
    name: 'a getter that throws has no JSON text',
    text: 'function transform() { return {\n get a() { throw new Error("odd"); } }; }',
    code: 'not_json',
    says: /no JSON text: Error: odd on line 2/,
  },
  {
    name: 'an output that is nested too deep has no JSON text',
    text: 'function transform() { let a = {}; for (let i = 0; i < 200000; i += 1) a = { a }; return a; }',
    code: 'not_json',
    says: /no JSON text: RangeError: Maximum call stack size exceeded/,
  },
];

for (const { name, text, code, says } of cases) {
  test(name, async () => {
    const [result] = await within(
      sandbox.run({ key: text, text }, ['{"a":1}']),
      30_000,
      'a refusal',
    );
    assert.is(result?.kind === 'refused' ? result.code : result?.kind, code);
    assert.match(result?.kind === 'refused' ? result.reason : '', says);
    seen.add(code);
  });
}

test('a function that fills its memory is refused', async () => {
  const small = new Sandbox({ processes: 1, memoryMb: 32, deadlineMs: 60_000 });
  try {
    const text = 'function transform() { const all = []; for (;;) all.push({ a: [1, 2, 3] }); }';
    const [result] = await within(small.run({ key: 'memory', text }, ['1']), 60_000, 'a refusal');
    assert.is(result?.kind === 'refused' ? result.code : result?.kind, 'memory');
    assert.match(
      result?.kind === 'refused' ? result.reason : '',
      /exceeded its memory limit of 32 MB/,
    );
    seen.add('memory');
  } finally {
    await small.close();
  }
});

test('a payload too large for the memory is refused, not tried for ever', async () => {
  const small = new Sandbox({ processes: 1, memoryMb: 16, deadlineMs: 60_000 });
  try {
    const text = 'function transform(payload) { return { count: payload.length }; }';
    const large = JSON.stringify(Array.from({ length: 1_500_000 }, (_, index) => `${index} ü`));
    const [first, second] = await within(
      small.run({ key: 'large', text }, [large, '[1]']),
      60_000,
      'a refusal',
    );
    assert.is(first?.kind === 'refused' ? first.code : first?.kind, 'memory');
    assert.is(second?.kind === 'object' && second.json, '{"count":1}');
  } finally {
    await small.close();
  }
});

test('a call whose process dies again and again without a reason is refused', async () => {
  const slow = new Sandbox({ processes: 1, deadlineMs: 60_000 });
  try {
    const text = 'function transform(payload) { while (payload === 1); return { payload }; }';
    const others = await guestProcesses();
    const killUntilAnswered = async (answered: () => boolean): Promise<void> => {
      while (!answered()) {
        const pids = (await guestProcesses()).filter((pid) => !others.includes(pid));
        // Long enough for a process to start and receive the call.
        await sleep(1500);
        for (const pid of pids) if (!answered() && alive(pid)) process.kill(pid, 'SIGKILL');
      }
    };
    let answered = false;
    const run = slow.run({ key: 'crash', text }, ['0', '1', '2']).finally(() => (answered = true));
    const [results] = await within(
      Promise.all([run, killUntilAnswered(() => answered)]),
      60_000,
      'a refusal',
    );
    const [before, crashed, after] = results;
    assert.is(before?.kind === 'object' && before.json, '{"payload":0}');
    assert.is(crashed?.kind === 'refused' ? crashed.code : crashed?.kind, 'crashed');
    assert.is(after?.kind === 'object' && after.json, '{"payload":2}');
    seen.add('crashed');
  } finally {
    await slow.close();
  }
});

test('every refusal of the table was seen here', () => {
  assert.equal(
    Object.keys(REFUSALS).filter((code) => !seen.has(code as RefusalCode)),
    [],
  );
});

test.run();
