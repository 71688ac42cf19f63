// @ts-check
import { series } from '#core/metrics/series';
import { code, MADE, table } from './markdown.mjs';

/** @typedef {{ type: string, labels: readonly string[], help: string, buckets?: readonly number[], fold?: string }} Row */
/** @typedef {{ title: string, text: string, holds: (name: string) => boolean }} Group */

const INTRODUCTION = `What ${code('GET /metrics')} shows, in the text format of Prometheus, on the port of each process: the server's HTTP port, the agent's agent port, and the
address of ${code('--pulladdr')} of either.

Metrics are exported when all of four gates are open:

${table(
  ['Gate', 'Opened by'],
  [
    [
      'feature flag',
      '`enable_feature_flag` holds `pullmetrics`: `--enable-feature-flag=pullmetrics`, `GATEWAY_ENABLE_FEATURE_FLAG=pullmetrics`',
    ],
    ['backend', '`metrics.metrics_backend` is `pullmetrics`: `--metrics-backend=pullmetrics`, `GATEWAY_METRICS_BACKEND=pullmetrics`'],
    [
      'switch',
      '`metrics.enabled` is true: `--metrics-enabled`, `GATEWAY_METRICS_ENABLED=true`, or nothing when `--metrics-backend` is given as a flag',
    ],
    ['licence', 'it includes `pullmetrics`; the community licence does'],
  ],
)}

So ${code('gateway agent --metrics-backend=pullmetrics --enable-feature-flag=pullmetrics')} is enough on the command line alone. A ${code('metrics.enabled')} that is false in
the file or the environment keeps metrics off all the same: it was said, and the flag only stands in for what nobody has said. ${code('--metrics-enabled')} wins over it.

While a gate is closed ${code('/metrics')} answers 200 with one comment line, which names every closed gate and how to open it. The log says the same at start, and
${code('gateway plugins')} before. Nothing is sampled or timed then.

${code('metrics.bearer_token')} closes ${code('/metrics')}, on all its addresses, to whoever does not send ${code('Authorization: Bearer <token>')}: 401. API keys and the credentials of
${code('--api-auth')} and ${code('--basic-auth')} are for the API and open nothing here; without a token anybody who reaches the port may scrape. The exposition is compressed for scrapers that
take gzip. A backend that fails is answered with 500 and logged.`;

const AGGREGATION = `Each process counts what it does itself and is scraped by itself. Put together:

${table(
  ['Type', 'Over all processes'],
  [
    ['counter', '`sum by (project) (rate(gateway_ingest_total[5m]))`'],
    ['histogram', '`histogram_quantile(0.95, sum by (le, project) (rate(gateway_end_to_end_latency_bucket[5m])))`'],
    ['gauge of the instance', '`max by (project, status) (gateway_event_queue_total)`: every process shows the same sample'],
    ['gauge of a process', '`sum by (state) (gateway_deliveries_held)`, or one line per `instance`'],
  ],
)}

A series that names projects or what belongs to them shows ${code('metrics.max_label_sets')} label sets (1,000). Counters and histograms show those that came first, until the
process ends; the queues in Postgres show what is not over before what is, and the larger before the smaller. What is left out is put together: its labels that name an endpoint, a
source, an event type or a partition are ${code('other')}, and where there are very many projects those that name a project too. Sums stay right, also by status and outcome.
${code('gateway_metrics_folded')} counts what is put together.`;

/** @type {readonly Group[]} */
const groups = [
  {
    title: 'Ingest and latency',
    text: 'By the process that took the message: the agent, and the server for events of the API. The end-to-end latency is counted by the agent that delivers. `gateway_ingest_total` is the sum of `gateway_ingest_success` and `gateway_ingest_error` in every exposition.',
    holds: (name) => name.startsWith('gateway_ingest_') || name === 'gateway_end_to_end_latency',
  },
  {
    title: 'Queues in KV',
    text: 'Of the whole instance, read from KV by each process. Absent while KV is away. Aggregate with `max`.',
    holds: (name) => /^gateway_event_(queue_scheduled|workflow_queue)_/.test(name),
  },
  {
    title: 'Queues in Postgres',
    text: 'Of the whole instance: one process takes the sample, every process shows it. Aggregate with `max`.',
    holds: (name) => /^gateway_event_(queue|delivery)_/.test(name),
  },
  {
    title: 'The samples',
    text: 'How old the queues above are, in every process.',
    holds: (name) => name.startsWith('gateway_metrics_sample_'),
  },
  {
    title: 'The way of a message',
    text: 'Of the agent that does the work.',
    holds: (name) => /^gateway_(step|batch|transform|sandbox|source|deliveries|delivery|endpoint|events)_/.test(name),
  },
  {
    title: 'Retention',
    text: 'Of the agent that did it. Aggregate the time of the last run with `max`.',
    holds: (name) => name.startsWith('gateway_retention_'),
  },
  {
    title: 'The management API',
    text: 'Of the server.',
    holds: (name) => name.startsWith('gateway_api_'),
  },
  {
    title: 'The process',
    text: 'Of every process.',
    holds: (name) => /^(gateway_(build|pool|metrics)_|process_|nodejs_)/.test(name),
  },
];

/** The page of all series. */
export function metricsPage() {
  const rows = Object.entries(/** @type {Readonly<Record<string, Row>>} */ (series));
  const groupOf = (/** @type {string} */ name) => {
    const group = groups.find(({ holds }) => holds(name));
    if (!group) throw new Error(`${name} belongs to no group of scripts/docs/metrics-page.mjs: add one`);
    return group;
  };
  return [
    '# Metrics',
    MADE,
    INTRODUCTION,
    `## Aggregation\n\n${AGGREGATION}`,
    ...groups.map((group) => {
      const own = rows.filter(([name]) => groupOf(name) === group);
      return `## ${group.title}\n\n${group.text}\n\n${table(['Series', 'Type', 'Labels', 'Meaning'], own.map(seriesRow))}`;
    }),
    `## Buckets\n\nUpper bounds of the histograms, beside \`+Inf\`.\n\n${table(['Series', 'Bounds'], rows.filter(([, { buckets }]) => buckets).map(bucketsRow))}`,
  ]
    .join('\n\n')
    .concat('\n');
}

/** @param {[string, Row]} entry */
function seriesRow([name, { type, labels, help }]) {
  return [code(name), type, labels.map(code).join(', '), help];
}

/** @param {[string, Row]} entry */
function bucketsRow([name, { buckets = [] }]) {
  return [code(name), buckets.map(String).join(', ')];
}
