import type { Labels, Metrics, MetricsHost, MetricsPlugin, Series } from '@gateway/plugin';
import { leavesNothing } from '../run/open-handles.js';
import { must, type Rule } from '../run/judge.js';
import type { Family, MetricsRig } from './rig.js';
import { readExposition } from './exposition.js';

/** What every rule of a metrics backend has at hand. */
export interface MetricsBench {
  readonly plugin: MetricsPlugin;
  readonly rig: MetricsRig;
  readonly withinMs: number;
}

/** A table with every kind of series, as the gateway has one. */
const table: Readonly<Record<string, Series>> = {
  conformance_messages_total: { type: 'counter', labels: ['project', 'source'], help: 'Messages, counted.' },
  conformance_recovered_total: { type: 'counter', labels: [], help: 'Without labels.' },
  conformance_backlog: { type: 'gauge', labels: ['project', 'status'], help: 'Deliveries that wait.', fold: 'sum' },
  conformance_age_seconds: { type: 'gauge', labels: ['project'], help: 'Age of the oldest.', fold: 'max' },
  conformance_latency_seconds: { type: 'histogram', labels: ['project'], help: 'From here to there.', buckets: [0.1, 1, 10] },
};
const [MESSAGES, RECOVERED, BACKLOG, AGE, LATENCY] = Object.keys(table) as [string, string, string, string, string];

const pulled = ({ rig }: MetricsBench) => (rig.read === undefined ? undefined : 'the rig reads what is pushed, not the text of `expose`');
const pushed = ({ rig }: MetricsBench) => (rig.read === undefined ? 'the rig has no `read`: the backend does not push' : undefined);
const silent = () => undefined;
const quiet: MetricsHost = { collect: () => Promise.resolve(), log: { debug: silent, info: silent, warn: silent, error: silent } };

