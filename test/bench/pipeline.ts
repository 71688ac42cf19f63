// The benchmark of the whole pipeline: a real Kafka, Postgres, Redis and a receiver on this
// machine; the gateway's command line with default settings (except the ingest rate), with and
// without a transform, and the handwritten ceiling, in one run. Run: npm run bench -- pipeline
// [--drain 40000] [--rounds 3] [--seconds 10] [--rates 50,200,1000] [--idle 20]
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { heldBy } from '../support/memory.js';
import { median, ms, ratio, round } from './figures.js';
import { openGround, type Measured } from './ground.js';
import { costOf } from './measure.js';
import { ceiling, gateway, type System } from './systems.js';

const { values } = parseArgs({
  options: {
    drain: { type: 'string', default: '40000' },
    rounds: { type: 'string', default: '3' },
    seconds: { type: 'string', default: '10' },
    rates: { type: 'string', default: '50,200,1000' },
    idle: { type: 'string', default: '20' },
  },
});
const DRAIN = Number(values.drain);
const ROUNDS = Number(values.rounds);
const SECONDS = Number(values.seconds);
const RATES = values.rates.split(',').filter(Boolean).map(Number);
const FIRST = 10_000;
const TRANSFORM =
  'function transform(payload) { return { event_type: payload.event_type, data: payload.data }; }';

const ground = await openGround();
const { topics, receiver, meter } = ground;
const systems: System[] = [];

try {
  console.log(`${ground.banner}\n`);
  const top = await ceiling(topics, receiver.url);
  const plain = await gateway('gateway', topics, receiver.url);
  const transformed = await gateway('with a transform', topics, receiver.url, {
    bodyFunction: TRANSFORM,
  });
  systems.push(top, plain, transformed);

  const drains = new Map<System, Measured[]>(systems.map((system) => [system, []]));
  for (let k = 0; k < ROUNDS; k++) {
    for (const system of systems) drains.get(system)!.push(await ground.drain(system, DRAIN));
  }
  const best = median(drains.get(top)!, ({ rate }) => rate ?? 0);
  console.log(`drain of ${DRAIN} preloaded messages, median of ${ROUNDS} rounds`);
  for (const system of systems)
    print(
      system.name,
      median(drains.get(system)!, ({ rate }) => rate ?? 0),
      best,
    );
  await printFirst();

  for (const rate of RATES) {
    console.log(`\n${rate} events/s for ${SECONDS} s, median of ${ROUNDS} rounds by p99`);
    const rates = new Map<System, Measured[]>(systems.map((system) => [system, []]));
    for (let k = 0; k < ROUNDS; k++)
      for (const system of systems)
        rates.get(system)!.push(await ground.steady(system, rate, SECONDS));
    const reference = median(rates.get(top)!, ({ p99 }) => p99 ?? 0);
    for (const system of systems)
      print(
        system.name,
        median(rates.get(system)!, ({ p99 }) => p99 ?? 0),
        reference,
      );
  }
  await printIdle(plain, Number(values.idle));
} finally {
  for (const system of systems) await system.close();
  await ground.close();
}

/**
 * Measures the first events after `migrate up`, when the tables have no statistics, and as many in
 * the same database later. A process needs a second to warm up, which matters in a short drain.
 * Each round has a new database.
 */
async function printFirst(): Promise<void> {
  const first: Measured[] = [];
  const later: Measured[] = [];
  for (let k = 0; k < ROUNDS; k++) {
    const fresh = await gateway('fresh', topics, receiver.url);
    try {
      first.push(await ground.drain(fresh, FIRST));
      // Lets the tables grow and Postgres gather statistics.
      await ground.drain(fresh, DRAIN);
      later.push(await ground.drain(fresh, FIRST));
    } finally {
      await fresh.close();
    }
  }
  const [one, other] = [
    median(first, ({ rate }) => rate ?? 0),
    median(later, ({ rate }) => rate ?? 0),
  ];
  console.log(
    `\nfirst ${FIRST} events after migrate up, median of ${ROUNDS} databases: ${round(one.rate)} events/s, ${ratio(one.rate, other.rate)} of the ${round(other.rate)} events/s of as many later`,
  );
}

async function printIdle(system: System, seconds: number): Promise<void> {
  if (seconds === 0) return;
  const pid = await system.start();
  // By then the after-effects of the start (compilers, garbage collection) are over.
  await sleep(15_000);
  const before = await meter.sample({ system: pid });
  await sleep(seconds * 1000);
  const {
    cpu,
    statements,
    kvCommands,
    seconds: passed,
  } = costOf(before, await meter.sample({ system: pid }));
  const memory = heldBy(pid)?.rssMb ?? 0;
  await system.stop();
  console.log(
    `\nidle agent: ${round(memory)} MB, ${(((cpu['system'] ?? 0) / passed) * 100).toFixed(2)} % of a core, ${(statements / passed).toFixed(2)} statements/s, ${(kvCommands / passed).toFixed(2)} KV commands/s`,
  );
}

function print(name: string, measured: Measured, reference: Measured): void {
  const { rate, p50, p95, p99, cost, events, peakMb } = measured;
  const per = (amount: number, digits: number) => (amount / events).toFixed(digits);
  const cpu = ['system', 'postgres', 'redis', 'kafka']
    .map((part) => `${part} ${(((cost.cpu[part] ?? 0) / events) * 1000).toFixed(3)}`)
    .join(', ');
  const isRate = measured.events === DRAIN;
  const figure = isRate
    ? `${round(rate)} events/s (${ratio(rate, reference.rate)})`
    : `p50 ${ms(p50)} (${ratio(p50, reference.p50)}), p95 ${ms(p95)} (${ratio(p95, reference.p95)}), p99 ${ms(p99)} (${ratio(p99, reference.p99)})`;
  console.log(`  ${name.padEnd(17)} ${figure}`);
  console.log(
    `  ${''.padEnd(17)} CPU s per 1,000: ${cpu}; per event: ${per(cost.statements, 2)} statements, ${per(cost.kvCommands, 2)} KV commands, ${per(cost.walBytes / 1024, 2)} kB WAL; ${round(peakMb)} MB at most`,
  );
}
