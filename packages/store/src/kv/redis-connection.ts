import { createSecureContext, type ConnectionOptions } from 'node:tls';
import { readCertificates, readClientCertificate } from '@gateway/core/http';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import type { KvSettings } from './kv.js';
import { firstFailure, keepReasons } from './redis-errors.js';

const CONNECT_MS = 5_000;
/** A Sentinel that does not answer within this is skipped. */
const SENTINEL_ANSWER_MS = 2_000;
/** Redirections of a command in a Cluster, 100 ms apart: it fails before its caller times out. */
const CLUSTER_TRIES = 8;

/**
 * Returns a function that connects to a server, the master named by Sentinels, or a Cluster. Reads the TLS files once. Every command and pipeline names a
 * single key, so it works on a Cluster without hash tags.
 *
 * @throws GatewayError `tls_file` when a TLS file cannot be used
 */
export function redisConnector(settings: KvSettings, onError: (error: Error) => void): () => Redis {
  const { sentinel, cluster } = settings;
  const options: RedisOptions = {
    ...(settings.username ? { username: settings.username } : {}),
    ...(settings.password ? { password: settings.password } : {}),
    ...tlsOf(settings),
    // Commands fail at once while disconnected: the pipeline does not wait for KV.
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: CONNECT_MS,
    retryStrategy: waitMs,
    // The master became a replica: reconnecting finds the new one.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
  };
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
      : firstFailure(sentinels, { ...anonymous, ...(login as RedisOptions) }, (redis) => redis.call('SENTINEL', 'MASTERS'));
  return () => {
    const redis =
      nodes.length > 0 ? connectCluster(nodes, options) : new Redis({ ...options, ...place, db: Number(settings.database || 0) });
    keepReasons(redis, { onError, ask });
    return redis;
  };
}

/** A Cluster accepts the same commands, so it is used as a Redis. */
function connectCluster(nodes: readonly { host: string; port: number }[], options: RedisOptions): Redis {
  const { retryStrategy: _, enableOfflineQueue: __, ...redisOptions } = options;
  const cluster = new Cluster([...nodes], {
    redisOptions,
    enableOfflineQueue: false,
    maxRedirections: CLUSTER_TRIES,
    clusterRetryStrategy: waitMs,
    slotsRefreshTimeout: CONNECT_MS,
    // Keep names: the certificates of the nodes are issued for them.
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
    ...(certificate && key ? readClientCertificate(file('cert_file', certificate), file('key_file', key)) : {}),
  });
  return { tls: { secureContext, rejectUnauthorized: !tls.insecure_skip_verify } };
}

/** `host:port` or `[::1]:port`. */
function hostAndPort(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':');
  return { host: address.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(address.slice(at + 1)) };
}
