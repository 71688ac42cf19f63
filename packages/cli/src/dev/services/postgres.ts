import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { DevError } from '../error.js';
import { LOOPBACK } from './ports.js';
import { postgresBinaries, type User } from './postgres-binaries.js';

/** The only user of this Postgres, and its default database. */
export const POSTGRES_USER = 'gateway';
export const POSTGRES_DATABASE = 'postgres';

const READY_MS = 60_000;
const STOP_MS = 15_000;

export interface PostgresOptions {
  /** Runs Postgres if we are root. */
  readonly user: User | undefined;
  readonly home: string;
  readonly data: string;
  readonly log: string;
  readonly password: string;
}

export interface Postgres {
  /** True if its data was created by this start. */
  readonly isNew: boolean;
  /** Rejects with a DevError when Postgres ends before `close` is called. */
  readonly crashed: Promise<never>;
  /** Ends its sessions and stops it. */
  close(): Promise<void>;
}

/** Starts Postgres on loopback from the binaries of the npm package. Creates its data on the first start. Throws a DevError with the end of the log. */
export async function startPostgres(place: PostgresOptions, releasePort: () => Promise<number>): Promise<Postgres> {
  const { home, user, data, log } = place;
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if (user) chownSync(home, user.uid, user.gid);
  const bin = join(postgresBinaries(home, user), 'bin');
  const { PATH, SystemRoot } = process.env;
  const options = { ...user, cwd: home, env: { PATH, LC_ALL: 'C', ...(SystemRoot === undefined ? {} : { SystemRoot }) } };
  const isNew = !existsSync(data);
  if (isNew) await initialise(bin, place, options);

  const settings = {
    port: await releasePort(),
    listen_addresses: LOOPBACK,
    unix_socket_directories: '',
    max_connections: 100,
    shared_buffers: '64MB',
    timezone: 'UTC',
    log_timezone: 'UTC',
  };
  const args = ['-D', data, ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`])];
  const output = openSync(log, 'w', 0o600);
  // A session of its own: Ctrl-C in the terminal must not stop it before the last delivery is recorded.
  const child = spawn(join(bin, 'postgres'), args, { ...options, stdio: ['ignore', output, output], detached: true });
  closeSync(output);
  let isRunning = true;
  const ended = once(child, 'exit')
    .catch(() => undefined)
    .then(() => void (isRunning = false));
  for (const deadline = Date.now() + READY_MS; !isReady(data, child.pid); await sleep(10)) {
    if (isRunning && Date.now() < deadline) continue;
    child.kill('SIGQUIT');
    const lines = existsSync(log) ? readFileSync(log, 'utf8').trimEnd().split('\n').slice(-8).join('\n') : '';
    const fix = `read ${log}; if its data is broken or of another version, \`--fresh\` starts with new data`;
    throw new DevError(`Postgres did not start; the end of its log:\n${lines}`, fix);
  }
  let isClosing = false;
  const crashed = ended.then((): Promise<never> => {
    if (isClosing) return new Promise(() => undefined);
    throw new DevError('Postgres has ended by itself', `read ${log}, then start again`);
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

/** Creates the data. If it is interrupted, the next start finds data without an API key, and deletes it. */
async function initialise(bin: string, { home, user, data, password }: PostgresOptions, options: object): Promise<void> {
  const passwordFile = join(home, 'password');
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (user) chownSync(passwordFile, user.uid, user.gid);
  const args = ['-D', data, '-U', POSTGRES_USER, '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
  try {
    await promisify(execFile)(join(bin, 'initdb'), [...args, '-E', 'UTF8', '--no-locale', '--no-sync', '--no-instructions'], options);
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    const sentence = `Postgres could not create its data in ${home}: ${stderr?.trim() || message}`;
    throw new DevError(sentence, 'check that the disk has room and the folder is writable');
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/** The pid file says in its eighth line when Postgres is ready. The file of a killed Postgres names another pid. */
function isReady(data: string, pid: number | undefined): boolean {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return lines[0] === String(pid) && lines[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}
