// The soak test: half the capacity of the machine for half an hour, through Kafka and a transform
// function, with continuous sampling for leaks. Run: npm run bench -- soak [--minutes 30] [--rate
// 0] [--drain 20000] [--pending 0]
import fs from 'node:fs';
import http from 'node:http';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { scrape } from '../support/exposition.js';
import { heldBy, type Held } from '../support/memory.js';
import { makePending } from '../support/pending.js';
import { loopback } from '../support/ports.js';
import { processes } from '../support/processes.js';
import { ms, round, slopePerHour } from './figures.js';
import { openGround } from './ground.js';
import { gateway, produce, type Report } from './systems.js';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    rate: { type: 'string', default: '0' },
    drain: { type: 'string', default: '20000' },
    pending: { type: 'string', default: '0' },
  },
});
const MINUTES = Number(values.minutes);
const DRAIN = Number(values.drain);
const PENDING = Number(values.pending);
const MINUTE_MS = 60_000;
const SCRAPE_MS = 1_000;
/** Minutes in which code is compiled and caches fill; the slope excludes them. */
const WARM_UP = Math.min(2, Math.floor(MINUTES / 3));
const TRANSFORM =
  'function transform(payload) { return { event_type: payload.event_type, data: payload.data }; }';
const METRICS = {
  metrics: { enabled: true, metrics_backend: 'pullmetrics' },
  enable_feature_flag: ['pullmetrics'],
};

interface Look {
  readonly heapMb: number;
  readonly lagP99Ms: number;
  readonly lagMaxMs: number;
}

interface Minute {
  readonly held: Held;
  readonly sandboxMb: number;
  readonly looks: readonly Look[];
  readonly report: Report;
}

const ground = await openGround();
const silent = http.createServer(() => undefined);
const system = await gateway('soak', ground.topics, ground.receiver.url, {
  bodyFunction: TRANSFORM,
  settings: METRICS,
});
try {
  console.log(`${ground.banner}\n`);
  let expected = 0;
  let rate = Number(values.rate);
  if (rate === 0) {
    const { rate: most } = await ground.drain(system, DRAIN);
    expected += DRAIN;
    rate = Math.floor((most ?? 0) / 2);
    console.log(
      `a drain of ${round(DRAIN)}: ${round(most)} events/s; the load is half of that, ${round(rate)} events/s`,
    );
  }
  if (PENDING > 0) {
    const { uid } = await system.production.api('POST', '/endpoints', {
      name: 'silent',
      url: `http://127.0.0.1:${await loopback(silent)}/`,
    });
    await makePending(system.production.database, uid, PENDING);
    console.log(`beside it ${round(PENDING)} deliveries are due to an endpoint that never answers`);
  }
  const pid = await system.start();
  await ground.receiver.take();
  const count = Math.round(rate * 60 * MINUTES);
  const producing = produce(ground.topics, system.topic, { count, rate, from: expected });
  expected += count;
  const minutes = await watch(pid, system.agentPort!()!, MINUTES);
  await producing;
  const rest = await last(count - minutes.reduce((sum, { report }) => sum + report.count, 0));
  await settled(expected);
  print(minutes);
  judge(minutes, { count, expected, rest });
} finally {
  await system.close();
  silent.closeAllConnections();
  silent.close();
  await ground.close();
}

/** Scrapes once a second, and records a summary once a minute. */
async function watch(pid: number, port: number, minutes: number): Promise<Minute[]> {
  const all: Minute[] = [];
  const beganMs = performance.now();
  for (let minute = 1; minute <= minutes; minute++) {
    const looks: Look[] = [];
    while (performance.now() - beganMs < minute * MINUTE_MS) {
      looks.push(await look(port));
      await sleep(SCRAPE_MS - ((performance.now() - beganMs) % SCRAPE_MS));
    }
    const held = heldBy(pid);
    if (!held) throw new Error('the soak reads /proc, which this system does not have');
    const one = { held, sandboxMb: childrenMb(pid), looks, report: await ground.receiver.take() };
    all.push(one);
    process.stderr.write(`minute ${minute}: ${shown(minute, one).join(' ')}\n`);
  }
  return all;
}

async function look(port: number): Promise<Look> {
  const metrics = await scrape(port);
  const lag = (percentile: string) =>
    (metrics.sum('nodejs_eventloop_lag_seconds', { percentile }) ?? NaN) * 1000;
  return {
    heapMb: (metrics.sum('nodejs_heap_size_used_bytes') ?? NaN) / 2 ** 20,
    lagP99Ms: lag('99'),
    lagMaxMs: lag('100'),
  };
}

