import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { cached } from './cached.js';
import { Unavailable } from './unavailable.js';

/**
 * Returns the program of the newest Node of a major version, from the npm package `node`, in a
 * cache.
 * @throws `Unavailable` if it cannot be installed
 */
export function nodeProgram(major: number): string {
  const folder = cached(`gateway-node-${major}-${process.platform}-${process.arch}`, (filling) => {
    process.stderr.write(`installing Node ${major} (npm)\n`);
    const { status, stderr, error } = spawnSync(
      'npm',
      ['install', '--prefix', filling, '--no-audit', '--no-fund', `node@${major}`],
      { encoding: 'utf8', shell: process.platform === 'win32' },
    );
    if (status !== 0)
      throw new Unavailable(
        `Node ${major} cannot be installed from npm: ${error?.message ?? stderr.trim().slice(-500)}`,
      );
  });
  return path.join(folder, 'node_modules/node/bin/node');
}
