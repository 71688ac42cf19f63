import type { Series } from '@gateway/plugin';

const LATENCY_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];

/**
 * Every series that the gateway exports. `fold` says how label sets of a gauge beyond `metrics.max_label_sets` are put together (`meter.ts`).
 */
// prettier-ignore
export const series = {
  gateway_ingest_total: { type: 'counter', labels: ['project', 'source'], help: 'Events ingested.' },
  gateway_ingest_success: { type: 'counter', labels: ['project', 'source'], help: 'Events ingested and consumed successfully.' },
  gateway_ingest_error: { type: 'counter', labels: ['project', 'source'], help: 'Errors during ingestion.' },
  gateway_ingest_duplicate: {
    type: 'counter', labels: ['project', 'source'],
    help: 'Messages that made no second event: redelivered by the broker, or with a known idempotency key.',
  },
  gateway_ingest_dropped: { type: 'counter', labels: ['project', 'source'], help: 'Messages that a transform function dropped on purpose.' },
  gateway_ingest_quarantined: { type: 'counter', labels: ['project', 'source', 'reason'], help: 'Messages put in quarantine, by reason.' },
  gateway_end_to_end_latency: {
    type: 'histogram', labels: ['project', 'endpoint'], buckets: LATENCY_SECONDS,
    help: 'Seconds an event spends in the service, recorded per delivery.',
  },
  gateway_ingest_latency: {
    type: 'histogram', labels: ['project'], buckets: LATENCY_SECONDS,
    help: 'Seconds between the reading of a message and the commit that accepts it.',
  },
  gateway_event_queue_scheduled_total: { type: 'gauge', labels: ['status'], help: 'Tasks waiting on the create-event queue.' },
  gateway_event_workflow_queue_match_subscriptions_total: {
    type: 'gauge', labels: ['status'], help: 'Tasks waiting on the queue that matches subscriptions.',
  },
  gateway_event_queue_total: { type: 'gauge', labels: ['project', 'source', 'status'], help: 'Events by status.', fold: 'sum' },
  gateway_event_queue_backlog_seconds: {
    type: 'gauge', labels: ['project', 'source'], help: 'Age in seconds of the oldest pending event.', fold: 'max',
  },
  gateway_event_delivery_queue_total: {
    type: 'gauge',
    labels: ['project', 'project_name', 'endpoint', 'status', 'event_type', 'source', 'organisation_id', 'organisation_name'],
    help: 'Event deliveries in the pipeline.', fold: 'sum',
  },
  gateway_event_delivery_queue_backlog_seconds: {
    type: 'gauge', labels: ['project', 'endpoint', 'source'],
    help: 'Age in seconds of the oldest pending event delivery per endpoint.', fold: 'max',
  },
  gateway_event_delivery_attempts_total: {
    type: 'gauge', labels: ['project', 'endpoint', 'status', 'http_status_code'],
    help: 'Delivery attempts by outcome and HTTP status.', fold: 'sum',
  },
  gateway_deliveries_attempted: { type: 'counter', labels: ['project', 'outcome'], help: 'Delivery attempts made by this process.' },
  gateway_events_recovered: { type: 'counter', labels: [], help: 'Events whose queue signal was lost and that were routed by the reconciler.' },
  gateway_deliveries_recovered: { type: 'counter', labels: [], help: 'Event deliveries that were taken from an agent that died.' },
  gateway_metrics_folded: {
    type: 'gauge', labels: ['series'], help: 'Label sets of a series beyond metrics.max_label_sets, shown as one with the label values "other".',
  },
} as const satisfies Readonly<Record<string, Series>>;

export type SeriesName = keyof typeof series;
export type SeriesLabels<Name extends SeriesName> = { readonly [Label in (typeof series)[Name]['labels'][number]]: string };
