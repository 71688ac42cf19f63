import { spawnSync } from 'node:child_process';
import { installed } from './start/packages.js';
import { Unavailable } from './start/unavailable.js';

/**
 * Runs a script in a real shell without the user's start-up files. Returns its output. If the shell
 * cannot be installed, the test file is skipped; with `CI=true` it fails.
 *
 * @throws if the script fails or runs longer than 30 s
 */
export function runShell(shell: 'bash' | 'zsh', script: string): string {
  try {
    installed(shell, [shell], `for the tests of its completion`);
  } catch (error) {
    if (!(error instanceof Unavailable)) throw error;
    process.stdout.write(`\nSKIPPED: ${error.message}\n`);
    process.exit(process.env['CI'] === 'true' ? 1 : 0);
  }
  const plain = {
    bash: ['--norc', '--noprofile', '-c'],
    zsh: ['-f', '-c'],
  }[shell];
  const { status, stdout, stderr, error } = spawnSync(shell, [...plain, script], {
    encoding: 'utf8',
    timeout: 30_000,
  });
  if (error ?? status !== 0)
    throw new Error(`${shell} ended with ${status}: ${error?.message ?? ''}\n${stdout}${stderr}`);
  if (stderr !== '') throw new Error(`${shell} said: ${stderr}`);
  return stdout;
}