/** Resident megabytes of the agent's children, which run transform functions. */
function childrenMb(pid: number): number {
  const children = [...processes()].flatMap(([child, { parent }]) =>
    parent === pid ? [child] : [],
  );
  return children.reduce((sum, child) => {
    try {
      return (
        sum +
        Number(
          /^VmRSS:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${child}/status`, 'utf8'))?.[1] ?? 0,
        ) /
          1024
      );
    } catch {
      return sum; // it has ended meanwhile
    }
  }, 0);
}

/** Counts arrivals after the last minute. Gives up after 30 seconds without one. */
async function last(missing: number): Promise<number> {
  let came = 0;
  for (let idle = 0; came < missing && idle < 300;) {
    await sleep(100);
    const { count } = await ground.receiver.take();
    came += count;
    idle = count > 0 ? 0 : idle + 1;
  }
  return came;
}

/** Waits until `wanted` deliveries are recorded. Throws after 30 seconds without a new one. */
async function settled(wanted: number): Promise<void> {
  let recorded = -1;
  for (let idle = 0; idle < 300;) {
    const now = await system.recorded();
    if (now >= wanted) return;
    idle = now > recorded ? 0 : idle + 1;
    recorded = now;
    await sleep(100);
  }
  throw new Error(`${recorded} of ${wanted} deliveries were recorded, and none for 30 s`);
}

function shown(minute: number, { held, sandboxMb, looks, report }: Minute): string[] {
  const heaps = looks.map(({ heapMb }) => heapMb);
  return [
    String(minute),
    round(report.count),
    `${Math.min(...heaps).toFixed(1)}–${Math.max(...heaps).toFixed(0)}`,
    held.rssMb.toFixed(0),
    sandboxMb.toFixed(0),
    String(held.handles),
    String(held.sockets),
    `${Math.max(...looks.map(({ lagP99Ms }) => lagP99Ms)).toFixed(0)}`,
    ms(report.p50),
    ms(report.p99),
  ];
}

function print(minutes: readonly Minute[]): void {
  console.log(
    `\n${os.cpus().length} cores (${os.cpus()[0]?.model.trim()}), node ${process.version}, ${MINUTES} minutes\n`,
  );
  console.log(
    '| Minute | Arrived | Heap MB, floor–top | RSS MB | Sandbox MB | Handles | Sockets | Loop lag p99 ms, worst second | p50 | p99 |',
  );
  console.log(`|${'---|'.repeat(10)}`);
  for (const [k, minute] of minutes.entries())
    console.log(`| ${shown(k + 1, minute).join(' | ')} |`);
}

/** Prints the result; the process fails if the counts do not balance or a resource grows. */
function judge(
  minutes: readonly Minute[],
  { count, expected, rest }: { count: number; expected: number; rest: number },
): void {
  const arrived = minutes.reduce((sum, { report }) => sum + report.count, 0) + rest;
  const judged = minutes.slice(WARM_UP);
  const floors = judged.map(({ looks }) => Math.min(...looks.map(({ heapMb }) => heapMb)));
  const slope = slopePerHour(floors, MINUTE_MS);
  const [first, final] = [judged[0]!.held, judged.at(-1)!.held];
  const peak = Math.max(...minutes.map(({ held }) => held.peakMb));
  console.log(
    `\nproduced ${round(count)}, arrived ${round(arrived)} (${round(arrived - count)} twice), ${round(expected)} recorded as delivered with those of the drain\n` +
      `floor of the heap from minute ${WARM_UP + 1} on: ${floors[0]!.toFixed(1)} → ${floors.at(-1)!.toFixed(1)} MB, slope ${slope.toFixed(1)} MB an hour\n` +
      `handles ${first.handles} → ${final.handles}, sockets ${first.sockets} → ${final.sockets}; RSS ${final.rssMb.toFixed(0)} MB, at most ${peak.toFixed(0)} MB, without the processes of the sandbox`,
  );
  // Connections vary with the load; a leak of one per second would be thousands.
  const problems = [
    ...(arrived < count ? [`${round(count - arrived)} events did not arrive`] : []),
    ...(MINUTES >= 20 && slope > 20 ? [`the heap grows by ${slope.toFixed(1)} MB an hour`] : []),
    ...(final.handles > first.handles + 50
      ? [`handles grew by ${final.handles - first.handles}`]
      : []),
  ];
  console.log(
    problems.length === 0
      ? 'nothing grows, and nothing is missing'
      : `FAILED: ${problems.join('; ')}`,
  );
  if (problems.length > 0) process.exitCode = 1;
}
