import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { envOf, flagsOf, type SettingsTable, settings } from '#core/config/settings';

const table = suite('core/config/settings');
const rows: SettingsTable = settings;
const COMMANDS = ['agent', 'bootstrap', 'config', 'server'];

table('the settings of the specification have its keys, variables and flags', () => {
  const wanted: [
    key: string,
    env: string | undefined,
    command: string | undefined,
    flag: string | undefined,
  ][] = [
    ['instance_ingest_rate', 'GATEWAY_INSTANCE_INGEST_RATE', undefined, undefined],
    ['enable_feature_flag', 'GATEWAY_ENABLE_FEATURE_FLAG', 'config', 'enable-feature-flag'],
    ['metrics.enabled', 'GATEWAY_METRICS_ENABLED', undefined, undefined],
    ['metrics.metrics_backend', 'GATEWAY_METRICS_BACKEND', 'config', 'metrics-backend'],
    ['query_timeout', 'GATEWAY_METRICS_QUERY_TIMEOUT', undefined, undefined],
    ['server.http.port', undefined, 'server', 'port'],
    ['server.http.agent_port', 'AGENT_PORT', 'agent', 'port'],
    ['tracer.type', 'GATEWAY_TRACER_PROVIDER', 'config', 'tracer-type'],
    ['consumer_pool_size', undefined, 'agent', 'consumers'],
    ['agent.interval_seconds', undefined, 'agent', 'interval'],
    ['agent.mode', undefined, 'agent', 'mode'],
    ['max_response_size', undefined, 'server', 'max-response-size'],
    ['logger.level', undefined, 'server', 'logger'],
  ];
  for (const [key, env, command, flag] of wanted) {
    const row = rows[key];
    assert.ok(row, key);
    if (env) assert.is(envOf(key, row), env);
    if (command && flag) assert.ok(flagsOf(row, command).includes(flag), `${command} --${flag}`);
  }
});

table('the defaults of the specification', () => {
  const defaults = [
    'instance_ingest_rate',
    'server.http.port',
    'server.http.agent_port',
    'agent.interval_seconds',
    'logger.level',
    'metrics.enabled',
  ];
  assert.equal(
    defaults.map((key) => rows[key]?.default),
    [1000, 5005, 5008, 10, 'info', false],
  );
});

table('every command takes the global flags for the database and KV', () => {
  const names = ['database', 'host', 'password', 'scheme', 'type', 'username', 'port'];
  const global = ['config', 'bootstrap'].map(
    (command) => new Set(Object.values(rows).flatMap((row) => flagsOf(row, command))),
  );
  for (const flags of global) {
    for (const name of [
      ...names.map((it) => `db-${it}`),
      ...names.map((it) => `kv-${it}`),
      'db-options',
    ])
      assert.ok(flags.has(name), name);
  }
});

table(
  'every setting has a variable of its own, and every flag of a command means one setting',
  () => {
    const names = Object.entries(rows).map(([key, row]) => envOf(key, row));
    assert.is(new Set(names).size, names.length);
    for (const command of COMMANDS) {
      const flags = Object.values(rows).flatMap((row) => flagsOf(row, command));
      assert.is(new Set(flags).size, flags.length, command);
    }
  },
);

table('no setting is the group of another', () => {
  const keys = Object.keys(rows);
  assert.equal(
    keys.filter((key) => keys.some((other) => other.startsWith(`${key}.`))),
    [],
  );
});

table('every row has a summary that is a sentence', () => {
  for (const [key, row] of Object.entries(rows)) assert.match(row.summary, /^[A-Z].*\.$/, key);
});

table('these settings hold secrets, and no others', () => {
  assert.equal(
    Object.keys(rows).filter((key) => rows[key]?.secret),
    [
      'client.key',
      'license_key',
      'encryption_key',
      'delivery.proxy',
      'database.password',
      'kv.password',
      'kv.sentinel.password',
      'server.auth.api_keys',
      'server.auth.basic',
      'oidc.client_secret',
      'smtp.password',
      'archive.secret_access_key',
      'billing.api_key',
      'metrics.bearer_token',
    ],
  );
});

table('a default is a value that the row itself accepts', async () => {
  const { parseSetting } = await import('#core/config/parse-value');
  for (const [key, row] of Object.entries(rows)) {
    if (row.default !== undefined)
      assert.equal(parseSetting(row, row.default, false), { value: row.default }, key);
  }
});

table('a time has a largest value, and one that a timer is set with fits into it', () => {
  const LONGEST_TIMER_SECONDS = 2_147_483;
  for (const [key, row] of Object.entries(rows)) {
    if (!/_(seconds|ms)$|^query_timeout$/.test(key)) continue;
    const most =
      key === 'ingest.idempotency_window_seconds'
        ? Infinity
        : LONGEST_TIMER_SECONDS * (key.endsWith('_ms') ? 1000 : 1);
    assert.ok(row.max !== undefined && row.max <= most, `${key}: ${row.max}`);
  }
});

table.run();
