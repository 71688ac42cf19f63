// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { transform } from 'esbuild';
import { pathToFileURL } from 'node:url';
import { compiledOf, tests } from './compiled.mjs';

/**
 * Compiles the TypeScript of `test` once for all test processes: with a compiler in each, they
 * would take three times as long to start. type-errors.mjs checks the types.
 */
export async function compileTests() {
  const names = fs
    .readdirSync(tests, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts'));
  await Promise.all(names.map((name) => compile(path.join(tests, name))));
}

/**
 * Imports a compiled file.
 * @param {string} name path below `test`
 * @returns {Promise<unknown>}
 */
export function importTest(name) {
  return import(pathToFileURL(compiledOf(path.join(tests, name))).href);
}

/**
 * A file with a syntax error throws it on import, so that only its importers fail.
 * @param {string} file absolute
 */
async function compile(file) {
  /** @type {import('esbuild').TransformOptions} */
  const options = {
    loader: 'ts',
    target: `node${process.versions.node}`,
    // Stacks show lines of the TypeScript.
    sourcemap: 'inline',
    sourcesContent: false,
    sourcefile: path.relative(path.dirname(compiledOf(file)), file),
    // Fixtures and programs are next to the source.
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(file).href) },
  };
  const text = await fs.promises.readFile(file, 'utf8');
  const { code } = await transform(text, options).catch((/** @type {Error} */ error) => ({
    code: `throw new SyntaxError(${JSON.stringify(`${file}: ${error.message}`)});\n`,
  }));
  await replace(compiledOf(file), code);
}

/**
 * Replaces a file atomically: another run can be reading it.
 * @param {string} file
 * @param {string} text
 */
async function replace(file, text) {
  const fresh = `${file}.${process.pid}`;
  await fs.promises.mkdir(path.dirname(file), { recursive: true });
  await fs.promises.writeFile(fresh, text);
  await fs.promises.rename(fresh, file);
}
