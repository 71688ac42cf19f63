import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { DevError } from '../error.js';
import { LOOPBACK } from './ports.js';
import { postgresBinaries } from './postgres-binaries.js';
import type { DevState } from '../state.js';

/** The only user of this Postgres, and its default database. */
export const POSTGRES_USER = 'gateway';
export const POSTGRES_DATABASE = 'postgres';

const READY_MS = 60_000;
const STOP_MS = 15_000;

export interface Postgres {
  /** True if its data was created by this start. */
  readonly isNew: boolean;
  /** Rejects with a DevError when Postgres ends before `close` is called. */
  readonly crashed: Promise<never>;
  /** Ends its sessions and stops it. */
  close(): Promise<void>;
}

/**
 * Starts Postgres on loopback from the binaries of the npm package. Creates its data on the first start.
 *
 * @throws DevError with the end of the Postgres log; its `code` is EADDRINUSE when the port is taken
 */
export async function startPostgres(state: DevState, port: number): Promise<Postgres> {
  const { postgresHome: home, postgresUser: user, postgresData: data, files } = state;
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if (user) chownSync(home, user.uid, user.gid);
  const bin = join(postgresBinaries(home, user), 'bin');
  const isNew = !existsSync(data);
  if (isNew) await initialise(bin, state);

  const child = launch(bin, state, port);
  let hasEnded = false;
  const ended = once(child, 'exit')
    .catch(() => undefined)
    .then(() => void (hasEnded = true));
  for (const deadline = Date.now() + READY_MS; !isReady(data, child); await sleep(10)) {
    if (!hasEnded && Date.now() < deadline) continue;
    child.kill('SIGQUIT');
    throw notStarted(files.postgresLog);
  }
  let isClosing = false;
  const crashed = ended.then((): Promise<never> => {
    if (isClosing) return new Promise(() => undefined);
    throw new DevError('Postgres has ended by itself', `read ${files.postgresLog}, then start again`);
  });
  crashed.catch(() => undefined);
  return {
    isNew,
    crashed,
    async close() {
      isClosing = true;
      child.kill('SIGINT'); // fast shutdown; on Windows the process is terminated
      const timer = setTimeout(() => child.kill('SIGQUIT'), STOP_MS);
      await ended;
      clearTimeout(timer);
    },
  };
}

function notStarted(log: string): DevError {
  const lines = existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n').slice(-8).join('\n') : '';
  const error = new DevError(
    `Postgres did not start; the end of its log:\n${lines}`,
    `read ${log}; if its data is broken or of another version, \`--fresh\` starts with new data`,
  );
  return lines.includes('Address already in use') ? Object.assign(error, { code: 'EADDRINUSE' }) : error;
}

/** Creates the data in a temporary folder and renames it, so that half of it is never used. */
async function initialise(bin: string, { postgresHome: home, postgresUser: user, postgresData: data, secrets }: DevState): Promise<void> {
  const temporary = `${data}.new`;
  const passwordFile = join(home, 'password');
  for (const path of [temporary, passwordFile]) rmSync(path, { recursive: true, force: true });
  writeFileSync(passwordFile, `${secrets.password}\n`, { mode: 0o600 });
  if (user) chownSync(passwordFile, user.uid, user.gid);
  const args = ['-D', temporary, '-U', POSTGRES_USER, '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
  try {
    await promisify(execFile)(join(bin, 'initdb'), [...args, '-E', 'UTF8', '--no-locale', '--no-sync', '--no-instructions'], {
      ...user,
      cwd: home,
      env: environment(),
    });
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    const reason = stderr?.trim() || message;
    throw new DevError(
      `Postgres could not create its data in ${home}: ${reason}`,
      'check that the disk has room and the folder is writable',
    );
  } finally {
    rmSync(passwordFile, { force: true });
  }
  renameSync(temporary, data);
}

function launch(bin: string, { postgresHome: home, postgresUser: user, postgresData: data, files }: DevState, port: number): ChildProcess {
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
  const output = openSync(files.postgresLog, 'w', 0o600);
  // A session of its own: Ctrl-C in the terminal must not stop it before the last delivery is recorded.
  const stdio = ['ignore', output, output] as const;
  const child = spawn(join(bin, 'postgres'), args, { ...user, cwd: home, env: environment(), stdio: [...stdio], detached: true });
  closeSync(output);
  return child;
}

/** The pid file says in its eighth line when Postgres is ready. The file of a killed Postgres names another pid. */
function isReady(data: string, { pid }: ChildProcess): boolean {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return lines[0] === String(pid) && lines[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}

function environment(): NodeJS.ProcessEnv {
  const { PATH, SystemRoot } = process.env;
  return { PATH, LC_ALL: 'C', ...(SystemRoot === undefined ? {} : { SystemRoot }) };
}
