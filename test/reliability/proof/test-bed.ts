import crypto from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Redis } from 'ioredis';
import pg from 'pg';
import { database } from '../../support/database.js';
import { endAll } from '../../support/end-all.js';
import { replicated, synchronous, type Replicated } from '../../support/failover.js';
import { freePort, freePorts } from '../../support/ports.js';
import { managementApi, succeed, type Created } from '../../support/production.js';
import { proxy, type Proxy } from '../../support/proxy.js';
import { own } from '../../support/services.js';
import { useKeys } from '../../support/key-use.js';
import { setClock, type SetClock } from '../../support/start/faketime.js';
import { discard, spare, tempFolder } from '../../support/start/keep.js';
import type { KafkaServer } from '../../support/start/kafka.js';
import type { PostgresServer } from '../../support/start/postgres.js';
import type { RedisServer } from '../../support/start/redis.js';
import { startSqs, type SqsServer } from '../../support/start/sqs.js';
import type { Witnesses } from './reconcile.js';
import { queue, queueConnection, topic, type Queue, type Topic } from './brokers.js';
import { newerBuild } from './broken-builds.js';
import { otherVersion, temporaryAgent, permanentAgents, type Service } from './faults.js';
import type { FaultDone, Kill, Produced } from './journal.js';
import { startReceiver, type Receiver } from './receiver.js';
import { startSideEndpoints, type SideEndpoints } from './side-endpoints.js';
import { supervised, type Supervised } from './supervised.js';

const PARTITIONS = 4;
/**
 * The time a stopping agent has to settle in-flight work while a required service may be
 * unreachable.
 */
const DRAIN_SECONDS = 10;
/** Failed attempts are retried until the receiver recovers: nothing may remain at the end. */
const strategy = { type: 'linear', duration: 1, retry_count: 1000 };
const ANSWER_SECONDS = 3;

/** The whole setup: private services behind proxies, one server, agents and a receiver. */
export interface TestBed extends Pick<Witnesses, 'rows' | 'shards' | 'offsets'> {
  readonly logs: string;
  /** Can fail over if it has a standby. */
  readonly postgres: Pick<PostgresServer, 'start' | 'stop' | 'crash'> &
    Partial<Pick<Replicated, 'killPrimary' | 'promoteStandby'>>;
  readonly redis: RedisServer & {
    version(): Promise<string>;
    flush(): Promise<void>;
    lose(): Promise<void>;
  };
  readonly kafka: KafkaServer;
  readonly sqs: SqsServer;
  readonly receiver: Receiver;
  readonly sideEndpoints: SideEndpoints;
  readonly topic: Topic;
  readonly queue: Queue;
  /** `server`, `agent-1` */
  process(name: string): Supervised;
  clock(name: string): SetClock;
  /** The proxy between the gateway and a service: `link to kafka`. */
  link(name: string): Proxy;
  /** Filled during the run; receiver and producer have the rest of the journal. */
  readonly kills: readonly Kill[];
  readonly produced: Produced[];
  readonly faults: FaultDone[];
  /** Unexpected exits of ready processes, a sentence each. */
  readonly unexpectedExits: readonly string[];
  /** Refusals of a valid key, a sentence each. */
  readonly refusals: readonly string[];
  /** Waits until the server and the permanent agents are ready. */
  ready(): Promise<void>;
  /**
   * Stops everything, each process by its pid. With `keepLogs` the logs are kept; returns their
   * folder.
   */
  close(options: { keepLogs: boolean }): Promise<string | undefined>;
}

/**
 * Starts the test bed. One agent routes inline, the others through the KV queues.
 * @param options.build the `gateway.js` to run; the repository's by default
 * @param options.standby whether Postgres has a synchronous standby
 * @throws the failure, after everything started is closed
 */
