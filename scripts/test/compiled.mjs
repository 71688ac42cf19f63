// @ts-check
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));

export const tests = path.join(root, 'test');

/**
 * Returns the path of a compiled test: as deep as its source, so that relative imports of files
 * outside `test` resolve from both.
 * @param {string} file a `.ts` below `test`, absolute
 */
export function compiledOf(file) {
  return path.join(root, '.tests', `${path.relative(tests, file).slice(0, -'.ts'.length)}.js`);
}
