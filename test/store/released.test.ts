import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
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

/**
 * Statements that can break a gateway of the previous schema. Dropping a check constraint cannot.
 */
const DISTURBING: readonly (readonly [what: string, pattern: RegExp])[] = [
  [
    'drops or renames',
    /\b(drop (table|column|type|function|index|constraint (?!\w+_check\d*\b)|view|schema)|rename (to|column|constraint|value))\b/i,
  ],
  ['changes the type of a column', /\balter (column )?\w+ (set data )?type\b/i],
  ['makes a column required', /\bset not null\b/i],
  ['takes a default away', /\bdrop default\b/i],
  [
    'adds a required column without a default',
    /\badd (column )?(if not exists )?(?!constraint|check|unique|primary|foreign)\w+ (?![^,;]*\bdefault\b)[^,;]*\bnot null\b/i,
  ],
  [
    'makes unique what was not',
    /\badd (constraint \w+ )?unique\b|\bcreate unique index (concurrently )?(if not exists )?\w+ on (events|event_deliveries|delivery_attempts|endpoints|sources|subscriptions|projects|agents)\b/i,
  ],
];

/**
 * A contracting migration, after a release that no longer needs what it removes, declares so in a
 * comment line.
 */
const CONTRACTS = /^-- contracts: \S/m;

function disturbances(sql: string): string[] {
  if (CONTRACTS.test(sql)) return [];
  const code = sql.replace(/--.*$/gm, '').replace(/\$\$[\s\S]*?\$\$/g, '');
  return DISTURBING.filter(([, pattern]) => pattern.test(code)).map(([what]) => what);
}

released('a migration only adds: what runs on the schema before it goes on', () => {
  const later = readdirSync(migrationsDir()).filter(
    (file) => file.endsWith('.up.sql') && file > '0006_metrics.up.sql',
  );
  assert.ok(later.length > 0);
  for (const file of later)
    assert.equal(disturbances(readFileSync(join(migrationsDir(), file), 'utf8')), [], file);
});

released('what would disturb is known when it is seen', () => {
  for (const [sql, what] of [
    ['alter table events drop column data;', 'drops or renames'],
    ['alter table events rename column data to body;', 'drops or renames'],
    ['alter table events alter column data type jsonb;', 'changes the type of a column'],
    ['alter table events alter column owner_id set not null;', 'makes a column required'],
    [
      'alter table events add column region text not null;',
      'adds a required column without a default',
    ],
    ['alter table endpoints add unique (name);', 'makes unique what was not'],
  ] as const)
    assert.equal(disturbances(sql), [what], sql);
  assert.equal(
    disturbances(
      'alter table events add column region text, add column n int not null default 0;\ncreate table x (id int not null);',
    ),
    [],
  );
  assert.equal(
    disturbances('-- contracts: 1.2 reads it no more\nalter table events drop column region;'),
    [],
  );
});

released.run();
