import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Metrics, MetricsPlugin } from '@gateway/plugin';
import { metricsConformance, metricsRules, type MetricsRig } from '@gateway/plugin-conformance';
import { collect, namesWhatIsBroken } from './judged.js';
import { toyMetrics } from './toy-metrics.js';
import { pushingMetrics, pushRig } from './toy-push.js';

const judge = suite('conformance/metrics');

const pulls: MetricsRig = { settings: () => ({}) };
const { close: closePushes, ...pushes } = (await pushRig()) as unknown as Required<MetricsRig>;
const pushing = (otherwise: Parameters<typeof pushingMetrics>[0] = {}) =>
  pushingMetrics(otherwise) as unknown as MetricsPlugin;
const leaks: NodeJS.Timeout[] = [];

const broken: Readonly<
  Record<
    string,
    {
      readonly plugin: MetricsPlugin;
      readonly rig?: MetricsRig;
      readonly also?: Record<string, string>;
    }
  >
> = {
  'shows-what-was-counted': {
    plugin: toyMetrics({
      add: (before, amount) => before + Math.floor(amount),
      set: (value) => Math.max(value, 0),
    }),
  },
  'forgets-what-was-cleared': { plugin: toyMetrics({ clears: () => true }) },
  'observes-histograms': { plugin: toyMetrics({ inBucket: (value, bound) => value < bound }) },
  'keeps-labels-as-they-are': {
    plugin: toyMetrics({ escape: (value) => value.replaceAll('"', '\\"').replaceAll('\n', '\\n') }),
  },
  'collects-before-it-pushes': { plugin: pushing({ collects: false }), rig: pushes },
  'sends-the-rest-at-close': { plugin: pushing({ flushesAtClose: false }), rig: pushes },
  'lets-the-process-end': {
    plugin: toyMetrics({ started: () => void leaks.push(setInterval(() => {}, 1_000)) }),
  },
};

judge(
  'a backend that keeps every rule passes all that can be judged of one that is pulled',
  async () => {
    const results = [...(await collect(metricsConformance(toyMetrics(), pulls))).values()];
    assert.equal(
      results.filter(({ outcome }) => outcome !== 'passed').map(({ rule }) => rule),
      ['collects-before-it-pushes', 'sends-the-rest-at-close'],
    );
  },
);

judge(
  'a backend that pushes over the network, as OTLP does, is judged by what arrives',
  async () => {
    const results = [...(await collect(metricsConformance(pushing(), pushes))).values()];
    assert.equal(
      results.filter(({ outcome }) => outcome !== 'passed').map(({ rule }) => rule),
      [],
    );
  },
);

judge('each backend that a rule starts is closed, also when the rule fails', async () => {
  const [started, closed] = [new Set<Metrics>(), new Set<Metrics>()];
  const plugin: MetricsPlugin = {
    start: async (series, settings, host) => {
      const inner = await toyMetrics({ inBucket: (value, bound) => value < bound }).start(
        series,
        settings,
        host,
      );
      const metrics: Metrics = { ...inner, close: () => Promise.resolve(void closed.add(metrics)) };
      started.add(metrics);
      return metrics;
    },
  };
  const results = await collect(metricsConformance(plugin, pulls));
  assert.is(results.get('observes-histograms')?.outcome, 'failed');
  assert.ok(started.size > 3);
  assert.equal([...started].filter((metrics) => !closed.has(metrics)).length, 0);
});

judge('an error of the backend in a hook of the rig is told as that of the backend', async () => {
  const plugin: MetricsPlugin = {
    start: async (series, settings, host) => {
      const inner = await toyMetrics().start(series, settings, host);
      return { ...inner, close: () => Promise.reject(new Error('no connection')) };
    },
  };
  const rules = ['shows-what-was-counted'];
  const judged = async (read: NonNullable<MetricsRig['read']>) => {
    const result = (await collect(metricsConformance(plugin, { ...pulls, read }, { rules }))).get(
      'shows-what-was-counted',
    );
    return result && 'reason' in result ? result.reason : String(result?.outcome);
  };
  const read = (metrics: Metrics) => metrics.close!().then(() => []);
  assert.match(await judged(read), /^the plugin failed in `close`: Error: no connection/);
  const broken = () => Promise.reject(new TypeError('x is not a function'));
  assert.match(
    await judged(broken),
    /^the rig failed in `read`, which tells nothing about the plugin: TypeError/,
  );
});

namesWhatIsBroken(
  judge,
  metricsRules,
  broken,
  ({ plugin, rig = pulls }) => metricsConformance(plugin, rig, { withinMs: 300 }),
  () => true,
);

judge.after(async () => {
  leaks.forEach(clearInterval);
  await closePushes();
});

judge.run();
