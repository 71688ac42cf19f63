import fs from 'node:fs';
import { createRequire } from 'node:module';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Metrics, MetricsHost, Series } from '@gateway/plugin';
import { silentLog } from '#core/logging/log';
import plugin from '@gateway/metrics-pullmetrics';
import { exposition } from '../support/exposition.js';

const metrics = suite('plugins/metrics-pullmetrics');

type Registry = new () => { metrics(): Promise<string> };
type Shown = new (
  options: object,
) => Record<'inc' | 'set' | 'observe', (labels: object, value: number) => void> & { reset(): void };
/** The plugin's copy. */
const { Counter, Gauge, Histogram, Registry } = createRequire(
  new URL('../../plugins/metrics-pullmetrics/package.json', import.meta.url),
)('prom-client') as { Counter: Shown; Gauge: Shown; Histogram: Shown; Registry: Registry };

const series: Readonly<Record<string, Series>> = {
  gateway_ingest_total: {
    type: 'counter',
    labels: ['project', 'source'],
    help: 'Events ingested.',
  },
  gateway_event_queue_total: {
    type: 'gauge',
    labels: ['project', 'status'],
    help: 'Events by status.',
    fold: 'sum',
  },
  gateway_event_queue_backlog_seconds: {
    type: 'gauge',
    labels: ['project'],
    help: 'Age of the oldest.',
    fold: 'max',
  },
  gateway_end_to_end_latency: {
    type: 'histogram',
    labels: ['project', 'endpoint'],
    help: 'Seconds.',
    buckets: [0.1, 1, 10],
  },
  gateway_events_recovered_total: { type: 'counter', labels: [], help: 'Events recovered.' },
};

const host: MetricsHost = { collect: () => Promise.resolve(), log: silentLog };
const start = () => plugin.start(series, {}, host);

/** Exposition lines that start with the name. */
async function lines(backend: Metrics, name: string): Promise<string[]> {
  const { body } = await backend.expose();
  return body.split('\n').filter((line) => line.startsWith(name));
}

metrics('every series has its type and help, used or not', async () => {
  const { body, contentType } = await (await start()).expose();
  assert.match(contentType, /^text\/plain; version=0\.0\.4/);
  for (const [name, { type, help }] of Object.entries(series)) {
    assert.ok(body.includes(`# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`), name);
  }
  assert.ok(
    body.includes('gateway_events_recovered_total 0\n'),
    'a series without labels starts at zero',
  );
});

metrics('a counter adds up, by label set', async () => {
  const backend = await start();
  backend.add('gateway_ingest_total', { project: 'p1', source: 's1' }, 2);
  backend.add('gateway_ingest_total', { project: 'p1', source: 's1' }, 3);
  backend.add('gateway_ingest_total', { project: 'p1', source: 's"2"\n' }, 1);
  assert.equal(await lines(backend, 'gateway_ingest_total'), [
    'gateway_ingest_total{project="p1",source="s1"} 5',
    'gateway_ingest_total{project="p1",source="s\\"2\\"\\n"} 1',
  ]);
});

metrics('a gauge has the value that was set last, and none after it was cleared', async () => {
  const backend = await start();
  backend.set('gateway_event_queue_total', { project: 'p1', status: 'pending' }, 7);
  backend.set('gateway_event_queue_total', { project: 'p1', status: 'pending' }, 4);
  backend.set('gateway_event_queue_total', { project: 'p2', status: 'pending' }, 1);
  assert.equal(await lines(backend, 'gateway_event_queue_total'), [
    'gateway_event_queue_total{project="p1",status="pending"} 4',
    'gateway_event_queue_total{project="p2",status="pending"} 1',
  ]);
  backend.clear('gateway_event_queue_total');
  backend.set('gateway_event_queue_total', { project: 'p2', status: 'pending' }, 2);
  assert.equal(await lines(backend, 'gateway_event_queue_total'), [
    'gateway_event_queue_total{project="p2",status="pending"} 2',
  ]);
});

metrics('a histogram has the buckets of its row, a sum and a count', async () => {
  const backend = await start();
  for (const seconds of [0.05, 0.5, 20])
    backend.observe('gateway_end_to_end_latency', { project: 'p', endpoint: 'e' }, seconds);
  assert.equal(await lines(backend, 'gateway_end_to_end_latency'), [
    'gateway_end_to_end_latency_bucket{le="0.1",project="p",endpoint="e"} 1',
    'gateway_end_to_end_latency_bucket{le="1",project="p",endpoint="e"} 2',
    'gateway_end_to_end_latency_bucket{le="10",project="p",endpoint="e"} 2',
    'gateway_end_to_end_latency_bucket{le="+Inf",project="p",endpoint="e"} 3',
    'gateway_end_to_end_latency_sum{project="p",endpoint="e"} 20.55',
    'gateway_end_to_end_latency_count{project="p",endpoint="e"} 3',
  ]);
});

