import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ShardState } from '#store/shards/shard-states';
import { makeEvents, makeProject } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';
import { connectionOf, database } from '../../support/database.js';
import { runGateway } from '../../support/gateway.js';
import { discard, tempFolder } from '../../support/start/keep.js';
import { runHere } from '../run-here.js';

const shards = suite('cli/commands/shards');

const db = await migratedDatabase();
const second = await database();
const folder = tempFolder('shards');
shards.after(async () => {
  discard(folder);
  await Promise.all([db.close(), second.close()]);
});

const config = {
  database: connectionOf(db.url),
  encryption_key: Buffer.alloc(32, 7).toString('base64'),
};
const run = (command: string, ...args: string[]) => runHere(`shards:${command}`, args, config);
const place = ['host', 'port', 'username', 'database'].flatMap((name) => [
  `--${name}`,
  String(second.connection[name as keyof typeof second.connection]),
]);
const states = async () =>
  JSON.parse((await run('list', '--json')).stdout) as readonly ShardState[];
const ok = async (command: string, ...args: string[]) => {
  const { code, stdout, stderr } = await run(command, ...args);
  assert.is(code, 0, stderr);
  return stdout;
};
const refused = async (sentence: RegExp, command: string, ...args: string[]) => {
  const { code, stderr } = await run(command, ...args);
  assert.is.not(code, 0);
  assert.match(stderr.replaceAll(/\s+/g, ' '), sentence);
};

shards('a database of its own and a schema are added, and listed with their state', async () => {
  const file = path.join(folder, 'password');
  fs.writeFileSync(file, 'secret\n');
  assert.is(await ok('add', 'big', ...place, '--password-file', file), 'added the shard big\n');
  assert.is(await ok('add', 's2', '--schema', 's2'), 'added the shard s2\n');
  const [stored] = await db.rows<{ password: string }>(
    `select password from shards where name = 'big'`,
  );
  assert.match(stored!.password, /^sealed:v2:/);
  const again = await run('add', 'big', ...place, '--password-file', file);
  assert.equal(
    [again.code, again.stderr],
    [0, 'there is already the shard big; nothing was changed\n'],
  );

  await db.rows(
    `insert into s2.activity select gen_random_uuid(), '00000000-0000-0000-0000-000000000000', now(), 'event', 'processed', 7`,
  );
  const listed = await states();
  assert.equal(
    listed.map(({ name, schema, state, events_per_day: events }) => [name, schema, state, events]),
    [
      ['default', null, 'ready', 0],
      ['big', null, 'ready', 0],
      ['s2', 's2', 'ready', 7],
    ],
  );
  assert.ok(listed.every(({ bytes }) => bytes! > 0));
  const { stdout } = await runGateway(['shards', 'list'], { config });
  assert.match(stdout, /^NAME +DATABASE +SCHEMA +PROJECTS +EVENTS +SIZE +STATE$/m);
  assert.match(stdout, new RegExp(`^big .*/${second.connection.database} +- +0 +0 .* ready$`, 'm'));
});

shards('a place that is taken, wrong or away is refused, and nothing is added', async () => {
  await refused(/the place is the shard big/, 'add', 'other', ...place);
  await refused(/there is a shard big at another place/, 'add', 'big', '--schema', 'big');
  await refused(/has the control plane of a gateway/, 'add', 'home', '--schema', 'public');
  await refused(/a place/, 'add', 'nowhere');
  await refused(/--port needs --host/, 'add', 'odd', '--port', '1', '--schema', 'odd');
  await refused(/name/, 'add', 'Odd', '--schema', 'odd');
  await refused(/schema/, 'add', 'odd', '--schema', 'a b');
  const away = [...place];
  away[3] = '1';
  await refused(
    /the shard away cannot be used: Postgres at .*:1 cannot be reached/,
    'add',
    'away',
    ...away,
  );
  await db.rows(`update shards set created_at = now() where name = 'default'`);
  await db.rows(`delete from shards where name = 'big'`);
  await refused(/has the shard big of another gateway/, 'add', 'big', ...place);
  await second.rows(`comment on table gateway_migrations is null`);
  assert.equal(
    (await states()).map(({ name }) => name),
    ['default', 's2'],
  );
});

