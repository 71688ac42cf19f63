import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DATA_TABLES } from '#store/postgres/planes';
import { migratedDatabase } from '../store/migrated.js';
import { JOINING, planesOf, problemOf, TABLES } from '../support/planes.js';
import { root } from './house.js';

const planes = suite('meta/planes');

const db = await migratedDatabase();
planes.after(() => db.close());

planes('every table of the database belongs to a plane', async () => {
  const rows = await db.rows<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and not relispartition and relname not like 'gateway_migrations%'`,
  );
  assert.equal(rows.map(({ name }) => name).sort(), [...TABLES].sort());
  assert.equal(
    DATA_TABLES.filter((name) => !TABLES.includes(name)),
    [],
  );
});

planes('no foreign key, trigger or function of the database joins the planes', async () => {
  const keys = await db.rows<{ name: string; tables: string }>(
    `select conname as name, 'from ' || conrelid::regclass || ' join ' || confrelid::regclass as tables from pg_constraint where contype = 'f'`,
  );
  const functions = await db.rows<{ name: string; tables: string }>(
    `select p.proname as name, p.prosrc || coalesce(string_agg(' from ' || t.tgrelid::regclass, ''), '') as tables
     from pg_proc p left join pg_trigger t on t.tgfoid = p.oid where p.pronamespace = 'public'::regnamespace group by p.oid`,
  );
  assert.ok(keys.length > 0 && functions.length > 0);
  const joining = [...keys, ...functions].filter(({ tables }) => {
    const { control, data } = planesOf(tables);
    return control.length > 0 && data.length > 0;
  });
  assert.equal(
    joining.map(({ name }) => name),
    [],
  );
});

planes('tables are found wherever a statement names them', () => {
  const found = (sql: string) => Object.values(planesOf(sql)).flat();
  assert.equal(planesOf('select from events e join "endpoints" p on true'), {
    control: ['endpoints'],
    data: ['events'],
  });
  assert.equal(found('select from agents a, lateral (select) x, projects p where true'), [
    'projects',
    'agents',
  ]);
  assert.equal(found('with gone as (delete from issues using sources s) insert into users (id)'), [
    'issues',
    'sources',
    'users',
  ]);
  assert.equal(found('update only events_20261127 e set status = $1'), ['events']);
  assert.equal(found(`select count(*) as events, sources from u -- from agents`), []);
  assert.equal(found(`select 'from agents', u.events, projects desc from unnest($1) u`), []);
});

planes('a statement of a package may name tables of one plane only, that of a test both', () => {
  const both = 'select from events join endpoints on true';
  const ofPackage = () =>
    'at read (/app/packages/store/src/events/log.ts:7:3)\n at test/a.test.ts:1:1';
  assert.is(
    problemOf(both, ofPackage),
    'packages/store/src/events/log.ts:7 names tables of both planes in a statement: endpoints, events',
  );
  assert.is(problemOf('select from events', ofPackage), undefined);
  assert.is(
    problemOf(both, () => 'at test/a.test.ts:1:1'),
    undefined,
  );
});

planes('a process that sends a statement with tables of both planes fails', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'planes-'));
  try {
    const file = path.join(folder, 'packages/store/src/log.mjs');
    fs.mkdirSync(path.dirname(file), { recursive: true });
    const support = new URL('../support/planes.ts', import.meta.url).href;
    fs.writeFileSync(
      file,
      `import { createRequire } from 'node:module';
       const { watchStatements } = await import(${JSON.stringify(support)});
       const pg = createRequire(${JSON.stringify(`${root}/`)})('pg');
       watchStatements();
       await new pg.Pool({ host: '127.0.0.1', port: 1 }).query(process.argv[2]).catch(() => undefined);`,
    );
    const run = (sql: string) =>
      spawnSync(process.execPath, ['--import', 'tsx', file, sql], {
        cwd: root,
        encoding: 'utf8',
      });
    const { status, stderr } = run('select from events, projects p');
    assert.match(stderr, 'packages/store/src/log.mjs:5 names tables of both planes');
    assert.is(status, 1);
    assert.is(run('select from events').status, 0);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});

planes('the files that may still send such statements exist', () => {
  assert.equal(
    Object.keys(JOINING).filter((file) => !fs.existsSync(path.join(root, file))),
    [],
  );
});

planes.run();
