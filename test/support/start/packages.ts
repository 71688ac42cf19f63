import { spawnSync } from 'node:child_process';
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
  const apt = (...args: string[]) =>
    spawnSync('apt-get', ['-q', '-y', '-o', 'DPkg::Lock::Timeout=300', ...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      stdio: ['ignore', 'pipe', 'pipe'],
      encoding: 'utf8',
    });
  apt('update');
  let last = '';
  for (const name of packages) {
    const { status, stderr } = apt('install', '--no-install-recommends', name);
    if (status === 0 && have(program)) return;
    last = stderr.trim().split('\n').slice(-3).join(' ');
  }
  throw new Unavailable(`${wanted}; apt-get could not: ${last}`);
}
