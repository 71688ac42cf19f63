import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { publish } from '../../scripts/release/publish.mjs';
import { tempFolder } from '../support/start/keep.js';
import { startRegistry } from './registry.js';

const published = suite('release/publish');

const registry = await startRegistry([]);
published.after(registry.close);
const home = tempFolder('publish');
const npmrc = path.join(home, 'npmrc');
fs.writeFileSync(
  npmrc,
  `registry=${registry.url}\n${registry.url.replace('http:', '')}/:_authToken=secret\n`,
);
process.env['NPM_CONFIG_USERCONFIG'] = npmrc;
// As in a CI that npm does not know.
for (const name of ['ACTIONS_ID_TOKEN_REQUEST_URL', 'SIGSTORE_ID_TOKEN', 'GITHUB_ACTIONS'])
  delete process.env[name];

function packed(content: string): string {
  const folder = tempFolder('packed');
  const manifest = { name: '@acme/hooks', version: '1.0.0', publishConfig: { access: 'public' } };
  fs.writeFileSync(path.join(folder, 'package.json'), JSON.stringify(manifest));
  fs.writeFileSync(path.join(folder, 'index.js'), content);
  execFileSync('npm', ['pack', '--silent'], { cwd: folder });
  return path.join(folder, 'acme-hooks-1.0.0.tgz');
}

published('any machine publishes, and a second run leaves alone what is there', async () => {
  const tarball = packed('export {};');
  assert.is(await publish(tarball), '@acme/hooks@1.0.0 is published.');
  assert.is(await publish(tarball), '@acme/hooks@1.0.0 is published already.');
  assert.equal(registry.published, ['@acme/hooks']);
});

published('a version with other content is refused', async () => {
  await publish(packed('export const changed = true;')).then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /published with other content.*--version/),
  );
});

published.run();
