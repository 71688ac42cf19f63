import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type GatewayError, isGatewayError } from '#core/errors/errors';
import { pluginsDirOf, resolveConfig, settingsAt } from '#core/config/config';
import { presentConfig, presentOrigins } from '#core/config/present-config';
import { envOf, settingAt, settings, withFlags, type SettingsTable } from '#core/config/settings';

const config = suite('core/config/config');
const fixtures = fileURLToPath(new URL('../../fixtures/configuration', import.meta.url));
const settingsTable: SettingsTable = settings;
const rows = withFlags(settings, {
  pullmetrics: { summary: 'Metrics.', stability: 'stable', declaredBy: 'a plugin' },
});

function refusal(work: () => unknown): GatewayError {
  try {
    work();
  } catch (error) {
    if (isGatewayError(error)) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

for (const file of readdirSync(fixtures).filter((name) => name.endsWith('.bad.json'))) {
  const name = basename(file, '.bad.json');
  config(`the bad file ${name} produces its sentence, and no secret of it`, () => {
    const path = join(fixtures, file);
    const error = refusal(() => resolveConfig({ env: {}, file: path, rows }));
    assert.is(
      error.message.replaceAll(path, '<file>'),
      readFileSync(join(fixtures, `${name}.bad.txt`), 'utf8').trimEnd(),
    );
    assert.not.match(error.toString(), /hunter2|12345678/);
    assert.ok(error.fix.length > 10, 'the error says what to do');
  });
}

for (const file of readdirSync(fixtures).filter((name) => name.endsWith('.good.json'))) {
  config(`the file ${file} is accepted`, () => {
    const path = join(fixtures, file);
    const resolved = resolveConfig({ env: {}, file: path, rows });
    const content = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
    for (const [key, origin] of resolved.origins) {
      const given = key
        .split('.')
        .reduce<unknown>(
          (at, part) => (at as Record<string, unknown> | undefined)?.[part],
          content,
        );
      assert.is(origin, given === undefined ? 'default' : path, key);
      if (given !== undefined) assert.equal(settingAt(resolved.config, key), given, key);
    }
  });
}

config('flags win over variables, variables over the file, the file over defaults', () => {
  const file = {
    instance_ingest_rate: 1,
    agent: { mode: 'retry' },
    server: { http: { agent_port: 1 } },
  };
  const env = { GATEWAY_INSTANCE_INGEST_RATE: '2', AGENT_PORT: '2' };
  const { config: it, origins } = resolveConfig({
    command: 'agent',
    flags: { port: '3' },
    env,
    file,
  });
  assert.is(it.server.http.agent_port, 3);
  assert.is(it.instance_ingest_rate, 2);
  assert.is(it.agent.mode, 'retry');
  assert.is(it.agent.interval_seconds, 10);
  assert.equal(
    ['server.http.agent_port', 'instance_ingest_rate', 'agent.mode', 'agent.interval_seconds'].map(
      (key) => origins.get(key),
    ),
    ['--port', 'AGENT_PORT', 'the configuration', 'default'].map((origin, i) =>
      i === 1 ? 'GATEWAY_INSTANCE_INGEST_RATE' : origin,
    ),
  );
});

config(
  'a setting with several keys is read from each, and different values are refused with both places',
  () => {
    const read = (file: Record<string, unknown>, env = {}) => resolveConfig({ env, file });
    for (const file of [
      { query_timeout: 7 },
      { metrics: { query_timeout: 7 } },
      { metrics: { pullmetrics_metrics: { query_timeout: 7 } } },
    ]) {
      const { config: it, origins } = read(file);
      assert.equal([it.query_timeout, origins.get('query_timeout')], [7, 'the configuration']);
    }
    assert.is(
      read({
        query_timeout: 7,
        metrics: { query_timeout: 7, pullmetrics_metrics: { query_timeout: 7 } },
      }).config.query_timeout,
      7,
    );
    const two = { query_timeout: 7, metrics: { pullmetrics_metrics: { query_timeout: 8 } } };
    assert.match(
      refusal(() => read(two)).message,
      'query_timeout (from the configuration) and metrics.pullmetrics_metrics.query_timeout (from the configuration) are the same setting and have different values; remove one of them',
    );
    assert.is(
      read(two, { GATEWAY_METRICS_QUERY_TIMEOUT: '9' }).config.query_timeout,
      9,
      'the file does not count',
    );
    assert.match(
      refusal(() => read({ metrics: { query_timeout: 0 } })).message,
      'metrics.query_timeout must be at least 1, not 0',
    );
  },
);

config('the flag port is another setting on server than on agent', () => {
  const { http } = resolveConfig({ command: 'server', flags: { port: '7' }, env: {}, file: {} })
    .config.server;
  assert.is(http.port, 7);
  assert.is(http.agent_port, 5008);
});

config(
  '--consumers counts only when it is not negative, and the agent port only when it is not zero',
  () => {
    const given = {
      command: 'agent',
      env: { GATEWAY_CONSUMER_POOL_SIZE: '9', AGENT_PORT: '9' },
      file: {},
    };
    const unset = resolveConfig({ ...given, flags: { consumers: '-1', port: '0' } }).config;
    assert.is(unset.consumer_pool_size, 9);
    assert.is(unset.server.http.agent_port, 9);
    const set = resolveConfig({ ...given, flags: { consumers: '1', port: '1' } }).config;
    assert.is(set.consumer_pool_size, 1);
    assert.is(resolveConfig({ ...given, flags: { consumers: '0' } }).config.consumer_pool_size, 0);
    assert.is(set.server.http.agent_port, 1);
  },
);

config('a key that stands twice in the file is refused with its lines', () => {
  const folder = mkdtempSync(join(tmpdir(), 'config-'));
  const file = join(folder, 'gateway.json');
  try {
    writeFileSync(
      file,
      '{\n  "database": {\n    "host": "a",\n    "host": "b"\n  },\n  "server": {},\n  "server": {}\n}',
    );
    const { message } = refusal(() => resolveConfig({ env: {}, file }));
    assert.match(message, `database.host is given twice, in the lines 3 and 4 (from ${file})`);
    assert.match(message, `server is given twice, in the lines 6 and 7 (from ${file})`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

config('a variable GATEWAY_* that is no setting is a warning, with the one that was meant', () => {
  const env = {
    GATEWAY_LOGER_LEVEL: 'debug',
    GATEWAY_DATABASE_HOST: 'db',
    GATEWAY_AGENT_PORT: '1',
    GATEWAY_SERVER_AUTH_API_KEYS: 'x',
    GATEWAY_LICENCE_KEY_FILE: 'x',
    GATEWAY_SAUCE: '1',
    GATEWAY_ENCRYPTION_KEY_FILE: '',
    GATEWAY_SERVICE_PORT_HTTP: '5005',
    GATEWAY_REDIS_SERVICE_HOST: '10.0.0.1',
    GATEWAY_REDIS_PORT: 'tcp://10.0.0.1:6379',
    GATEWAY_REDIS_PORT_6379_TCP_PROTO: 'tcp',
    GATEWAY_REDIS_NAME: '/web/redis',
    GATEWAY_REDIS_ENV_REDIS_VERSION: '7',
    GATEWAY_URL: 'https://gateway.example.com',
    GATEWAYX: '1',
    HOME: '/root',
  };
  const { warnings } = resolveConfig({ env, file: {} });
  assert.equal(
    warnings.map(({ sentence }) => sentence),
    [
      'GATEWAY_LOGER_LEVEL is not a setting, so it is ignored; did you mean GATEWAY_LOGGER_LEVEL?',
      'GATEWAY_DATABASE_HOST is not a setting, so it is ignored; did you mean GATEWAY_DB_HOST?',
      'GATEWAY_AGENT_PORT is not a setting, so it is ignored; did you mean AGENT_PORT?',
      'GATEWAY_SERVER_AUTH_API_KEYS is not a setting, so it is ignored; did you mean GATEWAY_API_AUTH?',
      'GATEWAY_LICENCE_KEY_FILE is not a setting, so it is ignored; did you mean GATEWAY_LICENSE_KEY_FILE?',
      'GATEWAY_SAUCE is not a setting, so it is ignored',
    ],
  );
});

config('variables that Kubernetes makes for services are ignored with a warning', () => {
  const env = {
    GATEWAY_DB_PORT: 'tcp://10.96.0.7:5432',
    GATEWAY_KV_PORT: 'udp://[fd00::7]:6379',
    AGENT_PORT: 'tcp://10.96.0.8:80',
    GATEWAY_SERVICE_HOST: '10.96.0.9',
    GATEWAY_PORT: 'tcp://10.96.0.9:5005',
    GATEWAY_PORT_5005_TCP_ADDR: '10.96.0.9',
  };
  const { config: it, warnings, origins } = resolveConfig({ env, file: {} });
  assert.equal([it.database.port, it.kv.port, it.server.http.agent_port], [5432, 6379, 5008]);
  assert.is(origins.get('database.port'), 'default');
  assert.equal(warnings.map(({ origin }) => origin).sort(), [
    'AGENT_PORT',
    'GATEWAY_DB_PORT',
    'GATEWAY_KV_PORT',
  ]);
  assert.match(
    warnings.find(({ origin }) => origin === 'GATEWAY_DB_PORT')?.sentence ?? '',
    'GATEWAY_DB_PORT=tcp://10.96.0.7:5432 is ignored: Kubernetes sets it for the service gateway-db; set enableServiceLinks to false in the pod',
  );
  assert.is(
    resolveConfig({ env, file: { database: { port: 7 } } }).config.database.port,
    7,
    'the file counts',
  );
  assert.match(
    refusal(() => resolveConfig({ env: { GATEWAY_DB_PORT: 'http://10.96.0.7:5432' }, file: {} }))
      .message,
    'must be an integer',
  );
});

config('an empty variable is one that was not set', () => {
  const { config: it } = resolveConfig({
    env: { GATEWAY_DB_PASSWORD: '', GATEWAY_DB_HOST: '' },
    file: {},
  });
  assert.is(it.database.password, undefined);
  assert.is(it.database.host, 'localhost');
});

config('numbers, truths and lists of variables and flags are read from their text', () => {
  const env = {
    GATEWAY_METRICS_ENABLED: 'true',
    GATEWAY_DELIVERY_ALLOWED_NETWORKS: ' 10.0.0.0/8 , ::1/128,',
    PORT: ' 80 ',
  };
  const { config: it } = resolveConfig({
    env,
    flags: { 'enable-feature-flag': ['pullmetrics', 'pullmetrics'] },
    file: {},
    rows,
  });
  assert.is(it.metrics.enabled, true);
  assert.equal(it.delivery.allowed_networks, ['10.0.0.0/8', '::1/128']);
  assert.is(it.server.http.port, 80);
  assert.equal(it.enable_feature_flag, ['pullmetrics']);
});

config('all mistakes are told at once, each with its origin', () => {
  const error = refusal(() =>
    resolveConfig({
      command: 'server',
      flags: { port: 'http' },
      env: { GATEWAY_DB_PORT: 'x' },
      file: { kv: { port: true } },
    }),
  );
  assert.is(error.code, 'invalid_settings');
  assert.is(error.exitStatus, 1);
  assert.is(
    error.message,
    [
      '3 settings are wrong:',
      '  database.port must be an integer, not "x" (from GATEWAY_DB_PORT)',
      '  kv.port must be an integer, not true (from the configuration)',
      '  server.http.port must be an integer, not "http" (from --port)',
    ].join('\n'),
  );
});

config('mistakes that are all flags are wrong use', () => {
  const error = refusal(() =>
    resolveConfig({ command: 'agent', flags: { mode: 'evnts' }, env: {}, file: {} }),
  );
  assert.is(error.code, 'wrong_flags');
  assert.is(error.exitStatus, 2);
  assert.is(
    error.message,
    'agent.mode must be one of events, retry, default, not "evnts" (from --mode); did you mean events?',
  );
});

config('the withdrawn forms say what replaced them', () => {
  const byFlag = refusal(() =>
    resolveConfig({ flags: { 'feature-flag': 'experimental' }, env: {}, file: {} }),
  );
  const byVariable = refusal(() => resolveConfig({ env: { GATEWAY_FEATURE_FLAG: '1' }, file: {} }));
  assert.is(byFlag.message, '--feature-flag=experimental is no longer valid');
  assert.is(byVariable.message, 'GATEWAY_FEATURE_FLAG=1 is no longer valid');
  for (const error of [byFlag, byVariable]) {
    assert.is(error.exitStatus, 2);
    assert.match(error.fix, '--enable-feature-flag=<flag> or GATEWAY_ENABLE_FEATURE_FLAG=<flag>');
  }
});

config(
  'the backend flag alone enables metrics; the file and the environment have to say so too',
  () => {
    const enabled = (options: Parameters<typeof resolveConfig>[0]) =>
      resolveConfig({ env: {}, file: {}, ...options }).config.metrics.enabled;
    assert.is(enabled({ flags: { 'metrics-backend': 'pullmetrics' } }), true);
    assert.is(enabled({ env: { GATEWAY_METRICS_BACKEND: 'pullmetrics' } }), false);
    assert.is(enabled({ file: { metrics: { metrics_backend: 'pullmetrics' } } }), false);
    assert.is(
      enabled({ env: { GATEWAY_METRICS_BACKEND: 'pullmetrics', GATEWAY_METRICS_ENABLED: 'true' } }),
      true,
    );
    assert.is(
      enabled({
        flags: { 'metrics-backend': 'pullmetrics' },
        env: { GATEWAY_METRICS_ENABLED: 'false' },
      }),
      false,
    );
  },
);

config('metrics.enabled alone selects the built-in backend and its feature flag', () => {
  const read = (options: Parameters<typeof resolveConfig>[0]) => {
    const { config: it, origins } = resolveConfig({
      env: {},
      file: {},
      rows,
      ...options,
    });
    const { enabled, metrics_backend: backend } = it.metrics;
    return [enabled, backend, it.enable_feature_flag, origins.get('enable_feature_flag')];
  };
  const open = [true, 'pullmetrics', ['pullmetrics'], 'metrics.enabled'];
  assert.equal(read({ file: { metrics: { enabled: true } } }), open);
  assert.equal(read({ env: { GATEWAY_METRICS_ENABLED: 'true' } }), open);
  assert.equal(read({ flags: { 'metrics-enabled': true } }), open);
  const written = { GATEWAY_METRICS_ENABLED: 'true', GATEWAY_METRICS_BACKEND: 'pullmetrics' };
  assert.equal(read({ env: written }), [true, 'pullmetrics', [], 'default']);
  assert.equal(read({ file: { metrics: { enabled: false } } }), [false, undefined, [], 'default']);
});

config('the result cannot be changed', () => {
  const { config: it } = resolveConfig({
    env: {},
    file: { delivery: { allowed_networks: ['10.0.0.0/8'] } },
  });
  assert.throws(() => Object.assign(it.database, { host: 'elsewhere' }), /read only/);
  assert.throws(
    () => (it.delivery.allowed_networks as string[]).push('0.0.0.0/0'),
    /not extensible/,
  );
});

config('a default file that is missing is no error, a named one is', () => {
  const error = refusal(() => resolveConfig({ env: {}, file: './nowhere/gateway.json' }));
  assert.is(error.code, 'config_unreadable');
  assert.is(
    error.message,
    'the configuration file ./nowhere/gateway.json cannot be read: there is no such file or folder',
  );
  const before = process.cwd();
  const folder = mkdtempSync(join(tmpdir(), 'gateway-config-'));
  try {
    process.chdir(folder);
    assert.is(resolveConfig({ env: {} }).config.server.http.port, 5005);
    writeFileSync('gateway.json', '\uFEFF{ "server": { "http": { "port": 6005 } } }');
    assert.is(resolveConfig({ env: {} }).config.server.http.port, 6005);
  } finally {
    process.chdir(before);
    rmSync(folder, { recursive: true });
  }
});

config(
  'a presented configuration masks secrets unless they are asked for, and leaves out what has no value',
  () => {
    const planted = Object.keys(settingsTable).filter((key) => settingsTable[key]!.secret);
    const values: Record<string, string> = {
      'delivery.proxy': 'http://ada:hunter2@proxy:1',
      'server.auth.basic': 'ada:hunter2-hunter2',
    };
    const env = Object.fromEntries(
      planted.map((key) => [envOf(key, settingsTable[key]!), values[key] ?? `hunter2-of-${key}`]),
    );
    const resolved = resolveConfig({
      env,
      file: { kv: { sentinel: { addresses: ['a:1'], master_name: 'm' } } },
    });
    const masked = presentConfig(resolved);
    assert.not.match(JSON.stringify([masked, presentOrigins(resolved)]), 'hunter2');
    for (const key of planted)
      assert.match(JSON.stringify(settingAt(masked, key)), '********', key);
    assert.is((masked['server'] as { http: { port: number } }).http.port, 5005);
    assert.not.ok('feature_flag' in masked);
    assert.match(
      (presentConfig(resolved, { showSecrets: true })['kv'] as Record<string, string>)['password']!,
      'hunter2',
    );
    assert.not.ok('username' in (masked['kv'] as Record<string, unknown>));
  },
);

config('origins are told for every setting', () => {
  const resolved = resolveConfig({
    command: 'agent',
    flags: { interval: '3' },
    env: { GATEWAY_DB_HOST: 'db' },
    file: { max_response_size: 1 },
  });
  const lines = presentOrigins(resolved);
  assert.equal(lines['agent.interval_seconds'], { value: 3, origin: '--interval' });
  assert.equal(lines['database.host'], { value: 'db', origin: 'GATEWAY_DB_HOST' });
  assert.equal(lines['max_response_size'], { value: 1, origin: 'the configuration' });
  assert.equal(lines['license_key'], { value: null, origin: 'default' });
  assert.is(
    Object.keys(lines).length,
    Object.values(settings).filter((row) => !('withdrawn' in row)).length,
  );
});

config('a mistake in a setting of a plugin is kept for the plugin and stops nothing', () => {
  const table: SettingsTable = {
    ...settings,
    'tracer.mine.rate': {
      type: 'number',
      max: 1,
      env: 'MINE_RATE',
      summary: 'Rate.',
      owner: 'the tracer plugin mine',
    },
  };
  const { config: it, pluginProblems } = resolveConfig({
    env: { MINE_RATE: '2' },
    file: {},
    rows: table,
  });
  assert.equal(settingsAt(it, 'tracer.mine'), {});
  assert.equal(
    pluginProblems.map(({ sentence }) => sentence),
    ['tracer.mine.rate must be at most 1, not "2" (from MINE_RATE)'],
  );
});

config('settings of a plugin are in the configuration at their keys', () => {
  const table: SettingsTable = {
    ...settings,
    'tracer.mine.auth.name': { type: 'string', summary: 'Name.', owner: 'the tracer plugin mine' },
  };
  const { config: it } = resolveConfig({
    env: {},
    file: { tracer: { type: 'mine', mine: { auth: { name: 'x' } } } },
    rows: table,
  });
  assert.equal(settingsAt(it, 'tracer.mine'), { auth: { name: 'x' } });
  assert.equal(settingsAt(it, 'tracer.other'), {});
});

config('the plugin folder is known before the rest of the configuration is right', () => {
  assert.is(
    pluginsDirOf({ env: {}, file: { plugins: { dir: '/opt/plugins' }, nonsense: true } }),
    '/opt/plugins',
  );
  assert.is(
    pluginsDirOf({ env: { GATEWAY_PLUGINS_DIR: '/env' }, file: { plugins: { dir: '/file' } } }),
    '/env',
  );
  assert.is(pluginsDirOf({ env: {}, file: './nowhere.json' }), './gateway-plugins');
});

config.run();
