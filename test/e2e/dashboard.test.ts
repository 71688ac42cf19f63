// deadline: 300 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { endpoint } from '../support/endpoint.js';
import { production, subscribed } from '../support/production.js';
import { prometheus, type QueryRow } from '../support/prometheus.js';
import { sqs } from '../support/sqs.js';
import { until } from '../support/until.js';
import { panelQueries, type PanelQuery } from './dashboard.js';

/**
 * The dashboard of a young system without problems. A panel without data would look broken: it
 * shows zeros, or explains its emptiness. e2e/prometheus tests that each query has data once there
 * is some.
 */
const young = suite('e2e/dashboard');

const [queues, receiver] = await Promise.all([sqs(), endpoint()]);
const settings = {
  enable_feature_flag: ['pullmetrics'],
  metrics: {
    enabled: true,
    metrics_backend: 'pullmetrics',
    pullmetrics_metrics: { sample_time: 1 },
  },
};
const gateway = await production({ settings });
const targets = [gateway.serverPort, ...gateway.agents.map(({ port }) => port)].map(
  (port) => `127.0.0.1:${port}`,
);
const server = await prometheus({
  global: { scrape_interval: '1s' },
  scrape_configs: [{ job_name: 'gateway', static_configs: [{ targets }] }],
});
young.after(async () => {
  await server.close();
  await gateway.close();
  await receiver.close();
  await queues.close();
});

// Ten scrapes instead of Grafana's four, because this machine can be busy.
const queries = panelQueries('10s');
const panels = [...new Set(queries.map(({ panel }) => panel))];

/** Panels with data from the start here, and why they can be empty elsewhere. */
const fullHere: Readonly<Record<string, string>> = {
  'API requests': 'the project was made over the API',
  'Since retention ran': 'retention may be off',
};

async function answers(): Promise<Map<PanelQuery, QueryRow[]>> {
  const rows = await Promise.all(
    queries.map(async (it) => [it, await server.query(it.query)] as const),
  );
  return new Map(rows);
}

/** Flaws of the current dashboard, a line each. */
async function flaws(): Promise<string[]> {
  const found: string[] = [];
  const rows = await answers();
  for (const panel of panels) {
    const own = [...rows].filter(([it]) => it.panel === panel);
    const empty = own.filter(([, { length }]) => length === 0).map(([it]) => it);
    if (empty.length === own.length && empty[0]!.noValue === undefined)
      found.push(`${panel}: nothing, and does not say why`);
    // A total without data is zero.
    if (empty.length < own.length)
      for (const { refId, query } of empty)
        if (!/\bby \(/.test(query)) found.push(`${panel} ${refId}: nothing beside the others`);
    for (const [{ refId }, values] of own)
      if (values.some(({ value }) => Number.isNaN(value)))
        found.push(`${panel} ${refId}: not a number`);
  }
  return found;
}

/** Waits until all processes have been scraped often enough for rates. */
async function scrapedFor(seconds: number): Promise<void> {
  await until(`${seconds} s of scrapes`, async () => {
    const counts = await server.query(
      `count_over_time(gateway_metrics_sample_age_seconds{sample="postgres"}[${seconds}s])`,
    );
    return counts.length === targets.length && counts.every(({ value }) => value >= seconds / 2);
  });
}

young(
  'before anything happened, a panel shows zeros or says what its emptiness means; those that say so are empty',
  async () => {
    assert.ok(queries.length > 70, `${queries.length} queries`);
    await scrapedFor(10);
    assert.equal(await flaws(), []);
    const rows = await answers();
    const never = panels.filter((panel) => {
      const own = queries.filter((it) => it.panel === panel);
      return (
        own[0]!.noValue !== undefined &&
        fullHere[panel] === undefined &&
        own.some((it) => rows.get(it)!.length > 0)
      );
    });
    assert.equal(never, [], 'a sentence that is never shown');
  },
);

young(
  'after the first messages, which all went well, and when they have left the window of the rates',
  async () => {
    await subscribed(gateway, receiver.url);
    const queue = queues.queue();
    const pubSub = { type: 'sqs', workers: 1, sqs: queues.connection(queue.name) };
    await gateway.api('POST', '/sources', { name: 'orders', type: 'pub_sub', pub_sub: pubSub });
    await queues.send(
      queue,
      Array.from({ length: 5 }, (_, n) =>
        JSON.stringify({ event_type: 'order.paid', data: { n } }),
      ),
    );
    await gateway.api('POST', '/events', { event_type: 'order.paid', data: {} });
    await receiver.received(6);
    for (const series of ['gateway_deliveries_attempted_total', 'gateway_ingest_total'])
      await until(
        `all to be seen in ${series}`,
        async () => (await server.query(`sum(${series})`))[0]?.value === 6,
      );
    assert.equal(await flaws(), []);
    await until('a quiet window', async () => {
      const [row] = await server.query('sum(rate(gateway_deliveries_attempted_total[10s]))');
      return row?.value === 0;
    });
    assert.equal(await flaws(), []);
  },
);

young.run();
