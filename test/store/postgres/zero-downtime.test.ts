import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migrationsDir } from '#store/postgres/migrate';
import { database } from '../../support/database.js';
import { openUrl } from '../migrated.js';
import {
  hasNoTransaction,
  observe,
  statementsOf,
  undeclared,
  violations,
} from './zero-downtime.js';

const zeroDowntime = suite('store/postgres/zero-downtime');

const migrations = readdirSync(migrationsDir())
  .filter((file) => file.endsWith('.up.sql'))
  .sort()
  .map((file) => ({
    name: file.replace('.up.sql', ''),
    sql: readFileSync(join(migrationsDir(), file), 'utf8'),
  }));
/** Contracting migrations have the word in their names since then. */
const NAMED_SINCE = '0042';

zeroDowntime('a migration only adds, or says that it contracts', () => {
  for (const { name, sql } of migrations) {
    if (name < '0007') continue;
    const broken = violations(name, sql);
    assert.equal(
      name < NAMED_SINCE ? broken.filter((it) => !it.startsWith('is named')) : broken,
      [],
      name,
    );
  }
});

zeroDowntime('a text that breaks a rule is told which', () => {
  for (const [sql, what, name = '0042_next'] of [
    ['alter table events drop column data;', 'drops or renames'],
    ['alter table events rename column data to body;', 'drops or renames'],
    ['alter table events alter column data type jsonb;', 'changes the type of a column'],
    ['alter table events alter column owner_id set not null;', 'makes a column required'],
    [
      'alter table events add column region text not null;',
      'adds a required column without a default',
    ],
    ['alter table endpoints add unique (name);', 'makes unique what was not'],
    ["set local lock_timeout = '1h';", 'sets a timeout'],
    ['-- contracts: 1.2 reads it no more\nalter table events drop column region;', 'is named'],
    ['alter table events add column region text;', 'is named', '0042_contract_region'],
    [
      '-- no transaction\nalter table events add column region text;',
      'waits for a lock without a timeout',
    ],
  ] as const)
    assert.match(violations(name, sql).join('; '), new RegExp(`^${what}[^;]*$`), sql);
  for (const [name, sql] of [
    [
      '0042_next',
      'alter table events add column region text, add column n int not null default 0;\ncreate table x (id int not null);',
    ],
    [
      '0042_contract_region',
      '-- contracts: 1.2 reads it no more\nalter table events drop column region;',
    ],
    ['0042_next', '-- no transaction\ncreate index concurrently it on events (n);'],
  ] as const)
    assert.equal(violations(name, sql), [], sql);
});

zeroDowntime(
  'each migration takes the locks that it declares, and no declared scan or rewrite',
  async () => {
    const own = await database();
    const opened = openUrl(own.url);
    const client = await opened.connect();
    try {
      for (const { name, sql } of migrations) {
        if (hasNoTransaction(sql)) {
          for (const statement of statementsOf(sql)) await client.query(statement);
          assert.match(sql, /^-- blocks: nothing$/m, name);
          continue;
        }
        const observed = await observe(client, sql);
        await client.query('commit');
        assert.equal(undeclared(sql, observed), [], name);
      }
      for (const [sql, complaints] of [
        ['alter table events add column a text;', ['has no line "-- blocks:"']],
        [
          '-- blocks: nothing\nalter table events add column a text;',
          ['blocks reads and writes of events'],
        ],
        ['-- blocks: writes of events\nselect 1;', ['does not block events']],
        [
          '-- blocks: writes of events\ncreate index on events (owner_id);',
          ['reads all of events and declares no seconds per million rows'],
        ],
        [
          '-- blocks: writes of events, 2 s per million rows\ncreate index on events (owner_id);',
          [],
        ],
        [
          '-- blocks: reads and writes of users, 2 s per million rows\nalter table users add column a uuid default gen_random_uuid();',
          ['writes all of users again'],
        ],
        [
          '-- blocks: writes of projects\ncreate table new (id uuid primary key, project_id uuid references projects);',
          [],
        ],
      ] as const) {
        assert.equal(undeclared(sql, await observe(client, sql)), complaints, sql);
        await client.query('rollback');
      }
    } finally {
      await client.end();
      await opened.close();
      await own.close();
    }
  },
);

zeroDowntime.run();
