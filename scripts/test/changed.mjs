// @ts-check
// Selects the test files that a change can break, by their imports: their files, the sources behind
// `#package/…` and `@gateway/…`, and, if they start the gateway as a process, everything it can
// load.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

/** Changes that can break any test. */
const everything =
  /^(package(-lock)?\.json|tsconfig\.json|test\/(tsconfig\.json|support\/)|scripts\/(test|prepare))/;
/** The module that starts `bin/gateway.js`. */
const starter = 'test/support/gateway.ts';

/**
 * Returns files that differ from a commit, and untracked files.
 * @param {string} root
 * @param {string} base
 * @returns {string[]} from the root
 */
export function changedFiles(root, base) {
  const git = (/** @type {string[]} */ ...args) =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8' }).split('\n').filter(Boolean);
  const files = [
    ...git('diff', '--name-only', base),
    ...git('ls-files', '--others', '--exclude-standard'),
  ];
  // The source of the client is made from the document, and ignored by git.
  return files.includes('docs/reference/openapi.json')
    ? [...files, 'packages/client/src/generated.ts']
    : files;
}

/**
 * Returns the test files that changed files can break; always includes `meta`, which reads the
 * whole repository.
 * @param {import('./files.mjs').TestFile[]} tests
 * @param {string} root
 * @param {readonly string[]} changed from the root
 */
export function affected(tests, root, changed) {
  if (changed.length === 0) return [];
  if (changed.some((file) => everything.test(file))) return tests;
  const gateway = new Set([
    ...['plugins', 'extras'].flatMap((group) => sources(root, group)),
    ...reachable(root, path.join(root, 'packages', 'cli', 'bin', 'gateway.js')),
  ]);
  const migrates = changed.some((file) => file.startsWith('migrations/'));
  const places = new Set(changed.map((file) => path.join(root, file)));
  const startsGateway = changed.some(
    (file) => gateway.has(path.join(root, file)) || file.startsWith('bin/'),
  );
  return tests.filter(({ name, file, services }) => {
    if (name.startsWith('meta/')) return true;
    if (migrates && services.includes('postgres')) return true;
    const used = reachable(root, file);
    if (startsGateway && used.has(path.join(root, starter))) return true;
    return [...used].some((place) => places.has(place)) || readsChangedFixture(file, changed);
  });
}

/**
 * A test mentions the folder of its fixtures.
 * @param {string} file
 * @param {readonly string[]} changed
 */
function readsChangedFixture(file, changed) {
  const folders = new Set(
    changed
      .map((name) => /^test\/(fixtures\/[^/]+)/.exec(name)?.[1])
      .filter((name) => name !== undefined),
  );
  return (
    folders.size > 0 &&
    [...folders].some((folder) =>
      fs.readFileSync(file, 'utf8').includes(/** @type {string} */ (folder)),
    )
  );
}

/** @type {Map<string, string[]>} */
const importsByFile = new Map();

/**
 * Returns a file and its transitive imports.
 * @param {string} root
 * @param {string} file absolute
 */
function reachable(root, file, seen = new Set()) {
  if (seen.has(file)) return seen;
  seen.add(file);
  let found = importsByFile.get(file);
  if (!found) {
    const specifiers = [
      ...fs.readFileSync(file, 'utf8').matchAll(/(?:\bfrom |\bimport\(|^import )'([^']+)'/gm),
    ].map(([, name]) => name ?? '');
    found = specifiers.flatMap((specifier) => resolved(root, file, specifier) ?? []);
    importsByFile.set(file, found);
  }
  for (const next of found) reachable(root, next, seen);
  return seen;
}

/**
 * Resolves a specifier to its source, absolute; undefined for libraries and missing files.
 * @param {string} root
 * @param {string} file
 * @param {string} specifier
 */
function resolved(root, file, specifier) {
  const inside = /^#([^/]+)\/(.+)$/.exec(specifier);
  if (inside) return sourceOf(path.join(folderOf(root, inside[1] ?? ''), 'src', `${inside[2]}.js`));
  const entry = /^@gateway\/([^/]+)(\/.+)?$/.exec(specifier);
  if (entry) {
    const folder = folderOf(root, entry[1] ?? '');
    const { exports } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const [, , subpath = ''] = entry;
    const target = exports?.[`.${subpath}`] ?? exports?.['./*']?.replace('*', subpath.slice(1));
    const place = typeof target === 'string' ? target : target?.default;
    return place && sourceOf(path.join(folder, place.replace('./dist/', 'src/')));
  }
  return specifier.startsWith('.')
    ? sourceOf(path.resolve(path.dirname(file), specifier))
    : undefined;
}

/** @param {string} place as imported, with `.js` */
function sourceOf(place) {
  return [place.replace(/\.js$/, '.ts'), place].find(
    (name) => fs.existsSync(name) && fs.statSync(name).isFile(),
  );
}

/**
 * @param {string} root
 * @param {string} name
 */
function folderOf(root, name) {
  const places = ['packages', 'extras', 'plugins'].map((group) => path.join(root, group, name));
  const isPackage = (/** @type {string} */ place) =>
    fs.existsSync(path.join(place, 'package.json'));
  return places.find(isPackage) ?? path.join(root, 'plugins', name);
}

/**
 * @param {string} root
 * @param {string} group
 */
function sources(root, group) {
  const names = fs.readdirSync(path.join(root, group), { recursive: true, encoding: 'utf8' });
  return names
    .filter((name) => /^[^/]+\/src\/.*\.ts$/.test(name))
    .map((name) => path.join(root, group, name));
}
