import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { discard, forget, keep, tempFolder } from './start/keep.js';
import { installed } from './start/packages.js';
import { within } from './until.js';

const bin = fileURLToPath(new URL('../../bin/gateway.js', import.meta.url));

/** A gateway command on a private terminal. */
export interface OnTerminal {
  /** The output so far, including escape codes. */
  readonly shown: string;
  /** Types a text. `\u0003` is Ctrl-C. */
  type(text: string): void;
  /** The status as in a shell: 128 plus the signal number, if a signal ended it. */
  readonly ended: Promise<number | null>;
}

/**
 * Runs `gateway` on a real terminal, created by `script` of util-linux.
 *
 * @param options.columns width of the terminal; `folder` is the working folder, by default a
 * private one, deleted at the end
 */
export function onTerminal(
  args: readonly string[],
  options: { columns?: number; env?: Readonly<Record<string, string>>; folder?: string } = {},
): OnTerminal {
  const { columns = 80, env = {}, folder = tempFolder('terminal') } = options;
  installed('script', ['bsdutils'], 'for the tests on a terminal');
  const words = [process.execPath, bin, ...args]
    .map((word) => `'${word.replaceAll("'", `'\\''`)}'`)
    .join(' ');
  const child = spawn('script', ['-qefc', `stty cols ${columns}; exec ${words}`, '/dev/null'], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      TERM: 'xterm-256color',
      SHELL: '/bin/sh',
      ...env,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  if (child.pid !== undefined) keep(child.pid, 'SIGKILL');
  let shown = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      if (child.pid !== undefined) forget(child.pid);
      if (options.folder === undefined) discard(folder);
      resolve(code);
    });
  });
  return {
    get shown() {
      return shown;
    },
    type: (text) => child.stdin.write(text),
    ended: within(ended, 30_000, `gateway ${args.join(' ')} to end on a terminal`),
  };
}

/** Runs it until it exits. Returns the output. */
export async function shownOnTerminal(...given: Parameters<typeof onTerminal>): Promise<string> {
  const running = onTerminal(...given);
  await running.ended;
  return running.shown;
}