export const rules: readonly Rule<MetricsBench>[] = [
  {
    name: 'shows-every-series',
    sentence: 'Every series of the table that was used is shown under its name.',
    judge: async (bench) => {
      const { metrics, read } = await start(bench);
      useAll(metrics);
      const shown = (await read()).map(({ name }) => name);
      const missing = Object.keys(table).filter((name) => !shown.includes(name));
      must(missing.length === 0, `not shown: ${missing.join(', ')}`);
    },
  },
  {
    name: 'tells-types-and-help',
    sentence: 'Every series has its type and its help, where the backend carries them.',
    needs: ['shows-every-series'],
    judge: async (bench) => {
      const { metrics, read } = await start(bench);
      useAll(metrics);
      const shown = await read();
      for (const [name, { type, help }] of Object.entries(table)) {
        const family = shown.find((it) => it.name === name);
        const told = {
          type: family?.type ?? (bench.rig.read ? type : undefined),
          help: family?.help ?? (bench.rig.read ? help : undefined),
        };
        must(told.type === type, `${name} is a ${type}, and is shown as ${told.type ?? 'nothing'}`);
        must(told.help === help, `the help of ${name} is "${help}", and "${told.help ?? ''}" is shown`);
      }
    },
  },
  {
    name: 'adds-to-counters',
    sentence: 'A counter is the sum of what was added, fractions too, for each label set by itself.',
    needs: ['shows-every-series'],
    judge: async (bench) => {
      const { metrics, read } = await start(bench);
      for (const amount of [1, 2, 0.5]) metrics.add(MESSAGES, { project: 'p1', source: 's1' }, amount);
      metrics.add(MESSAGES, { project: 'p1', source: 's2' }, 10);
      metrics.add(RECOVERED, {}, 3);
      const shown = await read();
      expect(shown, MESSAGES, { project: 'p1', source: 's1' }, 3.5);
      expect(shown, MESSAGES, { project: 'p1', source: 's2' }, 10);
      expect(shown, RECOVERED, {}, 3);
    },
  },
  {
    name: 'sets-gauges',
    sentence: 'A gauge is what it was set to last, for each label set by itself; 0 and less than 0 are values.',
    needs: ['shows-every-series'],
    judge: async (bench) => {
      const { metrics, read } = await start(bench);
      for (const value of [7, 3]) metrics.set(BACKLOG, { project: 'p1', status: 'pending' }, value);
      metrics.set(BACKLOG, { project: 'p1', status: 'failed' }, 0);
      metrics.set(AGE, { project: 'p1' }, -1.5);
      const shown = await read();
      expect(shown, BACKLOG, { project: 'p1', status: 'pending' }, 3);
      expect(shown, BACKLOG, { project: 'p1', status: 'failed' }, 0);
      expect(shown, AGE, { project: 'p1' }, -1.5);
    },
  },
  {
    name: 'observes-histograms',
    sentence: 'A histogram has the buckets of its row and +Inf, each with what is not above it, and the sum and the count.',
    needs: ['shows-every-series'],
    judge: async (bench) => {
      const { metrics, read } = await start(bench);
      for (const seconds of [0.05, 0.1, 0.5, 20]) metrics.observe(LATENCY, { project: 'p1' }, seconds);
      metrics.observe(LATENCY, { project: 'p2' }, 5);
      const shown = await read();
      for (const [le, count] of [
        ['0.1', 2],
        ['1', 3],
        ['10', 3],
        ['+Inf', 4],
      ] as const) {
        expect(shown, LATENCY, { project: 'p1', le }, count, '_bucket');
      }
      expect(shown, LATENCY, { project: 'p1' }, 20.65, '_sum');
      expect(shown, LATENCY, { project: 'p1' }, 4, '_count');
      expect(shown, LATENCY, { project: 'p2' }, 1, '_count');
    },
  },
  {
    name: 'keeps-labels-as-they-are',
    sentence: 'A label value is shown as it was given: quotes, backslashes, line breaks, braces, commas, spaces, other scripts.',
    needs: ['sets-gauges'],
    judge: async (bench) => {
      const { metrics, read } = await start(bench);
      const values = [
        'a "quoted" one',
        'back\\slash',
        'back\\nslash',
        'two\nlines',
        'end\\',
        'a,b="c"} 1',
        ' spaces ',
        'Zürich 日本',
        'p#1',
      ];
      values.forEach((project, at) => metrics.set(AGE, { project }, at));
      const shown = await read();
      values.forEach((project, at) => expect(shown, AGE, { project }, at));
    },
  },
  {
    name: 'forgets-what-was-cleared',
    sentence: '`clear` forgets every label set of one series, and of no other; what is set afterwards is shown.',
    needs: ['sets-gauges'],
    judge: async (bench) => {
      const { metrics, read } = await start(bench);
      for (const status of ['pending', 'failed']) metrics.set(BACKLOG, { project: 'p1', status }, 5);
      metrics.set(AGE, { project: 'p1' }, 9);
      metrics.clear(BACKLOG);
      metrics.set(BACKLOG, { project: 'p2', status: 'pending' }, 6);
      const shown = await read();
      const left = samplesOf(shown, BACKLOG).filter(({ labels }) => labels['project'] === 'p1');
      must(left.length === 0, `${BACKLOG} was cleared, and is still shown for ${JSON.stringify(left[0]?.labels)}`);
      expect(shown, BACKLOG, { project: 'p2', status: 'pending' }, 6);
      expect(shown, AGE, { project: 'p1' }, 9);
    },
  },
  {
    name: 'tells-its-content-type',
    sentence: 'The content type is that of the text format, with its version.',
    needs: ['shows-every-series'],
    lacks: pulled,
    judge: async (bench) => {
      const { metrics } = await start(bench);
      const { contentType } = await metrics.expose();
      must(/^text\/plain;.*version=|^application\/openmetrics-text;/.test(contentType), `the content type is "${contentType}"`);
    },
  },
  {
    name: 'says-where-it-pushes-to',
    sentence: 'A backend that pushes exposes nothing but a comment line that says where it pushes to.',
    needs: ['shows-every-series'],
    lacks: pushed,
    judge: async (bench) => {
      const { metrics } = await start(bench);
      const lines = (await metrics.expose()).body.split('\n').filter((line) => line !== '');
      must(
        lines.length > 0 && lines.every((line) => line.startsWith('#')),
        `\`expose\` gives ${JSON.stringify(lines.slice(0, 3).join('\n'))}`,
      );
    },
  },
  {
    name: 'collects-before-it-pushes',
    sentence: 'A backend that pushes calls `collect` before it does, so that the gauges of the moment are those of the push.',
    needs: ['sets-gauges'],
    lacks: pushed,
    judge: async (bench) => {
      let moments = 0;
      const { metrics, read } = await start(bench, {
        ...quiet,
        collect: () => {
          moments += 1;
          metrics.set(AGE, { project: 'p1' }, 42);
          return Promise.resolve();
        },
      });
      const shown = await read();
      must(moments > 0, '`collect` was not called');
      expect(shown, AGE, { project: 'p1' }, 42);
    },
  },
  {
    name: 'sends-the-rest-at-close',
    sentence: 'What was counted right before `close` has arrived when it has resolved; a second `close` does nothing.',
    needs: ['adds-to-counters'],
    lacks: pushed,
    judge: async (bench) => {
      const { metrics, settings } = await start(bench);
      must(metrics.close !== undefined, 'a backend that pushes has a `close`');
      metrics.add(MESSAGES, { project: 'p1', source: 's1' }, 7);
      await metrics.close();
      expect(await bench.rig.read!(metrics, settings), MESSAGES, { project: 'p1', source: 's1' }, 7);
      await metrics.close();
    },
  },
  {
    name: 'bears-being-used-after-close',
    sentence: 'The verbs do not throw after `close`: the process counts until its end.',
    needs: ['adds-to-counters'],
    judge: async (bench) => {
      const { metrics } = await start(bench);
      await metrics.close?.();
      useAll(metrics);
      metrics.clear(BACKLOG);
      await metrics.expose();
    },
  },
  {
    name: 'exposes-the-same-to-everybody',
    sentence: 'Several readers at once, and one after the other, are shown the same.',
    needs: ['adds-to-counters'],
    judge: async (bench) => {
      const { metrics, read } = await start(bench);
      metrics.add(MESSAGES, { project: 'p1', source: 's1' }, 4);
      const readings = [...(await Promise.all([read(), read(), read()])), await read()];
      for (const shown of readings) expect(shown, MESSAGES, { project: 'p1', source: 's1' }, 4);
    },
  },
  {
    name: 'keeps-two-starts-apart',
    sentence: 'What one start counts is not shown by another.',
    needs: ['shows-every-series'],
    judge: async (bench) => {
      const [one, two] = [await start(bench), await start(bench)];
      one.metrics.add(MESSAGES, { project: 'p1', source: 's1' }, 1);
      two.metrics.add(MESSAGES, { project: 'p2', source: 's1' }, 1);
      const strays = samplesOf(await two.read(), MESSAGES).filter(({ labels }) => labels['project'] === 'p1');
      must(strays.length === 0, 'a second start shows what the first has counted');
    },
  },
  {
    name: 'refuses-what-is-not-in-the-table',
    sentence: 'A name that is not in the table, or is of another type there, is a mistake and throws.',
    needs: ['shows-every-series'],
    judge: async (bench) => {
      const { metrics } = await start(bench);
      const mistakes: Record<string, () => void> = {
        'adding to a series that is not in the table': () => metrics.add('conformance_nothing_total', {}, 1),
        'setting a counter': () => metrics.set(MESSAGES, { project: 'p1', source: 's1' }, 1),
        'observing a gauge': () => metrics.observe(AGE, { project: 'p1' }, 1),
      };
      for (const [what, mistake] of Object.entries(mistakes)) must(throws(mistake), `${what} is taken without a word`);
    },
  },
  {
    name: 'lets-the-process-end',
    sentence:
      'A backend that was closed, and one that needs no `close`, keeps the process from ending neither by timers nor by connections.',
    alone: true,
    needs: ['shows-every-series'],
    judge: async (bench) => {
      const once = async () => {
        const { metrics, read } = await start(bench);
        useAll(metrics);
        await read();
        await metrics.close?.();
      };
      await once();
      await leavesNothing(async () => {
        await once();
        await once();
      }, bench.withinMs);
    },
  },
];

