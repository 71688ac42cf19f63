import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { discard, forget, keep, tempFolder } from './start/keep.js';
import { until, within } from './until.js';

/** The `gateway.js` of the working tree. */
export const currentBuild = fileURLToPath(new URL('../../bin/gateway.js', import.meta.url));

export interface GatewayOptions {
  /**
   * Written to `gateway.json` in the working folder, which the gateway reads without `--config`.
   */
  readonly config?: object;
  /** Added to a minimal environment; no other variables of this process are passed. */
  readonly env?: Readonly<Record<string, string>>;
  /** Another `gateway.js`, for example of an installation from packages. */
  readonly bin?: string;
  /**
   * The working folder, to share it between processes; by default a private one, deleted when the
   * process has ended.
   */
  readonly folder?: string;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface GatewayProcess {
  readonly pid: number;
  readonly folder: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly ended: Promise<Ending>;
  /**
   * Waits for a line on either stream that contains or matches `wanted`. Throws with the output if
   * the process ends first.
   */
  line(wanted: string | RegExp, options?: { withinMs?: number }): Promise<string>;
  /** Waits until `/healthz?ready` answers 200. Throws with the output if the process ends first. */
  healthy(port: number, options?: { withinMs?: number }): Promise<void>;
  /** Sends SIGKILL and waits for the exit. */
  kill(): Promise<Ending>;
  /** Sends SIGTERM or `signal` and waits for the exit; throws with the output on a timeout. */
  terminate(options?: { signal?: NodeJS.Signals; withinMs?: number }): Promise<Ending>;
}

/**
 * Starts the built command line like a user: `gateway(['agent', '--port', '0'], { config })`. It is
 * killed when this process ends for any reason.
 */
export function gateway(args: readonly string[], options: GatewayOptions = {}): GatewayProcess {
  const folder = options.folder ?? tempFolder('gateway');
  if (options.config)
    fs.writeFileSync(path.join(folder, 'gateway.json'), JSON.stringify(options.config, null, 2));
  const child = spawn(process.execPath, [options.bin ?? currentBuild, ...args], {
    cwd: folder,
    env: environment(folder, options.env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const pid = child.pid;
  if (pid === undefined) throw new Error(`could not run ${options.bin ?? currentBuild}`);
  keep(pid, 'SIGKILL');
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  let ending: Ending | undefined;
  const ended = new Promise<Ending>((resolve) => {
    const end = (code: number | null, signal: NodeJS.Signals | null) => {
      if (ending) return;
      ending = { code, signal };
      forget(pid);
      if (options.folder === undefined) discard(folder);
      resolve(ending);
    };
    child.once('close', end);
    // A child of the killed process can keep its output open for a moment.
    child.once('exit', (code, signal) => setTimeout(() => end(code, signal), 1_000));
  });
  const command = `gateway ${args.join(' ')}`;
  const told = () => `${command} printed:\n${output.stdout}${output.stderr}`;

  /** `until`, but fails with the output as soon as the process has ended. */
  async function wait<T>(
    what: string,
    look: () => T | undefined | Promise<T | undefined>,
    withinMs: number,
  ): Promise<T> {
    try {
      const found = await until<{ is: T } | 'over'>(
        what,
        async () => {
          const over = ending !== undefined;
          const is = await Promise.resolve(look()).catch((error: unknown) => {
            if (!over) throw error;
          });
          if (is !== undefined) return { is };
          return over && 'over';
        },
        { withinMs },
      );
      if (found !== 'over') return found.is;
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${told()}`, { cause: error });
    }
    throw new Error(
      `${command} ended (${ending?.code ?? ending?.signal}) before ${what}\n${told()}`,
    );
  }

  async function signalled(signal: NodeJS.Signals, withinMs: number): Promise<Ending> {
    if (!ending) child.kill(signal);
    try {
      return await within(ended, withinMs, `the end of ${command} after ${signal}`);
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${told()}`, { cause: error });
    }
  }

  return {
    pid,
    folder,
    get stdout() {
      return output.stdout;
    },
    get stderr() {
      return output.stderr;
    },
    ended,
    line: (wanted, { withinMs = 60_000 } = {}) =>
      wait(
        `a line with ${String(wanted)}`,
        () =>
          lines(output).find((line) =>
            typeof wanted === 'string' ? line.includes(wanted) : wanted.test(line),
          ),
        withinMs,
      ),
    healthy: async (port, { withinMs = 60_000 } = {}) => {
      await wait('/healthz?ready to answer 200', () => ready(port), withinMs);
    },
    kill: () => signalled('SIGKILL', 10_000),
    terminate: ({ signal = 'SIGTERM', withinMs = 30_000 } = {}) => signalled(signal, withinMs),
  };
}

type Finished = Ending & { stdout: string; stderr: string };

/**
 * Runs a command: `await runGateway(['version'])`. Short commands share processes; all others run
 * in a separate one, including commands that read standard input or have another `bin`, Node
 * options or installed plugins.
 * @throws with the output if the command runs longer than `withinMs`; a status other than 0 is not
 * an error
 */
export async function runGateway(
  args: readonly string[],
  { withinMs = 60_000, ...options }: GatewayOptions & { withinMs?: number } = {},
): Promise<Finished> {
  if (isShort(args) && !hasOther(options))
    return within(runShared(args, options), withinMs, `gateway ${args.join(' ')} to end`);
  const running = gateway(args, options);
  try {
    const { code, signal } = await within(
      running.ended,
      withinMs,
      `gateway ${args.join(' ')} to end`,
    );
    return { code, signal, stdout: running.stdout, stderr: running.stderr };
  } catch (error) {
    await running.kill();
    throw new Error(
      `${(error as Error).message}; it printed:\n${running.stdout}${running.stderr}`,
      { cause: error },
    );
  }
}

const shortCommands = [
  'bootstrap',
  'config',
  'feature-flags',
  'help',
  'init',
  'license',
  'migrate',
  'openapi',
  'retry',
  'utils',
  'version',
];

function isShort([command = '', ...rest]: readonly string[]): boolean {
  return (
    (shortCommands.includes(command) && !rest.includes('-')) ||
    rest.some((word) => word === '--help' || word === '-h')
  );
}

/** A process loads modules once, with the flags of the plugins installed then. */
function hasOther({ bin: other, env, config, folder = '' }: GatewayOptions): boolean {
  const plugins =
    fs.existsSync(path.join(folder, 'gateway-plugins')) ||
    (config !== undefined && 'plugins' in config);
  return (
    other !== undefined ||
    plugins ||
    env?.['NODE_OPTIONS'] !== undefined ||
    env?.['GATEWAY_PLUGINS_DIR'] !== undefined
  );
}

/** Idle processes of `command-runner.mjs`. */
const runners: ChildProcess[] = [];

async function runShared(
  argv: readonly string[],
  { folder, config, env }: GatewayOptions,
): Promise<Finished> {
  const place = folder ?? tempFolder('gateway');
  if (config) fs.writeFileSync(path.join(place, 'gateway.json'), JSON.stringify(config, null, 2));
  const runner =
    runners.pop() ??
    fork(fileURLToPath(new URL('./start/command-runner.mjs', import.meta.url)), {
      execArgv: [],
      stdio: 'ignore',
    });
  runner.ref();
  runner.channel?.ref();
  runner.send({ argv, env: environment(place, env), folder: place });
  const ended = new AbortController();
  try {
    const [answer] = await Promise.race([
      once(runner, 'message', ended),
      once(runner, 'exit', ended).then(([code]) =>
        Promise.reject(new Error(`gateway ${argv.join(' ')} ended its process (${String(code)})`)),
      ),
    ]);
    runners.push(runner);
    return { signal: null, ...(answer as Omit<Finished, 'signal'>) };
  } finally {
    ended.abort();
    runner.unref();
    runner.channel?.unref();
    if (folder === undefined) discard(place);
  }
}

function environment(
  folder: string,
  added: Readonly<Record<string, string>> = {},
): NodeJS.ProcessEnv {
  const passed = ['PATH', 'LANG', 'TMPDIR', 'SystemRoot', 'NODE_V8_COVERAGE'];
  const own = passed.flatMap((name) =>
    process.env[name] === undefined ? [] : [[name, process.env[name]]],
  );
  return { ...Object.fromEntries(own), HOME: folder, NO_COLOR: '1', ...added } as NodeJS.ProcessEnv;
}

function lines({ stdout, stderr }: { stdout: string; stderr: string }): string[] {
  return [...stdout.split('\n'), ...stderr.split('\n')];
}

async function ready(port: number): Promise<true | undefined> {
  const response = await fetch(`http://127.0.0.1:${port}/healthz?ready`, {
    signal: AbortSignal.timeout(5_000),
  });
  await response.arrayBuffer();
  return response.status === 200 || undefined;
}