metrics('the text is that of prom-client, to the byte', async () => {
  const backend = await start();
  const registry = new Registry();
  const registers = [registry];
  const labelNames = (name: string) => [...series[name]!.labels];
  const help = (name: string) => series[name]!.help;
  const counter = new Counter({
    name: 'gateway_ingest_total',
    help: help('gateway_ingest_total'),
    labelNames: labelNames('gateway_ingest_total'),
    registers,
  });
  const gauge = new Gauge({
    name: 'gateway_event_queue_total',
    help: help('gateway_event_queue_total'),
    labelNames: labelNames('gateway_event_queue_total'),
    registers,
  });
  const age = new Gauge({
    name: 'gateway_event_queue_backlog_seconds',
    help: help('gateway_event_queue_backlog_seconds'),
    labelNames: ['project'],
    registers,
  });
  const buckets = [...series['gateway_end_to_end_latency']!.buckets!];
  const latency = new Histogram({
    name: 'gateway_end_to_end_latency',
    help: help('gateway_end_to_end_latency'),
    labelNames: ['project', 'endpoint'],
    buckets,
    registers,
  });
  new Counter({
    name: 'gateway_events_recovered_total',
    help: help('gateway_events_recovered_total'),
    registers,
  });
  for (const [at, project] of [
    'p1',
    'Zürich 日本',
    'a "quoted" one',
    'back\\slash',
    'two\nlines',
    'a,b="c"} 1',
    '',
  ].entries()) {
    backend.add('gateway_ingest_total', { project, source: 's' }, at + 0.5);
    counter.inc({ project, source: 's' }, at + 0.5);
    for (const value of [
      at,
      10 ** at,
      2 ** (30 + at),
      1e21,
      -1.5 * at,
      1e-7,
      Infinity,
      -Infinity,
    ]) {
      backend.set('gateway_event_queue_total', { status: `${value}`, project }, value);
      gauge.set({ status: `${value}`, project }, value);
      backend.set('gateway_event_queue_backlog_seconds', { project }, value);
      age.set({ project }, value);
    }
    for (const value of [0.05, 0.1, at, 1e6]) {
      backend.observe('gateway_end_to_end_latency', { project, endpoint: 'e' }, value);
      latency.observe({ project, endpoint: 'e' }, value);
    }
  }
  assert.is((await backend.expose()).body, await registry.metrics());
  backend.clear('gateway_event_queue_total');
  gauge.reset();
  backend.set('gateway_event_queue_total', { status: 'new', project: 'p1' }, 1);
  gauge.set({ status: 'new', project: 'p1' }, 1);
  assert.is((await backend.expose()).body, await registry.metrics(), 'and after a sample');
});

metrics(
  'all values of a large exposition are of one moment, though others have their turns while it is made',
  async () => {
    const table = {
      ...series,
      // The first and the last in the exposition.
      a_total: { type: 'counter', labels: [], help: 'Before.' },
      z_total: { type: 'counter', labels: [], help: 'After.' },
    } as const;
    const { a_total: first, z_total: last, ...between } = table;
    const backend = await plugin.start({ a_total: first, ...between, z_total: last }, {}, host);
    for (let at = 0; at < 8_000; at++)
      backend.observe('gateway_end_to_end_latency', { project: 'p', endpoint: `e${at}` }, 0.5);
    let exposing = true;
    let turns = 0;
    const count = () => {
      backend.add('a_total', {}, 1);
      backend.observe(
        'gateway_end_to_end_latency',
        { project: 'p', endpoint: `e${turns % 8_000}` },
        0.5,
      );
      backend.add('z_total', {}, 1);
      turns++;
      if (exposing) setImmediate(count);
    };
    count();
    try {
      for (let scrape = 0; scrape < 2; scrape++) {
        const before = turns;
        const shown = exposition((await backend.expose()).body);
        assert.ok(turns > before, 'nobody else had a turn');
        assert.is(shown.sum('a_total'), shown.sum('z_total'));
        assert.is(shown.sum('gateway_end_to_end_latency_count'), 8_000 + shown.sum('a_total')!);
      }
    } finally {
      exposing = false;
    }
  },
);

metrics('a name that is not in the table is refused', async () => {
  const backend = await start();
  assert.throws(() => backend.add('gateway_nothing', {}, 1), /gateway_nothing is not a counter/);
  assert.throws(
    () => backend.set('gateway_ingest_total', { project: 'p', source: 's' }, 1),
    /gateway_ingest_total is not a gauge/,
  );
});

metrics('two backends do not share their values', async () => {
  const [one, two] = [await start(), await start()];
  one.add('gateway_ingest_total', { project: 'p', source: 's' }, 1);
  assert.equal(await lines(two, 'gateway_ingest_total'), []);
});

metrics('the settings rows carry the defaults of the documentation', () => {
  const rows = JSON.parse(
    fs.readFileSync(
      new URL('../../plugins/metrics-pullmetrics/settings.json', import.meta.url),
      'utf8',
    ),
  ) as Record<string, { default: number }>;
  assert.is(rows['metrics.pullmetrics_metrics.sample_time']?.default, 5);
});

metrics.run();
