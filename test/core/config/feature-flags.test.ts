import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { isGatewayError } from '#core/errors/errors';
import { settings, withFlags, type FlagTable } from '#core/config/settings';

const flags = suite('core/config/feature-flags');
const known: FlagTable = {
  pullmetrics: { summary: 'Metrics.', stability: 'stable', declaredBy: 'a' },
  dashboards: { summary: 'Dashboards.', stability: 'beta', declaredBy: 'b' },
};

flags('a flag of the table can be enabled', () => {
  const rows = withFlags(settings, known);
  const { config } = resolveConfig({
    env: { GATEWAY_ENABLE_FEATURE_FLAG: 'pullmetrics,dashboards' },
    file: {},
    rows,
  });
  assert.equal(config.enable_feature_flag, ['pullmetrics', 'dashboards']);
});

flags('an unknown flag is an error that lists the known ones and suggests one', () => {
  try {
    resolveConfig({
      env: {},
      file: {},
      flags: { 'enable-feature-flag': ['pullmetric'] },
      rows: withFlags(settings, known),
    });
    assert.unreachable('pullmetric is not a flag');
  } catch (error) {
    assert.ok(isGatewayError(error));
    assert.is(
      error.message,
      'enable_feature_flag names "pullmetric", which is not a feature flag (known: dashboards, pullmetrics) (from --enable-feature-flag); did you mean pullmetrics?',
    );
    assert.is(error.exitStatus, 2);
  }
});

flags('without any flag in the table none can be enabled', () => {
  assert.throws(
    () =>
      resolveConfig({
        env: { GATEWAY_ENABLE_FEATURE_FLAG: 'x' },
        file: {},
        rows: withFlags(settings, {}),
      }),
    /names "x", which is not a feature flag \(known: none\)/,
  );
});

flags.run();
