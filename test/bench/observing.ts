// The cost of observability: the same drain without it, with metrics scraped every second, and with
// the otel tracer at sample rates 0.01 and 1 to a collector in a separate process, interleaved in
// one run. Run: npm run bench -- observing [--drain 40000] [--rounds 5] [--only off,otel-0.01]
import { fork } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import { parseArgs } from 'node:util';
import { round } from './figures.js';
import { openGround, type Measured } from './ground.js';
import { gateway, type System } from './systems.js';

const { values } = parseArgs({
  options: {
    drain: { type: 'string', default: '40000' },
    rounds: { type: 'string', default: '5' },
    only: { type: 'string' },
  },
});
const DRAIN = Number(values.drain);
const ROUNDS = Number(values.rounds);
const SCRAPE_EVERY_MS = 1_000;

const collector = fork(new URL('collector.mjs', import.meta.url));
const [{ port }] = (await once(collector, 'message')) as [{ port: number }];
const metrics = {
  metrics: { enabled: true, metrics_backend: 'pullmetrics' },
  enable_feature_flag: ['pullmetrics'],
};
const otel = (rate: number) => ({
  tracer: { type: 'otel', otel: { collector_url: `http://127.0.0.1:${port}`, sample_rate: rate } },
});

/** The first variant is the baseline. */
const variants: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  off: {},
  metrics,
  'otel-0.01': otel(0.01),
  'otel-1': otel(1),
  'metrics+otel-0.01': { ...metrics, ...otel(0.01) },
};
const names = values.only?.split(',') ?? Object.keys(variants);
const unknown = names.find((name) => !(name in variants));
if (unknown !== undefined)
  throw new Error(`--only knows no ${unknown}; it takes ${Object.keys(variants).join(', ')}`);

const ground = await openGround();
const systems: System[] = [];
try {
  console.log(`${ground.banner}\n`);
  for (const name of names)
    systems.push(
      await gateway(name, ground.topics, ground.receiver.url, { settings: variants[name]! }),
    );
  // The first drain of a database is not comparable: its tables have no statistics.
  for (const system of systems) await ground.drain(system, Math.min(DRAIN, 10_000));

  const drains = new Map<System, Measured[]>(systems.map((system) => [system, []]));
  const spanBytes = new Map<System, number>();
  const loads: number[] = [];
  for (let k = 0; k < ROUNDS; k++) {
    // Each round starts with another variant, so that none always follows the same one.
    for (let at = 0; at < systems.length; at++) {
      const system = systems[(k + at) % systems.length]!;
      loads.push(os.loadavg()[0]!);
      const before = await received();
      const scraping = setInterval(() => void scrape(system), SCRAPE_EVERY_MS);
      drains.get(system)!.push(await ground.drain(system, DRAIN));
      clearInterval(scraping);
      spanBytes.set(system, (spanBytes.get(system) ?? 0) + (await received()) - before);
    }
  }
  console.log(
    `drain of ${DRAIN} preloaded messages, median of ${ROUNDS} interleaved rounds; load of the machine ${Math.min(...loads).toFixed(1)}–${Math.max(...loads).toFixed(1)}`,
  );
  const reference = drains.get(systems[0]!)!;
  for (const system of systems) {
    const all = drains.get(system)!;
    const cpu = (measured: Measured) => ((measured.cost.cpu['system'] ?? 0) / DRAIN) * 1000;
    const rate = ({ rate: it }: Measured) => it ?? 0;
    const pairs = all.map((measured, k) => rate(measured) / rate(reference[k]!));
    const cpuPairs = all.map((measured, k) => cpu(measured) / cpu(reference[k]!));
    console.log(
      `  ${system.name.padEnd(18)} ${round(middle(all.map(rate))).padStart(6)} events/s (${middle(pairs).toFixed(3)}× of the same round: ${shown(pairs)});\n` +
        `${' '.repeat(21)}CPU s per 1,000: ${middle(all.map(cpu)).toFixed(4)} (${middle(cpuPairs).toFixed(3)}×: ${shown(cpuPairs)}); ` +
        `${((spanBytes.get(system) ?? 0) / DRAIN / ROUNDS).toFixed(0)} B of spans per event`,
    );
  }
} finally {
  for (const system of systems) await system.close();
  await ground.close();
  collector.disconnect();
}

/** The median; of an even number, the mean of the middle two. */
function middle(all: readonly number[]): number {
  const sorted = [...all].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return (sorted[Math.floor(half)]! + sorted[Math.ceil(half) - 1]!) / 2;
}

function shown(ratios: readonly number[]): string {
  return ratios.map((it) => it.toFixed(2)).join(' ');
}

/** Bytes of spans that the collector has received so far. */
async function received(): Promise<number> {
  collector.send({});
  return ((await once(collector, 'message'))[0] as { bytes: number }).bytes;
}

async function scrape({ agentPort }: System): Promise<void> {
  if (agentPort === undefined || agentPort() === undefined) return;
  await fetch(`http://127.0.0.1:${agentPort()}/metrics`)
    .then((response) => response.text())
    .catch(() => undefined);
}
