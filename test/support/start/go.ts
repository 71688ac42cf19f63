import { spawnSync } from 'node:child_process';
import { installed } from './packages.js';
import { Unavailable } from './unavailable.js';

/**
 * Sees to it that there is a Go that fetches the version that a module asks for, as 1.21 and newer do: the path of the program.
 * @throws `Unavailable` with what a person has to install
 */
export function go(): string {
  installed('go', ['golang-go'], 'for clients in Go');
  const version = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).stdout.trim();
  const [, minor = '0'] = /^go1\.(\d+)/.exec(version) ?? [];
  if (Number(minor) < 21) throw new Unavailable(`Go ${version} is too old for clients in Go: install 1.21 or newer from https://go.dev/dl`);
  return 'go';
}
