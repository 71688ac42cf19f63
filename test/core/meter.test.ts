import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Labels, Metrics } from '@gateway/plugin';
import { createMeter } from '@gateway/core/meter';

const meter = suite('core/meter');

/** A backend that remembers the last value of each label set. */
function backend() {
  const shown = new Map<string, Map<string, number>>();
  const put = (name: string, labels: Labels, change: (before: number) => number) => {
    const sets = shown.get(name) ?? new Map<string, number>();
    const key = Object.values(labels).join(' ');
    shown.set(name, sets.set(key, change(sets.get(key) ?? 0)));
  };
  const metrics: Metrics = {
    add: (name, labels, amount) => put(name, labels, (before) => before + amount),
    set: (name, labels, value) => put(name, labels, () => value),
    observe: (name, labels) => put(name, labels, (before) => before + 1),
    clear: (name) => shown.delete(name),
    expose: () => Promise.resolve({ contentType: 'text/plain', body: 'exposed' }),
  };
  return { metrics, of: (name: string) => Object.fromEntries(shown.get(name) ?? []) };
}

meter('the verbs reach the backend, and an amount is one unless it is given', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics);
  it.add('gateway_ingest_total', { project: 'p', source: 's' });
  it.add('gateway_ingest_total', { project: 'p', source: 's' }, 4);
  it.set('gateway_event_queue_scheduled_total', { status: 'scheduled' }, 7);
  it.observe('gateway_ingest_latency', { project: 'p' }, 0.1);
  assert.equal(of('gateway_ingest_total'), { 'p s': 5 });
  assert.equal(of('gateway_event_queue_scheduled_total'), { scheduled: 7 });
  assert.equal(of('gateway_ingest_latency'), { p: 1 });
});

meter('label sets beyond the limit are folded into one, and a series counts them', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 2 });
  for (const endpoint of ['a', 'b', 'c', 'd', 'a', 'c']) it.observe('gateway_end_to_end_latency', { project: 'p', endpoint }, 1);
  assert.equal(of('gateway_end_to_end_latency'), { 'p a': 2, 'p b': 1, 'other other': 3 });
  assert.equal(of('gateway_metrics_folded'), { gateway_end_to_end_latency: 2 });
});

meter('a thousand label sets are shown unless another limit is given, and nothing of the others is lost', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics);
  for (let at = 0; at < 100_000; at++) it.observe('gateway_end_to_end_latency', { project: 'p', endpoint: `e${at}` }, 0.2);
  const shown = of('gateway_end_to_end_latency');
  assert.is(Object.keys(shown).length, 1001);
  assert.is(shown['other other'], 99_000);
});

meter('folded counts are added up, folded ages keep the oldest', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 1 });
  for (const [endpoint, value] of [
    ['a', 1],
    ['b', 5],
    ['c', 3],
  ] as const) {
    it.set('gateway_event_delivery_attempts_total', { project: 'p', endpoint, status: 'success', http_status_code: '200' }, value);
    it.set('gateway_event_delivery_queue_backlog_seconds', { project: 'p', endpoint, source: 's' }, value);
  }
  assert.is(of('gateway_event_delivery_attempts_total')['other other other other'], 8);
  assert.is(of('gateway_event_delivery_queue_backlog_seconds')['other other other'], 5);
});

meter('a cleared gauge starts anew, what was folded too', () => {
  const { metrics, of } = backend();
  const it = createMeter(metrics, { labelSetsMax: 1 });
  const sample = (sources: string[]) => {
    it.clear('gateway_event_queue_total');
    for (const source of sources) it.set('gateway_event_queue_total', { project: 'p', source, status: 'pending' }, 2);
  };
  sample(['a', 'b', 'c']);
  assert.equal(of('gateway_event_queue_total'), { 'p a pending': 2, 'other other other': 4 });
  sample(['c']);
  assert.equal(of('gateway_event_queue_total'), { 'p c pending': 2 });
  assert.is(of('gateway_metrics_folded')['gateway_event_queue_total'], 0);
});

meter('without a backend everything is allowed and the exposition says why it is empty', async () => {
  const it = createMeter(undefined, { absence: 'the licence does not include it' });
  it.add('gateway_ingest_total', { project: 'p', source: 's' });
  it.clear('gateway_event_queue_total');
  assert.is((await it.expose()).body, '# no metrics: the licence does not include it\n');
});

meter.run();
