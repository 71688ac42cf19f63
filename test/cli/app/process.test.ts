// long
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { installation, manifestOf } from '../../core/plugin-packages.js';
import { database, type Database } from '../../support/database.js';
import { gateway, runGateway } from '../../support/gateway.js';
import { freePort } from '../../support/ports.js';
import { discard, tempFolder } from '../../support/start/keep.js';
import { until } from '../../support/until.js';

const running = suite('cli/app/process');
let db: Database;

async function settings(): Promise<{
  database: object;
  encryption_key: string;
  kv: object;
  server: { http: { port: number; agent_port: number; bind: string } };
}> {
  const [port, agentPort] = [await freePort(), await freePort()];
  return {
    database: db.connection,
    encryption_key: Buffer.alloc(32, 7).toString('base64'),
    kv: { type: 'in-memory' },
    server: { http: { port, agent_port: agentPort, bind: '127.0.0.1' } },
  };
}

running.before(async () => {
  db = await database();
  const { code, stderr } = await runGateway(['migrate', 'up'], {
    config: { database: db.connection },
  });
  assert.is(code, 0, stderr);
});
running.after(() => db.close());

for (const [command, key] of [
  ['server', 'port'],
  ['serve', 'port'],
  ['s', 'port'],
  ['agent', 'agent_port'],
] as const) {
  running(`${command} runs until SIGTERM and ends with status 0`, async () => {
    const config = await settings();
    const it = gateway([command], { config });
    await it.healthy(config.server.http[key]);
    assert.equal(await it.terminate(), { code: 0, signal: null });
    const lines = it.stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { message: string; plugin?: string });
    assert.is(it.stdout, '', 'standard output is for answers');
    for (const plugin of ['kafka', 'sqs'])
      assert.ok(
        lines.some((line) => line.plugin === plugin),
        `the table of plugins tells of ${plugin}`,
      );
    assert.is(lines.at(-1)?.message, 'Stopped.');
  });
}

running('the heap grows fourfold before all of it is marked', async () => {
  const collect = `const v8 = require('node:v8');
    for (const flag of ['--trace-gc-verbose', '--expose-gc']) v8.setFlagsFromString(flag);
    process.on('SIGUSR2', require('node:vm').runInNewContext('gc'));`;
  const folder = tempFolder('collecting');
  fs.writeFileSync(path.join(folder, 'collect.cjs'), collect);
  const config = await settings();
  const it = gateway(['agent'], {
    config,
    env: { NODE_OPTIONS: `--require=${path.join(folder, 'collect.cjs')}` },
  });
  await it.healthy(config.server.http.agent_port);
  process.kill(it.pid, 'SIGUSR2');
  await it.line(/HeapController\] factor 4\.0 /);
  await it.terminate();
  discard(folder);
});

running(
  'without an encryption key neither starts, and the error says how to make one',
  async () => {
    for (const command of ['server', 'agent']) {
      const { encryption_key: _, ...config } = await settings();
      const { code, stderr } = await runGateway([command], { config });
      assert.is(code, 1);
      assert.match(
        stderr,
        /error: no encryption key is set.*\nfix: {3}generate one with `openssl rand -base64 32` and set encryption_key/,
      );
    }
  },
);

running('an encryption key of a wrong length is refused', async () => {
  const { code, stderr } = await runGateway(['server'], {
    config: { ...(await settings()), encryption_key: 'c2hvcnQ=' },
  });
  assert.is(code, 1);
  assert.match(stderr, 'error: encryption_key holds 5 bytes; it must be exactly 32, in base64\n');
});

running('a port that is taken is named with its flag, and nothing stays behind', async () => {
  const config = await settings();
  for (const [command, port] of [
    ['server', config.server.http.port],
    ['agent', config.server.http.agent_port],
  ] as const) {
    const holder = createServer().listen(port, '127.0.0.1');
    await once(holder, 'listening');
    const { code, stderr } = await runGateway([command], { config });
    holder.close();
    assert.is(code, 1);
    assert.match(
      stderr,
      new RegExp(`error: port ${port} on 127.0.0.1 is already in use\\nfix: .*--port`),
    );
  }
});

running('KV that is away at the start is one clear error', async () => {
  const { code, stderr } = await runGateway(
    ['agent', '--kv-type', 'redis', '--kv-host', '127.0.0.1', '--kv-port', '1'],
    {
      config: await settings(),
      withinMs: 60_000,
    },
  );
  assert.is(code, 1);
  assert.match(
    stderr,
    /error: Redis at 127.0.0.1:1 cannot be reached: nothing listens there\nfix: .*--kv-host/,
  );
});

running('a forged licence is said and stops nothing', async () => {
  const config = await settings();
  const it = gateway(['server', '--license-key', 'forged.forged'], { config });
  const line = await it.line('the licence is not valid');
  assert.is((JSON.parse(line) as { level: string }).level, 'warn');
  await it.healthy(config.server.http.port);
  assert.equal(await it.terminate(), { code: 0, signal: null });
});

running(
  'a tracer of the plugin folder runs with its settings and is flushed at the end; one that is refused is a warning',
  async () => {
    const { root, close } = installation({
      'a-tracer': {
        gateway: manifestOf({
          kind: 'tracer',
          name: 'mine',
          settings: './settings.json',
          featureFlag: 'mine',
          flags: { mine: { summary: 'Mine.', stability: 'beta' } },
        }),
        files: {
          'settings.json': JSON.stringify({
            'tracer.mine.url': {
              type: 'string',
              flag: 'mine-url',
              required: true,
              summary: 'Where to.',
            },
          }),
          'plugin.js': `export default { start: async ({ url }, { serviceName }) => {
          console.error('tracing ' + serviceName + ' to ' + url);
          return { close: async () => console.error('flushed') };
        } };`,
          'index.js': `export { default } from './plugin.js';`,
        },
      },
    });
    try {
      const config = { ...(await settings()), plugins: { dir: root } };
      const args = ['server', '--tracer-type=mine', '--mine-url=http://collector'];
      const refused = gateway(args, { config });
      const line = await refused.line('A plugin is inactive because the feature flag mine is off.');
      assert.is((JSON.parse(line) as { level: string }).level, 'warn');
      assert.is((await refused.terminate()).code, 0);
      assert.not.match(refused.stderr, 'tracing');

      const traced = gateway([...args, '--enable-feature-flag=mine'], { config });
      await traced.line('tracing gateway-server to http://collector');
      await traced.healthy(config.server.http.port);
      assert.is((await traced.terminate()).code, 0);
      assert.match(traced.stderr, 'flushed');
    } finally {
      close();
    }
  },
);

running(
  'when Postgres stops during the start, the address and the settings are named',
  async () => {
    const config = await settings();
    const locking = new pg.Client({ connectionString: db.url });
    await locking.connect();
    try {
      await locking.query('begin; lock table agents in access exclusive mode');
      const it = gateway(['agent'], { config });
      const end = `select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and wait_event_type = 'Lock'`;
      await until('the agent to wait for the table', () => db.rows(end));
      assert.is((await it.ended).code, 1);
      assert.match(it.stderr, /^error: Postgres at \S+ cannot be reached: it is stopping$/m);
      assert.match(it.stderr, /^fix: .*database\.host/m);
    } finally {
      await locking.end();
    }
  },
);

running.run();
