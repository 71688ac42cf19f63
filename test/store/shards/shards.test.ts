import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { openDatabase } from '#store/postgres/database';
import { DATA_TABLES } from '#store/postgres/planes';
import { migrateUp, migrationsDir, requireMigrated } from '#store/postgres/migrate';
import { insertShard, listShards } from '#store/shards/shards';
import { Shards } from '#store/shards/open-shards';
import { connectionOf, database } from '../../support/database.js';
import { migratedDatabase, openUrl } from '../migrated.js';
import { describeSchema } from '../schema.js';

const shards = suite('store/shards/shards');

const open = (sealed: string) => sealed.replace('sealed ', '');

function settingsOf(url: string) {
  return { scheme: 'postgres' as const, ...connectionOf(url) };
}

shards('a shard has the tables of the data plane, as the default one has them', async () => {
  const [whole, empty] = [await migratedDatabase(), await database()];
  const shard = openUrl(empty.url);
  try {
    assert.is((await migrateUp(shard, { shard: 'big' }))[0], '0051_data_plane');
    assert.equal(await migrateUp(shard, { shard: 'big' }), []);
    const [all, own] = [await describeSchema(whole.rows), await describeSchema(empty.rows)].map(
      (text) => text.split('\n'),
    );
    assert.equal(
      own!.filter((line) => line !== '' && !all!.includes(line)),
      [],
      'only in the shard',
    );
    const ofData = new RegExp(String.raw`^(${DATA_TABLES.join('|')})(_default)?[. ]`);
    assert.equal(
      all!.filter((line) => ofData.test(line) && !own!.includes(line)),
      [],
      'only in the default shard',
    );
  } finally {
    await Promise.all([shard.close(), whole.close()]);
    await empty.close();
  }
});

shards('every later migration names its plane, and changes tables of no other', () => {
  const later = readdirSync(migrationsDir()).filter(
    (name) => /\.up\.sql$/.test(name) && name > '0053',
  );
  for (const name of later) {
    const sql = readFileSync(join(migrationsDir(), name), 'utf8');
    const plane = /^-- plane: (control|data)$/m.exec(sql)?.[1];
    assert.ok(plane, `${name} has no line "-- plane: control" or "-- plane: data"`);
    const words = new Set(sql.replace(/^\s*--.*$/gm, '').match(/\w+/g));
    const ofData = DATA_TABLES.some((table) => words.has(table));
    assert.is(plane === 'data', ofData, name);
  }
});

shards('a schema is a shard: two in one database do not see each other', async () => {
  const empty = await database();
  const schemas = ['s1', 's2'];
  const opened = schemas.map((schema) =>
    openDatabase(settingsOf(empty.url), { poolSize: 2, name: 'test', schema }),
  );
  try {
    for (const [n, one] of opened.entries()) {
      await empty.rows(`create schema ${schemas[n]}`);
      await migrateUp(one, { shard: schemas[n] });
      await requireMigrated(one, migrationsDir(), schemas[n]);
      const { rows } = await one.pool.query<{ n: number }>(
        `select count(*)::int as n from pg_tables where schemaname = current_schema and tablename ~ '^events_\\d+$'`,
      );
      assert.is(rows[0]!.n, 8);
    }
  } finally {
    await Promise.all(opened.map((one) => one.close()));
    await empty.close();
  }
});

shards('a shard that lacks a migration is refused by its name', async () => {
  const empty = await database();
  const shard = openUrl(empty.url);
  try {
    await requireMigrated(shard, migrationsDir(), 'big');
    assert.unreachable();
  } catch (error) {
    assert.ok(isGatewayError(error), String(error));
    assert.match(
      error.message,
      /the database of the shard big lacks \d+ migrations: 0051_data_plane, /,
    );
  } finally {
    await shard.close();
    await empty.close();
  }
});

shards('sessions that find another schema are refused, by the name of the shard', async () => {
  const empty = await database();
  const settings = settingsOf(empty.url);
  // A pooler keeps no search_path of its clients, so none is sent to it.
  const behindPooler = { ...settings, direct: { host: settings.host, port: settings.port } };
  for (const [place, found] of [
    [behindPooler, 'public'],
    [settings, 'none'],
  ] as const) {
    const shard = openDatabase(place, { poolSize: 1, name: 'test', schema: 's1' });
    try {
      await migrateUp(shard, { shard: 'big' });
      assert.unreachable();
    } catch (error) {
      assert.ok(isGatewayError(error, 'shard_schema'), String(error));
      assert.match(error.message, `the shard big use the schema ${found} instead of s1`);
    } finally {
      await shard.close();
    }
  }
  await empty.close();
});

shards('shards are opened, kept while their address stays, and closed when removed', async () => {
  const control = await migratedDatabase();
  const opened = new Shards(control, {
    settings: settingsOf(control.url),
    open,
    poolSize: 1,
    name: 'test',
  });
  try {
    const address = {
      ...{ host: '127.0.0.1', port: 1, username: 'u', database: 'd', options: null },
      password: 'sealed secret',
    };
    assert.ok(
      await insertShard(control.pool, { name: 'big', address, schema: null, isCitus: false }),
    );
    assert.not(
      await insertShard(control.pool, { name: 'big', address: null, schema: 's', isCitus: false }),
    );
    await opened.refresh();
    const { database: big, settings } = opened.of('big');
    assert.is(settings.password, 'secret');
    await control.rows(`update shards set is_draining = true where name = 'big'`);
    await opened.refresh();
    assert.is(opened.of('big').database, big);
    assert.is(opened.of('default').database.pool, control.pool);
    assert.equal(
      (await listShards(control.pool)).map(({ name, isDraining }) => [name, isDraining]),
      [
        ['default', false],
        ['big', true],
      ],
    );
    await control.rows(`update shards set port = 2 where name = 'big'`);
    await opened.refresh();
    assert.is.not(opened.of('big').database, big);
    assert.ok(big.pool.ended);
    await control.rows(`delete from shards where name = 'big'`);
    await opened.refresh();
    assert.throws(() => opened.of('big'), /does not know the shard big/);
    assert.equal(opened.all.length, 1);
  } finally {
    await opened.close();
    await control.close();
  }
});

shards('listeners hear of each read of the shards until they leave', async () => {
  const control = await migratedDatabase();
  const opened = new Shards(control, {
    settings: settingsOf(control.url),
    open,
    poolSize: 1,
    name: 'test',
  });
  try {
    const seen: number[] = [];
    const leave = opened.onRead(() => seen.push(opened.all.length));
    await opened.refresh();
    await insertShard(control.pool, { name: 'big', address: null, schema: 's', isCitus: false });
    await opened.refresh();
    leave();
    await opened.refresh();
    assert.equal(seen, [1, 2]);
  } finally {
    await opened.close();
    await control.close();
  }
});

shards.run();
