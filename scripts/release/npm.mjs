// @ts-check
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { workspaces } from '../prepare/build.mjs';
import { succeed } from '../prepare/command.mjs';
import { LICENCE_END, licencesOf } from '../prepare/site.mjs';
import { writeLock } from './lock.mjs';
import { names as settled } from './names.mjs';

/** Files from elsewhere in the repository, by the package that has them. */
const MORE_FILES = new Map([
  ['@gateway/store', ['migrations']],
  ['@gateway/cli', ['deploy/grafana', 'deploy/prometheus', 'CHANGELOG.md']],
]);

/** Packages with a page in the documentation. */
const PAGES = new Map([
  ['@gateway/archive', 'docs/guides/archive.md'],
  ['@gateway/cli', 'README.md'],
  ['@gateway/convoy', 'docs/guides/coming-from.md'],
  ['@gateway/dev', 'docs/start.md'],
  ['@gateway/client', 'docs/guides/client.md'],
  ['@gateway/plugin', 'docs/internals/plugins.md'],
  ['@gateway/plugin-conformance', 'docs/guides/write-a-plugin.md'],
  ['@gateway/codec-avro', 'docs/guides/codecs.md'],
  ['@gateway/codec-cloudevents', 'docs/guides/cloudevents.md'],
  ['@gateway/codec-json-schema', 'docs/guides/codecs.md'],
  ['@gateway/codec-protobuf', 'docs/guides/codecs.md'],
  ['@gateway/source-http', 'docs/guides/http-sources.md'],
  ['@gateway/source-kafka', 'docs/guides/kafka.md'],
  ['@gateway/source-sqs', 'docs/guides/sqs.md'],
  ['@gateway/tracer-apm', 'docs/guides/tracing.md'],
  ['@gateway/tracer-errtrack', 'docs/guides/tracing.md'],
  ['@gateway/tracer-otel', 'docs/guides/tracing.md'],
  ['@gateway/metrics-pullmetrics', 'docs/guides/metrics.md'],
]);

const TEXT = /\.(js|mjs|ts|json|md|sql|yml|html|txt)$|(^|\/)gitignore$/;

/**
 * Packs the built packages and plugins for npm, dependencies first, and locks an installation of
 * them.
 * @param {{ root: string, out: string, names?: typeof settled }} options `out` receives the tarballs, a package.json and a package-lock.json
 * @returns {Promise<string[]>} the tarballs
 */
export async function packNpm({ root, out, names = settled }) {
  const stage = fs.mkdtempSync(path.join(os.tmpdir(), 'gateway-release-'));
  try {
    const packages = inOrder(
      workspaces(root).map((folder) => ({
        folder,
        manifest: JSON.parse(read(path.join(folder, 'package.json'))),
      })),
    );
    const folders = [];
    for (const one of packages) folders.push(await staged(root, stage, one, names));
    fs.mkdirSync(out, { recursive: true });
    const npm = ['pack', '--json', '--ignore-scripts', `--pack-destination=${out}`];
    await succeed('npm', [...npm, ...folders], { cwd: stage });
    const tarballs = packages.map(({ manifest }) => path.join(out, tarballOf(manifest, names)));
    await writeLock({ root, out, names, tarballs });
    return tarballs;
  } finally {
    fs.rmSync(stage, { recursive: true });
  }
}

/** @typedef {{ folder: string, manifest: any }} Workspace */

/**
 * @param {readonly Workspace[]} all
 * @returns {Workspace[]}
 */
function inOrder(all) {
  /** @type {Set<Workspace>} */
  const ordered = new Set();
  const add = (/** @type {Workspace} */ one) => {
    for (const other of all) if (one.manifest.dependencies?.[other.manifest.name]) add(other);
    ordered.add(one);
  };
  all.forEach(add);
  return [...ordered];
}

/**
 * Writes the content of a package to a folder of its own.
 * @param {string} root
 * @param {string} stage
 * @param {Workspace} workspace
 * @param {typeof settled} names
 */
