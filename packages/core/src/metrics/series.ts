import type { Series } from '@gateway/plugin';

/** The `source` label of events created over the API. */
export const API_SOURCE = 'api';

/** Replaces folded label values, also in the Postgres sample. */
export const OTHER = 'other';

/** Up to a day, which is the longest retry schedule. */
const LATENCY_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 14_400, 43_200,
  86_400,
];
const STEP_SECONDS = [
  0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
const COUNTS = [1, 2, 5, 10, 20, 50, 100, 200, 500];

/** `fold` defines how gauges beyond `metrics.max_label_sets` are combined. */
// prettier-ignore
export const series = {
  // Ingest and latency.
  gateway_ingest_total: { type: 'counter', labels: ['project', 'source'],
    help: 'Messages settled by the agent and events created over the API (source api), both successes and errors.' },
  gateway_ingest_success: { type: 'counter', labels: ['project', 'source'],
    help: 'Messages and events ingested successfully: accepted, dropped by a transform function, or duplicates.' },
  gateway_ingest_error: { type: 'counter', labels: ['project', 'source'],
    help: 'Ingest errors: messages put in quarantine, and events of the API that could not be stored. Invalid API requests are not counted.' },
  gateway_ingest_duplicate_total: { type: 'counter', labels: ['project', 'source'],
    help: 'Duplicate messages, which create no event: redelivered by the broker, or with a known idempotency key.' },
  gateway_ingest_dropped_total: { type: 'counter', labels: ['project', 'source'], help: 'Messages that a transform function dropped on purpose.' },
  gateway_ingest_quarantined_total: { type: 'counter', labels: ['project', 'source', 'reason'], help: 'Messages put in quarantine, by reason.' },
  gateway_end_to_end_latency: { type: 'histogram', labels: ['project', 'endpoint'], buckets: LATENCY_SECONDS,
    help: 'Seconds from the time of the message at the broker to the successful response of the endpoint, recorded per delivery.' },
  gateway_ingest_latency: { type: 'histogram', labels: ['project'], buckets: LATENCY_SECONDS,
    help: 'Seconds from reading a message, or a request that creates an event, to the commit.' },

  // Queues, read from KV.
  gateway_event_queue_scheduled_total: { type: 'gauge', labels: ['status'],
    help: 'Tasks on the create-event queue: scheduled, or processing (taken by an agent); absent while KV is unavailable.' },
  gateway_event_workflow_queue_match_subscriptions_total: { type: 'gauge', labels: ['status'],
    help: 'Tasks on the queue that matches subscriptions: scheduled, or processing (taken by an agent); absent while KV is unavailable.' },

  // Queues, read from Postgres.
  gateway_event_queue_total: { type: 'gauge', labels: ['project', 'source', 'status'], fold: 'sum',
    help: 'Events by status: currently pending; processed and failed since the instance began, including what retention deleted. Events created over the API have the source api.' },
  gateway_event_queue_backlog_seconds: {
    type: 'gauge', labels: ['project', 'source'], help: 'Age in seconds of the oldest pending event.', fold: 'max',
  },
  gateway_event_delivery_queue_total: { type: 'gauge',
    labels: ['project', 'project_name', 'endpoint', 'status', 'event_type', 'source', 'organisation_id', 'organisation_name'],
    fold: 'sum',
    help: 'Event deliveries by status: currently scheduled, processing and retry; success, failure and discarded since the instance began, including what retention deleted, without those that were re-queued. Event type and source are empty for deliveries that ended before they were recorded.' },
  gateway_event_delivery_queue_backlog_seconds: { type: 'gauge', labels: ['project', 'endpoint', 'source'],
    help: 'Age in seconds of the oldest unfinished event delivery per endpoint: scheduled, processing or waiting for a retry.', fold: 'max' },
  gateway_event_delivery_attempts_total: { type: 'gauge', labels: ['project', 'endpoint', 'status', 'http_status_code'], fold: 'sum',
    help: 'Delivery attempts since the instance began, by outcome (success or failure) and HTTP status (none: no response).' },
  gateway_parked_keys: { type: 'gauge', labels: ['project', 'endpoint'], fold: 'sum',
    help: 'Parked keys of an ordered endpoint: the first delivery failed for good, and the others wait until someone decides.' },
  gateway_parked_deliveries: { type: 'gauge', labels: ['project', 'endpoint'], fold: 'sum',
    help: 'Deliveries that wait behind parked keys.' },
  gateway_parked_keys_backlog_seconds: { type: 'gauge', labels: ['project', 'endpoint'], fold: 'max',
    help: 'Seconds since the first of the parked keys of an endpoint was parked.' },
  gateway_metrics_sample_age_seconds: {
    type: 'gauge', labels: ['sample'], help: 'Age of the sample behind the queue series: postgres is shared by all processes, kv belongs to this one.',
  },
  gateway_metrics_sample_failures_total: {
    type: 'counter', labels: ['sample'], help: 'Failed samples of this process; until one succeeds, the queue series show the last sample, or nothing.',
  },
  gateway_metrics_sample_seconds: { type: 'gauge', labels: [], help: 'Duration of the last sample of Postgres.' },

  // Pipeline steps.
  gateway_step_duration_seconds: { type: 'histogram', labels: ['step'], buckets: STEP_SECONDS,
    help: 'Time of one pipeline step. Per batch: throttle (the longest wait), transform, route (in memory), commit and record. Per delivery: wait (held until its request begins) and request.' },
  gateway_batch_size: { type: 'histogram', labels: ['batch'], buckets: COUNTS, help: 'Items per statement or call: transform, commit, route, record.' },
  gateway_transform_duration_seconds: { type: 'histogram', labels: ['project', 'source'], buckets: STEP_SECONDS,
    help: 'Time that a batch of messages spent in the transform function, including the wait for the sandbox.' },
  gateway_sandbox_processes: { type: 'gauge', labels: [], help: 'Sandbox processes of this agent.' },
  gateway_source_lag_messages: { type: 'gauge', labels: ['project', 'source', 'partition'], fold: 'sum',
    help: 'Messages at the broker that the gateway has not acknowledged, by partition of a topic; partition is empty for a queue. The same value from every agent.' },
  gateway_source_last_message_age_seconds: { type: 'gauge', labels: ['project', 'source'], fold: 'max',
    help: 'Seconds since this agent last read a message of a source, or since it began to read or watch the source if there was none.' },
  gateway_source_lost_messages_total: { type: 'counter', labels: ['project', 'source', 'partition'],
    help: 'Messages that the broker deleted before this agent read them, by partition: an upper bound, from offsets.' },
  gateway_source_paused: { type: 'gauge', labels: ['project', 'source'], fold: 'sum',
    help: 'Set to 1 while a source is paused, by a person or because its transform function overran repeatedly; otherwise absent.' },
  gateway_transform_overruns_total: { type: 'counter', labels: ['project', 'source'],
    help: 'Calls of a transform function that overran: deadline, memory, or three crashes of its process.' },
  gateway_deliveries_attempted_total: { type: 'counter', labels: ['project', 'outcome'], help: 'Delivery attempts made by this process.' },
  gateway_delivery_attempt_count: {
    type: 'histogram', labels: ['outcome'], buckets: COUNTS.slice(0, 5), help: 'Attempts of an event delivery when it succeeded or finally failed.',
  },
  gateway_deliveries_held: { type: 'gauge', labels: ['state'], help: 'Event deliveries held by this agent: waiting, under_way (request in progress), or recording (response received but not yet in Postgres).' },
  gateway_endpoint_breaker_state: { type: 'gauge', labels: ['project', 'endpoint'], fold: 'max',
    help: 'State of the circuit breaker of an endpoint in this agent: 2 open (nothing is sent), 1 half-open (one probe is in flight); absent while closed.' },
  gateway_endpoint_breaker_trips_total: {
    type: 'counter', labels: ['project', 'endpoint'], help: 'How often this agent opened the circuit breaker of an endpoint, including after failed probes.',
  },
  gateway_endpoint_slow: { type: 'gauge', labels: ['project', 'endpoint'], fold: 'max',
    help: 'Set to 1 while an endpoint is so slow that this agent leaves its deliveries in Postgres and serves others first; otherwise absent.' },
  gateway_deliveries_postponed_total: { type: 'counter', labels: ['project', 'endpoint', 'reason'],
    help: 'Deliveries that this agent postponed without an attempt, by reason: back_off (the endpoint asked to wait), breaker (open), rate_limit, lookup (DNS), shortage (of files or ports of the agent, or name servers), function (of the subscription), or slow.' },
  gateway_clock_offset_seconds: { type: 'gauge', labels: [],
    help: "Seconds that the clock of Postgres is ahead of this agent's machine, negative if behind; 0 within the duration of a heartbeat. Requests are signed with the time of Postgres." },
  gateway_events_recovered_total: { type: 'counter', labels: [], help: 'Events whose queue signal was lost and that were routed by the reconciler.' },
  gateway_deliveries_recovered_total: { type: 'counter', labels: [], help: 'Event deliveries recovered because their agent died, the answer to a claim was lost, or no agent claimed them for seconds.' },
  gateway_retention_last_run_timestamp_seconds: { type: 'gauge', labels: [],
    help: 'Unix time of the last completed retention run of this agent; absent while retention.enabled is false.' },
  gateway_retention_partitions_dropped_total: { type: 'counter', labels: [], help: 'Expired day partitions dropped by this agent.' },
  gateway_retention_rows_deleted_total: { type: 'counter', labels: [],
    help: 'Expired events, event deliveries and quarantined messages that this agent deleted row by row, because their day partition is kept or they have none.' },
  gateway_retention_failures_total: { type: 'counter', labels: [], help: 'Failed retention runs of this agent; the next run is an hour later.' },
  gateway_archive_events_total: { type: 'counter', labels: [], help: 'Expired events that this agent wrote to the archive.' },
  gateway_archive_bytes_total: { type: 'counter', labels: [], help: 'Compressed bytes of events that this agent wrote to the archive.' },
  gateway_archive_failures_total: { type: 'counter', labels: [],
    help: 'Retention runs of this agent that could not write to the archive; what expired is kept and tried again an hour later.' },
  gateway_archive_waiting_days: { type: 'gauge', labels: [],
    help: 'Expired days that the last retention run of this agent kept because they are not archived yet.' },
  gateway_archive_lost_days_total: { type: 'counter', labels: [],
    help: 'Days of projects that this agent deleted without a copy, because it could not archive them and they are before archive.give_up_before.' },

  // The process.
  gateway_build_info: { type: 'gauge', labels: ['version', 'node', 'process'], help: 'Always 1; the labels name the running version.' },
  gateway_api_requests_total: { type: 'counter', labels: ['method', 'route', 'status'], help: 'Requests answered by the management API.' },
  gateway_api_request_duration_seconds: { type: 'histogram', labels: ['route'], buckets: STEP_SECONDS, help: 'Response time of the management API.' },
  gateway_api_login_failures_total: { type: 'counter', labels: ['credential', 'outcome'],
    help: 'Failed logins to the management API and failed requests to HTTP sources, by credential (basic, bearer: a key of the process, key: a stored API key, session, password, invitation, oidc, source: a password or key of an HTTP source, signature) and outcome: wrong, or locked_out (refused without a check after too many failures).' },
  gateway_pool_connections: { type: 'gauge', labels: ['shard', 'state'], help: 'Connections to Postgres of this process by shard: busy, idle, and waiting (callers without one).' },
  gateway_replica_lag_seconds: { type: 'gauge', labels: ['replica'],
    help: 'Age of the data of a read replica, at most. Absent until it is known; grows while the replica is away.' },
  gateway_replica_reads_total: { type: 'counter', labels: ['server'],
    help: 'Reads that a replica may answer, by the server that answered: the address of a replica, or primary. Only with database.replicas.' },
  gateway_metrics_folded: {
    type: 'gauge', labels: ['series'], help: 'Label sets of a series beyond metrics.max_label_sets, combined under the label value "other".',
  },
  process_cpu_seconds_total: { type: 'counter', labels: [], help: 'CPU time of this process, in seconds.' },
  process_resident_memory_bytes: { type: 'gauge', labels: [], help: 'Resident memory of this process.' },
  process_start_time_seconds: { type: 'gauge', labels: [], help: 'When this process started, in seconds since the epoch.' },
  nodejs_heap_size_used_bytes: { type: 'gauge', labels: [], help: 'Used heap of this process.' },
  nodejs_eventloop_lag_seconds: { type: 'gauge', labels: ['percentile'], help: 'Delay of the event loop since the last scrape: percentiles 50, 99, and 100 (the longest).' },
  nodejs_eventloop_utilization: { type: 'gauge', labels: [], help: 'Share of the time since the last scrape in which the event loop was busy.' },
} as const satisfies Readonly<Record<string, Series>>;

export type SeriesName = keyof typeof series;
export type SeriesLabels<Name extends SeriesName> = {
  readonly [Label in (typeof series)[Name]['labels'][number]]: string;
};
