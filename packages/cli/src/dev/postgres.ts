import { spawn, type ChildProcess } from 'node:child_process';
import { chownSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { LOOPBACK } from './ports.js';
import { stopLeftover } from './postgres-leftover.js';
import { postgresPrograms } from './postgres-programs.js';
import type { User } from './postgres-user.js';
import { Problem } from './problem.js';
import { tether } from './tether.js';

/** The one user of this Postgres, and the database that it comes with. */
export const POSTGRES_USER = 'gateway';
export const POSTGRES_DATABASE = 'postgres';

const READY_MS = 60_000;
const STOP_MS = 15_000;

export interface PostgresOptions {
  /** Folder of the data and of what goes with it. */
  readonly home: string;
  readonly user: User | undefined;
  readonly port: number;
  readonly password: string;
  readonly log: string;
  /** Is called when the port is needed. */
  readonly beforeLaunch: () => Promise<void>;
}

/** A running Postgres of our own. */
export interface Postgres {
  /** True when its data was made just now. */
  readonly isNew: boolean;
  /** Settles when it has ended, asked or not. */
  readonly ended: Promise<void>;
  /** Ends its sessions and stops it. */
  close(): Promise<void>;
}

/**
 * Starts a real Postgres on loopback from the programs of the npm package, and makes its data when there is none. What a killed process left running
 * is stopped first; it ends when we end, in whatever way.
 *
 * @throws Problem with the end of its log when it does not start; its code is EADDRINUSE when the port is taken
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const { home, user, log } = options;
  const data = join(home, 'data');
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if (user) chownSync(home, user.uid, user.gid);
  const programs = postgresPrograms(home, user);
  const isNew = !existsSync(data);
  if (isNew) await initialise(programs, data, options);
  else await stopLeftover(data);

  await options.beforeLaunch();
  const child = launch(programs, data, options);
  let failure: Error | undefined;
  let isOver = false;
  const ended = new Promise<void>((resolve) => {
    child.once('error', (error) => resolve(void (failure = error)));
    child.once('exit', () => resolve());
  }).then(() => void (isOver = true));
  const letGo = child.pid === undefined ? () => undefined : tether(child.pid);
  void ended.then(letGo);

  for (const deadline = Date.now() + READY_MS; !isReady(data, child); await sleep(10)) {
    if (!isOver && Date.now() < deadline) continue;
    child.kill('SIGQUIT');
    throw notStarted(failure, log);
  }
  return {
    isNew,
    ended,
    async close() {
      child.kill('SIGINT'); // a fast shutdown; on Windows, where it is no signal, an abrupt one
      const impatient = setTimeout(() => child.kill('SIGQUIT'), STOP_MS);
      await ended;
      clearTimeout(impatient);
    },
  };
}

function notStarted(failure: Error | undefined, log: string): Problem {
  const said = tail(log);
  const problem = new Problem(`Postgres did not start${failure ? `: ${failure.message}` : `; the end of its log:\n${said}`}`, {
    fix: `read ${log}; when its data is broken or of another version, \`--fresh\` starts anew`,
  });
  return said.includes('Address already in use') ? Object.assign(problem, { code: 'EADDRINUSE' }) : problem;
}

/** Makes the data beside its place and moves it there, so that half of it is never taken for a database. */
async function initialise(programs: string, data: string, { home, user, password }: PostgresOptions): Promise<void> {
  const fresh = `${data}.new`;
  const passwordFile = join(home, 'password');
  rmSync(fresh, { recursive: true, force: true });
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (user) chownSync(passwordFile, user.uid, user.gid);
  const args = ['-D', fresh, '-U', POSTGRES_USER, '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
  args.push('-E', 'UTF8', '--no-locale', '--no-sync', '--no-instructions');
  const child = spawn(join(programs, 'bin', 'initdb'), args, {
    ...user,
    cwd: home,
    env: environment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const problem = await outcomeOf(child);
  rmSync(passwordFile, { force: true });
  if (problem !== undefined) {
    throw new Problem(`Postgres could not make its data in ${home}: ${problem}`, {
      fix: 'see that the disk has room and that the folder may be written',
    });
  }
  renameSync(fresh, data);
}

/** What a program that failed said; undefined when it did its work. */
function outcomeOf(child: ChildProcess): Promise<string | undefined> {
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text: Buffer) => (output += text.toString()));
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (status) => resolve(status === 0 ? undefined : output.trim()));
  });
}

function launch(programs: string, data: string, { home, user, port, log }: PostgresOptions): ChildProcess {
  const settings = {
    port,
    listen_addresses: LOOPBACK,
    unix_socket_directories: '',
    max_connections: 100,
    shared_buffers: '64MB',
    timezone: 'UTC',
    log_timezone: 'UTC',
  };
  const args = ['-D', data, ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])];
  const output = openSync(log, 'w', 0o600);
  // A session of its own: Ctrl-C in the terminal is for us, and we stop it after the last delivery is recorded.
  const child = spawn(join(programs, 'bin', 'postgres'), args, {
    ...user,
    cwd: home,
    env: environment(),
    stdio: ['ignore', output, output],
    detached: true,
  });
  closeSync(output);
  return child;
}

/** The pid file tells in its eighth line how the start goes; one of a Postgres that was killed names another pid. */
function isReady(data: string, { pid }: ChildProcess): boolean {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return lines[0] === String(pid) && lines[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}

function environment(): NodeJS.ProcessEnv {
  return {
    PATH: process.env['PATH'] ?? '',
    LC_ALL: 'C',
    ...(process.platform === 'win32' ? { SystemRoot: process.env['SystemRoot'] } : {}),
  };
}

function tail(file: string): string {
  try {
    return readFileSync(file, 'utf8').trimEnd().split('\n').slice(-8).join('\n');
  } catch {
    return '';
  }
}
