import { spawnSync } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { Unavailable } from './unavailable.js';

/** Whether a program is found on the PATH. */
export function have(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0;
}

/**
 * Sees to it that a program is there: installs one of the Debian packages that bring it, when we are root and there is `apt-get`.
 * @param packages tried in this order; they differ between releases
 * @throws `Unavailable` with what a person has to install
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
 * Runs `apt-get` to its end, one at a time of all test files: images of containers are set up to empty its cache after each run, also after an
 * `update`, and what another run has fetched and not unpacked yet would be gone. Gives the last that it said when it failed, and undefined when it did not.
 */
export function apt(args: readonly string[], options: { cwd?: string } = {}): string | undefined {
  const alone = have('flock') ? ['flock', path.join(os.tmpdir(), 'gateway-tests-apt.lock')] : [];
  const [file, ...rest] = [...alone, 'apt-get', '-q', '-y', '-o', 'DPkg::Lock::Timeout=300', ...args] as [string, ...string[]];
  const { status, stderr } = spawnSync(file, rest, {
    ...options,
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    stdio: ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
  });
  return status === 0 ? undefined : stderr.trim().split('\n').slice(-3).join(' ') || `it ended with ${status}`;
}
