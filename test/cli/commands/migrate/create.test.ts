import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../../support/gateway.js';
import { discard, tempFolder } from '../../../support/start/keep.js';

const create = suite('cli/commands/migrate/create');

const nowhere = ['--db-host', '127.0.0.1', '--db-port', '1'];

create('writes a pair of files with the next number, without a database', async () => {
  const folder = tempFolder('migrations');
  try {
    for (const number of ['0001', '0002']) {
      const { code, stdout, stderr } = await runGateway([
        'migrate',
        'create',
        'add_portal_links',
        '--dir',
        folder,
        ...nowhere,
      ]);
      assert.is(code, 0, stderr);
      assert.equal(
        stdout.trim().split('\n'),
        ['up', 'down'].map((direction) =>
          path.join(folder, `${number}_add_portal_links.${direction}.sql`),
        ),
      );
    }
    assert.is(fs.readdirSync(folder).length, 4);
  } finally {
    discard(folder);
  }
});

create('a name that no file should have, and none, are wrong use', async () => {
  for (const [args, sentence] of [
    [['Portal-Links'], '"Portal-Links" is not a valid migration name'],
    [[], 'gateway migrate create needs <name>'],
  ] as const) {
    const { code, stderr } = await runGateway(['migrate', 'create', ...args, ...nowhere]);
    assert.is(code, 2);
    assert.match(stderr, `error: ${sentence}`);
  }
});

create.run();
