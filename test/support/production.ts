import crypto from 'node:crypto';
import { migrate } from '../store/migrated.js';
import { database, type Database } from './database.js';
import { endAll } from './end-all.js';
import { gateway, runGateway, type GatewayOptions, type GatewayProcess } from './gateway.js';
import { randomName, type KafkaBroker } from './kafka.js';
import { freePort } from './ports.js';
import { redis, type RedisDatabase } from './redis.js';
import { onShard, testShard } from './shard.js';
import { tempFolder, discard } from './start/keep.js';

export interface Created {
  readonly uid: string;
  readonly [field: string]: unknown;
}

/**
 * A gateway as operators run it: Postgres, Redis, one server and any number of agents, all started
 * with the built command line.
 */
export interface Production {
  /** The control plane; `rows` reads the tables of the data plane from the project's shard. */
  readonly database: Database;
  /** The database of the project's shard: with TEST_SHARD another one than `database`. */
  readonly shard: Pick<Database, 'rows'>;
  readonly kv: RedisDatabase;
  readonly server: GatewayProcess;
  readonly serverPort: number;
  /** The project and an API key, for requests that `api` cannot make. */
  readonly projectId: string;
  readonly apiKey: string;
  readonly encryptionKey: string;
  /** Options of further processes of this gateway. */
  readonly run: { readonly folder: string; readonly env: Readonly<Record<string, string>> };
  /** The agents that were started and not killed. */
  readonly agents: { readonly process: GatewayProcess; readonly port: number }[];
  /**
   * Calls the management API; the path is relative to the project. Throws with the response unless
   * it is 2xx.
   */
  api<Data = Created>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Data>;
  /**
   * Starts another agent with these flags and environment variables, and waits until it is ready.
   */
  startAgent(
    flags?: readonly string[],
    env?: Readonly<Record<string, string>>,
  ): Promise<{ readonly process: GatewayProcess; readonly port: number }>;
  close(): Promise<void>;
}

/**
 * Sets up a gateway with its commands: `bootstrap`, `server`, agents; then creates a project over
 * the API. The database is a copy of a migrated one. With TEST_SHARD, the project is on that shard.
 * @param options.settings merged over the basic settings; `postgres` and `redis` are other servers;
 * `bin` is another `gateway.js`, which makes the schema with `migratedByBin`; `env` is added to the environment of every process
 * @throws the first failure, after everything started is closed
 */
