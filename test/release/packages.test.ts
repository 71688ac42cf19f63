import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { names } from '../../scripts/release/names.mjs';
import { packNpm } from '../../scripts/release/npm.mjs';
import { tempFolder } from '../support/start/keep.js';

const packages = suite('release/packages');

const root = fileURLToPath(new URL('../..', import.meta.url));
const scope = '@acme-hooks';
const repository = 'https://git.example.com/acme/hooks';
const out = tempFolder('release');
const tarballs = await packNpm({ root, out, names: { ...names, scope, repository } });
for (const tarball of tarballs) {
  const folder = tarball.replace(/\.tgz$/, '');
  fs.mkdirSync(folder);
  execFileSync('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1']);
}

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly engines: { readonly node: string };
  readonly license: string;
  readonly repository: { readonly url: string };
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: unknown;
  readonly scripts?: unknown;
}

const unpacked = tarballs.map((tarball) => {
  const folder = tarball.replace(/\.tgz$/, '');
  const manifest = JSON.parse(read(folder, 'package.json')) as Manifest;
  const files = fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((it) => it.isFile())
    .map((it) => path.relative(folder, path.join(it.parentPath, it.name)));
  return { folder, manifest, files };
});

packages('every package says what it is, under which licence, and where its source is', () => {
  assert.ok(unpacked.length >= 17);
  for (const { folder, manifest, files } of unpacked) {
    assert.match(manifest.name, new RegExp(`^${scope}/[a-z-]+$`));
    assert.match(manifest.description, /\.$/, manifest.name);
    assert.is(manifest.license, 'Apache-2.0', manifest.name);
    assert.match(manifest.engines.node, />=20\.19/, manifest.name);
    assert.is(manifest.repository.url, `git+${repository}.git`);
    assert.is(manifest.scripts, undefined, `${manifest.name} runs nothing on installation`);
    assert.is(manifest.devDependencies, undefined);
    assert.ok(files.includes('LICENSE'), manifest.name);
    assert.ok(read(folder, 'README.md').length > 100, manifest.name);
  }
});

packages('packages move together: each depends on the others at its own version', () => {
  for (const { manifest } of unpacked)
    for (const [name, range] of Object.entries(manifest.dependencies ?? {}))
      if (name.startsWith(scope)) assert.is(range, manifest.version, `${manifest.name}: ${name}`);
});

packages('the scope of the release replaces that of the repository everywhere', () => {
  for (const { folder, files } of unpacked)
    for (const file of files)
      assert.not.match(read(folder, file), /(?<![\w.])@gateway[\\/[]/, `${folder}/${file}`);
});

packages('no package has source maps without sources, or links that lead nowhere', () => {
  for (const { folder, files, manifest } of unpacked)
    for (const file of files) {
      assert.not.match(file, /\.map$|\.tsbuildinfo$/, manifest.name);
      if (/\.[jt]s$/.test(file) && !file.includes('/site/'))
        assert.not.match(read(folder, file), /^\/\/# sourceMappingURL/m, file);
      if (!file.endsWith('.md')) continue;
      for (const [, link = ''] of read(folder, file).matchAll(/\]\(([^)\s]+)/g))
        assert.match(link, /^(https?:\/\/|#|\/__docs__\/)/, `${manifest.name}: ${file}`);
    }
});

packages('the package with the command has dashboards, alerts and migrations with it', () => {
  const cli = of('cli');
  for (const file of [
    'bin/gateway.js',
    'deploy/grafana/gateway.json',
    'deploy/prometheus/alerts.yml',
  ])
    assert.ok(cli.files.includes(file), file);
  assert.ok(of('store').files.includes('migrations/0001_control_plane.up.sql'));
  assert.is(fs.statSync(path.join(cli.folder, 'bin/gateway.js')).mode & 0o111, 0o111);
});

packages('the queue emulator of development comes with its licences, not as a dependency', () => {
  const { folder, manifest } = of('dev');
  assert.is(manifest.dependencies?.['fauxqs'], undefined);
  const services = path.join(folder, 'dist/services');
  assert.match(read(services, 'queue.js'), "from './queue-emulator.js'");
  const licences = read(services, 'queue-emulator.LICENSES.txt');
  for (const name of ['fauxqs', 'fastify', 'cookie'])
    assert.match(licences, new RegExp(`^${name} `, 'm'));
});

packages.run();

function of(name: string) {
  return unpacked.find(({ manifest }) => manifest.name === `${scope}/${name}`)!;
}

function read(folder: string, file: string): string {
  return fs.readFileSync(path.join(folder, file), 'utf8');
}
