import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { withAdvisoryLock } from '#store/postgres/advisory-lock';
import { openDatabase, type Database } from '#store/postgres/database';
import { database } from '../../support/database.js';
import { own } from '../../support/services.js';
import { until } from '../../support/until.js';

const locks = suite('store/postgres/advisory-lock');

const db = await database();
const bouncer = await own.pgbouncer(db.url, { default_pool_size: 3 });
const pooled = { ...db.connection, port: bouncer.port, pooled: true };
const opened: Database[] = [];
const open = (settings: object) => {
  const one = openDatabase(
    { scheme: 'postgres', ...db.connection, ...settings },
    { poolSize: 2, name: 'test' },
  );
  opened.push(one);
  return one;
};
const [one, two, direct] = [open(pooled), open(pooled), open({})];
locks.after(async () => {
  for (const each of opened) await each.close();
  await bouncer.close();
  await db.close();
});

const SHOWN = `select objid from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`;

locks(
  'one process at a time has a lock, with a pooler or without, and it ends with the work',
  async () => {
    let entered = 0;
    let leave = () => undefined as void;
    const left = new Promise<void>((resolve) => (leave = resolve));
    const holding = withAdvisoryLock(one.sessions, 'shop', async (client) => {
      entered++;
      // Work has transactions of its own.
      await client.query('begin');
      await client.query('select 1');
      await client.query('commit');
      await left;
      return 'done';
    });
    await until('the lock', () => entered === 1);
    const holders = `select backend_xmin from pg_stat_activity where pid in (select pid from pg_locks where locktype = 'advisory') and datname = current_database()`;
    assert.equal(await db.rows(holders), [{ backend_xmin: null }], 'it holds back no vacuum');
    for (const other of [two, direct])
      assert.is(
        await withAdvisoryLock(other.sessions, 'shop', () => Promise.resolve('two')),
        undefined,
      );
    assert.is(
      await withAdvisoryLock(two.sessions, 'other', () => Promise.resolve('beside')),
      'beside',
    );
    leave();
    assert.is(await holding, 'done');
    assert.is(await withAdvisoryLock(two.sessions, 'shop', () => Promise.resolve('next')), 'next');
    assert.equal(await db.rows(SHOWN), []);
  },
);

locks('work under a lock that is lost fails, and work that fails leaves no lock', async () => {
  const working = withAdvisoryLock(one.sessions, 'shop', async (client) => {
    await db.rows(
      `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
    );
    for (;;) await client.query('select pg_sleep(0.1)');
  });
  assert.ok((await working.catch((error: unknown) => error)) instanceof Error);
  const failing = withAdvisoryLock(one.sessions, 'shop', () => Promise.reject(new Error('mine')));
  assert.match(String(await failing.catch((error: unknown) => error)), /mine/);
  await until('the locks to end', async () => (await db.rows(SHOWN)).length === 0);
  assert.is(await withAdvisoryLock(two.sessions, 'shop', () => Promise.resolve('next')), 'next');
});

locks.run();
