import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runGateway } from '../../support/gateway.js';

const flags = suite('cli/commands/feature-flags');

/** The row of pullmetrics: name, state, origin. */
async function row(args: readonly string[], env: Readonly<Record<string, string>> = {}, config: object = {}): Promise<string[]> {
  const { stdout, stderr, code } = await runGateway(['feature-flags', ...args], { env, config });
  assert.is(stderr, '');
  assert.is(code, 0);
  assert.match(stdout, /^NAME +STATE +ORIGIN +STABILITY +DECLARED BY +SUMMARY\n/);
  return /^pullmetrics .*$/m.exec(stdout)?.[0].split(/ {2,}/).slice(0, 3) ?? [];
}

flags('lists the flags that plugins declare, with state and origin, needing no service', async () => {
  assert.equal(await row([]), ['pullmetrics', 'off', 'default']);
  assert.equal(await row(['--enable-feature-flag=pullmetrics']), ['pullmetrics', 'on', '--enable-feature-flag']);
  assert.equal(await row([], { GATEWAY_ENABLE_FEATURE_FLAG: 'pullmetrics' }), ['pullmetrics', 'on', 'GATEWAY_ENABLE_FEATURE_FLAG']);
  assert.equal(await row([], {}, { enable_feature_flag: ['pullmetrics'] }), ['pullmetrics', 'on', './gateway.json']);
});

flags('an unknown flag is wrong use, with a suggestion', async () => {
  const { stderr, code } = await runGateway(['feature-flags', '--enable-feature-flag', 'pulmetrics']);
  assert.is(code, 2);
  assert.match(
    stderr,
    /^error: enable_feature_flag names "pulmetrics", which is not a feature flag \(known: .*\) \(from --enable-feature-flag\); did you mean pullmetrics\?\n/,
  );
});

flags.run();
