import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { readConfig, resolveConfig } from '#core/config/config';
import { presentConfig } from '#core/config/present-config';
import { envOf, settings, type SettingsTable } from '#core/config/settings';
import { explainKvError, kvReason } from '#core/errors/connection-errors';
import { databaseReason, explainDatabaseError } from '#core/errors/database-errors';
import { GatewayError } from '#core/errors/errors';
import { discover } from '#core/plugins/discovery';
import { Health } from '#core/process/health';
import { checkConfig } from '#cli/config/check';
import { failureOf, printed } from '#cli/app/failure';

const secrets = suite('core/errors/secrets');

const discovery = discover({ root: new URL('../../..', import.meta.url).pathname });
const rows: SettingsTable = discovery.rows;
const ADDRESSES = [
  'postgres://u:s3cret@db.example.com:5432/g',
  'redis://:s3cret@kv.example.com:6379',
  'https://u:s3cret@example.com/path',
  'u:s3cret@db.example.com',
  'u:s3cret@db.example.com:5432',
  'token-s3cret@db.example.com:5432',
];

secrets(
  'whatever setting an address with a login is given to, no error, check or listing shows the login',
  () => {
    for (const [key, row] of Object.entries(rows)) {
      // Plugin names can contain anything; only their URLs are masked.
      for (const address of row.lowerCase ? [ADDRESSES[0]!] : [ADDRESSES[0]!, ADDRESSES[4]!]) {
        const parts = key.split('.');
        const file = parts.reduceRight<unknown>(
          (value, part) => ({ [part]: value }),
          row.type === 'list' ? [address] : address,
        );
        const read = readConfig({ env: {}, file: file as Record<string, unknown>, rows });
        const shown = [
          JSON.stringify([read.problems, read.withdrawn, read.pluginProblems]),
          row.type === 'list' || row.options ? '' : JSON.stringify(presentConfig(read)),
          JSON.stringify({
            ...checkConfig({ env: {}, file: file as Record<string, unknown>, rows }, discovery),
            plugins: [],
          }),
        ];
        try {
          resolveConfig({ env: {}, file: file as Record<string, unknown>, rows });
        } catch (error) {
          shown.push(printed(failureOf(error, { command: 'server', flags: [] })));
        }
        assert.not.match(shown.join('\n'), 's3cret', `${key}=${address}`);
      }
    }
  },
);

secrets(
  'a URL, or an address with a login, is refused for a host, with the settings that take its parts',
  () => {
    for (const key of [
      'database.host',
      'database.direct.host',
      'kv.host',
      'server.http.bind',
      'smtp.url',
      'host',
    ] as const) {
      const name = envOf(key, settings[key]);
      for (const address of ADDRESSES) {
        const { problems } = readConfig({ env: { [name]: address }, file: {} });
        assert.is(problems.length, 1, `${key}=${address}`);
      }
    }
    const { problems } = readConfig({ env: { GATEWAY_DB_HOST: ADDRESSES[0] }, file: {} });
    assert.is(
      problems[0]!.sentence,
      'database.host must be a host such as db.example.com, not a URL (from GATEWAY_DB_HOST); give its parts with database.scheme, database.username, database.password, database.host, database.port, database.database, database.options',
    );
    for (const host of [
      'localhost',
      'db_1.internal',
      '10.0.0.1',
      '::1',
      '[fd00::1]',
      'fe80::1%eth0',
      '/var/run/postgresql',
      'db.example.com.',
    ])
      assert.equal(readConfig({ env: { GATEWAY_DB_HOST: host }, file: {} }).problems, [], host);
  },
);

secrets('errors of drivers that repeat an address are shown without its login', () => {
  const host = 'postgres://u:s3cret@db.example.com';
  const place = { host, port: 5432, database: 'g', username: 'u' };
  const echoed = [
    Object.assign(new Error(`getaddrinfo ENOTFOUND ${host}`), { code: 'ENOTFOUND' }),
    new TypeError(`Invalid URL: ${host}`),
    new TypeError(
      'Request cannot be constructed from a URL that includes credentials: https://u:s3cret@example.com/',
    ),
  ];
  const health = new Health();
  for (const error of echoed) {
    health.report('kv', 'down', `${error.message}.`);
    const shown = [
      explainDatabaseError(error, place),
      explainKvError(error, { host, port: 6379 }),
      new GatewayError('source_check_failed', {
        kind: 'kafka',
        reason: error.message,
        fix: `correct ${host}`,
      }),
    ].flatMap((it) => [
      it instanceof GatewayError ? it.toString() : '',
      printed(failureOf(it, { command: 'migrate up', flags: [] })),
    ]);
    const reasons = [databaseReason(error, place).reason, kvReason(error, { host, port: 6379 })];
    for (const reason of reasons) health.report(reason.slice(0, 3), 'down', reason);
    assert.not.match([...shown, JSON.stringify(health.components)].join('\n'), 's3cret');
  }
  assert.match(
    new GatewayError('internal', {
      reason: 'errtrack.dsn must be such as https://<key>@<host>/<project>',
    }).message,
    '<key>@',
  );
});

secrets.run();
