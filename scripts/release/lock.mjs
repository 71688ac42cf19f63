// @ts-check
import { execFileSync } from 'node:child_process';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { succeed } from '../prepare/command.mjs';

/**
 * Writes a package.json and a package-lock.json beside the tarballs, so that `npm ci --omit=dev`
 * installs them with the versions and hashes of the repository. Tracers and
 * what only developers use are development dependencies: locked, and installed by name.
 * @param {object} options
 * @param {string} options.root
 * @param {string} options.out
 * @param {{ scope: string }} options.names
 * @param {readonly string[]} options.tarballs
 */
export async function writeLock({ root, out, names: { scope }, tarballs }) {
  const { packages, ...lock } = JSON.parse(
    fs.readFileSync(path.join(root, 'package-lock.json'), 'utf8'),
  );
  /** @type {Record<'dependencies' | 'devDependencies', Record<string, string>>} */
  const manifest = { dependencies: {}, devDependencies: {} };
  /** @type {Record<string, any>} */
  const places = {};
  for (const tarball of tarballs) {
    const text = execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], {
      encoding: 'utf8',
    });
    const { name, version, bin, engines, ...needs } = JSON.parse(text);
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = needs;
    const resolved = `file:${path.basename(tarball)}`;
    const isOptional = /\/(tracer-.*|dev|plugin-conformance)$/.test(name);
    manifest[isOptional ? 'devDependencies' : 'dependencies'][name] = resolved;
    const of = {
      ...{ dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta },
      ...{ bin, engines },
    };
    places[`node_modules/${name}`] = { version, resolved, integrity: integrityOf(tarball), ...of };
  }
  for (const [place, locked] of Object.entries(packages)) {
    const [, folder, below] =
      /^(?:packages|plugins|extras)\/([^/]+)(\/node_modules\/.*)?$/.exec(place) ?? [];
    if (place === '' || locked.link || (folder !== undefined && below === undefined)) continue;
    places[below === undefined ? place : `node_modules/${scope}/${folder}${below}`] = locked;
  }
  const about = { name: 'gateway-installation', private: true, ...manifest };
  write(path.join(out, 'package.json'), about);
  write(path.join(out, 'package-lock.json'), {
    ...lock,
    name: about.name,
    packages: { '': { name: about.name, ...manifest }, ...places },
  });
  // Removes what only the repository needs. Nothing is missing, so no registry is asked.
  const args = ['install', '--package-lock-only', '--ignore-scripts', '--offline'];
  await succeed('npm', [...args, '--no-audit', '--no-fund'], { cwd: out });
}

/**
 * Returns the hash of a file as npm writes it.
 * @param {string} file
 */
export function integrityOf(file) {
  return `sha512-${crypto.createHash('sha512').update(fs.readFileSync(file)).digest('base64')}`;
}

/**
 * @param {string} file
 * @param {unknown} value
 */
function write(file, value) {
  fs.writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
