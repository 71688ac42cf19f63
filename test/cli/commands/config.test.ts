import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { installation, manifestOf } from '../../core/plugin-packages.js';
import { runGateway } from '../../support/gateway.js';

const config = suite('cli/commands/config');

const nowhere = [
  '--db-host',
  '127.0.0.1',
  '--db-port',
  '1',
  '--kv-host',
  '127.0.0.1',
  '--kv-port',
  '1',
];

config(
  'prints the merged configuration as indented JSON, with no Postgres and no Redis',
  async () => {
    const file = { instance_ingest_rate: 5, server: { http: { port: 6000 } } };
    const { stdout, stderr, code } = await runGateway(['config', ...nowhere], {
      config: file,
      env: { AGENT_PORT: '6001' },
    });
    assert.is(code, 0);
    assert.is(stderr, '');
    const printed = JSON.parse(stdout) as {
      server: { http: unknown; auth: unknown };
      database: { port: number };
      instance_ingest_rate: number;
    };
    assert.is(stdout, `${JSON.stringify(printed, null, 2)}\n`);
    assert.equal(printed.server.http, {
      port: 6000,
      agent_port: 6001,
      bind: '::',
      ssl: false,
      body_timeout_seconds: 10,
      drain_delay_seconds: 0,
    });
    assert.equal(
      printed.server.auth,
      { api_keys: [], basic: [], native: true, max_failures: 10, passwords: true },
      'a secret that is not given is not masked',
    );
    assert.is(printed.database.port, 1);
    assert.is(printed.instance_ingest_rate, 5);
  },
);

config('never prints a secret unless asked, wherever it comes from', async () => {
  const file = { encryption_key: 'hunter2-file', database: { password: 'hunter2-file' } };
  const options = { config: file, env: { GATEWAY_LICENSE_KEY: 'hunter2-env' } };
  const args = ['config', '--kv-password', 'hunter2-flag'];
  for (const more of [[], ['--origins']]) {
    const { stdout, stderr, code } = await runGateway([...args, ...more], options);
    assert.is(code, 0);
    assert.not.match(stdout + stderr, 'hunter2');
    assert.match(stdout, '********');
  }
  const shown = await runGateway([...args, '--show-secrets'], options);
  for (const secret of ['hunter2-file', 'hunter2-env', 'hunter2-flag'])
    assert.match(shown.stdout, secret);
});

config('tells the origin of every setting', async () => {
  const { stdout } = await runGateway(['config', '--origins', '--db-host', 'a'], {
    config: { query_timeout: 9 },
    env: { AGENT_PORT: '7' },
  });
  const lines = JSON.parse(stdout) as Record<string, { value: unknown; origin: string }>;
  assert.equal(lines['database.host'], { value: 'a', origin: '--db-host' });
  assert.equal(lines['server.http.agent_port'], { value: 7, origin: 'AGENT_PORT' });
  assert.equal(lines['query_timeout'], { value: 9, origin: './gateway.json' });
  assert.equal(lines['kv.host'], { value: 'localhost', origin: 'default' });
});

config('every mistake is told at once, with its origin, and the status is 1', async () => {
  const { stdout, stderr, code } = await runGateway(['config', '--db-port', 'x'], {
    config: { serverr: {} },
    env: { AGENT_PORT: 'y' },
  });
  assert.is(code, 1);
  assert.is(stdout, '');
  assert.is(
    stderr,
    [
      'error: 3 settings are wrong:',
      '         serverr is not a setting (from ./gateway.json); did you mean server?',
      '         database.port must be an integer, not "x" (from --db-port)',
      '         server.http.agent_port must be an integer, not "y" (from AGENT_PORT)',
      'fix:   correct each setting where it is set; `gateway config --help` lists where settings are read from',
      '',
    ].join('\n'),
  );
});

config(
  'settings of installed plugins are in it, secrets masked, and no code of theirs is loaded',
  async () => {
    const { root, close } = installation({
      'some-plugin': {
        gateway: manifestOf({ kind: 'tracer', name: 'mine', settings: './settings.json' }),
        files: {
          'settings.json': JSON.stringify({
            'tracer.mine.key': { type: 'string', secret: true, env: 'MINE_KEY', summary: 'Key.' },
            'tracer.mine.rate': {
              type: 'number',
              default: 0.5,
              flag: 'mine-rate',
              summary: 'Rate.',
            },
          }),
          'index.js': `console.log('loaded');`,
        },
      },
    });
    try {
      const { stdout, code } = await runGateway(['config', '--mine-rate=0.1'], {
        config: { plugins: { dir: root } },
        env: { MINE_KEY: 'hunter2' },
      });
      assert.is(code, 0);
      assert.equal((JSON.parse(stdout) as { tracer: { mine: unknown } }).tracer.mine, {
        key: '********',
        rate: 0.1,
      });
    } finally {
      close();
    }
  },
);

config.run();
