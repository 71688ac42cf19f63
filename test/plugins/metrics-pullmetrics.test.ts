import fs from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Metrics, Series } from '@gateway/plugin';
import plugin from '@gateway/metrics-pullmetrics';

const metrics = suite('plugins/metrics-pullmetrics');

const series: Readonly<Record<string, Series>> = {
  gateway_ingest_total: { type: 'counter', labels: ['project', 'source'], help: 'Events ingested.' },
  gateway_event_queue_total: { type: 'gauge', labels: ['project', 'status'], help: 'Events by status.', fold: 'sum' },
  gateway_event_queue_backlog_seconds: { type: 'gauge', labels: ['project'], help: 'Age of the oldest.', fold: 'max' },
  gateway_end_to_end_latency: { type: 'histogram', labels: ['project', 'endpoint'], help: 'Seconds.', buckets: [0.1, 1, 10] },
  gateway_events_recovered_total: { type: 'counter', labels: [], help: 'Events recovered.' },
};

const start = () => plugin.start(series, {});

/** The lines of the exposition that begin with the name. */
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
  assert.ok(body.includes('gateway_events_recovered_total 0\n'), 'a series without labels starts at zero');
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
  assert.equal(await lines(backend, 'gateway_event_queue_total'), ['gateway_event_queue_total{project="p2",status="pending"} 2']);
});

metrics('a histogram has the buckets of its row, a sum and a count', async () => {
  const backend = await start();
  for (const seconds of [0.05, 0.5, 20]) backend.observe('gateway_end_to_end_latency', { project: 'p', endpoint: 'e' }, seconds);
  assert.equal(await lines(backend, 'gateway_end_to_end_latency'), [
    'gateway_end_to_end_latency_bucket{le="0.1",project="p",endpoint="e"} 1',
    'gateway_end_to_end_latency_bucket{le="1",project="p",endpoint="e"} 2',
    'gateway_end_to_end_latency_bucket{le="10",project="p",endpoint="e"} 2',
    'gateway_end_to_end_latency_bucket{le="+Inf",project="p",endpoint="e"} 3',
    'gateway_end_to_end_latency_sum{project="p",endpoint="e"} 20.55',
    'gateway_end_to_end_latency_count{project="p",endpoint="e"} 3',
  ]);
});

metrics('a name that is not in the table is refused', async () => {
  const backend = await start();
  assert.throws(() => backend.add('gateway_nothing', {}, 1), /gateway_nothing is not a counter/);
  assert.throws(() => backend.set('gateway_ingest_total', { project: 'p', source: 's' }, 1), /gateway_ingest_total is not a gauge/);
});

metrics('two backends do not share their values', async () => {
  const [one, two] = [await start(), await start()];
  one.add('gateway_ingest_total', { project: 'p', source: 's' }, 1);
  assert.equal(await lines(two, 'gateway_ingest_total'), []);
});

metrics('the settings rows carry the defaults of the documentation', () => {
  const rows = JSON.parse(fs.readFileSync(new URL('../../plugins/metrics-pullmetrics/settings.json', import.meta.url), 'utf8')) as Record<
    string,
    { default: number }
  >;
  assert.is(rows['metrics.pullmetrics_metrics.sample_time']?.default, 5);
});

metrics.run();