export async function startTestBed({
  build,
  standby = false,
}: { build?: string | undefined; standby?: boolean } = {}): Promise<TestBed> {
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
    const startPostgres = async (): Promise<PostgresServer | Replicated> => {
      const primary = serving('postgres', await own.postgres(standby ? synchronous : {}));
      if (!standby) return primary;
      const second = serving('standby', await own.standby(primary, synchronous));
      const pair = await replicated(primary, second);
      closing.push(() => pair.close());
      return pair;
    };
    const [postgres, redis, kafka, sqs] = await Promise.all([
      startPostgres(),
      own
        .redis({ appendonly: 'yes', appendfsync: 'always' })
        .then((server) => serving('redis', server)),
      own
        .kafka({ proxied: { port: proxiedPort, advertisedPort: kafkaLink.port } })
        .then((server) => serving('kafka', server)),
      startSqs().then((server) => serving('sqs', server)),
    ]);
    const receiver = await startReceiver();
    closing.push(() => receiver.close());
    const links = new Map<string, Proxy>([['link to kafka', kafkaLink]]);
    for (const [name, { port }] of Object.entries({
      postgres,
      redis,
      sqs,
      receiver,
    } satisfies Record<Exclude<Service, 'kafka'>, { port: number }>)) {
      const link = await proxy({ port });
      links.set(`link to ${name}`, link);
      closing.push(() => link.close());
    }
    const portTo = (service: Service) => links.get(`link to ${service}`)!.port;

    const db = await database({ postgres });
    const pool = new pg.Pool({ connectionString: db.url, max: 2, application_name: 'proof' });
    pool.on('error', () => undefined); // Postgres was stopped: the next statement reports it
    closing.push(() => pool.end());
    const ports = await freePorts(4 + permanentAgents.length);
    const settings = {
      encryption_key: crypto.randomBytes(32).toString('base64'),
      database: { ...db.connection, port: portTo('postgres') },
      kv: { host: '127.0.0.1', port: portTo('redis') },
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
    const account = JSON.parse(await succeed(['bootstrap', '--email', 'ops@example.com'], run)) as {
      api_key: { key: string };
    };
    const ready = async () =>
      void (await Promise.all(
        ['server', ...permanentAgents].map((name) => processes.get(name)!.ready()),
      ));
    for (const name of ['server', ...permanentAgents]) processes.get(name)!.start();
    await ready();

    const [made, kept] = await Promise.all([topic(kafka, PARTITIONS), queue(sqs)]);
    closing.push(() => Promise.all([made.close(), kept.close()]));
    const call = managementApi(ports[0]!, account.api_key.key);
    const project = await call<Created>('POST', '/projects', {
      name: 'proof',
      type: 'outgoing',
      config: { strategy },
    });
    const create = <Data = Created>(what: string, fields: object) =>
      call<Data>('POST', `/projects/${project.uid}/${what}`, fields);
    const url = `http://127.0.0.1:${portTo('receiver')}`;
    const { uid, secrets } = await create<{ uid: string; secrets: { value: string }[] }>(
      'endpoints',
      {
        name: 'receiver',
        url,
        http_timeout: ANSWER_SECONDS,
      },
    );
    receiver.expect(secrets[0]!.value);
    await create('subscriptions', {
      name: 'orders',
      endpoint_id: uid,
      filter_config: { event_types: ['order.*'] },
    });
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
      path: `/projects/${project.uid}${path}`,
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
    const brokers = [`127.0.0.1:${kafkaLink.port}`];
    const kafkaSource = {
      type: 'kafka',
      workers: 1,
      kafka: { brokers, topic_name: made.name, consumer_group_id: made.group },
    };
    await create('sources', { name: 'topic', type: 'pub_sub', pub_sub: kafkaSource });
    const sqsSource = { type: 'sqs', workers: 2, sqs: queueConnection(kept, sqs, portTo('sqs')) };
    await create('sources', { name: 'queue', type: 'pub_sub', pub_sub: sqsSource });

    const rows = async <Row extends pg.QueryResultRow>(
      sql: string,
      values: readonly unknown[] = [],
    ) => (await pool.query<Row>(sql, [...values])).rows;
    const sideEndpoints = await startSideEndpoints(call, project.uid, rows);
    closing.push(() => sideEndpoints.close());

    return {
      logs,
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
      topic: made,
      queue: kept,
      process: (name) => processes.get(name)!,
      clock: (name) => clocks.get(name)!,
      link: (name) => links.get(name)!,
      kills,
      produced: [],
      faults: [],
      unexpectedExits,
      refusals: keys.refusals,
      rows,
      shards: [rows],
      offsets: async () => ({ kafka: await made.offsets(), sqs: await kept.depth() }),
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
