import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { workspaces } from '../../scripts/prepare/build.mjs';
import { setVersion } from '../../scripts/release/version.mjs';
import { tempFolder } from '../support/start/keep.js';

const versions = suite('release/version');

const root = fileURLToPath(new URL('../..', import.meta.url));
const copy = tempFolder('version');
const folders = workspaces(root).map((folder) => path.relative(root, folder));
const manifests = ['', ...folders].map((folder) => path.join(folder, 'package.json'));
const others = ['package-lock.json', 'CHANGELOG.md'];
for (const name of [
  ...manifests,
  ...folders.map((it) => path.join(it, 'tsconfig.json')),
  ...others,
])
  fs.cpSync(path.join(root, name), path.join(copy, name));
const read = (name: string) => fs.readFileSync(path.join(copy, name), 'utf8');

interface Manifest {
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
}

versions(
  'all packages, what they need of each other, and the changelog move together',
  async () => {
    const before = read('CHANGELOG.md');
    await setVersion({ root: copy, version: '7.8.9' });
    const locked = (JSON.parse(read('package-lock.json')) as { packages: Record<string, Manifest> })
      .packages;
    for (const name of manifests) {
      const manifest = JSON.parse(read(name)) as Manifest;
      const own = Object.entries(manifest.dependencies ?? {}).filter(([it]) =>
        it.startsWith('@gateway/'),
      );
      for (const it of [manifest, locked[path.dirname(name).replace(/^\.$/, '')]])
        assert.is(it?.version, '7.8.9', name);
      for (const [dependency, version] of own)
        assert.is(version, '7.8.9', `${name}: ${dependency}`);
    }
    const [head, changes] = before.split('## Unreleased\n');
    const today = new Date().toISOString().slice(0, 10);
    assert.is(read('CHANGELOG.md'), `${head}## Unreleased\n\n## 7.8.9 - ${today}\n${changes}`);
  },
);

versions('a version without changes is refused, and nothing is written', async () => {
  const refusal = await setVersion({ root: copy, version: '7.8.10' }).catch(String);
  assert.match(refusal ?? '', 'CHANGELOG.md has no changes under "Unreleased"');
  assert.is((JSON.parse(read('package.json')) as Manifest).version, '7.8.9');
});

versions.run();
