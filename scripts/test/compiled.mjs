// @ts-check
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** The folder of the tests. */
export const tests = path.join(root, 'test');

/**
 * Where the JavaScript of a test's TypeScript is kept: as deep as its source, so that imports of what lies beside `test` lead there from both.
 * @param {string} file a `.ts` below `test`, absolute
 */
export function compiledOf(file) {
  return path.join(root, '.tests', `${path.relative(tests, file).slice(0, -'.ts'.length)}.js`);
}
