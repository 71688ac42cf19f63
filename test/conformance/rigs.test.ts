import { createSocket, type Socket } from 'node:dgram';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { MetricsPlugin } from '@gateway/plugin';
import {
  metricsConformance,
  sourceConformance,
  tracerConformance,
  type MetricsRig,
  type RuleResult,
} from '@gateway/plugin-conformance';
import { collect } from './judged.js';
import { toyMetrics } from './toy-metrics.js';
import { pushingMetrics, pushRig } from './toy-push.js';
import { toyRig, toySource } from './toy-source.js';
import { toyTracer, toyTracerRig } from './toy-tracer.js';

const rigs = suite('conformance/rigs');

const quick = { withinMs: 500, quietMs: 120 };

/** A rig that occasionally opens a socket, like a server with other clients. */
const busy =
  <Rig extends { close?(): Promise<void> }>(rig: Rig) =>
  (): Rig => {
    const sockets: Socket[] = [];
    const timer = setInterval(() => sockets.push(createSocket('udp4').bind(0, '127.0.0.1')), 10);
    const close = async () => {
      clearInterval(timer);
      for (const socket of sockets) socket.close();
      await rig.close?.();
    };
    return { ...rig, close };
  };

const leak = (timers: NodeJS.Timeout[]) =>
  toyMetrics({ started: () => void timers.push(setInterval(() => {}, 1_000)) });

/** `<rule>: <outcome or reason>` */
async function told(results: AsyncIterable<RuleResult>): Promise<string[]> {
  return [...(await collect(results)).values()].map(
    (result) => `${result.rule}: ${'reason' in result ? result.reason : result.outcome}`,
  );
}

const pulls: MetricsRig = { settings: () => ({}) };

rigs('the sockets and timers of a rig are not those of the plugin', async () => {
  const ends = { ...quick, rules: ['lets-the-process-end'] };
  assert.equal(await told(metricsConformance(toyMetrics(), busy(pulls), ends)), [
    'lets-the-process-end: passed',
  ]);
  const closes = { ...quick, rules: ['closes-what-it-opened'] };
  assert.equal(await told(tracerConformance(toyTracer(), busy(toyTracerRig), closes)), [
    'closes-what-it-opened: passed',
  ]);
  assert.equal(await told(sourceConformance(toySource(), busy(toyRig()), closes)), [
    'closes-what-it-opened: passed',
  ]);
});

rigs('what the plugin leaves open is found beside them', async () => {
  const timers: NodeJS.Timeout[] = [];
  const ends = { ...quick, rules: ['lets-the-process-end'] };
  assert.equal(await told(metricsConformance(leak(timers), busy(pulls), ends)), [
    'lets-the-process-end: left open: 2 Timeout',
  ]);
  timers.forEach(clearInterval);
});

const { close, ...pushes } = (await pushRig()) as unknown as Required<MetricsRig>;
rigs.after(() => close());

rigs(
  'a rig that says so returns no buckets, and the sum and the count are still judged',
  async () => {
    const without =
      (part: RegExp): NonNullable<MetricsRig['read']> =>
      async (...given) =>
        (await pushes.read(...given)).filter(({ name }) => !part.test(name));
    const plugin = pushingMetrics() as unknown as MetricsPlugin;
    const judged = (part: RegExp, histogram?: MetricsRig['histogram']) =>
      told(
        metricsConformance(
          plugin,
          { ...pushes, read: without(part), ...(histogram && { histogram }) },
          { ...quick, rules: ['shows-what-was-recorded'] },
        ),
      );
    const passed = ['shows-what-was-recorded: passed'];
    assert.match((await judged(/_bucket$/))[0]!, /_bucket\{"project":"p1","le":"1"\} is not shown/);
    assert.equal(await judged(/_bucket$/, ['sum', 'count']), passed);
    assert.match((await judged(/latency/, ['sum']))[0]!, /_sum\{"project":"p1"\} is not shown/);
    assert.equal(await judged(/latency/, []), passed);
  },
);

rigs('a label value is compared with what the rig says that the protocol carries', async () => {
  const escape = (value: string) => value.replaceAll(/["\\\n|]/g, '_');
  const judged = (carried?: MetricsRig['carried']) =>
    told(
      metricsConformance(
        toyMetrics({ escape }),
        { ...pulls, ...(carried && { carried }) },
        { ...quick, rules: ['keeps-labels-as-they-are'] },
      ),
    );
  assert.match((await judged())[0]!, /\{"project":"a \\"quoted\\" one"\} is not shown/);
  assert.equal(await judged(escape), ['keeps-labels-as-they-are: passed']);
  assert.equal(await judged((value) => (/["\\\n|]/.test(value) ? undefined : value)), [
    'keeps-labels-as-they-are: passed',
  ]);
  assert.match(
    (await judged((value) => value.replaceAll(/["\\\n|]/g, '-')))[0]!,
    /\{"project":"a -quoted- one"\} is not shown/,
  );
});

rigs(
  'a backend of StatsD by somebody else passes, with a UDP server of its own for each start',
  async () => {
    const its = async (module: string) =>
      (
        (await import(
          new URL(`../stranger/gateway-metrics-statsd/src/${module}.js`, import.meta.url).href
        )) as { default: never }
      ).default;
    const results = [
      ...(await collect(metricsConformance(await its('index'), await its('conformance')))).values(),
    ];
    assert.equal(
      results.filter(({ outcome }) => outcome !== 'passed').map(({ rule }) => rule),
      [],
    );
  },
);

rigs.run();
