// `npm run bench -- scrape`: the cost of a scrape of /metrics with the maximum number of label sets
// in every endpoint series.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { resolveConfig } from '#core/config/config';
import { serveMetrics, metricsResponse } from '#core/exposition/metrics-endpoint';
import { silentLog } from '#core/logging/log';
import { activate } from '#core/plugins/activation';
import { discover } from '#core/plugins/discovery';
import { readLicence } from '#core/plugins/licence';
import { exposition } from '../support/exposition.js';
import { freePort } from '../support/ports.js';
import { toldBlocks, watchBlocks, type Longest } from './blocks.js';

const ENDPOINTS = 1_000;
const SCRAPES = 80;
const WARM_UP = 10;

const discovery = discover({ root: new URL('../..', import.meta.url).pathname });
const flags = { 'metrics-backend': 'pullmetrics', 'enable-feature-flag': ['pullmetrics'] };
const resolved = resolveConfig({ env: {}, file: {}, flags, rows: discovery.rows });
const licence = readLicence({ token: undefined, publicKey: undefined });
const plugins = await activate({
  discovery,
  resolved,
  licence,
  serviceName: 'gateway-agent',
  log: silentLog,
});
const { meter } = plugins;

const project = (at: number) => `01KA${String(at % 10).padStart(22, '0')}`;
const endpoint = (at: number) => `01KB${String(at).padStart(22, '0')}`;
const source = (at: number) => `01KC${String(at % 7).padStart(22, '0')}`;

/** The sampler's work, every `sample_time`. */
function sample(): void {
  meter.clear('gateway_event_delivery_queue_total');
  meter.clear('gateway_event_delivery_attempts_total');
  for (let at = 0; at < ENDPOINTS; at++) {
    const named = {
      project_name: 'Orders of the shop',
      organisation_id: project(1),
      organisation_name: 'Acme GmbH',
    };
    const labels = {
      project: project(at),
      endpoint: endpoint(at),
      source: source(at),
      event_type: 'invoice.paid',
      status: 'scheduled',
    };
    meter.set('gateway_event_delivery_queue_total', { ...labels, ...named }, at);
    meter.set(
      'gateway_event_delivery_attempts_total',
      { project: project(at), endpoint: endpoint(at), status: 'success', http_status_code: '200' },
      at,
    );
  }
}
function deliver(): void {
  for (let at = 0; at < ENDPOINTS; at++)
    meter.observe(
      'gateway_end_to_end_latency',
      { project: project(at), endpoint: endpoint(at) },
      Math.random() * 100,
    );
}

sample();
deliver();
const port = await freePort();
const place = {
  address: `127.0.0.1:${port}`,
  key: 'agent.pulladdr',
  env: 'GATEWAY_AGENT_PULLADDR',
};
const serving = await serveMetrics(
  place,
  metricsResponse({ config: resolved.config, plugins, log: silentLog }),
);

// A separate process: its work does not count towards the watched one.
const scraper = fork(new URL('scraper.mjs', import.meta.url), [
  JSON.stringify({ port, host: '127.0.0.1', path: '/metrics' }),
]);
await once(scraper, 'message');

for (const encoding of ['identity', 'gzip']) {
  const rows = await repeated(() => scraped(encoding));
  console.log(
    `scrape, ${encoding}, ${(rows[0]!.bytes / 1e6).toFixed(2)} MB: median ${share(rows, 'scrapeMs', 0.5)} ms, p90 ${share(rows, 'scrapeMs', 0.9)} ms`,
  );
  console.log(`  ${toldBlocks(rows)}`);
}
const rendering = await repeated(rendered);
console.log(
  `CPU of the rendering alone: median ${share(rendering, 'cpuMs', 0.5)} ms, p90 ${share(rendering, 'cpuMs', 0.9)} ms`,
);
const { samples } = exposition((await meter.expose()).body);
console.log(`${samples.length} samples of ${ENDPOINTS} endpoints`);
scraper.kill();
await serving.close();
await plugins.close();

/** Repeats a measurement with fresh values and drops the first few. */
async function repeated<Row>(measure: () => Promise<Row>): Promise<Row[]> {
  const rows: Row[] = [];
  for (let at = 0; at < SCRAPES; at++) {
    sample();
    deliver();
    rows.push(await measure());
  }
  return rows.slice(WARM_UP);
}

function share<Key extends string>(
  rows: readonly Readonly<Record<Key, number>>[],
  key: Key,
  part: number,
): string {
  const sorted = rows.map((row) => row[key]).sort((one, other) => one - other);
  return sorted[Math.floor((sorted.length - 1) * part)]!.toFixed(1);
}

/**
 * Measures a scrape by another process: the time to the last byte, and the longest block of the
 * event loop here.
 */
async function scraped(encoding: string): Promise<{ scrapeMs: number; bytes: number } & Longest> {
  const end = watchBlocks();
  scraper.send(encoding);
  const [answer] = (await once(scraper, 'message')) as [{ scrapeMs: number; bytes: number }];
  return { ...answer, ...(await end()) };
}

async function rendered(): Promise<{ cpuMs: number }> {
  const before = process.cpuUsage();
  await meter.expose();
  const { user, system } = process.cpuUsage(before);
  return { cpuMs: (user + system) / 1_000 };
}
