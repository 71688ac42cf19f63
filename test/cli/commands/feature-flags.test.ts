import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { installation, manifestOf } from '../../core/plugin-packages.js';
import { runGateway } from '../../support/gateway.js';

const flags = suite('cli/commands/feature-flags');
const { root, close } = installation({
  'some-plugin': {
    gateway: manifestOf({
      kind: 'tracer',
      name: 'mine',
      flags: { minetracing: { summary: 'Tracing of mine.', stability: 'beta' } },
    }),
  },
});
flags.after(close);

/** The row of the flag: name, state, origin, stability, package, summary. */
async function row(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  config: object = {},
): Promise<string[]> {
  const { stdout, stderr, code } = await runGateway(['feature-flags', ...args], {
    env: { GATEWAY_PLUGINS_DIR: root, ...env },
    config,
  });
  assert.is(stderr, '');
  assert.is(code, 0);
  assert.match(stdout, /^NAME +STATE +ORIGIN +STABILITY +DECLARED BY +SUMMARY\n/);
  return /^minetracing .*$/m.exec(stdout)?.[0].split(/ {2,}/) ?? [];
}

flags(
  'lists the flags that plugins declare, with state and origin, needing no service',
  async () => {
    const rest = ['beta', 'some-plugin', 'Tracing of mine.'];
    assert.equal(await row([]), ['minetracing', 'off', 'default', ...rest]);
    assert.equal(await row(['--enable-feature-flag=minetracing']), [
      'minetracing',
      'on',
      '--enable-feature-flag',
      ...rest,
    ]);
    assert.equal(await row([], { GATEWAY_ENABLE_FEATURE_FLAG: 'minetracing' }), [
      'minetracing',
      'on',
      'GATEWAY_ENABLE_FEATURE_FLAG',
      ...rest,
    ]);
    assert.equal(await row([], {}, { enable_feature_flag: ['minetracing'] }), [
      'minetracing',
      'on',
      './gateway.json',
      ...rest,
    ]);
  },
);

flags('--json prints the same, whole', async () => {
  const { stdout } = await runGateway(
    ['feature-flags', '--json', '--enable-feature-flag=minetracing'],
    {
      env: { GATEWAY_PLUGINS_DIR: root },
    },
  );
  assert.equal(
    (JSON.parse(stdout) as { name: string }[]).find(({ name }) => name === 'minetracing'),
    {
      name: 'minetracing',
      enabled: true,
      origin: '--enable-feature-flag',
      stability: 'beta',
      declared_by: 'some-plugin',
      summary: 'Tracing of mine.',
    },
  );
});

flags('several flags are given with commas, or by repeating it', async () => {
  for (const args of [
    ['--enable-feature-flag=minetracing,pullmetrics'],
    ['--enable-feature-flag', 'pullmetrics', '--enable-feature-flag=minetracing'],
  ]) {
    const { stdout } = await runGateway(['feature-flags', '--json', ...args], {
      env: { GATEWAY_PLUGINS_DIR: root },
    });
    const on = (JSON.parse(stdout) as { name: string; enabled: boolean }[])
      .filter(({ enabled }) => enabled)
      .map(({ name }) => name);
    assert.equal(on.sort(), ['minetracing', 'pullmetrics']);
  }
});

flags('the forms of the past are wrong use that says what replaced them', async () => {
  for (const [args, env] of [
    [['--feature-flag=experimental'], {}],
    [[], { GATEWAY_FEATURE_FLAG: '1' }],
  ] as const) {
    const { code, stderr } = await runGateway(['feature-flags', ...args], { env });
    assert.is(code, 2, stderr);
    assert.match(stderr, /is no longer valid\nfix: .*--enable-feature-flag=<flag>/);
  }
});

flags('an unknown flag is wrong use, with a suggestion', async () => {
  const { stderr, code } = await runGateway(
    ['feature-flags', '--enable-feature-flag', 'minetracin'],
    {
      env: { GATEWAY_PLUGINS_DIR: root },
    },
  );
  assert.is(code, 2);
  assert.match(
    stderr,
    /^error: enable_feature_flag names "minetracin", which is not a feature flag \(known: .*\) \(from --enable-feature-flag\); did you mean minetracing\?\n/,
  );
});

flags.run();
