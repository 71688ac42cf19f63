import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { activate } from '#core/plugins/activation';
import { resolveConfig } from '#core/config/config';
import { discover } from '#core/plugins/discovery';
import type { Licence } from '#core/plugins/licence';
import { silentLog } from '#core/logging/log';
import { previewPlugins } from '#core/plugins/plugin-table';

const gates = suite('core/metrics-gates');

const discovery = discover({ root: new URL('../..', import.meta.url).pathname });
type Gate = 'flag' | 'backend' | 'enabled' | 'licence';
/** The settings that open each gate, by place, and the sentence for a closed gate. */
const ways = {
  flag: {
    file: { enable_feature_flag: ['pullmetrics'] },
    env: { GATEWAY_ENABLE_FEATURE_FLAG: 'pullmetrics' },
    flags: { 'enable-feature-flag': ['pullmetrics'] },
    closed: /the feature flag pullmetrics is off.*--enable-feature-flag=pullmetrics/,
  },
  backend: {
    file: { metrics: { metrics_backend: 'pullmetrics' } },
    env: { GATEWAY_METRICS_BACKEND: 'pullmetrics' },
    flags: { 'metrics-backend': 'pullmetrics' },
    closed: /no metrics backend is selected.*--metrics-backend=pullmetrics/,
  },
  enabled: {
    file: { metrics: { enabled: true } },
    env: { GATEWAY_METRICS_ENABLED: 'true' },
    flags: { 'metrics-enabled': true },
    closed: /metrics\.enabled is false.*--metrics-enabled/,
  },
} as const;
const places = ['file', 'env', 'flags'] as const;
const all: readonly Gate[] = ['flag', 'backend', 'enabled', 'licence'];
const sentences: Record<Gate, RegExp> = {
  flag: ways.flag.closed,
  backend: ways.backend.closed,
  enabled: ways.enabled.closed,
  licence: /the licence of Acme does not include pullmetrics.*GATEWAY_LICENSE_KEY/,
};

/**
 * A process' result for these settings: the row of `gateway plugins`, the row after the start, and
 * `GET /metrics`.
 */
async function outcome(given: {
  command: 'server' | 'agent';
  file?: object;
  env?: Record<string, string>;
  flags?: Record<string, string | boolean | readonly string[]>;
  entitled?: boolean;
}) {
  const { command, file = {}, env = {}, flags = {}, entitled = true } = given;
  const resolved = resolveConfig({ command, file: { ...file }, env, flags, rows: discovery.rows });
  const licence: Licence = {
    kind: 'licensed',
    organisation: 'Acme',
    entitlements: new Set(entitled ? ['pullmetrics'] : []),
  };
  const plugins = await activate({
    discovery,
    resolved,
    licence,
    serviceName: `gateway-${command}`,
    log: silentLog,
  });
  const rowOf = (table: typeof plugins.table) => table.find(({ name }) => name === 'pullmetrics');
  const { body, contentType } = await plugins.meter.expose();
  return {
    foreseen: rowOf(previewPlugins({ discovery, resolved, licence })),
    started: rowOf(plugins.table),
    active: plugins.metrics,
    body,
    contentType,
  };
}

function opened(open: readonly Gate[], place: (typeof places)[number]) {
  const parts = open.flatMap((gate) =>
    gate === 'licence' ? [] : [ways[gate][place] as Record<string, object>],
  );
  const settings: Record<string, unknown> = {};
  for (const part of parts) {
    for (const [key, value] of Object.entries(part)) {
      const merges = place === 'file' && !Array.isArray(value);
      settings[key] = merges ? { ...(settings[key] as object | undefined), ...value } : value;
    }
  }
  return { [place]: settings, entitled: open.includes('licence') };
}

