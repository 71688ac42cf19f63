// @ts-check
import fs from 'node:fs';
import path from 'node:path';
import { transform } from 'esbuild';
import { pathToFileURL } from 'node:url';
import { compiledOf, tests } from './compiled.mjs';

/**
 * Turns the TypeScript of `test` into JavaScript, once for all test processes: with a compiler of its own, each would take three times as long to start.
 * Types are looked at elsewhere, see type-errors.mjs.
 */
export async function compileTests() {
  const names = fs.readdirSync(tests, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));
  await Promise.all(names.map((name) => compile(path.join(tests, name))));
}

/**
 * Imports what has been compiled.
 * @param {string} name path below `test`
 * @returns {Promise<unknown>}
 */
export function importTest(name) {
  return import(pathToFileURL(compiledOf(path.join(tests, name))).href);
}

/**
 * A file that cannot be compiled throws the reason where it is run, so that only those who import it fail.
 * @param {string} file absolute
 */
async function compile(file) {
  /** @type {import('esbuild').TransformOptions} */
  const options = {
    loader: 'ts',
    target: `node${process.versions.node}`,
    // A stack tells the lines of the TypeScript.
    sourcemap: 'inline',
    sourcesContent: false,
    sourcefile: path.relative(path.dirname(compiledOf(file)), file),
    // Fixtures and programs lie beside the source.
    define: { 'import.meta.url': JSON.stringify(pathToFileURL(file).href) },
  };
  const text = await fs.promises.readFile(file, 'utf8');
  const { code } = await transform(text, options).catch((/** @type {Error} */ error) => ({
    code: `throw new SyntaxError(${JSON.stringify(`${file}: ${error.message}`)});\n`,
  }));
  await replace(compiledOf(file), code);
}

/**
 * Another run may be reading what is there, so it is replaced as a whole.
 * @param {string} file
 * @param {string} text
 */
async function replace(file, text) {
  const fresh = `${file}.${process.pid}`;
  await fs.promises.mkdir(path.dirname(file), { recursive: true });
  await fs.promises.writeFile(fresh, text);
  await fs.promises.rename(fresh, file);
}
