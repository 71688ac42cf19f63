import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { exportPoolSeries, poolUsage } from '#ingest/telemetry/pool-series';
import { openDatabase } from '#store/postgres/database';
import { connectionOf, database } from '../../support/database.js';
import { keptMetrics } from '../../support/kept-metrics.js';
import { until } from '../../support/until.js';

const uses = suite('ingest/telemetry/pool-series');

const db = await database();
uses.after(() => db.close());

uses('connections of both pools are busy or idle, and askers without one wait', async () => {
  const opened = openDatabase(
    { scheme: 'postgres', ...connectionOf(db.url) },
    { poolSize: 2, name: 'test' },
  );
  try {
    assert.equal(poolUsage(opened), { busy: 0, idle: 0, waiting: 0 });
    const [one, two] = [await opened.pool.connect(), await opened.pool.connect()];
    const third = opened.pool.query('select 1');
    assert.equal(poolUsage(opened), { busy: 2, idle: 0, waiting: 1 });
    one.release();
    await third;
    two.release();
    assert.equal(poolUsage(opened), { busy: 0, idle: 2, waiting: 0 });
    const slow = opened.knex.raw('select pg_sleep(0.3)');
    const sent = slow.then(() => undefined);
    await until('the builder to have a connection', () => poolUsage(opened).busy === 1, {
      everyMs: 5,
    });
    await sent;
    assert.equal(poolUsage(opened), { busy: 0, idle: 3, waiting: 0 });
  } finally {
    await opened.close();
  }
});

uses(
  'parts of the gateway in one process are shown together for each shard, and what has ended is gone',
  async () => {
    const kept = keptMetrics();
    const [one, two, other] = [0, 1, 2].map(() =>
      openDatabase({ scheme: 'postgres', ...connectionOf(db.url) }, { poolSize: 1, name: 'test' }),
    );
    try {
      const stops = [one!, two!].map((each) =>
        exportPoolSeries(kept.meter, () => [{ name: 'default', database: each }]),
      );
      const shards = [{ name: 'other', database: other! }];
      stops.push(exportPoolSeries(kept.meter, () => shards));
      await one!.pool.query('select 1');
      await two!.pool.query('select 1');
      await kept.scrape();
      assert.is(kept.value('gateway_pool_connections', { shard: 'default', state: 'idle' }), 2);
      assert.is(kept.value('gateway_pool_connections', { shard: 'other', state: 'idle' }), 0);
      stops[0]!();
      shards.pop();
      await kept.scrape();
      const gone = { shard: 'other', state: 'idle' };
      assert.is(kept.value('gateway_pool_connections', gone), undefined);
      assert.is(kept.value('gateway_pool_connections', { shard: 'default', state: 'idle' }), 1);
      stops[1]!();
    } finally {
      await Promise.all([one!, two!, other!].map((each) => each.close()));
    }
  },
);

uses.run();
