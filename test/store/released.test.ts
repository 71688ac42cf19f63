import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migrationsDir } from '#store/postgres/migrate';
import { recordStatements, replay, type ReleasedStatement } from './released.js';

const released = suite('store/released');

/**
 * The statements of agents and servers of released schemas, each in a file named after its newest
 * migration. A release with migrations adds a file:
 * `UPDATE_SNAPSHOTS=1 node --import tsx test/store/released.test.ts`, before the next migration is
 * written. Files are never changed.
 */
const folder = fileURLToPath(new URL('./released/', import.meta.url));

if (process.env['UPDATE_SNAPSHOTS']) {
  const newest = readdirSync(migrationsDir())
    .flatMap((file) => /^(.+)\.up\.sql$/.exec(file)?.[1] ?? [])
    .sort()
    .at(-1)!;
  writeFileSync(
    `${folder}${newest}.json`,
    `${JSON.stringify(await recordStatements(), null, 1)}\n`,
  );
}

const schemas = readdirSync(folder).map((file) => file.replace(/\.json$/, ''));

released('there are statements of an earlier schema, so that something is looked at', () => {
  assert.ok(schemas.includes('0006_metrics'), schemas.join());
});

for (const schema of schemas) {
  released(
    `what a gateway of ${schema} sends does on the newest schema what it did on its own`,
    async () => {
      const statements = JSON.parse(
        readFileSync(`${folder}${schema}.json`, 'utf8'),
      ) as ReleasedStatement[];
      assert.ok(statements.length > 30);
      for (const [k, { text, rows }] of (await replay(statements)).entries())
        assert.is(rows, statements[k]!.rows, text);
    },
  );
}

released.run();
