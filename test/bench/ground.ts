import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { kafka, type KafkaBroker } from '../support/kafka.js';
import { heldBy } from '../support/memory.js';
import { own } from '../support/services.js';
import { KAFKA_VERSION } from '../support/start/kafka-jars.js';
import { costOf, Meter, type Cost, type Sample } from './measure.js';
import { produce, startReceiver, type Receiver, type Report, type System } from './systems.js';

export interface Measured extends Report {
  readonly cost: Cost;
  readonly events: number;
  /** The most resident memory of the system, without the processes of the sandbox. */
  readonly peakMb: number;
}

/** The environment of the measured systems: private services on this machine and a receiver. */
export interface Ground {
  readonly banner: string;
  readonly topics: KafkaBroker;
  readonly receiver: Receiver;
  readonly meter: Meter;
  /** The counters now, and the CPU of the services and of these processes. */
  sample(pids: Readonly<Record<string, number>>): Promise<Sample>;
  /**
   * Waits until the receiver has `count` requests, or as many distinct events. Throws if none
   * arrives for 30 seconds.
   */
  arrived(count: number, of?: 'count' | 'unique'): Promise<Report>;
  /**
   * Preloads messages while the system is stopped, starts it, and measures the middle 80 % at the
   * receiver.
   */
  drain(system: System, count: number): Promise<Measured>;
  /**
   * Produces at a rate (events per second) to the running system and measures latency from the
   * producer's timestamp to the receiver.
   */
  steady(system: System, rate: number, seconds: number): Promise<Measured>;
  close(): Promise<void>;
}

export async function openGround(): Promise<Ground> {
  const postgres = await own.postgres({
    shared_preload_libraries: 'pg_stat_statements',
    shared_buffers: '256MB',
    max_wal_size: '4GB',
  });
  const redis = await own.redis();
  const broker = await own.kafka({ compiler: 'full' });
  process.env['TEST_POSTGRES_URL'] = postgres.url;
  process.env['TEST_REDIS_URL'] = redis.url;
  const topics = await kafka({ server: broker });
  const receiver = await startReceiver();
  const meter = new Meter(postgres.url, redis.url);
  await meter.open();
  const machine = `node ${process.version}, ${os.cpus().length} cores (${os.cpus()[0]?.model.trim()})`;
  let made = 0;

  const send = async (topic: string, count: number, rate: number) => {
    await produce(topics, topic, { count, rate, from: made });
    made += count;
  };
  const sample: Ground['sample'] = (pids) =>
    meter.sample({ postgres: postgres.pid, redis: redis.pid, kafka: broker.pid, ...pids });
  const sampled = (pid: number) => sample({ system: pid });

  async function arrived(count: number, of: 'count' | 'unique' = 'unique'): Promise<Report> {
    let last = -1;
    let lastMs = performance.now();
    for (;;) {
      const report = await receiver.report();
      const there = report[of];
      if (there >= count) return report;
      if (there !== last) lastMs = performance.now();
      last = there;
      if (performance.now() - lastMs > 30_000)
        throw new Error(`${there} of ${count} events arrived, and none for 30 s`);
      await sleep(100);
    }
  }

  return {
    banner: `${machine}, ${await meter.versions()}, Kafka ${KAFKA_VERSION}; 1 KB messages, 8 partitions, one endpoint`,
    topics,
    receiver,
    meter,
    sample,
    arrived,
    async drain(system, count) {
      await send(system.topic, count, 0);
      await receiver.reset();
      await calm();
      const pid = await system.start();
      const before = await sampled(pid);
      const report = await arrived(count);
      const after = await sampled(pid);
      const peakMb = heldBy(pid)?.peakMb ?? 0;
      await system.stop();
      return { ...report, cost: costOf(before, after), events: count, peakMb };
    },
    async steady(system, rate, seconds) {
      const pid = await system.start();
      // The first messages start the consumer group and open connections.
      await receiver.reset();
      await send(system.topic, 100, 50);
      await arrived(100);
      await calm();
      await receiver.reset();
      const count = rate * seconds;
      const before = await sampled(pid);
      await send(system.topic, count, rate);
      const report = await arrived(count);
      const after = await sampled(pid);
      const peakMb = heldBy(pid)?.peakMb ?? 0;
      await system.stop();
      return { ...report, cost: costOf(before, after), events: count, peakMb };
    },
    async close() {
      receiver.close();
      await meter.close();
      await topics.close();
      await Promise.all([postgres.close(), redis.close(), broker.close()]);
    },
  };
}

/** Lets checkpoints and compilers of the previous phase finish. */
async function calm(): Promise<void> {
  await sleep(1_500);
}
