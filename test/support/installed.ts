import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { tempFolder } from './start/keep.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/**
 * Installs the gateway as operators do, from packed packages and without what is for development, into a folder of its own.
 * @returns the `gateway.js` of the installation
 */
export async function installGateway(): Promise<string> {
  const folder = tempFolder('installed');
  const tarballs = path.join(folder, 'tarballs');
  fs.mkdirSync(tarballs);
  await npm(root, ['pack', '--workspaces', '--include-workspace-root', `--pack-destination=${tarballs}`]);
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify({ name: 'operations', private: true }));
  const packed = fs.readdirSync(tarballs).map((file) => `./tarballs/${file}`);
  await npm(folder, ['install', '--omit=dev', '--prefer-offline', ...packed]);
  return path.join(folder, 'node_modules', 'gateway', 'bin', 'gateway.js');
}

/**
 * Packs a package.
 * @returns the tarball
 */
export async function pack(folder: string): Promise<string> {
  const target = tempFolder('packed');
  await npm(folder, ['pack', `--pack-destination=${target}`]);
  const [file = ''] = fs.readdirSync(target);
  return path.join(target, file);
}

/** Runs npm. Scripts of packages are not run: what needs them is not needed here. */
export async function npm(cwd: string, args: readonly string[]): Promise<void> {
  await run('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error', ...(args[0] === 'pack' ? [] : ['--ignore-scripts'])], {
    cwd,
    maxBuffer: 1 << 26,
  });
}
