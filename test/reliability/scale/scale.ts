import crypto from 'node:crypto';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { numbered } from '../../support/census.js';
import { endAll } from '../../support/end-all.js';
import { freePorts } from '../../support/ports.js';
import { succeed } from '../../support/production.js';
import { redis } from '../../support/redis.js';
import { services } from '../../support/services.js';
import { discard, spare, tempFolder } from '../../support/start/keep.js';
import { until } from '../../support/until.js';
import { atRest } from '../proof/at-rest.js';
import { topic, topicSource, type Topic } from '../proof/brokers.js';
import type { Journal } from '../proof/journal.js';
import { createProject, listLines } from '../proof/projects.js';
import { startReceiver, type Receiver } from '../proof/receiver.js';
import { reconcile, type Report } from '../proof/reconcile.js';
import { noneLine } from '../proof/row-lines.js';
import { restart, startStores, type ShardStore, type StoreOptions } from '../proof/stores.js';
import { supervised, type Supervised } from '../proof/supervised.js';

export type Fault = 'kill an agent' | 'crash a Postgres' | 'move a project' | 'rebalance';

export interface ScaleOptions extends StoreOptions {
  readonly messages: number;
  /** In turn, evenly spread over the messages. Those that the stores cannot have are left out. */
  readonly faults: readonly Fault[];
  readonly tell?: (line: string) => void;
}

export interface Scale {
  readonly report: Report;
  /** Names and versions. */
  readonly services: string;
  /** From the first message to the last arrival. */
  readonly seconds: number;
  readonly faults: number;
  /** Requests beyond the first of a message. */
  readonly duplicates: number;
  readonly lost: number;
  /** Events by shard. */
  readonly events: Readonly<Record<string, number>>;
  /** The folder with the logs of all processes if the report does not balance. */
  readonly logs: string | undefined;
}

/** A project with a Kafka topic as its source and an endpoint. */
interface Project {
  readonly id: string;
  readonly topic: Topic;
  readonly receiver: Receiver;
}

const PROJECTS_PER_SHARD = 2;
const PARTITIONS = 2;
const BATCH = 20;
/** The share of the messages that have not arrived, at most, and of those kept for after the faults. */
const SHARE = 0.1;
const DRAIN_SECONDS = 10;
const PATIENCE_MS = 120_000;
const AGENTS = ['agent-1', 'agent-2'] as const;

/**
 * Runs two agents and a server, started with the built command line, over several shards. Faults
 * and moves happen while messages flow. Then accounts for each message, as the proof does.
 * @throws if the gateway cannot be set up, or a command or a repair fails
 */