export async function production(
  options: {
    agents?: number;
    bin?: string;
    migratedByBin?: boolean;
    env?: Readonly<Record<string, string>>;
    settings?: { readonly database?: object; readonly [name: string]: unknown };
    postgres?: { readonly url: string };
    redis?: { readonly url: string };
  } = {},
): Promise<Production> {
  const closing: (() => unknown)[] = [];
  /** Closes everything, the last started first. Throws the first error. */
  const close = async () => {
    const failures = await endAll(closing);
    if (failures.length > 0) throw failures[0];
  };
  try {
    const control = await database({
      ...(options.migratedByBin ? {} : { migrate }),
      ...(options.postgres && { postgres: options.postgres }),
    });
    const db =
      testShard && !options.migratedByBin
        ? await onShard(control, testShard, options.postgres)
        : { ...control, shard: control };
    closing.push(() => db.close());
    const kv = await redis(options.redis ? { server: options.redis } : {});
    closing.push(() => kv.close());
    const folder = tempFolder('production');
    closing.push(() => discard(folder));
    const run = {
      folder,
      ...(options.bin ? { bin: options.bin } : {}),
      ...(options.env ? { env: options.env } : {}),
    };
    const serverPort = await freePort();
    const config = {
      encryption_key: crypto.randomBytes(32).toString('base64'),
      kv: kv.connection,
      server: { http: { port: serverPort, bind: '127.0.0.1' } },
      delivery: { allowed_networks: ['127.0.0.0/8'] },
      source: { allowed_networks: ['127.0.0.0/8'] },
      instance_ingest_rate: 0,
      ...options.settings,
      database: { ...db.connection, ...options.settings?.database },
    };
    if (options.migratedByBin) await succeed(['migrate', 'up'], { ...run, config });
    const account = JSON.parse(
      await succeed(['bootstrap', '--email', 'ops@example.com'], { ...run, config }),
    ) as {
      api_key: { key: string };
    };
    const server = gateway(['server'], run);
    const agents: { process: GatewayProcess; port: number }[] = [];
    closing.push(() =>
      Promise.all(
        [...agents.map(({ process }) => process), server].map((process) => process.terminate()),
      ),
    );
    await server.healthy(serverPort);

    const call = managementApi(serverPort, account.api_key.key);
    const { uid: projectId } = await call<Created>('POST', '/projects', {
      name: 'production',
      type: 'outgoing',
    });
    const made: Production = {
      database: db,
      shard: db.shard,
      kv,
      server,
      serverPort,
      projectId,
      apiKey: account.api_key.key,
      encryptionKey: config.encryption_key,
      run: { folder, env: options.env ?? {} },
      agents,
      api: (method, path, body, headers) =>
        call(method, `/projects/${projectId}${path}`, body, headers),
      startAgent: async (flags = [], env = {}) => {
        const port = await freePort();
        const agent = {
          process: gateway(['agent', '--port', String(port), ...flags], {
            ...run,
            env: { ...run.env, ...env },
          }),
          port,
        };
        agents.push(agent);
        await agent.process.healthy(port);
        return agent;
      },
      close,
    };
    for (let k = 0; k < (options.agents ?? 1); k++) await made.startAgent();
    return made;
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

/**
 * Returns a function that calls the management API at a port with a key: method, path below
 * `/api/v1`, body, headers. Throws unless the status is 2xx.
 */
export function managementApi(port: number, key: string) {
  return async <Data>(
    method: string,
    path: string,
    body?: unknown,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Data> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    }).catch((error: unknown) => {
      const { cause } = error as Error;
      throw new Error(
        `${method} ${path} had no answer: ${cause instanceof Error ? cause.message : String(error)}`,
        { cause: error },
      );
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
    return (JSON.parse(text) as { data: Data }).data;
  };
}

/**
 * Creates an endpoint subscribed to everything, or to these event types.
 * @returns its id and signing secret
 */
export async function subscribed(
  gateway: Production,
  url: string,
  eventTypes: readonly string[] = ['*'],
): Promise<{ uid: string; secret: string }> {
  const { uid, secrets } = await gateway.api<{ uid: string; secrets: { value: string }[] }>(
    'POST',
    '/endpoints',
    {
      name: 'receiver',
      url,
    },
  );
  await gateway.api('POST', '/subscriptions', {
    name: 'orders',
    endpoint_id: uid,
    filter_config: { event_types: eventTypes },
  });
  return { uid, secret: secrets[0]?.value ?? '' };
}

/**
 * Creates a topic and the source "orders" that reads it in a separate consumer group.
 * @param more additional fields of the source
 * @returns the topic
 */
export async function kafkaSource(
  gateway: Production,
  broker: KafkaBroker,
  partitions = 2,
  more: object = {},
): Promise<string> {
  const topic = await broker.topic({ partitions });
  const pubSub = {
    type: 'kafka',
    workers: 1,
    kafka: {
      brokers: [broker.listeners.plaintext],
      topic_name: topic,
      consumer_group_id: randomName('group'),
    },
  };
  await gateway.api('POST', '/sources', {
    name: 'orders',
    type: 'pub_sub',
    pub_sub: pubSub,
    ...more,
  });
  return topic;
}

/** Combines `subscribed` and `kafkaSource`. */
export async function topicSource(
  gateway: Production,
  broker: KafkaBroker,
  url: string,
  partitions = 2,
): Promise<{ topic: string; secret: string }> {
  const { secret } = await subscribed(gateway, url);
  return { topic: await kafkaSource(gateway, broker, partitions), secret };
}

/** Runs a command that must exit with 0. Returns its output. */
export async function succeed(args: readonly string[], options: GatewayOptions): Promise<string> {
  const { code, stdout, stderr } = await runGateway(args, options);
  if (code !== 0) throw new Error(`gateway ${args.join(' ')} exited ${code}: ${stderr}${stdout}`);
  return stdout;
}
