import { spawn } from 'node:child_process';
import { GatewayError } from '@gateway/core/errors';
import { maskUrls } from '@gateway/core/logging';

/**
 * Runs npm in a folder. Scripts of packages are not run unless they are allowed.
 *
 * @returns what npm wrote to standard output
 * @throws GatewayError `npm_missing`; `npm_failed` with the lines of npm that tell why
 */
export async function npm(folder: string, args: readonly string[], { allowScripts = false } = {}): Promise<string> {
  const quiet = ['--no-audit', '--no-fund', '--no-update-notifier', '--loglevel=error', ...(allowScripts ? [] : ['--ignore-scripts'])];
  const all = [...args, ...quiet];
  // npm is a command file on Windows, which only its shell runs.
  const child = spawn('npm', all, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], shell: process.platform === 'win32' });
  let answer = '';
  let told = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (answer += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (told += text));
  const status = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (cause) => reject(new GatewayError('npm_missing', { reason: cause.message }, { cause })));
    child.once('close', resolve);
  });
  if (status !== 0)
    throw new GatewayError('npm_failed', { command: maskUrls(`npm ${args.join(' ')}`), folder, reason: maskUrls(reasonOf(told)) });
  return answer;
}

/** What npm says beside codes, hints at its log file, and warnings. */
function reasonOf(told: string): string {
  const lines = told
    .split('\n')
    .filter((line) => !/^npm warn /i.test(line))
    .map((line) => line.replace(/^npm (?:error|ERR!) ?(?:[A-Z]?\d{3} )?/i, '').trim())
    .filter((line) => line !== '' && !/^(?:code |errno |syscall |path |A complete log of this run)/.test(line));
  return lines.slice(0, 2).join(' ') || 'npm does not say why';
}
