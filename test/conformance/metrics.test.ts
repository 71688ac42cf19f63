import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Metrics, MetricsPlugin } from '@gateway/plugin';
import { metricsConformance, metricsRules, type Family, type MetricsRig } from '@gateway/plugin/conformance';
import { readExposition } from '@gateway/plugin/conformance/metrics/exposition';
import { collect, namesWhatIsBroken } from './judged.js';
import { toyMetrics } from './toy-metrics.js';

const judge = suite('conformance/metrics');

const pulls: MetricsRig = { settings: () => ({}) };
const pushed = new WeakMap<Metrics, Metrics>();
/** A backend that pushes: what it would expose is behind the curtain. */
const pushing = (comment: string): MetricsPlugin => ({
  start: async (series, settings) => {
    const inner = await toyMetrics().start(series, settings);
    const outer = { ...inner, expose: () => Promise.resolve({ contentType: 'text/plain', body: comment }) };
    pushed.set(outer, inner);
    return outer;
  },
});
const pushes: MetricsRig = {
  settings: () => ({}),
  read: async (metrics): Promise<Family[]> => readExposition((await pushed.get(metrics)?.expose())?.body ?? ''),
};

const shared = new Map<string, number[]>();
const leaks: NodeJS.Timeout[] = [];

const broken: Readonly<
  Record<string, { readonly plugin: MetricsPlugin; readonly rig?: MetricsRig; readonly also?: Record<string, string> }>
> = {
  'shows-every-series': { plugin: toyMetrics({ shows: (_name, { labels }) => labels.length > 0 }) },
  'tells-types-and-help': { plugin: toyMetrics({ type: ({ type }) => (type === 'gauge' ? 'untyped' : type) }) },
  'adds-to-counters': { plugin: toyMetrics({ add: (before, amount) => before + Math.floor(amount) }) },
  'sets-gauges': { plugin: toyMetrics({ set: (value) => Math.max(value, 0) }) },
  'observes-histograms': { plugin: toyMetrics({ inBucket: (value, bound) => value < bound }) },
  'keeps-labels-as-they-are': { plugin: toyMetrics({ escape: (value) => value.replaceAll('"', '\\"').replaceAll('\n', '\\n') }) },
  'forgets-what-was-cleared': { plugin: toyMetrics({ clears: () => true }) },
  'tells-its-content-type': { plugin: toyMetrics({ contentType: 'application/json' }) },
  'says-where-it-pushes-to': { plugin: pushing(''), rig: pushes },
  'exposes-the-same-to-everybody': { plugin: toyMetrics({ exposed: (store) => store.clear() }) },
  'keeps-two-starts-apart': {
    plugin: toyMetrics({ store: () => shared }),
    also: {
      'adds-to-counters': 'counters of the rule before are added to',
      'observes-histograms': 'and so are histograms',
    },
  },
  'refuses-what-is-not-in-the-table': { plugin: toyMetrics({ refuse: () => {} }) },
  'lets-the-process-end': { plugin: toyMetrics({ started: () => void leaks.push(setInterval(() => {}, 1_000)) }) },
};

judge('a backend that keeps every rule passes all that can be judged of one that is pulled', async () => {
  const results = [...(await collect(metricsConformance(toyMetrics(), pulls))).values()];
  assert.equal(
    results.filter(({ outcome }) => outcome !== 'passed').map(({ rule }) => rule),
    ['says-where-it-pushes-to'],
  );
});

judge('a backend that pushes is judged by what arrives', async () => {
  const results = [...(await collect(metricsConformance(pushing('# pushed to nowhere\n'), pushes))).values()];
  assert.equal(
    results.filter(({ outcome }) => outcome !== 'passed').map(({ rule }) => rule),
    ['tells-its-content-type'],
  );
});

judge('a line that is not of the text format is told', () => {
  for (const line of ['no value', 'name{label=unquoted} 1', 'name{label="open} 1']) assert.throws(() => readExposition(line), line);
  assert.equal(readExposition('a{b="x\\\\n\\"\\n"} +Inf 1700000000000\n')[0]?.samples, [
    { name: 'a', labels: { b: 'x\\n"\n' }, value: Infinity },
  ]);
});

namesWhatIsBroken(
  judge,
  metricsRules,
  broken,
  ({ plugin, rig = pulls }) => metricsConformance(plugin, rig, { withinMs: 300 }),
  () => true,
);

judge.after(() => leaks.forEach(clearInterval));

judge.run();
