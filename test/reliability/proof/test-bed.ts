import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Redis } from 'ioredis';
import { endAll } from '../../support/end-all.js';
import { freePort, freePorts } from '../../support/ports.js';
import { managementApi, succeed, type Created } from '../../support/production.js';
import { proxy, type Proxy } from '../../support/proxy.js';
import { own } from '../../support/services.js';
import { useKeys } from '../../support/key-use.js';
import { setClock, type SetClock } from '../../support/start/faketime.js';
import { discard, spare, tempFolder } from '../../support/start/keep.js';
import type { KafkaServer } from '../../support/start/kafka.js';
import type { RedisServer } from '../../support/start/redis.js';
import { startSqs, type SqsServer } from '../../support/start/sqs.js';
import { until } from '../../support/until.js';
import type { Witnesses } from './reconcile.js';
import { queue, queueSource, topic, topicSource, type Queue, type Topic } from './brokers.js';
import { newerBuild } from './broken-builds.js';
import { otherVersion, temporaryAgent, permanentAgents } from './faults.js';
import type { FaultDone, Kill, Produced } from './journal.js';
import { startMoves, type Moves } from './moves.js';
import type { Lane } from './producer.js';
import { createProject, type Api } from './projects.js';
import { startReceiver, type Receiver } from './receiver.js';
import { insist, startSideEndpoints, type SideEndpoints } from './side-endpoints.js';
import { startStores, type FirstServer, type StoreOptions, type Stores } from './stores.js';
import { supervised, type Supervised } from './supervised.js';

const PARTITIONS = 4;
/**
 * The time a stopping agent has to settle in-flight work while a required service may be
 * unreachable.
 */
const DRAIN_SECONDS = 10;
const ANSWER_SECONDS = 3;
/** By then other faults have ended and messages flow again. */
const FLOW_MS = 300_000;

/** The whole setup: private services behind proxies, one server, agents and a receiver. */
export interface TestBed extends Pick<Witnesses, 'rows' | 'shards' | 'offsets'> {
  readonly logs: string;
  readonly stores: Stores;
  /** The server of the control plane. */
  readonly postgres: FirstServer;
  readonly redis: RedisServer & {
    version(): Promise<string>;
    flush(): Promise<void>;
    lose(): Promise<void>;
  };
  readonly kafka: KafkaServer;
  readonly sqs: SqsServer;
  readonly receiver: Receiver;
  readonly sideEndpoints: SideEndpoints;
  /** The topic of the first project. */
  readonly topic: Topic;
  readonly lanes: readonly Lane[];
  readonly api: Api;
  readonly moves: Moves;
  /** Ids of the projects that move: all but the first. */
  readonly movers: readonly string[];
  /** `server`, `agent-1` */
  process(name: string): Supervised;
  clock(name: string): SetClock;
  /** The proxy between the gateway and a service: `link to kafka`. */
  link(name: string): Proxy;
  /** The names of the proxies. */
  readonly links: readonly string[];
  /** Filled during the run; receiver and producer have the rest of the journal. */
  readonly kills: readonly Kill[];
  readonly produced: Produced[];
  readonly faults: FaultDone[];
  /** Unexpected exits of ready processes, a sentence each. */
  readonly unexpectedExits: readonly string[];
  /** Refusals of a valid key, a sentence each. */
  readonly refusals: readonly string[];
  /** Makes Citus move schemas; repeats it until it succeeds. */
  rebalance(lastWorker: 'empty' | 'share'): Promise<void>;
  /**
   * Waits until all messages of the first project that are written by now have arrived, unless its
   * shard is on the given server or Citus moves it.
   */
  othersFlow(server: string): Promise<void>;
  /** Waits until the server and the permanent agents are ready. */
  ready(): Promise<void>;
  /**
   * Stops everything, each process by its pid. With `keepLogs` the logs are kept; returns their
   * folder.
   */
  close(options: { keepLogs: boolean }): Promise<string | undefined>;
}

/**
 * Starts the test bed. One agent routes inline, the others through the KV queues. Each shard has a
 * project with a topic and a queue of its own; all but the first move between shards.
 * @param options.build the `gateway.js` to run; the repository's by default
 * @param options.shards a Postgres each, or with `workers` a schema each of a Citus cluster
 * @param options.standby whether the Postgres of the control plane has a synchronous standby; not
 * on Citus
 * @throws the failure, after everything started is closed
 */
