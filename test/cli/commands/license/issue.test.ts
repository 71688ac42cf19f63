import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../../support/gateway.js';
import { discard, tempFolder } from '../../../support/start/keep.js';

const issue = suite('cli/commands/license/issue');
const folder = tempFolder('license');
issue.after(() => discard(folder));

const run = (...args: readonly string[]) => runGateway(['license', ...args], { folder });

issue(
  'a key is made, a licence issued with it, and shown where the public key is set, all without a service',
  async () => {
    const made = await run('issue', '--generate-key', 'key.pem');
    assert.is(made.code, 0, made.stderr);
    assert.match(made.stdout, /^[A-Za-z0-9+/]{43}=\n$/, 'standard output is the public key alone');
    assert.match(made.stderr, 'license_public_key');
    assert.is(fs.statSync(path.join(folder, 'key.pem')).mode & 0o777, 0o600);

    const entitled = ['--entitlement', 'apm,otel', '--entitlement', 'errtrack,pullmetrics'];
    const { stdout, stderr, code } = await run(
      'issue',
      '--key',
      'key.pem',
      '--organisation',
      'Acme',
      ...entitled,
      '--expires',
      '2099-12-31',
    );
    assert.is(code, 0, stderr);
    assert.match(stdout, /^[\w-]+\.[\w-]+\n$/, 'standard output is the token alone');
    assert.not.match(stderr, 'warning');
    const shown = await runGateway(['license', 'show', '--json'], {
      folder,
      env: { GATEWAY_LICENSE_PUBLIC_KEY: made.stdout.trim(), GATEWAY_LICENSE_KEY: stdout.trim() },
    });
    const {
      organisation,
      entitlements,
      expires_at: expires,
    } = JSON.parse(shown.stdout) as Record<string, unknown>;
    assert.equal(
      [organisation, entitlements, expires],
      ['Acme', ['apm', 'errtrack', 'otel', 'pullmetrics'], '2099-12-31T00:00:00.000Z'],
    );
  },
);

issue(
  'an entitlement that no plugin declares, and one of the community licence that is left out, are warnings',
  async () => {
    await run('issue', '--generate-key', 'warned.pem');
    const { code, stdout, stderr } = await run(
      ...[
        'issue',
        '--key',
        'warned.pem',
        '--organisation',
        'Acme',
        '--entitlement',
        'apn,otel,errtrack',
        '--expires',
        '365d',
      ],
    );
    assert.is(code, 0);
    assert.match(stdout, /^[\w-]+\.[\w-]+\n$/);
    assert.match(
      stderr,
      'warning: no installed plugin declares the entitlement apn (known: apm, errtrack, otel, pullmetrics); did you mean apm?\n',
    );
    assert.match(
      stderr,
      'warning: the licence does not include pullmetrics, which the community licence includes\n',
    );
  },
);

issue('wrong use is told with what is wrong', async () => {
  const whole = ['--key', 'key.pem', '--organisation', 'Acme', '--entitlement', 'apm'];
  for (const [args, sentence] of [
    [[], 'gateway license issue needs --key and --organisation and --entitlement and --expires'],
    [[...whole], 'gateway license issue needs --expires'],
    [
      ['--generate-key', 'a.pem', ...whole],
      '--generate-key and --key, --organisation, --entitlement cannot be combined',
    ],
    [[...whole, '--expires', '2020-01-01'], '--expires 2020-01-01 was'],
    [[...whole, '--expires', '2027-02-30'], '--expires is not a date: "2027-02-30"'],
    [[...whole, '--expires', 'tomorrow'], '--expires must be a duration, not "tomorrow"'],
    [[...whole, '--expires', '99999999d'], '--expires 99999999d is after the year 9999'],
  ] as const) {
    const { code, stderr } = await run('issue', ...args);
    assert.is(code, 2, sentence);
    assert.match(stderr, `error: ${sentence}`);
  }
});

issue('a key file that is no key is an error with its name', async () => {
  fs.writeFileSync(path.join(folder, 'text.pem'), 'hello');
  const { code, stderr } = await run(
    'issue',
    '--key',
    'text.pem',
    '--organisation',
    'Acme',
    '--entitlement',
    'apm',
    '--expires',
    '1d',
  );
  assert.is(code, 1);
  assert.match(stderr, /^.*error: the key file text\.pem holds no private key in PEM/ms);
});

issue.run();