async function start(
  { plugin, rig }: MetricsBench,
  host = quiet,
): Promise<{ metrics: Metrics; settings: Record<string, unknown>; read(): Promise<readonly Family[]> }> {
  const settings = await rig.settings();
  const metrics = await plugin.start(table, settings, host);
  return {
    metrics,
    settings,
    read: async () => (rig.read ? rig.read(metrics, settings) : readExposition((await metrics.expose()).body)),
  };
}

function useAll(metrics: Metrics): void {
  metrics.add(MESSAGES, { project: 'p1', source: 's1' }, 1);
  metrics.add(RECOVERED, {}, 1);
  metrics.set(BACKLOG, { project: 'p1', status: 'pending' }, 1);
  metrics.set(AGE, { project: 'p1' }, 1);
  metrics.observe(LATENCY, { project: 'p1' }, 1);
}

function samplesOf(shown: readonly Family[], name: string, suffix = ''): Family['samples'] {
  return shown.find((family) => family.name === name)?.samples.filter((sample) => sample.name === `${name}${suffix}`) ?? [];
}

function expect(shown: readonly Family[], name: string, labels: Labels, value: number, suffix = ''): void {
  const samples = samplesOf(shown, name, suffix);
  const found = samples.find((sample) => same(sample.labels, labels));
  const where = `${name}${suffix}${JSON.stringify(labels)}`;
  must(found !== undefined, `${where} is not shown; shown are ${JSON.stringify(samples.map((sample) => sample.labels)).slice(0, 300)}`);
  must(Math.abs(found.value - value) < 1e-9, `${where} is ${value}, and ${found.value} is shown`);
}

/** Bounds of buckets are numbers: 1 and 1.0 are the same. */
function same(given: Labels, wanted: Labels): boolean {
  const names = Object.keys(wanted);
  return (
    Object.keys(given).length === names.length &&
    names.every((name) => given[name] === wanted[name] || (name === 'le' && Number(given[name]) === Number(wanted[name])))
  );
}

function throws(mistake: () => void): boolean {
  try {
    mistake();
    return false;
  } catch {
    return true;
  }
}
