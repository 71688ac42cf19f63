// @ts-check
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { LICENCE_END } from '../prepare/site.mjs';
import { queueEmulator } from './npm.mjs';

/** Licences of packages that an installation contains. Of alternatives (`A OR B`) one suffices. */
export const allowedLicences = [
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MIT-0',
  'PSF-2.0',
];

/**
 * The parts of a CycloneDX document that this file reads.
 * @typedef {object} Component
 * @property {string} name
 * @property {string} version
 * @property {string} bom-ref
 * @property {string} [type]
 * @property {string} [purl]
 * @property {{ alg: string, content: string }[]} [hashes]
 * @property {{ expression?: string, license?: { id?: string, name?: string } }[]} [licenses]
 *
 * @typedef {object} Bom
 * @property {{ component: { 'bom-ref': string } }} metadata
 * @property {Component[]} components
 * @property {{ ref: string, dependsOn: string[] }[]} dependencies
 */

/**
 * Writes the bill of materials of an installation, with what is bundled in packages, and a table of
 * its licences. Reads package-lock.json, the built dashboard and the docs; needs no network.
 * @param {{ root: string, out: string, version: string, names?: { scope: string } }} options
 * @returns {Promise<string[]>} `gateway-<version>.cdx.json` and `gateway-<version>-licences.md`
 * @throws if a licence is not allowed
 */
export async function writeSbom({ root, out, version, names = { scope: '@gateway' } }) {
  const bom = installed(root);
  const self = { 'bom-ref': `gateway@${version}`, type: 'application', name: 'gateway', version };
  for (const it of bom.dependencies)
    if (it.ref === bom.metadata.component['bom-ref']) it.ref = self['bom-ref'];
  bom.metadata.component = self;
  await addBundled(bom, root);
  const refused = refusedLicences(bom.components);
  if (refused.length > 0)
    throw new Error(
      `licences that are not allowed: ${refused.join(', ')}. Choose other packages, or add the licence to allowedLicences in scripts/release/sbom.mjs`,
    );
  fs.mkdirSync(out, { recursive: true });
  const list = path.join(out, `gateway-${version}.cdx.json`);
  const table = path.join(out, `gateway-${version}-licences.md`);
  const published = (/** @type {string} */ text) =>
    text.replaceAll(/(@|%40)gateway\//g, `$1${names.scope.slice(1)}/`);
  fs.writeFileSync(list, published(`${JSON.stringify(bom, null, 2)}\n`));
  fs.writeFileSync(table, published(licenceTable(bom.components, version)));
  return [list, table];
}

/**
 * Returns `name@version: licence` of each component without an allowed licence.
 * @param {Component[]} components
 */
export function refusedLicences(components) {
  return components
    .filter(
      (it) =>
        !licenceOf(it)
          .split(' OR ')
          .some((one) => allowedLicences.includes(one)),
    )
    .map((it) => `${it['bom-ref']}: ${licenceOf(it) || 'none'}`);
}

/**
 * The components of an installation. The lock file is copied without development tools, because
 * npm leaves out a dependency of a package when the root has it as a dev dependency too.
 * @param {string} root
 */
function installed(root) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'gateway-sbom-'));
  try {
    const read = (/** @type {string} */ name) =>
      JSON.parse(fs.readFileSync(path.join(root, name), 'utf8'));
    const lock = read('package-lock.json');
    for (const [place, locked] of Object.entries(lock.packages)) {
      if (locked.dev) delete lock.packages[place];
      else delete locked.devDependencies;
    }
    const manifest = { ...read('package.json'), devDependencies: {} };
    fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
    fs.writeFileSync(path.join(folder, 'package-lock.json'), JSON.stringify(lock));
    return npmSbom(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} cwd
 * @returns {Bom}
 */
function npmSbom(cwd) {
  const text = execFileSync('npm', ['sbom', '--sbom-format=cyclonedx', '--package-lock-only'], {
    cwd,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  });
  const bom = JSON.parse(text);
  // npm names workspaces by their folders.
  for (const it of bom.components) it.name = it['bom-ref'].replace(/@[^@]*$/, '');
  return bom;
}

/**
 * Adds what is bundled in the dashboard, the docs and `gateway dev`: dev dependencies to npm.
 * @param {Bom} bom
 * @param {string} root
 */
async function addBundled(bom, root) {
  const read = (/** @type {string} */ file) => fs.readFileSync(path.join(root, file), 'utf8');
  const licences = (/** @type {string} */ file) =>
    read(`packages/${file}/licences.txt`).split(LICENCE_END);
  const bundles = {
    '@gateway/dashboard': [...licences('dashboard/dist/site/assets'), 'swagger-ui-dist'],
    '@gateway/docs': licences('docs/dist/site/static'),
    '@gateway/dev': (await queueEmulator(root)).licences,
  };
  const { packages } = JSON.parse(read('package-lock.json'));
  const known = new Map(
    Object.entries(packages).map(([place, locked]) => {
      const name = locked.name ?? place.replace(/^.*node_modules\//, '');
      return [`${name}@${locked.version}`, componentOf(name, locked)];
    }),
  );
  const viewer = packages['node_modules/swagger-ui-dist'].version;
  for (const [name, texts] of Object.entries(bundles)) {
    const refs = texts
      .map((text) => (text === 'swagger-ui-dist' ? `${text} ${viewer}` : text))
      .map((text) => String(text.split('\n', 1)[0]).replace(' ', '@'));
    for (const ref of new Set(refs)) {
      if (bom.components.some((it) => it['bom-ref'] === ref)) continue;
      const component = known.get(ref);
      if (!component) throw new Error(`${ref} is bundled in ${name}, but not in package-lock.json`);
      bom.components.push(component);
      bom.dependencies.push({ ref, dependsOn: [] });
    }
    const own = bom.dependencies.find((it) => it.ref.startsWith(`${name}@`));
    if (own) own.dependsOn = [...new Set([...own.dependsOn, ...refs])];
  }
}

/**
 * @param {string} name
 * @param {{ version: string, license?: string, integrity?: string }} locked
 * @returns {Component}
 */
function componentOf(name, { version, license = '', integrity = '' }) {
  const content = Buffer.from(integrity.replace('sha512-', ''), 'base64').toString('hex');
  return {
    'bom-ref': `${name}@${version}`,
    type: 'library',
    name,
    version,
    purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
    hashes: [{ alg: 'SHA-512', content }],
    licenses: [/^[\w.-]+$/.test(license) ? { license: { id: license } } : { expression: license }],
  };
}

/** @param {Component} component */
function licenceOf({ licenses = [] }) {
  return licenses
    .map(({ expression, license }) => expression ?? license?.id ?? license?.name ?? '')
    .join(' AND ')
    .replace(/^\((.*)\)$/, '$1');
}

/**
 * @param {Component[]} components
 * @param {string} version
 */
function licenceTable(components, version) {
  const rows = components.map((it) => `| ${it.name} | ${it.version} | ${licenceOf(it)} |`).sort();
  return `# Licences of gateway ${version}

The gateway is licensed under Apache-2.0. An installation with all plugins contains these packages:

| Package | Version | Licence |
|---|---|---|
${rows.join('\n')}
`;
}
