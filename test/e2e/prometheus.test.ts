// deadline: 300 s, long
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { series, type SeriesName } from '#core/metrics/series';
import { prometheus, promtool, type QueryRow } from '../support/prometheus.js';
import { discard, tempFolder } from '../support/start/keep.js';
import { until } from '../support/until.js';
import { choiceQueries, panelQueries } from './dashboard.js';
import { ELSEWHERE, TOKEN, watched } from './watched.js';

const scraped = suite('e2e/prometheus');
const deploy = fileURLToPath(new URL('../../deploy', import.meta.url));

/** A query and its origin. */
interface Question {
  readonly name: string;
  readonly query: string;
}

/** Alerts with a part that has no rows in a healthy system. */
const emptyAlerts: Readonly<Record<string, string>> = {
  GatewayApiFailing: 'no request was answered with 5xx',
};

/** Series that need an archive or a replica, each with the test that sees them above zero. */
const seenBy: Readonly<Partial<Record<SeriesName, string>>> = {
  gateway_archive_events_total: 'agent/liveness/maintenance',
  gateway_archive_bytes_total: 'agent/liveness/maintenance',
  gateway_archive_failures_total: 'agent/liveness/maintenance',
  gateway_archive_waiting_days: 'agent/liveness/maintenance',
  gateway_archive_lost_days_total: 'agent/liveness/maintenance',
  gateway_replica_lag_seconds: 'e2e/replicas',
  gateway_replica_reads_total: 'e2e/replicas',
};

/**
 * The complete output of `promtool check metrics`, about names that the specification requires and
 * days, which are what the archive keeps rather than a unit of time.
 */
const forced: readonly string[] = [
  // counters of the specification without the suffix
  'gateway_ingest_error counter metrics should have "_total" suffix',
  'gateway_ingest_success counter metrics should have "_total" suffix',
  // gauges of the specification with the suffix
  ...[
    'gateway_event_delivery_attempts_total',
    'gateway_event_delivery_queue_total',
    'gateway_event_queue_scheduled_total',
    'gateway_event_queue_total',
    'gateway_event_workflow_queue_match_subscriptions_total',
  ].map((name) => `${name} non-counter metrics should not have "_total" suffix`),
  ...['gateway_archive_lost_days_total', 'gateway_archive_waiting_days'].map(
    (name) => `${name} use base unit "seconds" instead of "days"`,
  ),
];

const folder = tempFolder('targets');
const job = (name: string, file: string, more: object = {}) => ({
  job_name: name,
  file_sd_configs: [{ files: [path.join(folder, file)] }],
  ...more,
});
const authorization = { credentials: TOKEN };
const server = await prometheus({
  global: { scrape_interval: '1s', evaluation_interval: '1s' },
  rule_files: [path.join(deploy, 'prometheus/alerts.yml')],
  scrape_configs: [
    job('gateway-agent', 'agent.json', { authorization }),
    job('gateway-server', 'server.json', { authorization }),
    job('gateway-without-token', 'server.json'),
  ],
});
const place = await watched();
const { gateway } = place;
scraped.after(async () => {
  await server.close();
  await place.close();
  discard(folder);
});

const seriesQueries: readonly Question[] = (Object.keys(series) as SeriesName[])
  .filter((name) => !(name in seenBy))
  .map((name) => {
    const shown = series[name].type === 'histogram' ? `${name}_sum` : name;
    return { name, query: ELSEWHERE.includes(name) ? shown : `${shown} > 0` };
  });
const dashboardQueries: readonly Question[] = [
  ...choiceQueries('10s'),
  ...panelQueries('10s')
    // Without `database.replicas`, their series do not exist.
    .filter(({ query }) => !query.includes('gateway_replica_'))
    .map(({ panel, refId, query }) => ({ name: `${panel} ${refId}`, query })),
];
const ruleQueries = (await rules()).filter(({ name }) => emptyAlerts[name] === undefined);
/** Questions of the three lists above that have had data. */
const answered = new Set<Question>();

scraped(
  'a server without agents shows what waits for them, with its age, and the alert for that is on its way',
  async () => {
    tellTargets('server.json', [gateway.serverPort]);
    // Nothing is subscribed to it, which only agents determine.
    for (let n = 0; n < 3; n++)
      await gateway.api('POST', '/events', { event_type: 'unwanted', data: { n } });
    const pending = 'max by (project, source) (gateway_event_queue_total{status="pending"})';
    await until('three pending events', async () => (await values(pending))[0] === 3);
    await until(
      'an age of two seconds',
      async () => ((await values('gateway_event_queue_backlog_seconds{source="api"}'))[0] ?? 0) > 2,
    );
    assert.equal(await values('sum(gateway_event_queue_scheduled_total)'), [3]);
    const alerts = await until('an alert', async () => {
      const found = await server.query('ALERTS{alertname="GatewayNoAgent"}');
      return found.length > 0 && found;
    });
    assert.equal(
      alerts.map(({ labels }) => [labels['alertstate'], labels['severity']]),
      [['pending', 'critical']],
    );
    await look([...seriesQueries, ...dashboardQueries, ...ruleQueries]);
  },
);