async function staged(root, stage, { folder, manifest }, names) {
  const { name, version, description, devDependencies: _, ...rest } = manifest;
  const target = path.join(stage, path.basename(folder));
  const more = MORE_FILES.get(name) ?? [];
  for (const file of rest.files) copy(path.join(folder, file), path.join(target, file));
  for (const file of [...more, 'LICENSE']) copy(path.join(root, file), path.join(target, file));
  if (name === '@gateway/dev') await bundleQueueEmulator(root, target);

  const page = PAGES.get(name);
  const at = `${names.repository}/blob/v${version}`;
  const readme =
    page === 'README.md'
      ? read(path.join(root, page))
      : `# ${name}\n\n${description}\n\n${page ? `[Documentation](${page})` : `An internal package of [the gateway](README.md): its exports change without notice.`}\n`;
  fs.writeFileSync(path.join(target, 'README.md'), readme);
  const published = {
    name,
    version,
    description,
    ...rest,
    homepage: `${at}/${page ?? 'README.md'}`,
    repository: {
      type: 'git',
      url: `git+${names.repository}.git`,
      directory: path.relative(root, folder),
    },
    files: [...rest.files, ...more],
  };
  fs.writeFileSync(path.join(target, 'package.json'), `${JSON.stringify(published, null, 2)}\n`);

  for (const entry of fs.readdirSync(target, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (!entry.isFile() || !TEXT.test(file)) continue;
    let text = read(file).replaceAll(/(?<![\w.])@gateway(?=\\?\/|\[)/g, names.scope);
    if (file.endsWith('.md')) text = text.replaceAll(/(\]\(|src=")(?!https?:|#|\/)/g, `$1${at}/`);
    // The maps name sources that are not in the package.
    if (/\.[jt]s$/.test(file)) text = text.replace(/\n\/\/# sourceMappingURL=.*\.map\n?$/, '\n');
    fs.writeFileSync(file, text);
  }
  return target;
}

/**
 * Puts the queue emulator of `gateway dev` in the package: one of its dependencies refuses Node 20
 * in package managers that check engines.
 * @param {string} root
 * @param {string} target
 */
async function bundleQueueEmulator(root, target) {
  const folder = path.join(target, 'dist', 'services');
  const { code, licences } = await queueEmulator(root);
  fs.writeFileSync(path.join(folder, 'queue-emulator.js'), code);
  fs.writeFileSync(
    path.join(folder, 'queue-emulator.LICENSES.txt'),
    `${licences.join(LICENCE_END)}\n`,
  );
  const user = path.join(folder, 'queue.js');
  fs.writeFileSync(user, read(user).replace("from 'fauxqs'", "from './queue-emulator.js'"));
}

/**
 * Bundles the queue emulator.
 * @param {string} root
 */
export async function queueEmulator(root) {
  // Imported lazily: a release installs the packages first.
  const { build } = await import('esbuild');
  const { metafile, outputFiles } = await build({
    stdin: { contents: "export { buildApp } from 'fauxqs';", resolveDir: root },
    write: false,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    minify: true,
    metafile: true,
    legalComments: 'none',
    absWorkingDir: root,
    logLevel: 'error',
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
  });
  return {
    code: outputFiles[0]?.text ?? '',
    licences: licencesOf(Object.keys(metafile.inputs), root),
  };
}

/**
 * Copies a file or folder, without source maps and the compiler's notes.
 * @param {string} from
 * @param {string} to
 */
function copy(from, to) {
  fs.cpSync(from, to, {
    recursive: true,
    filter: (file) => !/\.map$|\.tsbuildinfo$|\/\.site$/.test(file),
  });
}

/**
 * @param {any} manifest
 * @param {typeof settled} names
 */
function tarballOf({ name, version }, { scope }) {
  return `${scope.replace('@', '')}-${name.split('/')[1]}-${version}.tgz`;
}

/** @param {string} file */
function read(file) {
  return fs.readFileSync(file, 'utf8');
}
