// @ts-check
// `npm run release`: makes everything that is published in one folder, and publishes the npm
// packages unless `--dry-run` is given. `--version X.Y.Z` only sets the version before, and `--pin-base`
// only the digest of the base image. `--base` and `--npmrc` are for a build of the image where the
// usual registries cannot be reached.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { prepareOrExit } from './prepare.mjs';
import { Problem } from './prepare/problem.mjs';
import { packChart } from './release/chart.mjs';
import { packDeb } from './release/deb.mjs';
import { buildDocs, siteOf } from './release/docs.mjs';
import { buildImage, pinBase } from './release/image.mjs';
import { names } from './release/names.mjs';
import { packNpm } from './release/npm.mjs';
import { publish } from './release/publish.mjs';
import { writeSbom } from './release/sbom.mjs';
import { setVersion } from './release/version.mjs';

const root = path.resolve(fileURLToPath(new URL('..', import.meta.url)));

/**
 * @typedef {object} Release
 * @property {string} root
 * @property {string} out
 * @property {string} version
 * @property {typeof names} names
 * @property {string[]} packages the npm packages, packed into `out`, for products made of them
 * @property {string | undefined} base replaces the base image in the Dockerfile
 * @property {string | undefined} npmrc configures npm while the image is built
 */

/**
 * @type {Readonly<Record<string, (release: Release) => Promise<string[]>>>} makers by product; each
 *   returns the files that it has written to `out`
 */
const products = {
  docs: buildDocs,
  npm: async ({ packages }) => packages,
  chart: packChart,
  sbom: writeSbom,
  deb: packDeb,
  image: buildImage,
};

/** Products made of the npm packages, which are packed once, with the docs in one of them. */
const OF_PACKAGES = ['npm', 'deb', 'image'];
/** Products with the docs. */
const OF_DOCS = [...OF_PACKAGES, 'sbom'];

const { values } = parseArgs({
  options: {
    'dry-run': { type: 'boolean', default: false },
    out: { type: 'string', default: 'release' },
    only: { type: 'string', default: Object.keys(products).join(',') },
    scope: { type: 'string', default: names.scope },
    version: { type: 'string' },
    base: { type: 'string' },
    'pin-base': { type: 'boolean', default: false },
    npmrc: { type: 'string' },
  },
});

try {
  if (values['pin-base']) await pinBase(root, values.base);
  else if (values.version) await setVersion({ root, version: values.version });
  else await release();
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  console.error(error.message);
  process.exitCode = 1;
}

async function release() {
  await prepareOrExit();
  const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
  const out = path.resolve(values.out);
  const settled = { ...names, scope: values.scope };
  if (!values['dry-run'] && new URL(settled.repository).host === 'example.com')
    throw new Problem(
      'scripts/release/names.mjs still names a repository at example.com: set scope and repository to your own, or pass --dry-run',
    );
  fs.rmSync(out, { recursive: true, force: true });
  fs.mkdirSync(out, { recursive: true });
  const { base, npmrc } = values;
  /** @type {Release} */
  const settings = { root, out, version, names: settled, packages: [], base, npmrc };
  for (const product of values.only.split(',')) {
    const make = products[product];
    if (!make)
      throw new Problem(`--only ${product}: give some of ${Object.keys(products).join(', ')}`);
    if (OF_DOCS.includes(product)) await siteOf(settings);
    if (OF_PACKAGES.includes(product) && settings.packages.length === 0)
      settings.packages = await packNpm(settings);
    for (const file of await make(settings)) {
      console.log(`${product}  ${path.relative(out, file)}  ${size(file)}`);
      if (product === 'npm' && !values['dry-run']) console.log(await publish(file));
    }
  }
}

/** @param {string} file */
function size(file) {
  return `${(fs.statSync(file).size / 1e6).toFixed(2)} MB`;
}
