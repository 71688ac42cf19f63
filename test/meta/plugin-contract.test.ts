import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { API_VERSION } from '@gateway/plugin/manifest';

/**
 * Compares the exported types of `@gateway/plugin` and, as `conformance`, of its suites, a line per
 * export and member, with the last version in `test/fixtures/plugin-contract.txt`. After a change,
 * raise `API_VERSION` as the test requests, then rewrite the file with
 * `UPDATE=1 node --import tsx test/meta/plugin-contract.test.ts`. The file marks a version as
 * `unreleased` until its release removes the word; until then the version accepts further changes
 * of its part.
 */
const contract = suite('meta/plugin-contract');

const root = fileURLToPath(new URL('../..', import.meta.url));
const file = path.join(root, 'test/fixtures/plugin-contract.txt');

/** The entries of a package: `.` and `./manifest`. */
function entriesOf(place: string): [string, string][] {
  const folder = path.join(root, place);
  const { exports } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8')) as {
    readonly exports: Readonly<Record<string, { readonly types: string }>>;
  };
  return Object.entries(exports).map(([entry, { types }]) => [entry, path.join(folder, types)]);
}

/**
 * Types that plugins receive: an additional member breaks no plugin. Plugins implement the others,
 * which accept only optional additional members.
 */
const GIVEN = /(Context|Host|Log|Handle)$/;

/** `. SourceContext.window: number`: the entry, the export, its member and the type. */
function linesOf(entry: string, types: string): string[] {
  const program = ts.createProgram([types], {
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
  });
  const checker = program.getTypeChecker();
  const printer = ts.createPrinter({ removeComments: true });
  const text = (node: ts.Node) =>
    printer.printNode(ts.EmitHint.Unspecified, node, node.getSourceFile()).replaceAll(/\s+/g, ' ');
  const source = checker.getSymbolAtLocation(program.getSourceFile(types)!)!;
  return checker.getExportsOfModule(source).flatMap((symbol) => {
    const it = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
    return (it.declarations ?? []).flatMap((node) => {
      if (!ts.isInterfaceDeclaration(node) && !ts.isClassDeclaration(node)) {
        // Its value is the version itself.
        return symbol.name === 'API_VERSION'
          ? [`${entry} API_VERSION`]
          : [`${entry} ${symbol.name} = ${text(node)}`];
      }
      const head = [...(node.typeParameters ?? []), ...(node.heritageClauses ?? [])]
        .map(text)
        .join(' ');
      const kind = ts.isClassDeclaration(node) ? 'class' : 'interface';
      const members = node.members.filter((member) => !/^(private|#)/.test(text(member)));
      return [
        `${entry} ${symbol.name} = ${kind} ${head}`.trim(),
        ...members.map((member) => `${entry} ${symbol.name}.${text(member)}`),
      ];
    });
  });
}

const suites = entriesOf('extras/plugin-conformance').map(([, types]): [string, string] => [
  'conformance',
  types,
]);
const current = [...entriesOf('packages/plugin'), ...suites]
  .flatMap(([entry, types]) => linesOf(entry, types))
  .sort();

/** The part of the version that a change raises, and why. */
function needed(
  before: readonly string[],
  now: readonly string[],
): { raises: 'major' | 'minor' | undefined; because: string[] } {
  const gone = before.filter((line) => !now.includes(line));
  const come = now.filter((line) => !before.includes(line));
  const exportOf = (line: string) =>
    line.split(/[ .]/, 3).slice(0, 2).join(' ') + ` ${nameOf(line)}`;
  const known = new Set(before.map(exportOf));
  const demanded = come.filter((line) => {
    const [, member = ''] = /^\S+ \w+\.(.*)$/.exec(line) ?? [];
    const isOptional = /^(readonly )?\w+\?/.test(member);
    return (
      member !== '' &&
      known.has(exportOf(line)) &&
      !isOptional &&
      !GIVEN.test(nameOf(line)) &&
      !isClass(line, now)
    );
  });
  const broken = [
    ...gone.map((line) => `gone or changed: ${line}`),
    ...demanded.map((line) => `now demanded: ${line}`),
  ];
  if (broken.length > 0) return { raises: 'major', because: broken };
  return {
    raises: come.length > 0 ? 'minor' : undefined,
    because: come.map((line) => `new: ${line}`),
  };
}

const nameOf = (line: string) => /^\S+ (\w+)/.exec(line)![1]!;
const isClass = (line: string, lines: readonly string[]) =>
  lines.some((it) => it.includes(` ${nameOf(line)} = class`));

/**
 * True if the version is raised sufficiently from the file's, such as `2.0.0` or
 * `2.0.0 unreleased`.
 */
function allows(from: string, to: string, raises: 'major' | 'minor' | undefined): boolean {
  if (from === `${to} unreleased`) return raises !== 'major' || to.endsWith('.0.0');
  const [[major, minor], [nextMajor, nextMinor]] = [from, to].map((it) =>
    it.split('.').map(Number),
  ) as [[number, number], [number, number]];
  if (raises === undefined || nextMajor > major) return true;
  return raises === 'minor' && nextMajor === major && nextMinor > minor;
}

contract('the version of the plugin API is raised by what changed since the last one', () => {
  const [version = '', ...before] = fs.readFileSync(file, 'utf8').trimEnd().split('\n');
  const { raises, because } = needed(before, current);
  const sentence = `raise the ${raises} version of API_VERSION from ${version}; it is ${API_VERSION}:\n${because.join('\n')}`;
  assert.ok(allows(version, API_VERSION, raises), sentence);
  if (process.env['UPDATE'])
    fs.writeFileSync(file, `${[`${API_VERSION} unreleased`, ...current].join('\n')}\n`);
  else
    assert.equal(
      [API_VERSION, ...current],
      [version.split(' ')[0], ...before],
      'write the file anew, as the comment above says',
    );
});

contract('what goes or changes is major, and so is a demand; an addition is minor', () => {
  const before = [
    '. A = interface',
    '. A.read(): void;',
    '. RunContext = interface',
    '. f = function f(): void;',
  ];
  const change = (gone: number[], ...come: string[]) =>
    needed(before, [...before.filter((_, at) => !gone.includes(at)), ...come]).raises;
  assert.is(change([]), undefined);
  assert.is(change([3]), 'major');
  assert.is(change([1], '. A.read(how: string): void;'), 'major');
  assert.is(change([], '. A.write(): void;'), 'major');
  assert.is(change([], '. A.write?(): void;'), 'minor');
  assert.is(change([], '. RunContext.more: string;'), 'minor');
  assert.is(change([], '. B = interface', '. B.read(): void;'), 'minor');
  assert.equal(
    [
      allows('2.0.0', '2.0.1', 'minor'),
      allows('2.0.0', '2.1.0', 'minor'),
      allows('2.0.0', '2.1.0', 'major'),
    ],
    [false, true, false],
  );
  const unreleased = [
    allows('2.0.0 unreleased', '2.0.0', 'major'),
    allows('2.1.0 unreleased', '2.1.0', 'minor'),
  ];
  assert.equal([...unreleased, allows('2.1.0 unreleased', '2.1.0', 'major')], [true, true, false]);
});

contract.run();
