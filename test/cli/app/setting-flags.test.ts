import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { commandFirst, settingFlags } from '#cli/app/setting-flags';
import { type SettingsTable, settings } from '#core/config/settings';

const flags = suite('cli/app/setting-flags');

flags('a command takes its own flags and the global ones, never those of another', () => {
  const agent = settingFlags('agent', settings);
  const server = settingFlags('server', settings);
  const version = settingFlags('version', settings);
  for (const name of ['consumers', 'interval', 'mode', 'port'])
    assert.is(agent[name]?.helpGroup, undefined, name);
  for (const name of ['consumers', 'interval', 'mode']) assert.not.ok(name in server, name);
  assert.ok('logger' in server && !('logger' in agent));
  const groups = {
    config: 'GLOBAL',
    'enable-feature-flag': 'GLOBAL',
    'license-key': 'GLOBAL',
    'log-level': 'GLOBAL',
    'db-host': 'DATABASE',
    'kv-port': 'KV',
    'tracer-type': 'TRACING',
    'metrics-backend': 'METRICS',
  };
  for (const command of [agent, server, version]) {
    for (const [name, group] of Object.entries(groups))
      assert.is(command[name]?.helpGroup, group, name);
  }
  assert.not.ok('port' in version);
  assert.not.ok('feature-flag' in agent, 'a withdrawn flag is not shown');
});

flags(
  'a command that no setting changes anything for takes the global flags and does not list them',
  () => {
    const version = settingFlags('version', settings);
    assert.equal([version['db-host']?.hidden, version['config']?.hidden], [true, undefined]);
    assert.is(settingFlags('agent', settings)['db-host']?.hidden, false);
  },
);

flags('a setting of a plugin becomes a flag without a change here', () => {
  const rows: SettingsTable = {
    ...settings,
    'tracer.mine.url': {
      type: 'string',
      flag: 'mine-url',
      env: 'MINE_URL',
      summary: 'Where to.',
      owner: 'mine',
    },
  };
  assert.is(settingFlags('agent', rows)['mine-url']?.summary, 'Where to. [env: MINE_URL]');
});

flags('the parser decides nothing about values, so that all mistakes are told by the table', () => {
  for (const flag of Object.values(settingFlags('agent', settings))) {
    assert.is(flag.required, undefined);
    if (flag.type === 'option')
      assert.equal([flag.options, flag.default, flag.env], [undefined, undefined, undefined]);
  }
});

flags(
  'global flags may stand anywhere: they go behind the words of the command, and nothing else moves',
  () => {
    for (const [typed, expected] of [
      ['--config ./a.json config', 'config --config ./a.json'],
      [
        '--enable-feature-flag=pullmetrics server --port 1',
        'server --enable-feature-flag=pullmetrics --port 1',
      ],
      ['migrate --db-host a up --max 1', 'migrate up --db-host a --max 1'],
      [
        '--no-billing-enabled --metrics-enabled agent',
        'agent --no-billing-enabled --metrics-enabled',
      ],
      [
        '--db-host a plugins install ./mine --allow-scripts --db-host b',
        'plugins install ./mine --db-host a --allow-scripts --db-host b',
      ],
      ['--port 1 --db-host a server', '--port 1 --db-host a server'],
      ['--config config', '--config config'],
      ['server -- --db-host a', 'server -- --db-host a'],
    ] as const)
      assert.is(commandFirst(typed.split(' '), settings).join(' '), expected);
  },
);

flags.run();
