// @ts-check
import path from 'node:path';
import { command } from '../prepare/command.mjs';

/**
 * Type-checks the tests and the scripts.
 * @param {string} root
 * @param {string[] | undefined} only if given, ignores errors outside these files (absolute) and
 * `test/support`
 * @returns {Promise<string>} the errors; empty if there are none
 */
export async function typeErrors(root, only) {
  const tsc = path.join(root, 'node_modules', '@typescript', 'native', 'bin', 'tsc');
  const checks = ['test', 'scripts'].map((project) =>
    command(process.execPath, [tsc, '-p', project, '--pretty', 'false'], { cwd: root }),
  );
  const results = await Promise.all(checks);
  const output = results.map((result) => (result.ok ? '' : result.output)).join('');
  if (only === undefined) return output.trim();
  const wanted = ['test/support/', ...only.map((file) => path.relative(root, file))];
  return output
    .split(/\n(?=\S)/) // continuation lines of an error are indented
    .filter((error) => wanted.some((start) => error.startsWith(start)) || /^error /.test(error))
    .join('\n')
    .trim();
}
