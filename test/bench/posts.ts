// Posts events to the management API, individually and in batches, and to a bare Koa server that
// commits the same row for each; also measures the latency from a post to the receiver. Run: npm
// run bench -- posts [--seconds 8] [--rounds 3] [--connections 64] [--rate 200]
import { execFile, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import os from 'node:os';
import { production, subscribed } from '../support/production.js';
import { own } from '../support/services.js';
import { median, ms, ratio, round } from './figures.js';
import { Meter } from './measure.js';
import { startReceiver } from './systems.js';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '8' },
    rounds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '64' },
    rate: { type: 'string', default: '200' },
  },
});
const [seconds, rounds, connections, rate] = [
  values.seconds,
  values.rounds,
  values.connections,
  values.rate,
].map(Number) as [number, number, number, number];
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

interface Posted {
  readonly posted: number;
  readonly rate: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly statuses: Readonly<Record<string, number>>;
}

async function post(options: object): Promise<Posted> {
  const { stdout } = await promisify(execFile)(process.execPath, [
    file('poster.mjs'),
    JSON.stringify({ connections, seconds, rate: 0, ...options }),
  ]);
  const posted = JSON.parse(stdout) as Posted;
  const wrong = Object.keys(posted.statuses).filter((status) => !/^20[01]$/.test(status));
  if (wrong.length > 0)
    throw new Error(`answers of ${wrong.join(', ')}: ${JSON.stringify(posted.statuses)}`);
  return posted;
}

const postgres = await own.postgres({
  shared_preload_libraries: 'pg_stat_statements',
  shared_buffers: '256MB',
  max_wal_size: '4GB',
});
const redis = await own.redis();
process.env['TEST_POSTGRES_URL'] = postgres.url;
process.env['TEST_REDIS_URL'] = redis.url;
const meter = new Meter(postgres.url, redis.url);
await meter.open();
const receiver = await startReceiver();
const gateway = await production({ agents: 0, settings: { api_rate_limit: 0 } });
const headers = { 'content-type': 'application/json', authorization: `Bearer ${gateway.apiKey}` };
const url = `http://127.0.0.1:${gateway.serverPort}/api/v1/projects/${gateway.projectId}/events`;
const bare = fork(file('bare-post.mjs'), {
  env: { ...process.env, DATABASE_URL: gateway.database.url, PROJECT: gateway.projectId },
});
const [{ port }] = (await once(bare, 'message')) as [{ port: number }];

try {
  console.log(
    `node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), ${await meter.versions()}; 1 KB events`,
  );
  await subscribed(gateway, receiver.url);
  await gateway.startAgent();
  // Warms up, until hot code is compiled.
  await post({ url, headers, rate, seconds: 15 });
  console.log(`${rate} posts/s for ${seconds} s, from the post to the receiver`);
  for (let k = 0; k < rounds; k++) {
    await receiver.reset();
    await post({ url, headers, rate });
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const { p50, p95, p99, unique } = await receiver.report();
    console.log(`  ${unique} delivered, p50 ${ms(p50)}, p95 ${ms(p95)}, p99 ${ms(p99)}`);
  }
  // Posts are measured without an agent, which would compete for the cores.
  for (const { process } of gateway.agents.splice(0)) await process.terminate();
  await post({ url, headers, seconds: 3 });
  const systems = {
    'bare Koa': { url: `http://127.0.0.1:${port}/`, headers: {} },
    gateway: { url, headers },
    'by batches of 500': { url: `${url}/batch`, headers, connections: 4, batch: 500 },
  };
  const measured = new Map<string, (Posted & { statements: number })[]>();
  for (let k = 0; k < rounds; k++)
    for (const [name, system] of Object.entries(systems)) {
      const before = await meter.sample({});
      const posted = await post(system);
      const { statements } = await meter.sample({});
      measured.set(name, [
        ...(measured.get(name) ?? []),
        { ...posted, statements: (statements - before.statements) / posted.posted },
      ]);
    }
  const reference = median(measured.get('bare Koa')!, (it) => it.rate);
  console.log(`${connections} connections, ${seconds} s, median of ${rounds} rounds`);
  for (const [name, all] of measured) {
    const it = median(all, (one) => one.rate);
    console.log(
      `  ${name.padEnd(17)} ${round(it.rate)} events/s (${ratio(it.rate, reference.rate)}), p50 ${ms(it.p50)}, p95 ${ms(it.p95)}, p99 ${ms(it.p99)}, ${it.statements.toFixed(3)} statements an event`,
    );
  }
} finally {
  bare.disconnect();
  receiver.close();
  await gateway.close();
  await meter.close();
  await Promise.all([postgres.close(), redis.close()]);
}