const pairs = all.flatMap((one, at) => all.slice(at + 1).map((other) => [one, other] as const));
for (const command of ['server', 'agent'] as const) {
  for (const place of places) {
    gates(`all four open by ${place}: the ${command} exposes series`, async () => {
      const { foreseen, started, active, body } = await outcome({ command, ...opened(all, place) });
      assert.equal([foreseen?.state, started?.state], ['active', 'active']);
      assert.equal(active, { name: 'pullmetrics', sampleTimeSeconds: 5 });
      assert.match(body, /^gateway_events_recovered_total 0$/m);
    });
    for (const closed of [...all.map((gate) => [gate] as const), ...pairs]) {
      // The backend's flag also opens metrics.enabled.
      // metrics.enabled without a backend opens the backend and the feature flag.
      const isAlone = closed.includes('backend') && !closed.includes('enabled');
      const wanted = closed.filter(
        (gate) =>
          !(gate === 'enabled' && place === 'flags' && !closed.includes('backend')) &&
          !(isAlone && (gate === 'backend' || gate === 'flag')),
      );
      if (wanted.length === 0) continue;
      gates(
        `without ${closed.join(' and ')}, the rest by ${place}: the ${command} says which gate is closed, everywhere alike`,
        async () => {
          const open = all.filter((gate) => !closed.includes(gate as never));
          const { foreseen, started, active, body, contentType } = await outcome({
            command,
            ...opened(open, place),
          });
          assert.is(active, undefined);
          assert.equal(foreseen, started);
          assert.match(contentType, /^text\/plain; version=0\.0\.4/);
          assert.match(body, /^# no metrics: [^\n]+\n$/);
          assert.ok(body.includes(`${started?.reason}; ${started?.fix}`), 'the same as the table');
          for (const gate of all)
            assert.is(sentences[gate].test(body), wanted.includes(gate), `${gate}: ${body}`);
        },
      );
    }
  }

  gates(
    `on the command line of the ${command} the backend and the feature flag are enough`,
    async () => {
      const flags = { 'metrics-backend': 'pullmetrics', 'enable-feature-flag': ['pullmetrics'] };
      assert.is((await outcome({ command, flags })).started?.state, 'active');
      for (const said of [
        { file: { metrics: { enabled: false } } },
        { env: { GATEWAY_METRICS_ENABLED: 'false' } },
        { no: true },
      ]) {
        const { started } = await outcome({
          command,
          ...said,
          flags: { ...flags, ...('no' in said ? { 'metrics-enabled': false } : {}) },
        });
        assert.match(
          started?.reason ?? '',
          /^metrics\.enabled is false \(from (the configuration|GATEWAY_METRICS_ENABLED|--metrics-enabled)\)$/,
        );
      }
      const over = await outcome({
        command,
        file: { metrics: { enabled: false } },
        flags: { ...flags, 'metrics-enabled': true },
      });
      assert.is(over.started?.state, 'active', 'a flag wins over the file');
    },
  );
}

gates('metrics.enabled alone opens every gate but the licence', async () => {
  for (const alone of places) {
    const given = { command: 'agent' as const, [alone]: ways.enabled[alone] };
    assert.is((await outcome(given)).started?.state, 'active', alone);
    const refused = await outcome({ ...given, entitled: false });
    assert.match(refused.body, sentences.licence, alone);
  }
});

gates('a backend of the file or the environment does not open metrics.enabled', async () => {
  const flags = { 'enable-feature-flag': ['pullmetrics'] };
  for (const backend of [
    { file: { metrics: { metrics_backend: 'pullmetrics' } } },
    { env: { GATEWAY_METRICS_BACKEND: 'pullmetrics' } },
  ]) {
    assert.is(
      (await outcome({ command: 'agent', ...backend, flags })).started?.code,
      'metrics_off',
    );
  }
});

gates('another backend is told from none', async () => {
  const file = {
    enable_feature_flag: ['pullmetrics'],
    metrics: { enabled: true, metrics_backend: 'otlp' },
  };
  const { started, body } = await outcome({ command: 'agent', file });
  assert.is(started?.reason, 'the selected metrics backend is otlp');
  assert.match(
    body,
    /^# no metrics: otlp is inactive: no metrics plugin named otlp is installed; install it, or correct metrics\.metrics_backend/,
  );
});

gates.run();
