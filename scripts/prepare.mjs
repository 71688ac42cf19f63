// @ts-check
// `node scripts/prepare.mjs`: installs and builds only what is missing. Safe to run concurrently.
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build, buildIsNeeded } from './prepare/build.mjs';
import { install, installIsNeeded } from './prepare/install.mjs';
import { withLock } from './prepare/lock.mjs';
import { Problem } from './prepare/problem.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');

/**
 * Brings `node_modules` and every `dist` up to date; takes milliseconds if they are. Throws a
 * `Problem` if Node is too old, or installing or building fails.
 */
export async function prepare() {
  checkNode();
  if (!installIsNeeded(root) && !buildIsNeeded(root)) return;
  await withLock(path.join(root, '.cache', 'prepare.lock'), async () => {
    if (installIsNeeded(root)) await install(root);
    if (buildIsNeeded(root)) await build(root);
  });
}

/** Runs `prepare` for a command: prints a `Problem` without its stack and exits with status 1. */
export async function prepareOrExit() {
  try {
    await prepare();
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > 20 || (major === 20 && minor >= 19)) return;
  throw new Problem(
    `gateway needs Node 20.19 or newer, and this is Node ${process.versions.node} (${process.execPath}). ` +
      'Install a newer one from https://nodejs.org or with `nvm install 24`, then run the same command again.',
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await prepareOrExit();
