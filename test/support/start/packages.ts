import { spawnSync } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { Unavailable } from './unavailable.js';

/** True if a program is on the PATH. */
export function have(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;
}

/**
 * Ensures that a program exists: installs one of the Debian packages that contain it, if the user
 * is root and `apt-get` exists.
 * @param packages tried in this order; names differ between releases
 * @throws `Unavailable` with installation instructions
 */
export function installed(program: string, packages: readonly string[], why: string): void {
  if (have(program)) return;
  const wanted = `${program} is needed ${why} and is not on the PATH: install it (Debian and Ubuntu: apt-get install ${packages[0]})`;
  if (process.getuid?.() !== 0 || !have('apt-get')) throw new Unavailable(wanted);
  process.stderr.write(`installing ${packages[0]} (apt-get)\n`);
  apt(['update']);
  let last: string | undefined;
  for (const name of packages) {
    last = apt(['install', '--no-install-recommends', name]);
    if (!last && have(program)) return;
  }
  throw new Unavailable(`${wanted}; apt-get could not: ${last}`);
}

/**
 * Runs `apt-get`, one process at a time across test files: container images are set up to empty its
 * cache after each run, even after `update`, which would delete packages that another run has
 * downloaded and not unpacked. Returns the end of the error output on failure, undefined on
 * success.
 */
export function apt(args: readonly string[], options: { cwd?: string } = {}): string | undefined {
  const alone = have('flock') ? ['flock', path.join(os.tmpdir(), 'gateway-tests-apt.lock')] : [];
  const [file, ...rest] = [
    ...alone,
    'apt-get',
    '-q',
    '-y',
    '-o',
    'DPkg::Lock::Timeout=300',
    ...args,
  ] as [string, ...string[]];
  const { status, stderr } = spawnSync(file, rest, {
    ...options,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  return status === 0
    ? undefined
    : stderr.trim().split('\n').slice(-3).join(' ') || `it ended with ${status}`;
}