scraped('server and agents are up for who has the token, and 401 for who has not', async () => {
  interface Targets {
    readonly activeTargets: readonly {
      readonly labels: { readonly job: string };
      readonly health: string;
      readonly lastError: string;
    }[];
  }
  await place.startAgents();
  tellTargets(
    'agent.json',
    gateway.agents.map(({ port }) => port),
  );
  const targets = await until('all targets to be scraped', async () => {
    const { activeTargets } = await server.get<Targets>('targets');
    return (
      activeTargets.length === 4 &&
      // The first scrape of a busy process can time out.
      activeTargets.every(
        ({ labels, health }) => (health === 'up') === (labels.job !== 'gateway-without-token'),
      ) &&
      activeTargets.every(({ health }) => health !== 'unknown') &&
      activeTargets
    );
  });
  assert.equal(
    targets
      .map(({ labels, health, lastError }) => `${labels.job} ${health} ${lastError}`.trim())
      .sort(),
    [
      'gateway-agent up',
      'gateway-agent up',
      'gateway-server up',
      'gateway-without-token down server returned HTTP status 401 Unauthorized',
    ],
  );
  assert.equal(await values('up{job!="gateway-without-token"}'), [1, 1, 1]);
});

scraped(
  'every series of the table has data in Prometheus, above zero unless another test sees that',
  () => working(seriesQueries),
);

scraped('every query of the dashboard has data', async () => {
  assert.ok(dashboardQueries.length > 50, `${dashboardQueries.length} queries`);
  await working(dashboardQueries);
});

scraped('every part of the alert rules finds what it compares', () => working(ruleQueries));

scraped(
  'what the whole gateway has done is the same by Prometheus and by Postgres, though three processes show it',
  async () => {
    const count = async (sql: string) =>
      Number((await gateway.database.rows<{ n: string }>(sql))[0]?.n);
    await until('all but the deliveries of the silent endpoint to be over', async () => {
      const pending = `select count(*) as n from event_deliveries where status in ('scheduled', 'processing', 'retry') and event_type <> 'silent'`;
      return (await count(pending)) === 0;
    });
    const same = async (what: string, query: string, sql: string) => {
      const wanted = await count(sql);
      assert.ok(wanted > 0, what);
      await until(`${what} to be ${wanted}`, async () => (await values(query))[0] === wanted).catch(
        async (error: Error) => {
          throw new Error(`${error.message}; it is ${String(await values(query))}`);
        },
      );
    };
    for (const status of ['success', 'failure'])
      await same(
        `deliveries with ${status}`,
        `max by (project) (sum by (instance, project) (gateway_event_delivery_queue_total{status="${status}"}))`,
        `select count(*) as n from event_deliveries where status = '${status}'`,
      );
    await same(
      'attempts answered with 503',
      'max by (project) (sum by (instance, project) (gateway_event_delivery_attempts_total{http_status_code="503"}))',
      'select count(*) as n from delivery_attempts where http_status = 503',
    );
    await same(
      'attempts counted by the agents',
      'sum(gateway_deliveries_attempted_total)',
      'select count(*) as n from delivery_attempts',
    );
    await same(
      'quarantined messages',
      'sum(gateway_ingest_quarantined_total)',
      'select count(*) as n from quarantined_messages',
    );
  },
);

scraped('promtool complains of nothing but what the names of the specification force', async () => {
  const complaints = new Set<string>();
  for (const port of [gateway.serverPort, gateway.agents[0]?.port]) {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    });
    const { output } = await promtool(['check', 'metrics'], { input: await response.text() });
    for (const line of output.split('\n')) if (line.trim() !== '') complaints.add(line);
  }
  assert.equal([...complaints].sort(), [...forced].sort());
});

scraped.run();

async function values(expression: string): Promise<number[]> {
  return (await server.query(expression)).map(({ value }) => value);
}

/** Writes the scrape targets, which Prometheus reloads. */
function tellTargets(file: string, ports: readonly number[]): void {
  fs.writeFileSync(
    path.join(folder, file),
    JSON.stringify([{ targets: ports.map((port) => `127.0.0.1:${port}`) }]),
  );
}

/** Evaluates the questions that have had no data yet. */
async function look(questions: readonly Question[]): Promise<void> {
  const hasData = (rows: readonly QueryRow[]) => rows.some(({ value }) => !Number.isNaN(value));
  const open = questions.filter((question) => !answered.has(question));
  await Promise.all(
    open.map(
      async (question) => hasData(await server.query(question.query)) && answered.add(question),
    ),
  );
}

/** Lets the gateway work until each query has returned a number. */
async function working(questions: readonly Question[]): Promise<void> {
  const missing = () => questions.filter((question) => !answered.has(question));
  try {
    await until(
      'all queries to have data',
      async () => {
        await place.work();
        await look(questions);
        return missing().length === 0;
      },
      { withinMs: 60_000, everyMs: 500 },
    );
  } catch (error) {
    const lines = missing().map(({ name, query }) => (name === query ? name : `${name}: ${query}`));
    throw new Error([`${(error as Error).message}; without data:`, ...lines].join('\n'), {
      cause: error,
    });
  }
}

/**
 * The rules without thresholds, subtractions and offsets, which could hide rows. Throws if one
 * cannot be evaluated.
 */
async function rules(): Promise<Question[]> {
  interface Rules {
    readonly groups: readonly {
      readonly rules: readonly {
        readonly name: string;
        readonly query: string;
        readonly health: string;
        readonly lastError?: string;
      }[];
    }[];
  }
  const found = await until('all rules to be evaluated', async () => {
    const all = (await server.get<Rules>('rules')).groups.flatMap((group) => group.rules);
    return all.length > 0 && all.every(({ health }) => health !== 'unknown') && all;
  });
  const broken = found
    .filter(({ health }) => health !== 'ok')
    .map(({ name, lastError }) => `${name}: ${lastError}`);
  if (broken.length > 0) throw new Error(broken.join('\n'));
  return found.map(({ name, query }) => ({
    name,
    query: query
      .replaceAll(/ (>|==) (bool )?[\d.]+/g, ' >= bool 0')
      .replaceAll('unless', 'and')
      .replaceAll(/ offset \w+/g, ''),
  }));
}
