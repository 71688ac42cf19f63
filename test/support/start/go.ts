import { spawnSync } from 'node:child_process';
import { installed } from './packages.js';
import { Unavailable } from './unavailable.js';

/**
 * Returns the path of a Go, installed if necessary, that fetches the version that a module requires
 * (1.21 or newer).
 * @throws `Unavailable` with installation instructions
 */
export function go(): string {
  installed('go', ['golang-go'], 'for clients in Go');
  const version = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).stdout.trim();
  const [, minor = '0'] = /^go1\.(\d+)/.exec(version) ?? [];
  if (Number(minor) < 21)
    throw new Unavailable(
      `Go ${version} is too old for clients in Go: install 1.21 or newer from https://go.dev/dl`,
    );
  return 'go';
}
