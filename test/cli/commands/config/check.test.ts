import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../../support/gateway.js';

const check = suite('cli/commands/config/check');

const key = Buffer.alloc(32, 7).toString('base64');

check(
  'what is right is said in a line, with the plugins after it, and the status is 0',
  async () => {
    const { stdout, stderr, code } = await runGateway(['config', 'check', '--db-host', 'a'], {
      config: { encryption_key: key },
    });
    assert.is(code, 0);
    assert.is(stderr, '');
    const [first, ...plugins] = stdout.trimEnd().split('\n');
    assert.is(first, 'ok: 2 settings given, with those of ./gateway.json');
    assert.ok(plugins.includes('ok: the source plugin kafka becomes active'));
    assert.ok(plugins.includes('ok: the tracer plugin apm stays inactive: not selected'));
    assert.is(
      JSON.stringify(JSON.parse((await runGateway(['config', 'check', '--json'])).stdout)),
      '[]',
    );
  },
);

check('everything that is wrong is told at once, and the status is 1', async () => {
  const config = { serverr: {}, database: { port: 'x' }, enable_feature_flag: ['pullmetric'] };
  const { stdout, stderr, code } = await runGateway(['config', 'check'], {
    config,
    env: { AGENT_PORT: 'y', GATEWAY_ENCRYPTION_KEY: key },
  });
  assert.is(code, 1);
  assert.is(stdout, '');
  assert.is(
    stderr,
    [
      'error: 4 settings are wrong:',
      '         serverr is not a setting (from ./gateway.json:2); did you mean server?',
      '         enable_feature_flag names "pullmetric", which is not a feature flag (known: pullmetrics) (from ./gateway.json:6); did you mean pullmetrics?',
      '         database.port must be an integer, not "x" (from ./gateway.json:4)',
      '         server.http.agent_port must be an integer, not "y" (from AGENT_PORT)',
      'fix:   correct each setting where it is set; `gateway config --help` lists where settings are read from',
      '',
    ].join('\n'),
  );
});

check(
  '--json prints the problems with key, origin and sentence, and warnings stay on standard error',
  async () => {
    const { stdout, stderr, code } = await runGateway([
      'config',
      'check',
      '--json',
      '--db-port',
      'x',
    ]);
    assert.is(code, 1);
    assert.equal(JSON.parse(stdout), [
      {
        key: 'database.port',
        origin: '--db-port',
        sentence: 'database.port must be an integer, not "x" (from --db-port)',
      },
    ]);
    assert.match(stderr, /^warning: no encryption key is set/);
  },
);

check('a secret is not told, wherever it is wrong', async () => {
  const config = {
    encryption_key: 'hunter2',
    server: { auth: { api_keys: [7, 'hunter2'] } },
    delivery: { proxy: 'hunter2' },
  };
  const { stdout, stderr, code } = await runGateway(['config', 'check'], { config });
  assert.is(code, 1);
  assert.match(stderr, 'error: 3 settings are wrong');
  assert.not.match(stdout + stderr, 'hunter2');
});

check.run();
