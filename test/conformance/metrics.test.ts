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
    Readonly<Record<string, { readonly plugin: MetricsPlugin; readonly rig?: MetricsRig }>>
  >
> = {
  'shows-what-was-recorded': {
    'rounds counters': {
      plugin: toyMetrics({ add: (before, amount) => before + Math.floor(amount) }),
    },
    'shows no negative gauges': { plugin: toyMetrics({ set: (value) => Math.max(value, 0) }) },
    'clears every series': { plugin: toyMetrics({ clears: () => true }) },
    'clears none': { plugin: toyMetrics({ clears: () => false }) },
    'counts no value at a bound': {
      plugin: toyMetrics({ inBucket: (value, bound) => value < bound }),
    },
  },
  'keeps-labels-as-they-are': {
    'escapes no backslash': {
      plugin: toyMetrics({
        escape: (value) => value.replaceAll('"', '\\"').replaceAll('\n', '\\n'),
      }),
    },
  },
  'pushes-everything': {
    'does not collect': { plugin: pushing({ collects: false }), rig: pushes },
    'loses the rest at close': { plugin: pushing({ flushesAtClose: false }), rig: pushes },
  },
  'lets-the-process-end': {
    'leaves a timer': {
      plugin: toyMetrics({ started: () => void leaks.push(setInterval(() => {}, 1_000)) }),
    },
  },
};

judge(
  'a backend that keeps every rule passes all that can be judged of one that is pulled',
  async () => {
    const results = [...(await collect(metricsConformance(toyMetrics(), pulls))).values()];
    assert.equal(
      results.filter(({ outcome }) => outcome !== 'passed').map(({ rule }) => rule),
      ['pushes-everything'],
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
      const inner = await toyMetrics({ escape: (value) => value }).start(series, settings, host);
      const metrics: Metrics = { ...inner, close: () => Promise.resolve(void closed.add(metrics)) };
      started.add(metrics);
      return metrics;
    },
  };
  const results = await collect(metricsConformance(plugin, pulls));
  assert.is(results.get('keeps-labels-as-they-are')?.outcome, 'failed');
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
  const rules = ['shows-what-was-recorded'];
  const judged = async (read: NonNullable<MetricsRig['read']>) => {
    const result = (await collect(metricsConformance(plugin, { ...pulls, read }, { rules }))).get(
      'shows-what-was-recorded',
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