export async function runScale(options: ScaleOptions): Promise<Scale> {
  const { messages, tell = () => undefined } = options;
  const closing: (() => unknown)[] = [];
  const logs = tempFolder('scale-logs');
  let keepLogs = true;
  try {
    const stores = await startStores(options);
    closing.push(() => stores.close());
    const { servers, rebalance } = stores;
    await rebalance?.('empty');
    const faults = options.faults.filter(
      (kind) =>
        (kind !== 'crash a Postgres' || servers.length > 0) && (kind !== 'rebalance' || rebalance),
    );
    const kv = await redis();
    closing.push(() => kv.close());
    const folder = tempFolder('scale');
    closing.push(() => discard(folder));
    const [port, ...agentPorts] = (await freePorts(1 + AGENTS.length)) as [number, ...number[]];
    const config = {
      encryption_key: crypto.randomBytes(32).toString('base64'),
      database: stores.settings,
      kv: kv.connection,
      server: { http: { port, bind: '127.0.0.1' } },
      agent: { drain_timeout_seconds: DRAIN_SECONDS },
      delivery: { allowed_networks: ['127.0.0.0/8'] },
      source: { allowed_networks: ['127.0.0.0/8'] },
      instance_ingest_rate: 0,
    };
    await succeed(['migrate', 'up'], { folder, config });
    const run = (...args: string[]) => succeed(args, { folder });
    for (const { name, place } of stores.shards)
      if (place.length > 0) await run('shards', 'add', name, ...place);
    const { api_key: apiKey } = JSON.parse(
      await run('bootstrap', '--email', 'ops@example.com'),
    ) as { api_key: { key: string } };

    const kills: Journal['kills'][number][] = [];
    const unexpectedExits: string[] = [];
    const processes = new Map<string, Supervised>();
    const start = (name: string, ...args: string[]) => {
      const process = supervised(name, {
        args,
        folder,
        logs,
        drainMs: DRAIN_SECONDS * 1000,
        onBroken: (pid, kind, atMs) =>
          void kills.push({ agent: `${os.hostname()}:${pid}`, atMs, untilMs: Date.now(), kind }),
        onUnexpectedExit: (sentence) => void unexpectedExits.push(sentence),
      });
      closing.push(() => process.kill());
      processes.set(name, process);
      process.start();
    };
    start('server', 'server');
    AGENTS.forEach((name, k) => start(name, 'agent', '--port', String(agentPorts[k])));
    await Promise.all([...processes.values()].map((process) => process.ready()));

    const api = { port, key: apiKey.key };
    const kafka = await services.kafka();
    const projects: Project[] = [];
    for (let k = 0; k < PROJECTS_PER_SHARD * stores.shards.length; k++) {
      const made = await topic(kafka, PARTITIONS);
      const receiver = await startReceiver();
      closing.push(() => Promise.all([made.close(), receiver.close()]));
      const id = await createProject(api, {
        shard: shardAt(k).name,
        receiver,
        url: `http://127.0.0.1:${receiver.port}`,
        sources: [topicSource(made, kafka.listeners.plaintext)],
      });
      projects.push({ id, topic: made, receiver });
    }
    const versions = await stores.versions();
    tell(
      `${projects.length} projects on ${stores.shards.length} shards, with ${versions}; ${messages} messages`,
    );

    const produced: Journal['produced'][number][] = [];
    const done: Journal['faults'][number][] = [];
    const moved = new Set<string>();
    const received = () => projects.flatMap(({ receiver }) => receiver.arrivals);
    const arrived = () => projects.reduce((sum, { receiver }) => sum + receiver.arrivals.length, 0);
    const stopping = new AbortController();
    const beganMs = Date.now();
    const producing = produce();
    try {
      await Promise.all([producing, injectFaults()]);
    } finally {
      stopping.abort();
      await producing.catch(() => undefined);
    }
    const offsets = async () => ({
      kafka: (await Promise.all(projects.map((project) => project.topic.offsets()))).flat(),
      sqs: { ready: 0, inFlight: 0 },
    });
    const shards = stores.shards.map(({ rows }) => rows);
    const left = await atRest({ shards, offsets }, { patienceMs: PATIENCE_MS });
    if (left) tell(`nothing moves any more, and there are ${left}`);

    const arrivals = received();
    const journal: Journal = { seed: 0, produced, arrivals, faults: done, kills };
    const { lines } = await reconcile({ journal, rows: stores.rows, shards, offsets });
    const all = [
      ...lines,
      noneLine('processes that ended by themselves', unexpectedExits),
      ...(await listLines(api, [...moved], shards)),
    ];
    const report = { lines: all, isBalanced: all.every(({ ok }) => ok) };
    keepLogs = !report.isBalanced;
    const numbers = new Set(arrivals.map(({ n }) => n));
    const counts = await Promise.all(
      stores.shards.map(async ({ name, rows }) => {
        const [row] = await rows<{ n: number }>('select count(*)::int as n from events');
        return [name, row!.n] as const;
      }),
    );
    return {
      report,
      services: versions,
      seconds: (Math.max(...arrivals.map(({ atMs }) => atMs)) - beganMs) / 1000,
      faults: done.length,
      duplicates: arrivals.length - numbers.size,
      lost: messages - numbers.size,
      events: Object.fromEntries(counts),
      logs: keepLogs ? logs : undefined,
    };

    function shardAt(k: number): ShardStore {
      return stores.shards[k % stores.shards.length]!;
    }

    /** Writes the messages to the topics in turn, as fast as they arrive. Some flow at any time. */
    async function produce(): Promise<void> {
      for (let n = 0, turn = 0; n < messages; turn++) {
        const mustWait = () =>
          n - arrived() >= messages * SHARE ||
          (done.length < faults.length && n >= messages * (1 - SHARE));
        while (mustWait()) await sleep(20, undefined, { signal: stopping.signal });
        stopping.signal.throwIfAborted();
        const project = turn % projects.length;
        const batch = Array.from({ length: Math.min(BATCH, messages - n) }, (_, k) => n + k);
        const taken = await projects[project]!.topic.send(batch.map(numbered));
        produced.push(
          ...batch.map((number, k) => ({
            n: number,
            via: 'kafka' as const,
            project,
            poisoned: false,
            acknowledgedByBroker: taken[k]!,
          })),
        );
        n += batch.length;
      }
    }

    async function injectFaults(): Promise<void> {
      for (const [k, kind] of faults.entries()) {
        const after = Math.floor((messages * (1 - SHARE) * (k + 1)) / (faults.length + 1));
        await until(`${after} messages to arrive`, () => arrived() >= after, {
          withinMs: 600_000,
          everyMs: 10,
        });
        const atMs = Date.now();
        const target = await inject(kind, k);
        done.push({ kind, target, atMs, untilMs: Date.now() });
        const seconds = ((Date.now() - atMs) / 1000).toFixed(1);
        tell(
          `${kind} (${target}) in ${seconds} s; ${produced.length} produced, ${arrived()} arrived`,
        );
      }
    }

    /** Injects the fault and repairs it. Returns its target. */
    async function inject(kind: Fault, turn: number): Promise<string> {
      switch (kind) {
        case 'kill an agent': {
          const name = AGENTS[turn % AGENTS.length]!;
          await processes.get(name)!.kill();
          processes.get(name)!.start();
          return name;
        }
        case 'crash a Postgres':
          await restart(servers[turn % servers.length]!);
          return 'postgres';
        case 'move a project': {
          const k = moved.size % projects.length;
          const { name } = shardAt(k + 1);
          const { id } = projects[k]!;
          moved.add(id);
          await succeed(['shards', 'move', id, name], { folder });
          return `to ${name}`;
        }
        case 'rebalance':
          await rebalance!('share');
          return 'citus';
      }
    }
  } catch (error) {
    throw new Error(`${(error as Error).message}; the logs are in ${logs}`, { cause: error });
  } finally {
    const failures = await endAll(closing);
    if (keepLogs) spare(logs);
    else discard(logs);
    for (const failure of failures) tell(`closing failed: ${(failure as Error).message}`);
  }
}
