// @ts-check
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { command } from './command.mjs';
import { Problem } from './problem.mjs';

/**
 * True if `node_modules` is missing, or was installed from another `package-lock.json` or by
 * another major version of Node.
 * @param {string} root
 */
export function installIsNeeded(root) {
  if (readText(stampOf(root)) === wantedStamp(root)) return false;
  if (!installedByHand(root)) return true;
  fs.writeFileSync(stampOf(root), wantedStamp(root));
  return false;
}

/**
 * Installs `node_modules` from the lock file, or creates the lock file.
 * @param {string} root
 */
export async function install(root) {
  const verb = fs.existsSync(path.join(root, 'package-lock.json')) ? 'ci' : 'install';
  console.error(`installing packages (npm ${verb})`);
  const args = [verb, '--include=dev', '--no-audit', '--no-fund', '--loglevel=error'];
  // The npm that runs this script; needed on Windows, where `npm` is not an executable.
  const self = process.env['npm_execpath'];
  const npm = self !== undefined && path.basename(self) === 'npm-cli.js';
  const { ok, output } = npm
    ? await command(process.execPath, [self, ...args], { cwd: root })
    : await command('npm', args, { cwd: root });
  if (!ok)
    throw new Problem(`${output.trim()}\n\nnpm ${verb} failed in ${root}: ${remedy(output)}`);
  fs.writeFileSync(stampOf(root), wantedStamp(root));
}

/** @param {string} output */
function remedy(output) {
  if (/EUSAGE|in sync/.test(output))
    return 'package.json and package-lock.json differ. Run `npm install` and commit package-lock.json.';
  if (/EAI_AGAIN|ENOTFOUND|ECONNREFUSED|ETIMEDOUT|ECONNRESET/.test(output))
    return 'the npm registry cannot be reached. Check the network, the proxy and `npm config get registry`, then run the same command again.';
  if (/ENOSPC/.test(output)) return 'the disk is full. About 400 MB are needed.';
  if (/EACCES|EPERM/.test(output))
    return 'a file cannot be written. Check who owns the folder and ~/.npm.';
  if (/npm: spawn npm ENOENT/.test(output))
    return 'there is no npm on the PATH. It comes with Node: install Node again.';
  return 'the lines above are what npm said. Mend that, then run the same command again.';
}

/** @param {string} root */
function stampOf(root) {
  return path.join(root, 'node_modules', '.gateway-stamp');
}

/** @param {string} root */
function wantedStamp(root) {
  const lock = readText(path.join(root, 'package-lock.json')) ?? '';
  const hash = crypto.createHash('sha256').update(lock).digest('hex');
  return `${hash} node ${process.versions.node.split('.')[0]} ${process.platform}-${process.arch}\n`;
}

/**
 * True if a user ran npm, and npm's record in `node_modules` matches the lock file: an install
 * would change nothing.
 * @param {string} root
 */
function installedByHand(root) {
  // A stale stamp: of another lock file or another version of Node.
  if (fs.existsSync(stampOf(root))) return false;
  const wanted = packagesOf(path.join(root, 'package-lock.json'));
  const found = packagesOf(path.join(root, 'node_modules', '.package-lock.json'));
  if (wanted === undefined || found === undefined) return false;
  return Object.entries(wanted).every(
    ([place, { version, optional, link }]) =>
      !place.includes('node_modules/') ||
      optional ||
      (link ? place in found : found[place]?.version === version),
  );
}

/**
 * @param {string} file
 * @returns {Record<string, { version?: string, optional?: boolean, link?: boolean }> | undefined}
 */
function packagesOf(file) {
  const text = readText(file);
  return text === undefined ? undefined : JSON.parse(text).packages;
}

/** @param {string} file */
function readText(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
