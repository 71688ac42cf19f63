import type { Labels, Metrics, MetricsHost, MetricsPlugin, Series } from '@gateway/plugin';
import { blaming } from './run/blame.js';
import { leavesNothingOpen } from './run/process.js';
import { must, type Rule } from './run/rule.js';
import { Bench } from './run/run-rules.js';

/** The rig for testing a metrics backend. */
export interface MetricsRig<Settings = Record<string, unknown>> {
  /**
   * Returns the settings for one start of the backend, so that each start can push to a separate
   * destination.
   */
  settings(): Settings | Promise<Settings>;
  /**
   * Returns everything that a push backend sent with these settings and, if `metrics` is not
   * closed, values it has not sent yet. A histogram has cumulative `<name>_bucket` samples with the
   * `le` label, a `<name>_sum` and a `<name>_count`. `series` is the backend's table, whose bucket
   * bounds are needed if histograms are sent as raw values. Omit `read` if `expose` returns the
   * Prometheus text format, which the suite reads itself.
   */
  read?(
    metrics: Metrics,
    settings: Settings,
    series: Readonly<Record<string, Series>>,
  ): Promise<readonly Sample[]>;
  /**
   * The parts of a histogram that the backend receives. Default: all. Omit `bucket` if the protocol
   * has no buckets or uses different bucket bounds.
   */
  readonly histogram?: readonly ('bucket' | 'sum' | 'count')[];
  /**
   * Returns a label value as the backend receives it, such as with `_` for an unsupported
   * character, or undefined if it need not arrive. By default, values must arrive unchanged. `read`
   * must undo escapes.
   */
  carried?(value: string): string | undefined;
  close?(): Promise<void>;
}

export interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}

const labels = ['project'];
const gauge = { type: 'gauge', labels, help: 'A gauge.', fold: 'sum' } as const;
const table = {
  conformance_messages_total: { type: 'counter', labels, help: 'A counter.' },
  conformance_backlog: gauge,
  conformance_depth: gauge,
  conformance_age_seconds: { ...gauge, fold: 'max' },
  conformance_latency_seconds: {
    type: 'histogram',
    labels,
    help: 'A histogram.',
    buckets: [0.1, 1, 10],
  },
} satisfies Readonly<Record<string, Series>>;
const [MESSAGES, BACKLOG, DEPTH, AGE, LATENCY] = Object.keys(table) as [
  ...[string, string, string, string, string],
];

const ignore = () => undefined;
const log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

export class MetricsBench extends Bench<MetricsPlugin, MetricsRig> {
  async start(collect: MetricsHost['collect'] = () => Promise.resolve()) {
    const settings = await this.rig.settings();
    const starting = Promise.resolve().then(() =>
      this.plugin.start(table, settings, { collect, log }),
    );
    this.cleanup(async () => (await starting).close?.());
    const metrics = await starting;
    const read = async () =>
      this.rig.read
        ? this.rig.read(blaming(metrics, 'plugin'), settings, table)
        : samplesIn((await metrics.expose()).body);
    return { metrics, read };
  }
}

const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)",?/gy;

/**
 * Reads the samples of the Prometheus text format:
 * https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */
function samplesIn(text: string): Sample[] {
  return text.split('\n').flatMap((line) => {
    const [, name, labels = '', value] = /^([\w:]+)(?:\{(.*)\})? (\S+)/.exec(line) ?? [];
    if (name === undefined) return [];
    const pairs = [...labels.matchAll(LABEL)].map(([, label, given]) => [
      label,
      given!.replaceAll(/\\(.)/g, (_, sign: string) => (sign === 'n' ? '\n' : sign)),
    ]);
    return [{ name, labels: Object.fromEntries(pairs) as Labels, value: Number(value) }];
  });
}

function mustShow(samples: readonly Sample[], name: string, labels: Labels, value: number): void {
  const isSame = (given: Labels) =>
    Object.keys(given).length === Object.keys(labels).length &&
    Object.entries(labels).every(
      ([label, it]) =>
        given[label] === it || (label === 'le' && Number(given[label]) === Number(it)),
    );
  const named = samples.filter((sample) => sample.name === name);
  const found = named.find((sample) => isSame(sample.labels));
  const where = `${name}${JSON.stringify(labels)}`;
  must(
    found !== undefined,
    `${where} is not shown; shown are ${JSON.stringify(named.map((sample) => sample.labels)).slice(0, 300)}`,
  );
  must(Math.abs(found.value - value) < 1e-9, `${where} is ${value}, and ${found.value} is shown`);
}

