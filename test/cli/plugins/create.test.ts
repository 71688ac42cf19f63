import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createPlugin } from '#cli/plugins/create';
import { tempFolder } from '../../support/start/keep.js';

const create = suite('cli/plugins/create');

/** The longest path on Linux, without the final zero: linux/limits.h. */
const PATH_MAX = 4095;

create('a package that cannot be written whole leaves nothing, so a second attempt works', () => {
  const parent = tempFolder('author');
  // package.json has a place there, and src/conformance.ts has none.
  let folder = path.join(parent, 'new');
  const length = PATH_MAX - '/src/index.ts'.length;
  while (folder.length < length)
    folder += `/${'x'.repeat(Math.max(1, Math.min(200, length - folder.length - 1)))}`;
  assert.throws(() => createPlugin('source', 'mine', folder), /cannot be written: ENAMETOOLONG/);
  assert.equal(fs.readdirSync(parent), []);

  const given = path.dirname(folder);
  fs.mkdirSync(given, { recursive: true });
  assert.throws(() => createPlugin('source', 'mine', folder), /cannot be written: ENAMETOOLONG/);
  assert.equal(fs.readdirSync(given), []);
  fs.mkdirSync(folder);
  assert.throws(() => createPlugin('source', 'mine', folder), /cannot be written: ENAMETOOLONG/);
  assert.equal(fs.readdirSync(folder), []);

  assert.ok(createPlugin('source', 'mine', path.join(parent, 'mine')).files > 5);
});

create.run();
