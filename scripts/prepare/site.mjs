// @ts-check
// `node scripts/prepare/site.mjs`: bundles the dashboard and the API viewer, unless their sources
// are unchanged since the last bundle.
import crypto from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import zlib from 'node:zlib';
import { Problem } from './problem.mjs';

/**
 * Builds `packages/dashboard/dist/site`; runs after `tsc -b`.
 * @param {string} root
 */
export async function buildSite(root) {
  const home = path.join(root, 'packages', 'dashboard');
  const site = path.join(home, 'dist', 'site');
  const signature = signatureOf([
    path.join(home, 'src'),
    path.join(root, 'packages', 'client', 'dist'),
    path.join(root, 'package-lock.json'),
    fileURLToPath(import.meta.url),
  ]);
  const stamp = path.join(home, 'dist', '.site');
  if (fs.existsSync(site) && fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === signature)
    return;
  const fresh = `${site}.${process.pid}`;
  try {
    await bundle(home, fresh);
    fs.rmSync(site, { recursive: true, force: true });
    fs.renameSync(fresh, site);
    fs.writeFileSync(stamp, signature);
  } finally {
    fs.rmSync(fresh, { recursive: true, force: true });
  }
}

/**
 * @param {string} home
 * @param {string} target
 */
async function bundle(home, target) {
  // Imported lazily: the packages are installed first.
  const { build } = await import('esbuild');
  const src = path.join(home, 'src');
  /** @satisfies {import('esbuild').BuildOptions} */
  const shared = {
    bundle: true,
    minify: true,
    metafile: true,
    outdir: path.join(target, 'assets'),
    entryNames: '[name]-[hash]',
    chunkNames: '[name]-[hash]',
    target: ['es2022', 'chrome123', 'firefox121', 'safari17.5'],
    logLevel: 'silent',
  };
  const results = await Promise.all([
    build({
      ...shared,
      entryPoints: [path.join(src, 'main.tsx')],
      format: 'esm',
      splitting: true,
      jsx: 'automatic',
      jsxImportSource: 'preact',
      define: { 'process.env.NODE_ENV': '"production"' },
    }),
    build({ ...shared, entryPoints: [path.join(src, 'theme.ts')], format: 'iife' }),
    build({
      ...shared,
      entryNames: 'style-[hash]',
      stdin: { contents: stylesOf(src), loader: 'css', resolveDir: src, sourcefile: 'style.css' },
    }),
  ]).catch((/** @type {import('esbuild').BuildFailure} */ { errors, message }) => {
    const lines = errors?.map(
      ({ text, location }) => `${location?.file}:${location?.line}: ${text}`,
    ) ?? [message];
    throw new Problem(
      `${lines.join('\n')}\n\nThe dashboard could not be bundled: correct the errors above, then run the same command again.`,
    );
  });
  const outputs = Object.assign({}, ...results.map(({ metafile }) => metafile.outputs));
  /** @param {string} source */
  const entry = (source) => {
    const found = Object.entries(outputs).find(
      ([, { entryPoint }]) => entryPoint && path.basename(entryPoint) === source,
    );
    if (!found) throw new Error(`the bundle has no ${source}`);
    return { name: path.basename(found[0]), imports: found[1].imports };
  };
  const main = entry('main.tsx');
  const preload = main.imports
    .filter((/** @type {{ kind: string }} */ { kind }) => kind === 'import-statement')
    .map(
      (/** @type {{ path: string }} */ it) =>
        `<link rel="modulepreload" href="{{root}}/assets/${path.basename(it.path)}" />`,
    );
  /** @type {Readonly<Record<string, string>>} */
  const values = {
    theme: entry('theme.ts').name,
    style: entry('style.css').name,
    main: main.name,
    preload: preload.join('\n    '),
  };
  const page = fs.readFileSync(path.join(src, 'index.html'), 'utf8');
  fs.writeFileSync(
    path.join(target, 'index.html'),
    page.replaceAll(/\{\{(theme|style|main|preload)\}\}/g, (_, name) => values[name] ?? ''),
  );
  // A dev dependency: the package's install script reports the installation.
  const viewer = path.dirname(
    createRequire(path.join(home, 'package.json')).resolve('swagger-ui-dist/package.json'),
  );
  fs.mkdirSync(path.join(target, 'viewer'));
  for (const name of [
    'swagger-ui.css',
    'swagger-ui-bundle.js',
    'swagger-ui-bundle.js.LICENSE.txt',
    'LICENSE',
    'NOTICE',
  ])
    fs.copyFileSync(path.join(viewer, name), path.join(target, 'viewer', name));
  const inputs = results.flatMap(({ metafile }) => Object.keys(metafile.inputs));
  fs.writeFileSync(
    path.join(target, 'assets', 'licences.txt'),
    licencesOf(inputs).join(LICENCE_END),
  );
  for (const name of fs.readdirSync(path.join(target, 'assets')))
    compress(path.join(target, 'assets', name));
}

/**
 * Concatenates the style sheets: tokens and base first.
 * @param {string} src
 */
function stylesOf(src) {
  const names = fs
    .readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.css'))
    .map((name) => name.split(path.sep).join('/'));
  const first = ['styles/tokens.css', 'styles/base.css'];
  return [...first, ...names.filter((name) => !first.includes(name)).sort()]
    .map((name) => `@import './${name}';`)
    .join('\n');
}

/** Separates the licences in a file that accompanies a bundle. */
export const LICENCE_END = '\n\n----\n\n';

/**
 * The licences of bundled packages, which require a copy of their text. Each begins with a line of
 * name and version.
 * @param {Iterable<string>} inputs
 * @param {string} [base] what relative inputs are relative to
 */
export function licencesOf(inputs, base = '') {
  const packages = new Set(
    [...inputs].flatMap((name) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? []),
  );
  return [...packages].sort().map((place) => {
    const folder = path.join(base, place);
    const file = fs.readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    const { name, version, license } = JSON.parse(
      fs.readFileSync(path.join(folder, 'package.json'), 'utf8'),
    );
    return `${name} ${version}\n\n${file ? fs.readFileSync(path.join(folder, file), 'utf8') : license}`;
  });
}

/**
 * Writes `<file>.br` and `<file>.gz`, so that the server compresses nothing.
 * @param {string} file
 */
function compress(file) {
  const bytes = fs.readFileSync(file);
  if (bytes.length < 1000) return;
  fs.writeFileSync(
    `${file}.br`,
    zlib.brotliCompressSync(bytes, {
      params: { [zlib.constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
  );
  fs.writeFileSync(`${file}.gz`, zlib.gzipSync(bytes, { level: 9 }));
}

/**
 * Hashes path, size and time of all files.
 * @param {string[]} places
 */
export function signatureOf(places) {
  const hash = crypto.createHash('sha256');
  for (const place of places) {
    const isFolder = fs.statSync(place).isDirectory();
    const names = isFolder
      ? fs.readdirSync(place, { recursive: true, encoding: 'utf8' }).sort()
      : [''];
    for (const name of names) {
      const { size, mtimeMs } = fs.statSync(path.join(place, name));
      hash.update(`${place}/${name} ${size} ${mtimeMs}\n`);
    }
  }
  return hash.digest('hex');
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  try {
    await buildSite(path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..'));
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    console.error(error.message);
    process.exit(1);
  }
}
