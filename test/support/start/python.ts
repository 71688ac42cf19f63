import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { cached } from './cached.js';
import { installed } from './packages.js';
import { Unavailable } from './unavailable.js';

/**
 * Returns the path of a Python with these PyPI packages, in a cached virtual environment. Run their
 * programs with `-m`.
 * @param requirements for pip: `schemathesis==4.32.5`
 * @throws `Unavailable` with installation instructions
 */
export function python(requirements: readonly string[]): string {
  installed('python3', ['python3'], `for ${requirements.join(', ')}`);
  const folder = cached(
    `gateway-python-${requirements.join('-').replaceAll(/[^\w.-]+/g, '-')}`,
    (filling) => {
      process.stderr.write(`installing ${requirements.join(', ')} (PyPI)\n`);
      run('python3', ['-m', 'venv', filling]);
      run(path.join(filling, 'bin/python'), [
        '-m',
        'pip',
        'install',
        '--quiet',
        '--disable-pip-version-check',
        ...requirements,
      ]);
    },
  );
  return path.join(folder, 'bin/python');
}

function run(program: string, args: readonly string[]): void {
  const { status, stderr, error } = spawnSync(program, args, { encoding: 'utf8' });
  if (status === 0) return;
  const why = error?.message ?? stderr.trim().slice(-500);
  throw new Unavailable(
    `${program} ${args.join(' ')}: ${why}. It is needed for tests (Debian and Ubuntu: apt-get install python3-venv)`,
  );
}