export async function startTestBed({
  build,
  shards = 1,
  workers = 0,
  standby = false,
}: Partial<Pick<StoreOptions, 'shards' | 'workers' | 'standby'>> & {
  build?: string;
}): Promise<TestBed> {
  const closing: (() => unknown)[] = [];
  const logs = tempFolder('proof');

  const close = async ({ keepLogs }: { keepLogs: boolean }) => {
    const failures = await endAll(closing);
    if (keepLogs) spare(logs);
    else discard(logs);
    if (failures.length > 0 && !keepLogs) throw failures[0];
    return keepLogs ? logs : undefined;
  };
  const serving = <Server extends { log: string; close(): Promise<void> }>(
    name: string,
    server: Server,
  ): Server => {
    closing.push(() => server.close());
    closing.push(() => fs.copyFileSync(server.log, path.join(logs, `${name}.log`)));
    return server;
  };
  try {
    const proxiedPort = await freePort();
    const kafkaLink = await proxy({ port: proxiedPort });
    closing.push(() => kafkaLink.close());
    const links = new Map<string, Proxy>([['link to kafka', kafkaLink]]);
    const portTo = async (service: string, port: number) => {
      const link = await proxy({ port });
      closing.push(() => link.close());
      links.set(`link to ${service}`, link);
      return link.port;
    };
    // The script of Citus blocks this process for longer than the others have to start.
    const stores = await startStores({ shards, workers, standby, through: portTo });
    closing.push(() => stores.close());
    const starting = [
      own
        .redis({ appendonly: 'yes', appendfsync: 'always' })
        .then((server) => serving('redis', server)),
      own
        .kafka({ proxied: { port: proxiedPort, advertisedPort: kafkaLink.port } })
        .then((server) => serving('kafka', server)),
      startSqs().then((server) => serving('sqs', server)),
    ] as const;
    // If one fails, the others are closed too.
    await Promise.allSettled(starting);
    const [redis, kafka, sqs] = await Promise.all(starting);
    const postgres = stores.first;
    if (!postgres)
      throw new Error('set GATEWAY_CITUS to the folder with cluster.sh, to stop the coordinator');
    for (const [name, log] of Object.entries(stores.logs))
      closing.push(() => fs.copyFileSync(log, path.join(logs, `${name}.log`)));
    const receiver = await startReceiver();
    closing.push(() => receiver.close());
    const ports = await freePorts(4 + permanentAgents.length);
    const settings = {
      encryption_key: crypto.randomBytes(32).toString('base64'),
      database: stores.settings,
      kv: { host: '127.0.0.1', port: await portTo('redis', redis.port) },
      server: { http: { port: ports[0], bind: '127.0.0.1' } },
      agent: { drain_timeout_seconds: DRAIN_SECONDS },
      delivery: { allowed_networks: ['127.0.0.0/8'] },
      source: { allowed_networks: ['127.0.0.0/8'] },
      // A breaker that opened during a receiver's outage probes soon, so that the bed comes to rest
      // soon.
      circuit_breaker: { error_timeout: 1, max_error_timeout: 4 },
      instance_ingest_rate: 0,
    };
    const folders = { atOnce: tempFolder('proof-at-once'), queued: tempFolder('proof-queued') };
    closing.push(() => Object.values(folders).forEach(discard));
    write(folders.atOnce, settings);
    write(folders.queued, { ...settings, ingest: { inline_routing: false } });

    const kills: Kill[] = [];
    const unexpectedExits: string[] = [];
    const clocks = new Map(
      permanentAgents.map((name) => [
        name as string,
        setClock(path.join(folders.atOnce, `clock-of-${name}`)),
      ]),
    );
    const newer = newerBuild();
    closing.push(() => newer.close());
    const command = (
      name: string,
      args: readonly string[],
      folder: string,
      bin = build,
    ): [string, Supervised] => {
      const isAgent = args[0] === 'agent';
      const process = supervised(name, {
        args,
        folder,
        bin,
        env: clocks.get(name)?.env,
        logs,
        drainMs: DRAIN_SECONDS * 1000,
        onBroken: (pid, kind, atMs) =>
          void (
            isAgent &&
            kills.push({ agent: `${os.hostname()}:${pid}`, atMs, untilMs: Date.now(), kind })
          ),
        onUnexpectedExit: (sentence) => void unexpectedExits.push(sentence),
      });
      closing.push(() => process.kill());
      return [name, process];
    };
    const processes = new Map([
      command('server', ['server'], folders.atOnce),
      ...[...permanentAgents, temporaryAgent].map((name, k) =>
        command(
          name,
          ['agent', '--port', String(ports[1 + k])],
          k === 0 ? folders.atOnce : folders.queued,
        ),
      ),
      command(
        otherVersion[0],
        ['server', '--port', String(ports.at(-1))],
        folders.atOnce,
        newer.bin,
      ),
      command(
        otherVersion[1],
        ['agent', '--port', String(ports.at(-2))],
        folders.queued,
        newer.bin,
      ),
    ]);

    const run = { folder: folders.atOnce, ...(build ? { bin: build } : {}) };
    await succeed(['migrate', 'up'], run);
    for (const { name, place } of stores.shards)
      if (place.length > 0) await succeed(['shards', 'add', name, ...place], run);
    const account = JSON.parse(await succeed(['bootstrap', '--email', 'ops@example.com'], run)) as {
      api_key: { key: string };
    };
    const ready = async () =>
      void (await Promise.all(
        ['server', ...permanentAgents].map((name) => processes.get(name)!.ready()),
      ));
    for (const name of ['server', ...permanentAgents]) processes.get(name)!.start();
    await ready();

    const api = { port: ports[0]!, key: account.api_key.key };
    const [sqsPort, receiverPort] = [
      await portTo('sqs', sqs.port),
      await portTo('receiver', receiver.port),
    ];
    const topics: Topic[] = [];
    const queues: Queue[] = [];
    const lanes: Lane[] = [];
    const projects: string[] = [];
    for (const [project, { name }] of stores.shards.entries()) {
      const [made, kept] = await Promise.all([topic(kafka, PARTITIONS), queue(sqs)]);
      closing.push(() => Promise.all([made.close(), kept.close()]));
      topics.push(made);
      queues.push(kept);
      lanes.push({ via: 'kafka', project, broker: made }, { via: 'sqs', project, broker: kept });
      projects.push(
        await createProject(api, {
          shard: name,
          receiver,
          url: `http://127.0.0.1:${receiverPort}/${name}`,
          timeoutSeconds: ANSWER_SECONDS,
          sources: [
            topicSource(made, `127.0.0.1:${kafkaLink.port}`),
            queueSource(kept, sqs, sqsPort),
          ],
        }),
      );
    }
    const [first, ...movers] = projects as [string, ...string[]];
    const call = managementApi(api.port, api.key);
    const create = <Data = Created>(what: string, fields: object) =>
      call<Data>('POST', `/projects/${first}/${what}`, fields);
    const owned = await create<{ key: string }>('api-keys', { name: 'proof' });
    const link = await create<{ token: string }>('portal-links', {
      name: 'proof',
      owner_id: 'proof',
      auth_type: 'static_token',
    });
    const read = (what: string, key: string, path: string) => ({
      what,
      key,
      method: 'GET',
      path: `/projects/${first}${path}`,
    });
    const keys = useKeys(
      [
        read('a personal key', account.api_key.key, '/endpoints'),
        read('a key of the project', owned.key, '/subscriptions'),
        read('a portal link', link.token, '/portal'),
      ],
      [ports[0]!, ports.at(-1)!],
      250,
    );
    closing.push(() => keys.stop());
    const { rows } = stores;
    const sideEndpoints = await startSideEndpoints(call, first, {
      rows,
      shard: stores.shards[0]!.rows,
    });
    closing.push(() => sideEndpoints.close());
    const moves = startMoves(run, new Map(movers.map((id, k) => [`project-${k + 2}`, id])), stores);
    const produced: Produced[] = [];
    let isRebalancing = false;
    const rebalance = async (lastWorker: 'empty' | 'share') => {
      isRebalancing = true;
      await insist(() => stores.rebalance!(lastWorker));
      isRebalancing = lastWorker === 'empty';
    };
    const othersFlow = async (server: string) => {
      if ((await insist(() => stores.serverOf(stores.shards[0]!))) === server) return;
      const written = produced.filter(
        ({ project, poisoned, acknowledgedByBroker }) =>
          project === 0 && !poisoned && acknowledgedByBroker,
      );
      await until(
        `messages of projects on other shards to arrive, while ${server} is away`,
        () => {
          const arrived = new Set(receiver.arrivals.map(({ n }) => n));
          return isRebalancing || written.every(({ n }) => arrived.has(n));
        },
        { withinMs: FLOW_MS, everyMs: 250 },
      );
    };

    return {
      logs,
      stores,
      postgres,
      redis: Object.assign(redis, {
        version: async () =>
          /redis_version:(\S+)/.exec(
            await withRedis(redis.url, (client) => client.info('server')),
          )?.[1] ?? 'unknown',
        flush: async () => void (await withRedis(redis.url, (client) => client.flushall())),
        lose: async () => {
          await redis.crash();
          fs.rmSync(path.join(redis.folder, 'appendonlydir'), { recursive: true, force: true });
        },
      }),
      kafka,
      sqs,
      receiver,
      sideEndpoints,
      topic: topics[0]!,
      lanes,
      api,
      moves,
      movers,
      process: (name) => processes.get(name)!,
      clock: (name) => clocks.get(name)!,
      link: (name) => links.get(name)!,
      links: [...links.keys()],
      kills,
      produced,
      faults: [],
      unexpectedExits,
      refusals: keys.refusals,
      rows,
      shards: stores.shards.map((shard) => shard.rows),
      offsets: async () => {
        const depths = await Promise.all(queues.map((one) => one.depth()));
        return {
          kafka: (await Promise.all(topics.map((one) => one.offsets()))).flat(),
          sqs: {
            ready: depths.reduce((sum, { ready: n }) => sum + n, 0),
            inFlight: depths.reduce((sum, { inFlight: n }) => sum + n, 0),
          },
        };
      },
      rebalance,
      othersFlow,
      ready,
      close,
    };
  } catch (error) {
    const kept = await close({ keepLogs: true });
    throw new Error(
      `the test bed could not be started: ${(error as Error).message}; the logs are in ${kept}`,
      { cause: error },
    );
  }
}

function write(folder: string, settings: object): void {
  fs.writeFileSync(path.join(folder, 'gateway.json'), JSON.stringify(settings, null, 2));
}

async function withRedis<T>(url: string, work: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 1 });
  client.on('error', () => undefined); // the command reports it
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}
