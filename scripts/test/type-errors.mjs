// @ts-check
import path from 'node:path';
import { command } from '../prepare/command.mjs';

/**
 * Type-checks the tests and the scripts.
 * @param {string} root
 * @param {string[] | undefined} only when given, errors elsewhere than in these files (absolute) and in `test/support` do not count
 * @returns {Promise<string>} the errors; empty when there is none
 */
export async function typeErrors(root, only) {
  const tsc = path.join(root, 'node_modules', '@typescript', 'native', 'bin', 'tsc');
  const checks = ['test', 'scripts'].map((project) => command(process.execPath, [tsc, '-p', project, '--pretty', 'false'], { cwd: root }));
  const results = await Promise.all(checks);
  const output = results.map((result) => (result.ok ? '' : result.output)).join('');
  if (only === undefined) return output.trim();
  const wanted = ['test/support/', ...only.map((file) => path.relative(root, file))];
  return output
    .split(/\n(?=\S)/) // an error goes on in indented lines
    .filter((error) => wanted.some((start) => error.startsWith(start)) || /^error /.test(error))
    .join('\n')
    .trim();
}
