// The benchmark of the whole way: a real Kafka, Postgres, Redis and a receiver on this machine; the gateway by its command line with its default
// settings (the ingest rate aside), with and without a transform, beside the hand-written ceiling, in one run.
// Run: npm run bench -- [--drain 40000] [--rounds 3] [--seconds 10] [--rates 50,200,1000] [--idle 20]
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { kafka } from '../support/kafka.js';
import { own } from '../support/services.js';
import { KAFKA_VERSION } from '../support/start/kafka-jars.js';
import { costOf, Meter, type Cost } from './measure.js';
import { ceiling, gateway, produce, startReceiver, type Report, type System } from './systems.js';

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
const TRANSFORM = 'function transform(payload) { return { event_type: payload.event_type, data: payload.data }; }';

interface Measured extends Report {
  readonly cost: Cost;
  readonly events: number;
}

const postgres = await own.postgres({ shared_preload_libraries: 'pg_stat_statements', shared_buffers: '256MB', max_wal_size: '4GB' });
const redis = await own.redis();
const broker = await own.kafka({ compiler: 'full' });
process.env['TEST_POSTGRES_URL'] = postgres.url;
process.env['TEST_REDIS_URL'] = redis.url;
const topics = await kafka({ server: broker });
const receiver = await startReceiver();
const meter = new Meter(postgres.url, redis.url);
const systems: System[] = [];
let made = 0;

try {
  await meter.open();
  const machine = `node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()})`;
  console.log(`${machine}, ${await meter.versions()}, Kafka ${KAFKA_VERSION}; 1 KB messages, 8 partitions, one endpoint\n`);

  const top = await ceiling(topics, receiver.url);
  const plain = await gateway('gateway', topics, receiver.url);
  const transformed = await gateway('with a transform', topics, receiver.url, TRANSFORM);
  systems.push(top, plain, transformed);

  const drains = new Map<System, Measured[]>(systems.map((system) => [system, []]));
  for (let k = 0; k < ROUNDS; k++) {
    for (const system of systems) drains.get(system)!.push(await drain(system, DRAIN));
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
    for (let k = 0; k < ROUNDS; k++) for (const system of systems) rates.get(system)!.push(await steady(system, rate));
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
  receiver.close();
  await meter.close();
  await topics.close();
  await Promise.all([postgres.close(), redis.close(), broker.close()]);
}

/**
 * The first events after `migrate up`, when the tables have no statistics, beside as many in the same database later: a process needs a second to
 * warm up, which counts in a short drain. Each round has a database of its own.
 */
async function printFirst(): Promise<void> {
  const first: Measured[] = [];
  const later: Measured[] = [];
  for (let k = 0; k < ROUNDS; k++) {
    const fresh = await gateway('fresh', topics, receiver.url);
    try {
      first.push(await drain(fresh, FIRST));
      // Until the tables have grown and Postgres has gathered statistics of them.
      await drain(fresh, DRAIN);
      later.push(await drain(fresh, FIRST));
    } finally {
      await fresh.close();
    }
  }
  const [one, other] = [median(first, ({ rate }) => rate ?? 0), median(later, ({ rate }) => rate ?? 0)];
  console.log(
    `\nfirst ${FIRST} events after migrate up, median of ${ROUNDS} databases: ${round(one.rate)} events/s, ${ratio(one.rate, other.rate)} of the ${round(other.rate)} events/s of as many later`,
  );
}

/** Preloads messages while the system is stopped, starts it, and measures the middle 80 % at the receiver. */
async function drain(system: System, count: number): Promise<Measured> {
  await produce(topics, system.topic, { count, rate: 0, from: made });
  made += count;
  await receiver.reset();
  await calm();
  const pids = { postgres: postgres.pid, redis: redis.pid, kafka: broker.pid };
  const pid = await system.start();
  const all = { ...pids, system: pid };
  const before = await meter.sample(all);
  const report = await arrived(count);
  const after = await meter.sample(all);
  await system.stop();
  return { ...report, cost: costOf(before, after), events: count };
}

/** Produces at a rate to the running system and measures latency from the producer's stamp to the receiver. */
async function steady(system: System, rate: number): Promise<Measured> {
  const pid = await system.start();
  // The first messages bring the consumer group up and open connections.
  await receiver.reset();
  await produce(topics, system.topic, { count: 100, rate: 50, from: made });
  made += 100;
  await arrived(100);
  await calm();
  await receiver.reset();
  const all = { postgres: postgres.pid, redis: redis.pid, kafka: broker.pid, system: pid };
  const count = rate * SECONDS;
  const before = await meter.sample(all);
  await produce(topics, system.topic, { count, rate, from: made });
  made += count;
  const report = await arrived(count);
  const after = await meter.sample(all);
  await system.stop();
  return { ...report, cost: costOf(before, after), events: count };
}

/** Waits until the receiver has so many distinct events. Throws when none arrives for 30 seconds. */
async function arrived(count: number): Promise<Report> {
  let last = -1;
  let lastMs = performance.now();
  for (;;) {
    const report = await receiver.report();
    if (report.unique >= count) return report;
    if (report.unique !== last) lastMs = performance.now();
    last = report.unique;
    if (performance.now() - lastMs > 30_000) throw new Error(`${report.unique} of ${count} events arrived, and none for 30 s`);
    await sleep(100);
  }
}

/** Lets checkpoints and compilers of the phase before end. */
async function calm(): Promise<void> {
  await sleep(1_500);
}

async function printIdle(system: System, seconds: number): Promise<void> {
  if (seconds === 0) return;
  const pid = await system.start();
  // What a start leaves behind (compilers, the collector) is over by then.
  await sleep(15_000);
  const before = await meter.sample({ system: pid });
  await sleep(seconds * 1000);
  const { cpu, statements, kvCommands, seconds: passed } = costOf(before, await meter.sample({ system: pid }));
  await system.stop();
  console.log(
    `\nidle agent: ${(((cpu['system'] ?? 0) / passed) * 100).toFixed(2)} % of a core, ${(statements / passed).toFixed(2)} statements/s, ${(kvCommands / passed).toFixed(2)} KV commands/s`,
  );
}

function print(name: string, measured: Measured, reference: Measured): void {
  const { rate, p50, p95, p99, cost, events } = measured;
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
    `  ${''.padEnd(17)} CPU s per 1,000: ${cpu}; per event: ${per(cost.statements, 2)} statements, ${per(cost.kvCommands, 2)} KV commands, ${per(cost.walBytes / 1024, 2)} kB WAL`,
  );
}

function median<T>(all: readonly T[], by: (one: T) => number): T {
  return [...all].sort((a, b) => by(a) - by(b))[Math.floor(all.length / 2)]!;
}

function round(value: number | null): string {
  return Math.round(value ?? 0).toLocaleString('en');
}

function ms(value: number | null): string {
  return `${(value ?? 0).toFixed(1)} ms`;
}

function ratio(value: number | null, reference: number | null): string {
  return `${((value ?? 0) / (reference || 1)).toFixed(2)}×`;
}
