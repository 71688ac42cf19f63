import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { database, type Database } from '../support/database.js';
import { randomName, type KafkaBroker } from '../support/kafka.js';
import { kafkaSource, production, subscribed, type Production } from '../support/production.js';

/** A system that delivers messages of a topic to the receiver. */
export interface System {
  readonly name: string;
  readonly topic: string;
  /** The agent's `/metrics` port; undefined while it is stopped. */
  agentPort?(): number | undefined;
  /** Resolves with the pid. */
  start(): Promise<number>;
  stop(): Promise<void>;
  /** Recorded rows, which prove that nothing was skipped. */
  recorded(): Promise<number>;
  close(): Promise<void>;
}

const PARTITIONS = 8;
const file = (name: string) => fileURLToPath(new URL(name, import.meta.url));

/** The handwritten minimum of the main job. Each `start` adds a process. */
export async function ceiling(
  broker: KafkaBroker,
  receiver: string,
  partitions = PARTITIONS,
): Promise<System> {
  const own: Database = await database();
  const topic = await broker.topic({ partitions });
  const env = {
    ...process.env,
    BROKERS: broker.listeners.plaintext,
    TOPIC: topic,
    GROUP: randomName('group'),
    RECEIVER: receiver,
    DATABASE_URL: own.url,
  };
  const children: ChildProcess[] = [];
  const stop = async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null) continue;
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
  };
  return {
    name: 'ceiling',
    topic,
    start: () => {
      const child = spawn(process.execPath, [file('ceiling.mjs')], {
        env,
        stdio: ['ignore', 'inherit', 'inherit'],
      });
      children.push(child);
      return Promise.resolve(child.pid!);
    },
    stop,
    recorded: async () =>
      (
        await own.rows<{ n: number }>(
          `select count(*)::int as n from deliveries where status = 'success'`,
        )
      )[0]!.n,
    close: async () => {
      await stop();
      await own.close();
    },
  };
}

/**
 * The gateway's command line with default settings, except for the ingest rate and the loopback
 * receiver.
 */
export async function gateway(
  name: string,
  broker: KafkaBroker,
  receiver: string,
  {
    bodyFunction,
    settings,
  }: { bodyFunction?: string; settings?: Readonly<Record<string, unknown>> } = {},
): Promise<System & { readonly production: Production }> {
  const { NODE_OPTIONS = '' } = process.env;
  const made: Production = await production({
    agents: 0,
    env: { NODE_OPTIONS },
    ...(settings ? { settings } : {}),
  });
  await subscribed(made, receiver);
  const topic = await kafkaSource(
    made,
    broker,
    PARTITIONS,
    bodyFunction !== undefined ? { body_function: bodyFunction } : {},
  );
  return {
    name,
    topic,
    production: made,
    agentPort: () => made.agents[0]?.port,
    start: async () => (await made.startAgent()).process.pid,
    stop: async () => {
      for (const { process } of made.agents.splice(0)) await process.terminate();
    },
    recorded: async () =>
      (
        await made.database.rows<{ n: number }>(
          `select count(*)::int as n from event_deliveries where status = 'success'`,
        )
      )[0]!.n,
    close: () => made.close(),
  };
}

export interface Report {
  readonly count: number;
  readonly unique: number;
  /** Events per second over the middle 80 %. */
  readonly rate: number | null;
  readonly p50: number | null;
  readonly p95: number | null;
  readonly p99: number | null;
}

export interface Receiver {
  readonly url: string;
  readonly pid: number;
  reset(): Promise<void>;
  report(): Promise<Report>;
  /** `report` and `reset` in one step. */
  take(): Promise<Report>;
  close(): void;
}

export async function startReceiver(): Promise<Receiver> {
  const child = fork(file('receiver.mjs'));
  const [{ port }] = (await once(child, 'message')) as [{ port: number }];
  const ask = async (question: object) => {
    child.send(question);
    return (await once(child, 'message'))[0] as Report;
  };
  return {
    url: `http://127.0.0.1:${port}/hook`,
    pid: child.pid!,
    reset: async () => void (await ask({ reset: true })),
    report: () => ask({ report: true }),
    take: () => ask({ take: true }),
    close: () => child.disconnect(),
  };
}

/** Writes messages to a topic in a separate process; resolves when the broker has them all. */
export async function produce(
  broker: KafkaBroker,
  topic: string,
  { count, rate, from }: { count: number; rate: number; from: number },
): Promise<void> {
  const args = [
    file('producer.mjs'),
    broker.listeners.plaintext,
    topic,
    String(count),
    String(rate),
    String(from),
  ];
  const [code] = (await once(
    spawn(process.execPath, args, { stdio: ['ignore', 'inherit', 'inherit'] }),
    'exit',
  )) as [number];
  if (code !== 0) throw new Error(`the producer exited ${code}`);
}
