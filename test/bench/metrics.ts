// The cost of the queue series with a long history: many finished deliveries and some unfinished
// ones. Compares them with a naive statement. Run: npm run bench -- metrics [--finished 10000000]
// [--pending 100000] [--endpoints 1000] [--days 7] [--rounds 20] [--postgres postgres://...]
import fs from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createMeter } from '#core/metrics/meter';
import { series } from '#core/metrics/series';
import { silentLog } from '#core/logging/log';
import pullmetrics from '@gateway/metrics-pullmetrics';
import { exportSample } from '#ingest/telemetry/queue-series';
import { lastSample, takeSample } from '#store/counts/stored-sample';
import { bothPlanes } from '#store/postgres/planes';
import { migrate, openUrl } from '../store/migrated.js';
import { database } from '../support/database.js';
import { own } from '../support/services.js';
import { toldBlocks, watchBlocks, type Longest } from './blocks.js';
import { median, ms, round } from './figures.js';
import { makeHistory } from './metrics-made.js';

const { values } = parseArgs({
  options: {
    finished: { type: 'string', default: '10000000' },
    pending: { type: 'string', default: '100000' },
    endpoints: { type: 'string', default: '1000' },
    days: { type: 'string', default: '7' },
    rounds: { type: 'string', default: '20' },
    // A superuser's URL of a local server: the tests' Postgres is built for size, and a fifth
    // slower than distributions' builds.
    postgres: { type: 'string' },
  },
});
const [finished, pending, endpoints, days, rounds] = [
  values.finished,
  values.pending,
  values.endpoints,
  values.days,
  values.rounds,
].map(Number) as [number, number, number, number, number];

/** Counts all rows: the naive version. */
const NAIVE = `select d.project_id, p.name, d.endpoint_id, d.status, d.event_type, d.source_id, o.id, o.name, count(*), min(d.occurred_at)
  from event_deliveries d join projects p on p.id = d.project_id join organisations o on o.id = p.organisation_id group by 1, 2, 3, 4, 5, 6, 7, 8`;

const SETTLE_MS = 10_000;

const postgres = values.postgres
  ? { url: values.postgres, close: () => Promise.resolve() }
  : await own.postgres({
      shared_buffers: '512MB',
      max_wal_size: '8GB',
      checkpoint_timeout: '30min',
    });
const made = await database({ migrate, postgres });
const db = { ...openUrl(made.url, 2), rows: made.rows };
try {
  await stage(
    `${round(finished)} deliveries that are over, ${round(pending)} that are not, ${round(endpoints)} endpoints, ${days} days`,
    () => makeHistory(db, { finished, pending, endpoints, days }),
  );
  await stage('recount_finished()', () => db.rows('select recount_finished()'));
  await stage('vacuum analyze', () => db.rows('vacuum analyze'));
  // Otherwise the remaining writes of the filling would be measured too.
  await stage('checkpoint', async () => {
    await db.rows('checkpoint');
    await sleep(SETTLE_MS);
  });

  await printSampling();
  await printShowing();

  const startedAtMs = performance.now();
  await db.rows(NAIVE);
  console.log(`counting all rows instead: ${ms(performance.now() - startedAtMs)}`);
} finally {
  await db.close();
  await made.close();
  await postgres.close();
}

/** The cost for Postgres and for the process that takes the sample. */
async function printSampling(): Promise<void> {
  const taken: { wall: number; postgres: number; own: number }[] = [];
  const clients = await Promise.all([db.pool.connect(), db.pool.connect()]);
  const pids = clients.map((client) => (client as unknown as { processID: number }).processID);
  for (const client of clients) client.release();
  const cpuMs = () =>
    pids.reduce(
      (sum, pid) =>
        sum + Number(fs.readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6,
      0,
    );
  for (let k = 0; k < rounds; k++) {
    const [before, ownBefore, startedAtMs] = [cpuMs(), process.cpuUsage(), performance.now()];
    await takeSample(bothPlanes(db), { isDue: () => true, timeoutMs: 600_000, countsMax: 1000 });
    const wall = performance.now() - startedAtMs;
    const { user, system } = process.cpuUsage(ownBefore);
    // Idle connections update their CPU time.
    await sleep(50);
    taken.push({ wall, postgres: cpuMs() - before, own: (user + system) / 1000 });
  }
  const of = (key: keyof (typeof taken)[number]) =>
    `${ms(median(taken, (one) => one[key])[key])}, least ${ms(Math.min(...taken.map((one) => one[key])))}`;
  const { sample } = (await lastSample(db.pool, undefined))!;
  const counts = [sample!.deliveries, sample!.attempts, sample!.events].reduce(
    (sum, { length }) => sum + length,
    0,
  );
  const hidden = Object.values(sample!.hidden).reduce((sum, n) => sum + n, 0);
  console.log(
    `sample, median of ${rounds}: ${of('wall')}; ${round(counts)} counts, with ${round(hidden)} put together`,
  );
  console.log(
    `  CPU of its two connections, which work beside each other: ${of('postgres')}; of the process that takes it: ${of('own')}`,
  );
}

/** The cost for a process that exposes the sample. */
async function printShowing(): Promise<void> {
  const backend = await pullmetrics.start(
    series,
    {},
    { collect: () => Promise.resolve(), log: silentLog },
  );
  const meter = createMeter(backend);
  const reads: number[] = [];
  const scrapes: number[] = [];
  const blocks: Longest[] = [];
  for (let k = 0; k < rounds; k++) {
    const end = watchBlocks();
    const startedAtMs = performance.now();
    const { sample } = (await lastSample(db.pool, undefined))!;
    await exportSample(meter, sample!);
    reads.push(performance.now() - startedAtMs);
    const askedAtMs = performance.now();
    await meter.expose();
    scrapes.push(performance.now() - askedAtMs);
    const longest = await end();
    // The first rounds warm up.
    if (k >= Math.floor(rounds / 4)) blocks.push(longest);
    await sleep(20);
  }
  const of = (all: readonly number[]) =>
    `${ms(median(all, (one) => one))}, least ${ms(Math.min(...all))}`;
  console.log(
    `reading and showing it, in each process: ${of(reads)}; a scrape without HTTP: ${of(scrapes)}`,
  );
  console.log(`  ${toldBlocks(blocks)}`);
}

async function stage(name: string, work: () => Promise<unknown>): Promise<void> {
  const startedAtMs = performance.now();
  await work();
  console.log(`${name}: ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`);
}
