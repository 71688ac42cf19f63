import { createSecureContext, type ConnectionOptions } from 'node:tls';
import { hostAndPort } from '@gateway/core/config';
import { readCertificates, readClientCertificate } from '@gateway/core/http';
import { changingPassword } from '@gateway/core/process';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { KvSettings } from './kv.js';

const CONNECT_MS = 5_000;
/** A connection counts as half-open when a command takes longer, apart from a blocking read. */
export const ANSWER_MS = 2_000;
const SENTINEL_ANSWER_MS = 2_000;
/** Per command, 100 ms apart. Few, so that it fails before its caller times out. */
const CLUSTER_TRIES = 8;

/**
 * A server, a Sentinel master or a Cluster, which requires that every command and pipeline uses a
 * single key, or keys with one hash tag.
 * @throws GatewayError `tls_file`
 */
export function redisConnector(settings: KvSettings, onError: (error: Error) => void): () => Redis {
  const { sentinel, cluster } = settings;
  const options: RedisOptions = {
    ...(settings.username ? { username: settings.username } : {}),
    ...(settings.password ? { password: settings.password } : {}),
    ...tlsOf(settings),
    // Commands fail at once while disconnected, so that the pipeline does not wait for KV.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    retryStrategy: waitMs,
    // READONLY: the master became a replica.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
  const changing = changingPassword('kv', settings);
  let last = '';
  /** ioredis reads the password for each connection. The getter must not throw. */
  const followed = <Options extends RedisOptions>(given: Options): Options => {
    if (!changing) return given;
    const get = () => {
      try {
        return (last = changing.now());
      } catch (error) {
        onError(error as Error);
        return last;
      }
    };
    return Object.defineProperty(given, 'password', { get, enumerable: true, configurable: true });
  };
  followed(options);
  const nodes = (cluster?.addresses ?? []).map(hostAndPort);
  const sentinels = (sentinel?.addresses ?? []).map(hostAndPort);
  const watched: RedisOptions = {
    sentinels,
    name: sentinel?.master_name ?? '',
    ...(sentinel?.username ? { sentinelUsername: sentinel.username } : {}),
    ...(sentinel?.password ? { sentinelPassword: sentinel.password } : {}),
    // Sentinels use TLS if Redis does.
    ...(options.tls ? { sentinelTLS: options.tls, enableTLSForSentinelMode: true } : {}),
    sentinelRetryStrategy: waitMs,
    sentinelCommandTimeout: SENTINEL_ANSWER_MS,
  };
  const place = sentinels.length > 0 ? watched : { host: settings.host, port: settings.port };
  const { username: _, password: __, ...anonymous } = options;
  const login = { username: sentinel?.username, password: sentinel?.password };
  const ask = () =>
    nodes.length > 0
      ? firstFailure(nodes, options, (redis) => redis.cluster('SLOTS'))
      : firstFailure(sentinels, { ...anonymous, ...(login as RedisOptions) }, (redis) =>
          redis.call('SENTINEL', 'MASTERS'),
        );
  return () => {
    const redis =
      nodes.length > 0
        ? connectCluster(nodes, options, followed)
        : new Redis({ ...options, ...place, db: Number(settings.database || 0) });
    if (nodes.length === 0) followed(redis.options);
    keepReasons(redis, { onError, ask });
    return redis;
  };
}

/** A Cluster accepts the same commands as a single Redis. */
function connectCluster(
  nodes: readonly { host: string; port: number }[],
  options: RedisOptions,
  followed: (options: RedisOptions) => RedisOptions,
): Redis {
  const { retryStrategy: _, enableOfflineQueue: __, ...redisOptions } = options;
  const cluster = new Cluster([...nodes], {
    redisOptions: followed(redisOptions),
    enableOfflineQueue: false,
    maxRedirections: CLUSTER_TRIES,
    clusterRetryStrategy: waitMs,
    slotsRefreshTimeout: CONNECT_MS,
    // Keep host names, for which the nodes' certificates are issued.
    dnsLookup: (address, done) => done(null, address),
  });
  return cluster as unknown as Redis;
}

function waitMs(times: number): number {
  return Math.min(100 * 2 ** Math.min(times, 6), 5_000);
}

function tlsOf({ scheme, tls = {} }: KvSettings): { tls?: ConnectionOptions } {
  if (scheme !== 'rediss') return {};
  const file = (name: 'ca_file' | 'cert_file' | 'key_file', path: string) => ({
    path,
    setting: `kv.tls.${name} (GATEWAY_KV_TLS_${name.toUpperCase()})`,
    flag: `--kv-tls-${name.replace('_', '-')}`,
  });
  const { ca_file: authority, cert_file: certificate, key_file: key } = tls;
  const secureContext = createSecureContext({
    ...(authority ? { ca: readCertificates(file('ca_file', authority)) } : {}),
    ...(certificate && key
      ? readClientCertificate(file('cert_file', certificate), file('key_file', key))
      : {}),
  });
  return { tls: { secureContext, rejectUnauthorized: !tls.insecure_skip_verify } };
}

/** ioredis omits the reason from failed commands. */
const reasons = new WeakMap<object, Error>();

/** `ask` finds the cause if Cluster or Sentinel errors omit it. */
function keepReasons(
  redis: Redis,
  { onError, ask }: { onError: (error: Error) => void; ask: () => Promise<unknown> },
): void {
  redis.on('ready', () => reasons.delete(redis));
  redis.on('error', (error: Error) => {
    const tell = (cause: unknown = undefined) => {
      const reason = cause ?? (hasNoReason(error) ? reasons.get(redis) : undefined);
      if (reason === undefined) reasons.set(redis, error);
      else error.cause ??= reason;
      if (cause) reasons.set(redis, error);
      onError(error);
    };
    if (hidesCause(error)) void ask().then(tell);
    else tell();
  });
}

/** After a timeout, rejects and reconnects. */
export async function answered<T>(
  redis: Redis,
  command: Promise<T>,
  withinMs = ANSWER_MS,
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      redis.disconnect(true);
      reject(new Error(`KV did not answer within ${withinMs} ms`));
    }, withinMs);
  });
  try {
    return await Promise.race([command, late]);
  } catch (error) {
    throw withReason(redis, error);
  } finally {
    clearTimeout(timer);
  }
}

/** The last known failure becomes the `cause` that ioredis omitted. */
function withReason(redis: Redis, error: unknown): unknown {
  const reason = reasons.get(redis);
  if (reason && error instanceof Error && hasNoReason(error)) error.cause ??= reason;
  return error;
}

/** Undefined if `use` fails on none. */
async function firstFailure(
  addresses: readonly { readonly host: string; readonly port: number }[],
  options: RedisOptions,
  use: (redis: Redis) => Promise<unknown>,
): Promise<unknown> {
  for (const address of addresses) {
    const redis = new Redis({
      ...options,
      ...address,
      retryStrategy: () => null,
      lazyConnect: true,
      enableReadyCheck: false,
    });
    let failure: unknown;
    redis.on('error', (error) => (failure = error));
    try {
      await redis.connect();
      await use(redis);
    } catch (error) {
      return failure ?? error;
    } finally {
      redis.disconnect();
    }
  }
  return undefined;
}

function hasNoReason({ message }: Error): boolean {
  return /Stream isn't writeable|Connection is closed|Cluster isn't ready|Cluster redirections/.test(
    message,
  );
}

function hidesCause({ name, message }: Error): boolean {
  return (
    name === 'ClusterAllFailedError' ||
    /^All sentinels are unreachable.*Connection is closed/.test(message)
  );
}
