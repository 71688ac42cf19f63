import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import ts from 'typescript';
import * as keeper from '../support/start/keep.js';
import { files, nodes, parse, root } from './house.js';

const runs = suite('meta/runs');

const { runFiles } = (await import(
  pathToFileURL(path.join(root, 'scripts/test/run-file.mjs')).href
)) as {
  runFiles(
    tests: readonly { readonly name: string; readonly file: string; readonly deadlineMs: number }[],
    options: {
      readonly env: NodeJS.ProcessEnv;
      readonly signal: AbortSignal;
      readonly skipsFail: boolean;
      readonly keeper: typeof keeper;
    },
  ): Promise<{ passed: number; failed: number; problems: string[]; output: string }[]>;
};

interface Declared {
  readonly file: string;
  /** Variable and name of each suite. */
  readonly suites: ReadonlyMap<string, string>;
  /** Variables with a call of `.run()`. */
  readonly run: ReadonlySet<string>;
  /** Names of tests that are literals. */
  readonly tests: readonly string[];
  readonly only: boolean;
}

const declared = files()
  .filter((name) => name.startsWith('test/') && name.endsWith('.test.ts'))
  .map(read);

runs('there are tests', () => {
  assert.ok(declared.length > 0);
  assert.ok(declared.flatMap(({ tests }) => tests).length > 0);
});

runs('every test file has one suite, named by its path', () => {
  const wrong = declared.filter(
    ({ file, suites }) =>
      ![...suites.values()].every((name) => name === nameOf(file)) || suites.size !== 1,
  );
  assert.equal(
    wrong.map(
      ({ file, suites }) =>
        `${file}: suite ${[...suites.values()].join(', ') || 'missing'}, not ${nameOf(file)}`,
    ),
    [],
  );
});

runs('every suite is run: uvu says nothing about one that is not', () => {
  const forgotten = declared.flatMap(({ file, suites, run }) =>
    [...suites.keys()].filter((suite) => !run.has(suite)).map(() => file),
  );
  assert.equal(forgotten, []);
});

runs('no two tests of a suite have the same name', () => {
  const twice = declared.flatMap(({ file, tests }) =>
    tests.filter((name, at) => tests.indexOf(name) !== at).map((name) => `${file}: ${name}`),
  );
  assert.equal(twice, []);
});

runs('no test is marked with only: the others of its file would be left out', () => {
  assert.equal(
    declared.filter(({ only }) => only).map(({ file }) => file),
    [],
  );
});

runs(
  'files of one process keep the output and the result of each, however loud another is',
  async () => {
    const folder = path.join(root, '.tests', `loud-${process.pid}`);
    const file = (name: string, lines: string) => {
      fs.writeFileSync(
        path.join(folder, `${name}.js`),
        `import { suite } from 'uvu'; const it = suite('${name}'); ${lines} it.run();`,
      );
      const source = path.join(root, 'test', path.basename(folder), `${name}.ts`);
      return { name, file: source, deadlineMs: 30_000 };
    };
    fs.mkdirSync(folder);
    try {
      const results = await runFiles(
        [
          file('first', "it('fails', () => { throw new Error('of the first'); });"),
          file('loud', "it('passes', () => { process.stdout.write('x'.repeat(3_000_000)); });"),
          file(
            'last',
            "it('passes', () => {}); it('fails', () => { throw new Error('of the last'); });",
          ),
        ],
        { env: process.env, signal: new AbortController().signal, skipsFail: true, keeper },
      );
      assert.equal(
        results.map(({ passed, failed, problems }) => [passed, failed, problems]),
        [
          [0, 1, []],
          [1, 0, []],
          [1, 1, []],
        ],
      );
      assert.match(results[0]!.output, 'of the first');
      assert.match(results[2]!.output, 'of the last');
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  },
);

runs.run();

/** `test/agent/route.test.ts` is the suite `agent/route`. */
function nameOf(file: string): string {
  return file.slice('test/'.length, -'.test.ts'.length);
}

function read(file: string): Declared {
  const suites = new Map<string, string>();
  const run = new Set<string>();
  const tests: string[] = [];
  /** Functions that declare tests instead of the suite. */
  const beside = new Set<string>();
  let only = false;
  for (const node of nodes(parse(file))) {
    if (
      ts.isVariableDeclaration(node) &&
      ts.isIdentifier(node.name) &&
      node.initializer &&
      isCallOf(node.initializer, 'suite')
    )
      suites.set(node.name.text, textOf(node.initializer.arguments[0]) ?? 'without a plain name');
    if (
      ts.isVariableDeclaration(node) &&
      ts.isIdentifier(node.name) &&
      node.initializer &&
      isCallOf(node.initializer, 'together')
    )
      beside.add(node.name.text);
    if (!ts.isCallExpression(node)) continue;
    const { expression } = node;
    const name = textOf(node.arguments[0]);
    const declares =
      ts.isIdentifier(expression) && (suites.has(expression.text) || beside.has(expression.text));
    if (declares && name !== undefined) tests.push(name);
    if (
      !ts.isPropertyAccessExpression(expression) ||
      !ts.isIdentifier(expression.expression) ||
      !suites.has(expression.expression.text)
    )
      continue;
    if (expression.name.text === 'run') run.add(expression.expression.text);
    if (expression.name.text === 'only') only = true;
  }
  return { file, suites, run, tests, only };
}

function isCallOf(node: ts.Expression, name: string): node is ts.CallExpression {
  return (
    ts.isCallExpression(node) && ts.isIdentifier(node.expression) && node.expression.text === name
  );
}

function textOf(node: ts.Expression | undefined): string | undefined {
  return node && ts.isStringLiteralLike(node) ? node.text : undefined;
}
