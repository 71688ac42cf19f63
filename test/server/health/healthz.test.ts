import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { silentLog } from '#core/logging/log';
import { startServer } from '@gateway/server';
import { MemoryKv } from '#store/kv/memory-kv';
import { connectionOf, database } from '../../support/database.js';
import { freePort } from '../../support/ports.js';
import { proxy } from '../../support/proxy.js';
import { own } from '../../support/services.js';
import { until } from '../../support/until.js';
import { migrate } from '../../store/migrated.js';
import { activated, configOf, startApi, type Api } from '../api.js';

const healthz = suite('server/health/healthz');

let api: Api;
healthz.before(async () => {
  api = await startApi();
});
healthz.after(() => api.close());

interface Component {
  name: string;
  state: string;
  reason?: string;
}

const states = (components: Component[]) => components.map(({ name, state }) => `${name} ${state}`);

healthz('a process that runs is alive, and tells version and plugins without a key', async () => {
  const { status, body } = await api.call('GET', '/healthz', undefined, { key: null });
  assert.equal([status, body.message], [200, 'alive']);
  assert.match(body.data.version, /^\d+\.\d+\.\d+/);
  assert.ok(
    body.data.plugins.some(
      (it: { kind: string; name: string; state: string }) =>
        it.kind === 'source' && it.name === 'kafka' && it.state === 'active',
    ),
  );
});

healthz('it is ready when Postgres answers and has every migration', async () => {
  const { status, body } = await api.call('GET', '/healthz?ready', undefined, { key: null });
  assert.equal(
    [status, body.message, states(body.data.components)],
    [200, 'ready', ['kv ok', 'migrations ok', 'postgres ok']],
  );
});

healthz('through a proxy, which no token guards, states are answered alone', async () => {
  const headers = { 'x-forwarded-for': '198.51.100.7' };
  const ready = await api.call('GET', '/healthz?ready', undefined, { key: null, headers });
  assert.equal([ready.status, ready.body.message], [200, 'ready']);
  const kinds = ['kv', 'migrations', 'postgres'].map((name) => ({ name, state: 'ok' }));
  assert.equal(ready.body.data, { ready: true, draining: false, state: 'ok', components: kinds });
  assert.equal((await api.call('GET', '/healthz', undefined, { key: null, headers })).body.data, {
    draining: false,
  });
});

healthz(
  'with metrics.bearer_token the details are for those who send it, wherever they are',
  async () => {
    const token = 'only for operators';
    const config = configOf(api.db, {
      metrics: { bearer_token: token },
      server: { http: { port: 0, bind: '127.0.0.1' } },
    });
    const server = await startServer({
      config,
      plugins: await activated(),
      log: silentLog,
      kv: api.kv,
    });
    const namesPlugins = async (headers: Record<string, string>) => {
      const response = await fetch(`http://127.0.0.1:${server.port}/healthz?ready`, { headers });
      assert.is(response.status, 200);
      return (await response.text()).includes('"plugins"');
    };
    try {
      assert.is(await namesPlugins({}), false, 'on loopback');
      assert.is(await namesPlugins({ authorization: 'Bearer other' }), false);
      assert.is(
        await namesPlugins({ authorization: `Bearer ${token}`, 'x-forwarded-for': '198.51.100.7' }),
        true,
      );
    } finally {
      await server.close();
    }
  },
);

healthz('while Postgres hangs it answers quickly, and then that it is not ready', async () => {
  const connection = connectionOf(api.db.url);
  const line = await proxy({ port: connection.port });
  const config = configOf(api.db, { database: { ...connection, port: line.port } });
  const plugins = await activated();
  const server = await startServer({ config, plugins, log: silentLog, kv: new MemoryKv() });
  const ready = async () => {
    const startedAtMs = performance.now();
    const { status } = await fetch(`http://127.0.0.1:${server.port}/healthz?ready`);
    return [status, performance.now() - startedAtMs < 1_500];
  };
  try {
    assert.is((await ready())[0], 200);
    line.freeze();
    await until('a quick answer', async () => (await ready())[1]);
    await until('a quick 503', async () => String(await ready()) === '503,true');
    line.restore();
    await until('it to be ready again', async () => (await ready())[0] === 200);
  } finally {
    line.restore();
    await server.close();
    await line.close();
  }
});

healthz('a pending migration makes it not ready, and says what to do', async () => {
  const [newest] = await api.db.rows<{ name: string }>(
    'delete from gateway_migrations where id = (select max(id) from gateway_migrations) returning name',
  );
  try {
    const { status, body } = await api.call('GET', '/healthz?ready', undefined, { key: null });
    assert.equal(
      [status, body.status, states(body.data.components)],
      [503, false, ['kv ok', 'migrations down', 'postgres ok']],
    );
    assert.match(body.data.components[1].reason, newest!.name);
    assert.match(body.data.components[1].reason, 'gateway migrate up');
  } finally {
    await api.db.rows(
      'insert into gateway_migrations (name, batch, migration_time) values ($1, 1, now())',
      [newest!.name],
    );
  }
});

healthz(
  'a database that was migrated for a newer version leaves it ready, and is told',
  async () => {
    await api.db.rows(
      `insert into gateway_migrations (name, batch, migration_time) values ('9999_next', 1, now())`,
    );
    try {
      const { status, body } = await api.call('GET', '/healthz?ready', undefined, { key: null });
      assert.equal(
        [status, states(body.data.components)],
        [200, ['kv ok', 'migrations degraded', 'postgres ok']],
      );
      assert.match(
        body.data.components[1].reason,
        /it has 9999_next; this version works with it too/,
      );
    } finally {
      await api.db.rows(`delete from gateway_migrations where name = '9999_next'`);
    }
  },
);

healthz('KV that is away makes it slower, not unready, and is named', async () => {
  const port = await freePort();
  const config = configOf(api.db, { kv: { host: '127.0.0.1', port } });
  const server = await startServer({ config, plugins: await activated(), log: silentLog });
  try {
    const response = await fetch(`http://127.0.0.1:${server.port}/healthz?ready`, {
      signal: AbortSignal.timeout(20_000),
    });
    const { data } = (await response.json()) as {
      data: { state: string; components: Component[] };
    };
    assert.equal(
      [response.status, data.state, states(data.components)],
      [200, 'degraded', ['kv degraded', 'migrations ok', 'postgres ok']],
    );
    assert.match(data.components[0]!.reason ?? '', `127.0.0.1:${port}`);
  } finally {
    await server.close();
  }
});

healthz(
  'it stays alive while Postgres is away, names the place, and is ready again when Postgres is back',
  async () => {
    const postgres = await own.postgres();
    const db = await database({ postgres, migrate });
    const kv = new MemoryKv();
    const server = await startServer({
      config: configOf(db),
      plugins: await activated(),
      log: silentLog,
      kv,
    });
    const get = async (query: string) => {
      const response = await fetch(`http://127.0.0.1:${server.port}/healthz${query}`, {
        signal: AbortSignal.timeout(20_000),
      });
      return { status: response.status, text: await response.text() };
    };
    try {
      assert.is((await get('?ready')).status, 200);
      await postgres.stop();
      const away = await get('?ready');
      assert.is(away.status, 503);
      assert.match(away.text, `Postgres at 127.0.0.1:${postgres.port}`);
      assert.is((await get('')).status, 200);
      await postgres.start();
      await until('it to be ready again', async () => (await get('?ready')).status === 200);
    } finally {
      await server.close();
      await kv.close();
      await db.close().catch(() => undefined);
      await postgres.close();
    }
  },
);

healthz.run();
