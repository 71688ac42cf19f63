import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Series } from '@gateway/plugin';
import { series } from '#core/metrics/series';

const table = suite('core/metrics/series');
const rows: Readonly<Record<string, Series & { fold?: string }>> = series;

table('the series of the specification have its names, types and labels', () => {
  const specified: [string, Series['type'], string][] = [
    ['gateway_ingest_total', 'counter', 'project, source'],
    ['gateway_ingest_success', 'counter', 'project, source'],
    ['gateway_ingest_error', 'counter', 'project, source'],
    ['gateway_end_to_end_latency', 'histogram', 'project, endpoint'],
    ['gateway_ingest_latency', 'histogram', 'project'],
    ['gateway_event_queue_scheduled_total', 'gauge', 'status'],
    ['gateway_event_workflow_queue_match_subscriptions_total', 'gauge', 'status'],
    ['gateway_event_queue_total', 'gauge', 'project, source, status'],
    ['gateway_event_queue_backlog_seconds', 'gauge', 'project, source'],
    [
      'gateway_event_delivery_queue_total',
      'gauge',
      'project, project_name, endpoint, status, event_type, source, organisation_id, organisation_name',
    ],
    ['gateway_event_delivery_queue_backlog_seconds', 'gauge', 'project, endpoint, source'],
    [
      'gateway_event_delivery_attempts_total',
      'gauge',
      'project, endpoint, status, http_status_code',
    ],
  ];
  for (const [name, type, labels] of specified) {
    assert.equal([rows[name]?.type, rows[name]?.labels.join(', ')], [type, labels], name);
  }
  // Prometheus reserves the suffix for counters. The specification names five gauges so.
  const named = Object.keys(rows).filter(
    (it) => it.endsWith('_total') && rows[it]!.type === 'gauge',
  );
  assert.equal(
    named,
    specified.flatMap(([it, type]) => (type === 'gauge' && /_total$/.test(it) ? it : [])),
  );
});

table(
  'names are ours or those that Node programs share, help is a sentence, and buckets belong to histograms and rise',
  () => {
    for (const [name, { type, help, buckets }] of Object.entries(rows)) {
      assert.match(name, /^(gateway|process|nodejs)_[a-z_]+$/);
      assert.match(help, /^[A-Z].*\.$/, name);
      assert.is(buckets !== undefined, type === 'histogram', name);
      assert.equal(buckets, buckets && [...buckets].sort((a, b) => a - b), name);
    }
  },
);

table('every gauge by endpoint says how it is folded', () => {
  for (const [name, { type, labels, fold }] of Object.entries(rows)) {
    if (type === 'gauge' && labels.includes('endpoint')) assert.ok(fold, name);
  }
});

table.run();
