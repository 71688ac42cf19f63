import { parseDatabaseOptions } from './database-options.js';
import type { Problem } from '../errors/error-row.js';
import { envOf, settings, type Config, type Setting } from './settings.js';

type Origins = ReadonlyMap<string, string>;

interface Conflict {
  readonly key: keyof typeof settings;
  readonly sentence: string;
  readonly hint?: string | undefined;
}

/**
 * Settings that are valid one by one and wrong together. Reads no files and no network.
 *
 * @param origins where each setting was set, by its key, for the sentences
 */
export function crossChecks(config: Config, origins: Origins = new Map()): Problem[] {
  return problemsOf([...connectionConflicts(config), ...processConflicts(config)], origins);
}

/** Those about reaching Postgres and KV, which every command refuses. */
export function connectionChecks(config: Config, origins: Origins = new Map()): Problem[] {
  return problemsOf(connectionConflicts(config), origins);
}

function problemsOf(found: readonly Conflict[], origins: Origins): Problem[] {
  return found.map(({ key, sentence, hint = '' }) => {
    const origin = origins.get(key) ?? key;
    return { key, origin, sentence: `${sentence}${origins.has(key) ? ` (from ${origin})` : ''}${hint}` };
  });
}

function connectionConflicts({ database, kv }: Config): Conflict[] {
  const options = parseDatabaseOptions(database.options);
  return [
    ...('wrong' in options
      ? [{ key: 'database.options' as const, sentence: `database.options ${options.wrong}`, hint: options.hint }]
      : []),
    ...(kv.type === 'redis' ? [...kvPlaceConflicts(kv), ...kvTlsConflicts(kv)] : []),
  ];
}

function* kvPlaceConflicts({ sentinel, cluster, database }: Config['kv']): Generator<Conflict> {
  const sentinels = sentinel.addresses.length > 0;
  const nodes = cluster.addresses.length > 0;
  if (nodes && (sentinels || sentinel.master_name !== undefined)) {
    const sentence = 'kv.cluster.addresses and kv.sentinel are both set; set only one of them';
    yield { key: 'kv.cluster.addresses', sentence };
    return;
  }
  if (sentinels && sentinel.master_name === undefined) {
    yield { key: 'kv.sentinel.addresses', sentence: `kv.sentinel.addresses is set without ${named('kv.sentinel.master_name')}` };
  }
  for (const key of ['master_name', 'username', 'password'] as const) {
    if (sentinels || sentinel[key] === undefined) continue;
    yield { key: `kv.sentinel.${key}`, sentence: `kv.sentinel.${key} is set without ${named('kv.sentinel.addresses')}` };
  }
  for (const key of ['kv.sentinel.addresses', 'kv.cluster.addresses'] as const) {
    const without = (key === 'kv.sentinel.addresses' ? sentinel : cluster).addresses.find((address) => /^:|:0*$/.test(address));
    if (without !== undefined) yield { key, sentence: `${key} holds ${JSON.stringify(without)}, which names no host or no port` };
  }
  if (!/^\d{0,9}$/.test(database)) yield { key: 'kv.database', sentence: `kv.database must be a number, not ${JSON.stringify(database)}` };
  else if (nodes && Number(database) !== 0) {
    yield { key: 'kv.database', sentence: `kv.database is ${database}, but a Redis Cluster (kv.cluster.addresses) has only database 0` };
  }
}

function* kvTlsConflicts({ scheme, tls }: Config['kv']): Generator<Conflict> {
  for (const key of ['ca_file', 'cert_file', 'key_file', 'insecure_skip_verify'] as const) {
    if (scheme === 'rediss' || !tls[key]) continue;
    yield {
      key: `kv.tls.${key}`,
      sentence: `kv.tls.${key} is set, but kv.scheme is redis, which does not use TLS; set ${named('kv.scheme')} to rediss`,
    };
    return;
  }
  if (tls.cert_file !== undefined && tls.key_file === undefined) {
    yield { key: 'kv.tls.cert_file', sentence: `kv.tls.cert_file is set without ${named('kv.tls.key_file')}` };
  }
  if (tls.key_file !== undefined && tls.cert_file === undefined) {
    yield { key: 'kv.tls.key_file', sentence: `kv.tls.key_file is set without ${named('kv.tls.cert_file')}` };
  }
  if (tls.insecure_skip_verify && tls.ca_file !== undefined) {
    const sentence = 'kv.tls.insecure_skip_verify is set, so that kv.tls.ca_file has no effect; remove one of them';
    yield { key: 'kv.tls.insecure_skip_verify', sentence };
  }
}

/** Those that only one process refuses, when it starts. */
function* processConflicts({ server, smtp, billing }: Config): Generator<Conflict> {
  const { ssl, ssl_cert_file: certificate, ssl_key_file: key } = server.http;
  if (ssl && certificate === undefined) {
    yield { key: 'server.http.ssl', sentence: `server.http.ssl is true without ${named('server.http.ssl_cert_file')}` };
  }
  if (ssl && key === undefined)
    yield { key: 'server.http.ssl', sentence: `server.http.ssl is true without ${named('server.http.ssl_key_file')}` };
  for (const file of ['ssl_cert_file', 'ssl_key_file'] as const) {
    if (ssl || server.http[file] === undefined) continue;
    yield { key: `server.http.${file}`, sentence: `server.http.${file} is set, but ${named('server.http.ssl')} is not true` };
  }
  if (smtp.from === undefined && (smtp.url !== undefined || smtp.provider !== undefined)) {
    const given = smtp.url === undefined ? 'smtp.provider' : 'smtp.url';
    yield { key: given, sentence: `${given} is set without ${named('smtp.from')}, so that no notification is sent` };
  }
  if (smtp.from !== undefined && smtp.url === undefined && smtp.provider === undefined) {
    yield { key: 'smtp.from', sentence: `smtp.from is set without ${named('smtp.url')}, so that no notification is sent` };
  }
  if (!billing.enabled) return;
  for (const missing of ['url', 'api_key'] as const) {
    if (billing[missing] !== undefined) continue;
    yield { key: 'billing.enabled', sentence: `billing.enabled is true without ${named(`billing.${missing}`)}` };
  }
}

/** A setting with its flag and variable. */
function named(key: keyof typeof settings): string {
  const row: Setting = settings[key];
  return `${key} (${[...(row.flag ? [`--${row.flag}`] : []), envOf(key, row)].join(', ')})`;
}
