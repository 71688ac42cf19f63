import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { installation, manifestOf } from '../../../core/plugin-packages.js';
import { runGateway } from '../../../support/gateway.js';

const inspect = suite('cli/commands/plugins/inspect');

inspect('prints manifest, API ranges, settings with their values, and the state, with nothing running', async () => {
  const { stdout, code } = await runGateway(['plugins', 'inspect', 'otel', '--otel-collector-url', 'here:1', '--tracer-type', 'otel']);
  assert.is(code, 0);
  assert.match(stdout, /^name +otel\nkind +tracer\npackage +@gateway\/tracer-otel \d/);
  assert.match(stdout, /plugin API +wants \^1\.0\.0, this gateway has 1\.0\.0/);
  assert.match(stdout, /state +active/);
  assert.match(stdout, /tracer\.otel\.collector_url +--otel-collector-url +GATEWAY_OTEL_COLLECTOR_URL +"here:1" +--otel-collector-url/);
});

inspect('secrets are masked, and JSON has it all', async () => {
  const { stdout } = await runGateway(['plugins', 'inspect', 'otel', '--json'], { env: { GATEWAY_OTEL_AUTH_HEADER_VALUE: 'hunter2' } });
  assert.not.match(stdout, 'hunter2');
  const [otel] = JSON.parse(stdout) as {
    state: string;
    code: string;
    api: unknown;
    settings: { key: string; origin: string; value: unknown }[];
  }[];
  assert.is(otel?.state, 'inactive');
  assert.is(otel?.code, 'plugin_not_selected');
  assert.equal(otel?.api, { wants: '^1.0.0', gateway: '1.0.0' });
  const secret = otel?.settings.find(({ key }) => key === 'tracer.otel.otel_auth.header_value');
  assert.is(secret?.value, '********');
  assert.is(secret?.origin, 'GATEWAY_OTEL_AUTH_HEADER_VALUE');
});

inspect('a package with a broken manifest is shown with its reason, an unknown name with those that are known', async () => {
  const { root, close } = installation({
    'gateway-broken': { gateway: manifestOf({ kind: 'x', name: 'y' }) },
    'gateway-twin': { gateway: manifestOf({ kind: 'tracer', name: 'otel' }) },
  });
  try {
    const broken = await runGateway(['plugins', 'inspect', 'gateway-broken'], { config: { plugins: { dir: root } } });
    assert.is(broken.code, 0, broken.stderr);
    const twin = await runGateway(['plugins', 'inspect', 'gateway-twin'], { config: { plugins: { dir: root } } });
    assert.match(
      twin.stdout,
      /^name +otel\nkind +tracer\npackage +gateway-twin 1\.2\.3\n/,
      'a refused plugin is found by its package, too',
    );
    assert.match(broken.stdout, 'inactive: the manifest of the plugin package gateway-broken is broken');
  } finally {
    close();
  }
  const unknown = await runGateway(['plugins', 'inspect', 'otle']);
  assert.is(unknown.code, 1);
  assert.match(
    unknown.stderr,
    /^error: there is no plugin and no plugin package named otle; did you mean otel\?\nfix: {3}give one of .*kafka/,
  );
});

inspect.run();
