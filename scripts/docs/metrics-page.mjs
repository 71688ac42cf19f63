// @ts-check
import { series } from '#core/metrics/series';
import { code, MADE, table } from './markdown.mjs';

/**
 * @typedef {{ type: string, labels: readonly string[], help: string, buckets?: readonly number[],
 * fold?: string }} Row
 */
/** @typedef {{ title: string, text: string, holds: (name: string) => boolean }} Group */

const INTRODUCTION = `The series of ${code('GET /metrics')}, in the Prometheus text format, on the port of each process and on the address of ${code('--pulladdr')}. The
[guide](../guides/metrics.md) explains how to enable, scrape and aggregate them. A ${code('metrics.enabled')} that is false in the file or the environment keeps metrics off even with
${code('--metrics-backend')}; ${code('--metrics-enabled')} overrides it. While a gate is closed, nothing is sampled or timed.

With ${code('metrics.bearer_token')}, ${code('/metrics')} answers 401 to requests without ${code('Authorization: Bearer <token>')}, on all addresses. Credentials of the API do not work here. The exposition
is compressed for scrapers that accept gzip. A backend that fails is answered with 500 and logged.

A series with labels for projects or their objects shows ${code('metrics.max_label_sets')} label sets (1,000). Counters and histograms show the first ones until the process ends; the
Postgres queues show unfinished work before finished, and larger values before smaller. The rest is summed: its labels for endpoint, source, event type or partition are ${code('other')},
and with very many projects also those for the project. Sums stay right, also by status and outcome; ${code('gateway_metrics_folded')} counts the summed label sets.`;

/** @type {readonly Group[]} */
const groups = [
  {
    title: 'Ingest and latency',
    text: 'Of the process that received the message: an agent, or the server for events of the API. The agent that delivers counts the end-to-end latency. `gateway_ingest_total` is always the sum of `gateway_ingest_success` and `gateway_ingest_error`.',
    holds: (name) => name.startsWith('gateway_ingest_') || name === 'gateway_end_to_end_latency',
  },
  {
    title: 'Queues in KV',
    text: 'Of the whole instance, read from KV by each process. Absent while KV is unreachable. Use `max`.',
    holds: (name) => /^gateway_event_(queue_scheduled|workflow_queue)_/.test(name),
  },
  {
    title: 'Queues in Postgres',
    text: 'Of the whole instance: one process takes the sample, every process exports it. Use `max`.',
    holds: (name) => /^gateway_(event_(queue|delivery)|parked)_/.test(name),
  },
  {
    title: 'The samples',
    text: 'The age of the queue series, in every process.',
    holds: (name) => name.startsWith('gateway_metrics_sample_'),
  },
  {
    title: 'The pipeline',
    text: 'Of the agent that does the work. Use `sum`.',
    holds: (name) =>
      /^gateway_(step|batch|transform|sandbox|source|deliveries|delivery|endpoint|events|clock)_/.test(
        name,
      ),
  },
  {
    title: 'Retention',
    text: 'Of the agent that ran it. For the time of the last run use `max`.',
    holds: (name) => name.startsWith('gateway_retention_'),
  },
  {
    title: 'Archive',
    text: 'Of the agent that ran the retention, if `archive.url` is set.',
    holds: (name) => name.startsWith('gateway_archive_'),
  },
  {
    title: 'The management API',
    text: 'Of the server.',
    holds: (name) => name.startsWith('gateway_api_'),
  },
  {
    title: 'The process',
    text: 'Of every process.',
    holds: (name) => /^(gateway_(build|pool|replica|metrics)_|process_|nodejs_)/.test(name),
  },
];

export function metricsPage() {
  const rows = Object.entries(/** @type {Readonly<Record<string, Row>>} */ (series));
  const groupOf = (/** @type {string} */ name) => {
    const group = groups.find(({ holds }) => holds(name));
    if (!group)
      throw new Error(`${name} belongs to no group of scripts/docs/metrics-page.mjs: add one`);
    return group;
  };
  return [
    '# Metrics',
    MADE,
    INTRODUCTION,
    ...groups.map((group) => {
      const own = rows.filter(([name]) => groupOf(name) === group);
      return `## ${group.title}\n\n${group.text}\n\n${table(['Series', 'Type', 'Labels', 'Meaning'], own.map(seriesRow))}`;
    }),
  ]
    .join('\n\n')
    .concat('\n');
}

/** @param {[string, Row]} entry */
function seriesRow([name, { type, labels, help, buckets }]) {
  return [
    code(name),
    type,
    labels.map(code).join(', '),
    buckets ? `${help} Buckets: ${buckets.join(', ')}, +Inf.` : help,
  ];
}
