import type { Labels, Metrics } from '@gateway/plugin';
import { leavesNothingOpen } from '../run/process.js';
import { must } from '../run/rule.js';
import { quietHost, table, type MetricsBench, type MetricsRig, type MetricsRule } from './bench.js';

const [MESSAGES, RECOVERED, BACKLOG, AGE, LATENCY] = Object.keys(table) as [
  string,
  string,
  string,
  string,
  string,
];
const P1S1: Labels = { project: 'p1', source: 's1' };

const pullOnly = ({ read }: MetricsRig) =>
  read ? 'the rig reads what is pushed, not the text of `expose`' : undefined;
const pushOnly = ({ read }: MetricsRig) =>
  read ? undefined : 'the rig has no `read`: the backend does not push';

const started =
  (test: (backend: Awaited<ReturnType<MetricsBench['start']>>) => Promise<void>) =>
  async (bench: MetricsBench) =>
    test(await bench.start());

export const metricsRules: Readonly<Record<string, MetricsRule>> = {
  'shows-every-series': {
    sentence: 'Every series of the table that was used is shown under its name.',
    test: started(async ({ metrics, read }) => {
      useAll(metrics);
      const shown = (await read()).families.map(({ name }) => name);
      const missing = Object.keys(table).filter((name) => !shown.includes(name));
      must(missing.length === 0, `not shown: ${missing.join(', ')}`);
    }),
  },
  'tells-types-and-help': {
    sentence: 'Every series is shown with its type and its help, where the backend carries them.',
    test: async (bench) => {
      const { metrics, read } = await bench.start();
      useAll(metrics);
      const { families } = await read();
      for (const [name, row] of Object.entries(table)) {
        const family = families.find((it) => it.name === name);
        for (const field of ['type', 'help'] as const) {
          // A push protocol may lack this field, so it may be missing if the rig has `read`.
          const shown = family?.[field] ?? (bench.rig.read ? row[field] : undefined);
          must(
            shown === row[field],
            `the ${field} of ${name} is "${row[field]}", and "${shown ?? ''}" is shown`,
          );
        }
      }
    },
  },
  'adds-to-counters': {
    sentence:
      'A counter is the sum of what was added, also of fractions, for each label set by itself.',
    test: started(async ({ metrics, read }) => {
      for (const amount of [1, 2, 0.5]) metrics.add(MESSAGES, P1S1, amount);
      metrics.add(MESSAGES, { project: 'p1', source: 's2' }, 10);
      metrics.add(RECOVERED, {}, 3);
      const shown = await read();
      shown.expect(MESSAGES, P1S1, 3.5);
      shown.expect(MESSAGES, { project: 'p1', source: 's2' }, 10);
      shown.expect(RECOVERED, {}, 3);
    }),
  },
  'sets-gauges': {
    sentence:
      'A gauge has the value that was set last, for each label set by itself, also 0 and negative values.',
    test: started(async ({ metrics, read }) => {
      for (const value of [7, 3]) metrics.set(BACKLOG, { project: 'p1', status: 'pending' }, value);
      metrics.set(BACKLOG, { project: 'p1', status: 'failed' }, 0);
      metrics.set(AGE, { project: 'p1' }, -1.5);
      const shown = await read();
      shown.expect(BACKLOG, { project: 'p1', status: 'pending' }, 3);
      shown.expect(BACKLOG, { project: 'p1', status: 'failed' }, 0);
      shown.expect(AGE, { project: 'p1' }, -1.5);
    }),
  },
  'observes-histograms': {
    sentence:
      'A histogram has the buckets of its row and +Inf, each with the count of values up to its bound, and the sum and the count, as far as the protocol has them.',
    skip: ({ histogram }) =>
      histogram?.length === 0 ? 'the rig says that nothing of a histogram arrives' : undefined,
    test: async (bench) => {
      const { metrics, read } = await bench.start();
      for (const seconds of [0.05, 0.1, 0.5, 20])
        metrics.observe(LATENCY, { project: 'p1' }, seconds);
      metrics.observe(LATENCY, { project: 'p2' }, 5);
      const shown = await read();
      const buckets = Object.entries({ '0.1': 2, 1: 3, 10: 3, '+Inf': 4 });
      const parts: Record<string, [Labels, number][]> = {
        bucket: buckets.map(([le, count]) => [{ project: 'p1', le }, count]),
        sum: [[{ project: 'p1' }, 20.65]],
        count: [
          [{ project: 'p1' }, 4],
          [{ project: 'p2' }, 1],
        ],
      };
      for (const part of bench.rig.histogram ?? Object.keys(parts)) {
        must(
          part in parts,
          `\`histogram\` of the rig has a part ${part}; parts are ${Object.keys(parts).join(', ')}`,
        );
        for (const [labels, value] of parts[part]!)
          shown.expect(LATENCY, labels, value, `_${part}`);
      }
    },
  },
  'keeps-labels-as-they-are': {
    sentence:
      'A label value is shown as it was given, or as the protocol carries it: quotes, backslashes, line breaks, braces, commas, bars, spaces, other scripts.',
    needs: ['sets-gauges'],
    test: async (bench) => {
      const { metrics, read } = await bench.start();
      const plain = [' spaces ', 'Zürich 日本', 'p#1', 'a:b|c@d;e'];
      const values = [
        'a "quoted" one',
        'back\\slash',
        'back\\nslash',
        'two\nlines',
        'end\\',
        'a,b="c"} 1',
        ...plain,
      ];
      values.forEach((project, at) => metrics.set(AGE, { project }, at));
      const shown = await read();
      values.forEach((value, at) => {
        const project = bench.rig.carried ? bench.rig.carried(value) : value;
        if (project !== undefined) shown.expect(AGE, { project }, at);
      });
    },
  },
  'forgets-what-was-cleared': {
    sentence:
      '`clear` removes every label set of one series, and of no other; what is set afterwards is shown.',
    needs: ['sets-gauges'],
    test: started(async ({ metrics, read }) => {
      for (const status of ['pending', 'failed'])
        metrics.set(BACKLOG, { project: 'p1', status }, 5);
      metrics.set(AGE, { project: 'p1' }, 9);
      metrics.clear(BACKLOG);
      metrics.set(BACKLOG, { project: 'p2', status: 'pending' }, 6);
      const shown = await read();
      shown.expectNoP1(BACKLOG, `${BACKLOG} was cleared, and its label sets are still shown`);
      shown.expect(BACKLOG, { project: 'p2', status: 'pending' }, 6);
      shown.expect(AGE, { project: 'p1' }, 9);
    }),
  },
  'tells-its-content-type': {
    sentence: 'The content type is that of the text format, with its version.',
    skip: pullOnly,
    test: started(async ({ metrics }) => {
      const { contentType } = await metrics.expose();
      must(
        /^text\/plain;.*version=|^application\/openmetrics-text;/.test(contentType),
        `the content type is "${contentType}"`,
      );
    }),
  },
  'says-where-it-pushes-to': {
    sentence: 'A backend that pushes exposes only comment lines that say where it pushes to.',
    skip: pushOnly,
    test: started(async ({ metrics }) => {
      const lines = (await metrics.expose()).body.split('\n').filter((line) => line !== '');
      const isComment = lines.length > 0 && lines.every((line) => line.startsWith('#'));
      must(isComment, `\`expose\` returns ${JSON.stringify(lines.slice(0, 3).join('\n'))}`);
    }),
  },
  'collects-before-it-pushes': {
    sentence:
      'A backend that pushes calls `collect` before each push, so that gauges are up to date.',
    needs: ['sets-gauges'],
    skip: pushOnly,
    test: async (bench) => {
      let calls = 0;
      const { metrics, read } = await bench.start({
        ...quietHost,
        collect: () => {
          calls += 1;
          metrics.set(AGE, { project: 'p1' }, 42);
          return Promise.resolve();
        },
      });
      const shown = await read();
      must(calls > 0, '`collect` was not called');
      shown.expect(AGE, { project: 'p1' }, 42);
    },
  },
  'sends-the-rest-at-close': {
    sentence:
      'What was counted right before `close` has arrived when it has resolved; a second `close` does nothing.',
    needs: ['adds-to-counters'],
    skip: pushOnly,
    test: started(async ({ metrics, read }) => {
      must(metrics.close !== undefined, 'a backend that pushes has a `close`');
      metrics.add(MESSAGES, P1S1, 7);
      await metrics.close();
      (await read()).expect(MESSAGES, P1S1, 7);
      await metrics.close();
    }),
  },
  'bears-being-used-after-close': {
    sentence: 'The functions do not throw after `close`: the process counts until it ends.',
    needs: ['adds-to-counters'],
    test: started(async ({ metrics }) => {
      await metrics.close?.();
      useAll(metrics);
      metrics.clear(BACKLOG);
      await metrics.expose();
    }),
  },
  'exposes-the-same-to-everybody': {
    sentence: 'Several readers, at the same time and one after the other, are shown the same.',
    needs: ['adds-to-counters'],
    test: started(async ({ metrics, read }) => {
      metrics.add(MESSAGES, P1S1, 4);
      for (const shown of [...(await Promise.all([read(), read(), read()])), await read()])
        shown.expect(MESSAGES, P1S1, 4);
    }),
  },
  'keeps-two-starts-apart': {
    sentence: 'What one start counts is not shown by another.',
    test: async (bench) => {
      const [one, two] = [await bench.start(), await bench.start()];
      one.metrics.add(MESSAGES, P1S1, 1);
      two.metrics.add(MESSAGES, { project: 'p2', source: 's1' }, 1);
      (await two.read()).expectNoP1(MESSAGES, 'a second start shows what the first has counted');
    },
  },
  'refuses-what-is-not-in-the-table': {
    sentence: 'A name that is not in the table, or has another type there, throws.',
    test: started(async ({ metrics }) => {
      const mistakes: Record<string, () => void> = {
        'adding to a series that is not in the table': () =>
          metrics.add('conformance_nothing_total', {}, 1),
        'setting a counter': () => metrics.set(MESSAGES, P1S1, 1),
        'observing a gauge': () => metrics.observe(AGE, { project: 'p1' }, 1),
      };
      for (const [what, mistake] of Object.entries(mistakes))
        must(throws(mistake), `${what} does not throw`);
    }),
  },
  'lets-the-process-end': {
    sentence:
      'A backend that was closed, or needs no `close`, has no timers or connections that keep the process alive.',
    alone: true,
    test: (bench) =>
      leavesNothingOpen(async () => {
        const { metrics, read } = await bench.start();
        useAll(metrics);
        await read();
        await metrics.close?.();
      }, bench.withinMs),
  },
};

function throws(mistake: () => void): boolean {
  try {
    mistake();
    return false;
  } catch {
    return true;
  }
}

function useAll(metrics: Metrics): void {
  metrics.add(MESSAGES, P1S1, 1);
  metrics.add(RECOVERED, {}, 1);
  metrics.set(BACKLOG, { project: 'p1', status: 'pending' }, 1);
  metrics.set(AGE, { project: 'p1' }, 1);
  metrics.observe(LATENCY, { project: 'p1' }, 1);
}
