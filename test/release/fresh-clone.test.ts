// deadline: 900 s, long
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { integrityOf } from '../../scripts/release/lock.mjs';
import { packNpm } from '../../scripts/release/npm.mjs';
import { tempFolder } from '../support/start/keep.js';

const fresh = suite('release/fresh-clone');

const root = fileURLToPath(new URL('../..', import.meta.url));
const clone = path.join(tempFolder('fresh-clone'), 'gateway');
// As in a clone, but with what is not committed.
const files = execFileSync(
  'git',
  ['ls-files', '-z', '--cached', '--others', '--exclude-standard'],
  {
    cwd: root,
    encoding: 'utf8',
  },
).split('\0');
for (const file of files.filter((it) => it !== '' && fs.existsSync(path.join(root, it))))
  fs.cpSync(path.join(root, file), path.join(clone, file), { verbatimSymlinks: true });

fresh('one command makes the packages, the same in each clone', async () => {
  execFileSync('npm', ['run', 'release', '--', '--dry-run', '--only', 'npm'], {
    cwd: clone,
    stdio: ['ignore', 2, 2],
  });
  const out = tempFolder('release');
  const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  execFileSync('node', ['scripts/site/build.mjs'], { cwd: root, stdio: ['ignore', 2, 2] });
  for (const tarball of await packNpm({ root, out })) {
    const name = path.basename(tarball);
    const other = path.join(clone, 'release', name);
    assert.is(integrityOf(other), integrityOf(tarball), name);
  }
  const docs = path.join(clone, 'release', `gateway-docs-${version}.tgz`);
  const list = execFileSync('tar', ['-tzf', docs], { encoding: 'utf8' });
  assert.match(list, 'package/dist/site/index.html');
});

fresh.run();
