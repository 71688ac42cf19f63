import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { repeat } from '#core/process/timing';
import { openDatabase } from '#store/postgres/database';
import type { Planes } from '#store/postgres/planes';
import { Replicas } from '#store/postgres/replicas';
import { connectionOf, database } from '../../support/database.js';
import { own, services } from '../../support/services.js';
import { freeze } from '../../support/frozen.js';
import { until, within } from '../../support/until.js';

const replicas = suite('store/postgres/replicas');

const MAX_LAG_SECONDS = 2;

const primary = await own.postgres();
const standby = await own.standby(primary);
const db = await database({ postgres: primary });
await db.rows('create table notes (note text)');
const write = (note: string) => db.rows('insert into notes values ($1)', [note]);
const written = new URL(db.url).pathname.slice(1);

async function onStandby(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: standby.url });
  await client.connect();
  await client.query(sql).finally(() => client.end());
}

replicas.after(async () => {
  await db.close();
  await standby.close();
  await primary.close();
});

/** Uses replicas at these ports, from the first check on. */
async function reading(
  ports: readonly number[],
  use: (it: {
    opened: Replicas;
    port(): Promise<number>;
    reads(server: string): number;
  }) => Promise<void>,
  url = db.url,
): Promise<void> {
  const settings = resolveConfig({
    env: {},
    file: {
      database: {
        ...connectionOf(url),
        replicas: ports.map((port) => `127.0.0.1:${port}`),
        max_replica_lag_seconds: MAX_LAG_SECONDS,
      },
    },
  }).config.database;
  const main = openDatabase(settings, { poolSize: 2, name: 'test' });
  const reads = new Map<string, number>();
  const opened = new Replicas(main, {
    settings,
    poolSize: 2,
    name: 'test',
    onRead: (server) => void reads.set(server, (reads.get(server) ?? 0) + 1),
  });
  const check = () => opened.check().then(() => 1_000);
  const stop = repeat(check, { afterMs: 1_000, retryMs: 1_000, failed: () => undefined });
  try {
    await opened.check();
    await use({
      opened,
      port: () => opened.read(portOf),
      reads: (server) => reads.get(server) ?? 0,
    });
  } finally {
    await stop();
    await opened.close();
    await main.close();
  }
}

async function portOf({ data }: Planes): Promise<number> {
  const { rows } = await data.query<{ port: number }>('select inet_server_port() as port');
  return rows[0]!.port;
}

const problemOf = ({ states }: Replicas, k = 0) => states[k]!.problem ?? '';

replicas('reads go to the replica, also after the primary was idle for long', () =>
  reading([standby.port], async ({ opened, port, reads }) => {
    await until('the replica to be read', async () => (await port()) === standby.port);
    await sleep((MAX_LAG_SECONDS + 1) * 1000);
    assert.is(await port(), standby.port);
    assert.is(problemOf(opened), '');
    assert.ok(opened.states[0]!.lagSeconds! < MAX_LAG_SECONDS);
    assert.ok(reads(`127.0.0.1:${standby.port}`) >= 2);
  }),
);

replicas('a replica that stops to replay is left out until it has caught up', () =>
  reading([standby.port], async ({ opened, port }) => {
    await until('the replica to be read', async () => (await port()) === standby.port);
    await onStandby('select pg_wal_replay_pause()');
    await write('after the pause');
    await until('reads of the primary', async () => (await port()) === primary.port, {
      withinMs: 30_000,
    });
    assert.match(problemOf(opened), /^127\.0\.0\.1:\d+ is more than 2 s behind the primary$/);
    const notes = await opened.read(
      async ({ data }) => (await data.query('select from notes')).rowCount,
    );
    assert.is(notes, 1, 'the primary has what the replica lacks');
    await onStandby('select pg_wal_replay_resume()');
    await until('the replica to be read again', async () => (await port()) === standby.port);
  }),
);

replicas('a replica that is away is passed over within the read, and used when it is back', () =>
  reading([standby.port], async ({ opened, port }) => {
    await until('the replica to be read', async () => (await port()) === standby.port);
    await standby.crash();
    assert.is(await port(), primary.port);
    assert.match(problemOf(opened), /^Postgres at 127\.0\.0\.1:\d+ /);
    await standby.start();
    await until('the replica to be read again', async () => (await port()) === standby.port);
  }),
);

replicas('a replica that is frozen costs no read a second, and is used when it goes on', () =>
  reading([standby.port], async ({ opened, port }) => {
    await until('the replica to be read', async () => (await port()) === standby.port);
    const thaw = freeze(standby.pid);
    try {
      // At once, and before its next check: the first read meets it.
      assert.is(await within(port(), 2_500, 'a read of the primary'), primary.port);
      assert.match(problemOf(opened), /^Postgres at 127\.0\.0\.1:\d+ .*no answer in time/);
      assert.is(await within(port(), 500, 'a read of the primary'), primary.port);
    } finally {
      thaw();
    }
    await until('the replica to be read again', async () => (await port()) === standby.port);
    const slow = opened.read(async (planes) => {
      await planes.data.query('select pg_sleep(2)');
      return portOf(planes);
    });
    assert.is(await slow, standby.port, 'a read that is only slow is not given up');
  }),
);

replicas('a statement that is itself wrong fails once, and the replica stays in use', () =>
  reading([standby.port], async ({ opened, port }) => {
    await until('the replica to be read', async () => (await port()) === standby.port);
    let runs = 0;
    const wrong = opened.read(({ data }) => {
      runs++;
      return data.query('select 1 / 0');
    });
    assert.match(String(await wrong.catch((error: unknown) => error)), /division by zero/);
    assert.is(runs, 1);
    assert.is(await port(), standby.port);
  }),
);

replicas(
  'of several replicas each has its turn, and only those that follow this primary',
  async () => {
    const other = await services.postgres();
    const second = await own.standby(primary);
    try {
      const ports = [standby.port, Number(new URL(other.url).port), second.port, primary.port];
      await reading(ports, async ({ opened, port }) => {
        const bothRead = () => problemOf(opened, 0) === '' && problemOf(opened, 2) === '';
        await until('both replicas to be read', bothRead);
        assert.equal(new Set([await port(), await port()]), new Set([standby.port, second.port]));
        assert.match(problemOf(opened, 1), new RegExp(written));
        assert.match(problemOf(opened, 3), /is not a replica$/);
      });
      await reading(
        [standby.port],
        async ({ opened }) => assert.match(problemOf(opened), /is a replica of another Postgres$/),
        other.url,
      );
    } finally {
      await second.close();
    }
  },
);

replicas('a replica that is promoted is no longer read', () =>
  reading([standby.port], async ({ opened, port }) => {
    await until('the replica to be read', async () => (await port()) === standby.port);
    await onStandby('select pg_promote()');
    const ports = await Promise.all(Array.from({ length: 5 }, () => port()));
    assert.equal(new Set(ports), new Set([primary.port]), 'not even once');
    assert.match(problemOf(opened), /is not a replica$/);
  }),
);

replicas.run();