const P1: Labels = { project: 'p1' };
const P2: Labels = { project: 'p2' };

const LABEL_VALUES = [
  ...['a "quoted" one', 'back\\slash', 'back\\nslash', 'two\nlines', 'end\\'],
  ...['a,b="c"} 1', ' spaces ', 'Zürich 日本', 'p#1', 'a:b|c@d;e'],
];

export const metricsRules: Readonly<Record<string, Rule<MetricsRig, MetricsBench>>> = {
  'shows-what-was-recorded': {
    sentence:
      'For each label set, a counter is the sum of what was added, a gauge the value that was set last, also 0 and negative ones, until `clear` removes all of its series and of no other, and a histogram has its buckets with +Inf, sum and count, as far as the protocol has them.',
    test: async (bench) => {
      const { metrics, read } = await bench.start();
      for (const amount of [1, 2, 0.5]) metrics.add(MESSAGES, P1, amount);
      metrics.add(MESSAGES, P2, 10);
      for (const value of [7, 0]) metrics.set(BACKLOG, P2, value);
      for (const name of [AGE, DEPTH]) metrics.set(name, P1, -1.5);
      metrics.clear(DEPTH);
      metrics.set(DEPTH, P2, 6);
      for (const seconds of [0.05, 0.1, 0.5, 20]) metrics.observe(LATENCY, P1, seconds);
      const shown = await read();
      mustShow(shown, MESSAGES, P1, 3.5);
      mustShow(shown, MESSAGES, P2, 10);
      mustShow(shown, BACKLOG, P2, 0);
      mustShow(shown, AGE, P1, -1.5);
      mustShow(shown, DEPTH, P2, 6);
      must(
        !shown.some(({ name, labels }) => name === DEPTH && labels['project'] === 'p1'),
        `${DEPTH} was cleared, and its label sets are still shown`,
      );
      for (const part of bench.rig.histogram ?? ['bucket', 'sum', 'count']) {
        const values = { bucket: { '0.1': 2, 1: 3, 10: 3, '+Inf': 4 }, sum: 20.65, count: 4 }[part];
        if (typeof values === 'number') mustShow(shown, `${LATENCY}_${part}`, P1, values);
        else
          for (const [le, count] of Object.entries(values))
            mustShow(shown, `${LATENCY}_${part}`, { ...P1, le }, count);
      }
    },
  },
  'keeps-labels-as-they-are': {
    sentence:
      'A label value is shown as it was given, or as the protocol carries it: quotes, backslashes, line breaks, braces, commas, bars, spaces, other scripts.',
    test: async (bench) => {
      const { metrics, read } = await bench.start();
      LABEL_VALUES.forEach((project, at) => metrics.set(AGE, { project }, at));
      const shown = await read();
      LABEL_VALUES.forEach((value, at) => {
        const project = bench.rig.carried ? bench.rig.carried(value) : value;
        if (project !== undefined) mustShow(shown, AGE, { project }, at);
      });
    },
  },
  'pushes-everything': {
    sentence:
      'A backend that pushes calls `collect` before each push, so that gauges are up to date, and has sent what was counted right before `close` when that has resolved.',
    skip: ({ read }) => (read ? undefined : 'the rig has no `read`: the backend does not push'),
    test: async (bench) => {
      const { metrics, read } = await bench.start(() => Promise.resolve(metrics.set(AGE, P1, 42)));
      mustShow(await read(), AGE, P1, 42);
      must(metrics.close !== undefined, 'a backend that pushes has a `close`');
      metrics.add(MESSAGES, P1, 7);
      await metrics.close();
      mustShow(await read(), MESSAGES, P1, 7);
    },
  },
  'lets-the-process-end': {
    sentence:
      'A backend that was closed, or needs no `close`, has no timers or connections that keep the process alive.',
    alone: true,
    test: (bench) =>
      leavesNothingOpen(async () => {
        const { metrics, read } = await bench.start();
        metrics.add(MESSAGES, P1, 1);
        await read();
        await metrics.close?.();
      }, bench.withinMs),
  },
};