shards('add continues after a stop at any step', async () => {
  await db.rows('create schema s3');
  assert.is(await ok('add', 's3', '--schema', 's3'), 'added the shard s3\n');
  // Stopped before the shard was stored.
  await db.rows(`delete from shards where name = 's3'`);
  assert.is(await ok('add', 's3', '--schema', 's3'), 'added the shard s3\n');
  assert.is(await ok('add', 'big', ...place), 'added the shard big\n');
});

shards('an address changes only to one with the tables of the shard', async () => {
  await refused(/needs something to change/, 'set', 'big');
  await refused(/shard nowhere not found/, 'set', 'nowhere', '--port', '1');
  await refused(/is in the database of the settings/, 'set', 'default', '--port', '1');
  await refused(/is in the database of the settings/, 'set', 's2', '--port', '1');
  const unusable = /the shard big cannot be used: Postgres at .*:1 cannot be reached/;
  await refused(unusable, 'set', 'big', '--port', '1');
  const { database: elsewhere } = config.database;
  await refused(/does not have the tables of the shard big/, 'set', 'big', '--database', elsewhere);
  assert.equal((await states()).map(({ name, state }) => [name, state])[1], ['big', 'ready']);
  const same = ['--database', second.connection.database];
  assert.match(await ok('set', 'big', ...same), /^changed the shard big;/);
});

shards('a project is moved to a shard that takes projects', async () => {
  const project = await makeProject(db);
  const shardOf = async () =>
    (await db.rows<{ shard: string }>('select shard from projects where id = $1', [project.id]))[0]
      ?.shard;
  await refused(/shard nowhere not found/, 'move', project.id, 'nowhere');
  await ok('drain', 's3');
  await refused(/the shard s3 is draining/, 'move', project.id, 's3');
  await ok('drain', 's3', '--undo');
  assert.is(
    await ok('move', project.id, 'big'),
    'the project is on the shard big now; agents copy its earlier events from default\n',
  );
  assert.is(await shardOf(), 'big');
  const busy = await makeProject(db);
  await makeEvents(db, busy.id, [{ atMs: Date.now() }]);
  assert.is(
    await ok('move', busy.id, 's2'),
    'the project is on the shard s2 now; agents copy its earlier events from default\n',
  );
  const again = await run('move', busy.id, 's2');
  assert.equal([again.code, again.stderr], [0, 'the project is on the shard s2 and stays there\n']);
  await refused(/shard nowhere not found/, 'move', busy.id, 'nowhere');
  await refused(/project .* not found/, 'move', crypto.randomUUID(), 's2');
  await refused(/events .* are still being moved from the shard default/, 'move', project.id, 's2');
  const { stderr } = await run('list');
  assert.match(stderr, `moving the project ${busy.id} from default to s2`);
  await db.rows(`update project_moves set phase = 'done', ended_at = now()`);
  await ok('move', project.id, 'default');
  assert.is(await shardOf(), 'default');
});

shards('a shard is drained while another takes projects, and removed when unused', async () => {
  for (const name of ['big', 's2', 's3']) await ok('drain', name);
  await refused(/no other shard takes new projects than default/, 'drain', 'default');
  assert.ok((await states()).every(({ name, is_draining: it }) => it === (name !== 'default')));
  await refused(/shard nowhere not found/, 'drain', 'nowhere');

  await refused(/the default shard cannot be removed/, 'remove', 'default');
  await refused(/a project has events on the shard s2/, 'remove', 's2');
  await refused(/a project has events on the shard big/, 'remove', 'big');
  assert.is(await ok('remove', 's3'), 'removed the shard s3\n');
  await db.rows('update projects set deleted_at = now()');
  await db.rows('delete from project_moves');
  await db.rows(`create table s2.kept as select 1`);
  await ok('remove', 's2');
  assert.equal(await db.rows(`select from projects where shard <> 'default'`), []);
});

shards.run();
