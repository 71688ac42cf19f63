import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { packNpm } from '../../scripts/release/npm.mjs';
import { tempFolder } from './start/keep.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const run = promisify(execFile);

/** The relevant part of package-lock.json. */
interface Lock {
  readonly packages: Readonly<Record<string, { readonly dev?: boolean; readonly link?: boolean }>>;
}

/**
 * Installs the gateway from packed packages without dev dependencies, like
 * `npm install <tarballs>`, into a temp folder. Libraries are hard links to the repository's, which
 * takes a tenth of the time.
 * @returns the installed `gateway.js`
 */
export async function installGateway(): Promise<string> {
  const folder = tempFolder('installed');
  const modules = path.join(folder, 'node_modules');
  fs.writeFileSync(
    path.join(folder, 'package.json'),
    JSON.stringify({ name: 'operations', private: true }),
  );
  for (const tarball of await packNpm({ root, out: path.join(folder, 'tarballs') })) {
    const name = path
      .basename(tarball)
      .replace(/-\d+\.\d+\.\d+\.tgz$/, '')
      .replace(/^gateway-/, '@gateway/');
    const target = path.join(modules, name);
    fs.mkdirSync(target, { recursive: true });
    await run('tar', ['-xzf', tarball, '-C', target, '--strip-components=1']);
  }
  const { packages } = JSON.parse(
    fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8'),
  ) as Lock;
  for (const [place, { dev, link }] of Object.entries(packages)) {
    const [, owner = '', name] = /^(.*?)\/?node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(place) ?? [];
    // Nested packages come with their library.
    if (name === undefined || dev || link || owner.startsWith('node_modules')) continue;
    const target = path.join(
      modules,
      owner === '' ? '' : path.join('@gateway', path.basename(owner), 'node_modules'),
      name,
    );
    if (fs.existsSync(path.join(root, place))) linkFolder(path.join(root, place), target);
  }
  return path.join(modules, '@gateway', 'cli', 'bin', 'gateway.js');
}

/** Hard-links all files of a folder; copies them if the temp folder is on another file system. */
function linkFolder(from: string, to: string): void {
  fs.mkdirSync(to, { recursive: true });
  for (const entry of fs.readdirSync(from, { withFileTypes: true })) {
    const [source, target] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) linkFolder(source, target);
    else if (entry.isSymbolicLink()) fs.symlinkSync(fs.readlinkSync(source), target);
    else {
      try {
        fs.linkSync(source, target);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error;
        fs.copyFileSync(source, target);
      }
    }
  }
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

/** Runs npm without scripts of packages, which these tests do not need. */
async function npm(cwd: string, args: readonly string[]): Promise<void> {
  await run(
    'npm',
    [
      ...args,
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
      ...(args[0] === 'pack' ? [] : ['--ignore-scripts']),
    ],
    {
      cwd,
      maxBuffer: 1 << 26,
    },
  );
}
