import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { cached } from './cached.js';
import { installed } from './packages.js';
import { Unavailable } from './unavailable.js';

/**
 * Returns the path of a Go, installed if necessary, that fetches the version that a module requires
 * (1.21 or newer).
 * @throws `Unavailable` with installation instructions
 */
export function go(): string {
  installed('go', ['golang-go'], 'for clients and tools in Go');
  const version = spawnSync('go', ['env', 'GOVERSION'], { encoding: 'utf8' }).stdout.trim();
  const [, minor = '0'] = /^go1\.(\d+)/.exec(version) ?? [];
  if (Number(minor) < 21)
    throw new Unavailable(
      `Go ${version} is too old for clients and tools in Go: install 1.21 or newer from https://go.dev/dl`,
    );
  return 'go';
}

/**
 * Returns the path of a program in Go, built once into a cache.
 * @param source its package with a version: `helm.sh/helm/v4/cmd/helm@v4.3.0`
 * @throws `Unavailable` with installation instructions
 */
export function goProgram(source: string): string {
  const tool = go();
  const [name = ''] = path.basename(source).split('@');
  const folder = cached(`gateway-go-${source.replaceAll(/[^\w.-]+/g, '-')}`, (filling) => {
    process.stderr.write(`building ${source} (Go module)\n`);
    const { status, stderr, error } = spawnSync(tool, ['install', source], {
      env: { ...process.env, GOBIN: filling },
      encoding: 'utf8',
    });
    if (status !== 0)
      throw new Unavailable(
        `go install ${source}: ${error?.message ?? stderr.trim().slice(-500)}. It is needed for tests; check the Go module proxy (go env GOPROXY)`,
      );
  });
  return path.join(folder, name);
}
