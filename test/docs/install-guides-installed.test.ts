// long
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { packNpm } from '../../scripts/release/npm.mjs';
import { root } from '../meta/house.js';
import { startRegistry } from '../release/registry.js';
import { tempFolder } from '../support/start/keep.js';
import { follow } from './follow.js';

/** The guide with its first command: npm installs the packages of a release. */
const guides = suite('docs/install-guides-installed');

// The installation is outside the repository: its coverage would be discarded.
delete process.env['NODE_V8_COVERAGE'];

const run = promisify(execFile);
const upstream = (await run('npm', ['config', 'get', 'registry'])).stdout.trim();
const registry = await startRegistry(await packNpm({ root, out: tempFolder('release') }));
guides.after(registry.close);

guides('docs/guides/install.md, from npm install to a delivered message', async () => {
  const prefix = tempFolder('prefix');
  const userconfig = path.join(prefix, '.npmrc');
  fs.writeFileSync(userconfig, `@gateway:registry=${registry.url}\nregistry=${upstream}\n`);
  const requests = await follow('docs/guides/install.md', {
    path: [path.join(prefix, 'bin')],
    env: {
      ...(process.env as Record<string, string>),
      npm_config_prefix: prefix,
      npm_config_userconfig: userconfig,
      npm_config_cache: tempFolder('npm-cache'),
    },
  });
  assert.ok(fs.existsSync(path.join(prefix, 'lib/node_modules/@gateway/cli/package.json')));
  assert.equal(
    requests.map(({ body }) => JSON.parse(body.toString()) as unknown),
    [{ id: 'o-1' }],
  );
});

guides.run();
