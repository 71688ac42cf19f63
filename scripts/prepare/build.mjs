// @ts-check
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { clientInputs, writeClient } from './client.mjs';
import { command } from './command.mjs';
import { Problem } from './problem.mjs';
import { buildSite } from './site.mjs';

/**
 * True if a source, a tsconfig, a package.json or the document of the API has changed since the last
 * build, or a `dist` is missing.
 * @param {string} root
 */
export function buildIsNeeded(root) {
  if (workspaces(root).some((folder) => !fs.existsSync(path.join(folder, 'dist')))) return true;
  try {
    return fs.readFileSync(stampOf(root), 'utf8') !== signature(root);
  } catch {
    return true;
  }
}

/**
 * Makes the source of the client, compiles all packages and plugins, mirrors each `src` in its `dist`, and bundles the dashboard.
 * @param {string} root
 */
export async function build(root) {
  console.error('building packages (tsc -b)');
  writeClient(root);
  const before = signature(root); // a file saved during the build triggers the next build
  const tsc = path.join(root, 'node_modules', '@typescript', 'native', 'bin', 'tsc');
  const { ok, output } = await command(process.execPath, [tsc, '-b', root], { cwd: root });
  if (!ok)
    throw new Problem(
      `${output.trim()}\n\nThe build failed: mend the errors above (tsc -b), then run the same command again.`,
    );
  for (const folder of workspaces(root))
    mirror(path.join(folder, 'src'), path.join(folder, 'dist'));
  await buildSite(root);
  fs.writeFileSync(stampOf(root), before);
}

/** @param {string} root */
function stampOf(root) {
  return path.join(root, 'node_modules', '.gateway-built');
}

/**
 * Returns the folders of all packages and plugins.
 * @param {string} root
 */
export function workspaces(root) {
  return ['packages', 'plugins', 'extras']
    .flatMap((group) =>
      list(path.join(root, group)).map((entry) => path.join(root, group, entry.name)),
    )
    .filter((folder) => fs.existsSync(path.join(folder, 'tsconfig.json')));
}

/**
 * Hashes path, size and time of every input of the build: takes milliseconds; reading the files
 * would take longer.
 * @param {string} root
 */
function signature(root) {
  const hash = crypto.createHash('sha256');
  const files = workspaces(root).flatMap((folder) => [
    path.join(folder, 'package.json'),
    path.join(folder, 'tsconfig.json'),
    ...walk(path.join(folder, 'src')),
  ]);
  const inputs = ['tsconfig.json', ...clientInputs].map((name) => path.join(root, name));
  for (const file of [...inputs, ...files]) {
    const { size, mtimeMs } = fs.statSync(file);
    hash.update(`${path.relative(root, file)} ${size} ${mtimeMs}\n`);
  }
  return hash.digest('hex');
}

/**
 * Copies files other than TypeScript from `src` to `dist`, and deletes output of deleted sources,
 * which could still be imported.
 * @param {string} src
 * @param {string} dist
 */
function mirror(src, dist) {
  const kept = new Set(['.tsbuildinfo', '.site']);
  for (const file of walk(src)) {
    const name = path.relative(src, file);
    const compiled = /\.d\.[cm]?ts$/.test(name) ? null : /^(.*)\.([cm]?)tsx?$/.exec(name);
    if (compiled === null) {
      copy(file, path.join(dist, name));
      kept.add(name);
    } else {
      const [, stem, kind] = compiled;
      for (const end of [`${kind}js`, `${kind}js.map`, `d.${kind}ts`, `d.${kind}ts.map`])
        kept.add(`${stem}.${end}`);
    }
  }
  for (const file of walk(dist)) {
    const name = path.relative(dist, file);
    // `site` holds the bundled dashboard.
    if (!kept.has(name) && !name.startsWith(`site${path.sep}`)) fs.rmSync(file, { force: true });
  }
}

/**
 * @param {string} from
 * @param {string} to
 */
function copy(from, to) {
  fs.mkdirSync(path.dirname(to), { recursive: true });
  fs.copyFileSync(from, to);
}

/**
 * @param {string} folder
 * @returns {string[]} recursively
 */
function walk(folder) {
  return list(folder).flatMap((entry) => {
    const place = path.join(folder, entry.name);
    return entry.isDirectory() ? walk(place) : [place];
  });
}

/** @param {string} folder */
function list(folder) {
  return fs.existsSync(folder) ? fs.readdirSync(folder, { withFileTypes: true }) : [];
}
