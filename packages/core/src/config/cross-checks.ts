import { parseDatabaseOptions } from './database-options.js';
import type { Problem } from '../errors/error-row.js';
import { envOf, settings, type Config, type Setting } from './settings.js';

/** Where each setting has its value from, by its key. */
export type Origins = ReadonlyMap<string, string>;

interface Contradiction {
  /** The setting that asks for what cannot be. */
  readonly key: keyof typeof settings;
  readonly sentence: string;
  readonly hint?: string | undefined;
}

/**
 * Settings that are right one by one and wrong together, all of them, without a look at files or the network.
 *
 * @param origins tells in each sentence where the setting comes from
 */
export function crossChecks(config: Config, origins: Origins = new Map()): Problem[] {
  return told([...connectionContradictions(config), ...processContradictions(config)], origins);
}

/** Those of how Postgres and KV are reached: no command can do without. */
export function connectionChecks(config: Config, origins: Origins = new Map()): Problem[] {
  return told(connectionContradictions(config), origins);
}

function told(found: readonly Contradiction[], origins: Origins): Problem[] {
  return found.map(({ key, sentence, hint = '' }) => {
    const origin = origins.get(key) ?? key;
    return { key, origin, sentence: `${sentence}${origins.has(key) ? ` (from ${origin})` : ''}${hint}` };
  });
}

function connectionContradictions({ database, kv }: Config): Contradiction[] {
  const options = parseDatabaseOptions(database.options);
  return [
    ...('wrong' in options
      ? [{ key: 'database.options' as const, sentence: `database.options ${options.wrong}`, hint: options.hint }]
      : []),
    ...(kv.type === 'redis' ? [...kvPlaceContradictions(kv), ...kvTlsContradictions(kv)] : []),
  ];
}

function* kvPlaceContradictions({ sentinel, cluster, database }: Config['kv']): Generator<Contradiction> {
  const sentinels = sentinel.addresses.length > 0;
  const nodes = cluster.addresses.length > 0;
  if (nodes && (sentinels || sentinel.master_name !== undefined)) {
    const sentence = 'kv.cluster.addresses and kv.sentinel are both set; the KV is a Cluster or it is found through Sentinels';
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
    yield { key: 'kv.database', sentence: `kv.database is ${database}, and a Redis Cluster (kv.cluster.addresses) has database 0 alone` };
  }
}

function* kvTlsContradictions({ scheme, tls }: Config['kv']): Generator<Contradiction> {
  for (const key of ['ca_file', 'cert_file', 'key_file', 'insecure_skip_verify'] as const) {
    if (scheme === 'rediss' || !tls[key]) continue;
    yield {
      key: `kv.tls.${key}`,
      sentence: `kv.tls.${key} is set, and kv.scheme is redis, which is without TLS; set ${named('kv.scheme')} to rediss`,
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
    const sentence = 'kv.tls.insecure_skip_verify is set, so that kv.tls.ca_file would verify nothing; leave one of them away';
    yield { key: 'kv.tls.insecure_skip_verify', sentence };
  }
}

/** Those that one process tells of by itself when it starts. */
function* processContradictions({ server, smtp, billing }: Config): Generator<Contradiction> {
  const { ssl, ssl_cert_file: certificate, ssl_key_file: key } = server.http;
  if (ssl && certificate === undefined) {
    yield { key: 'server.http.ssl', sentence: `server.http.ssl is true without ${named('server.http.ssl_cert_file')}` };
  }
  if (ssl && key === undefined)
    yield { key: 'server.http.ssl', sentence: `server.http.ssl is true without ${named('server.http.ssl_key_file')}` };
  for (const file of ['ssl_cert_file', 'ssl_key_file'] as const) {
    if (ssl || server.http[file] === undefined) continue;
    yield { key: `server.http.${file}`, sentence: `server.http.${file} is set, and ${named('server.http.ssl')} is not true` };
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

/** A setting with the ways to give it. */
function named(key: keyof typeof settings): string {
  const row: Setting = settings[key];
  return `${key} (${[...(row.flag ? [`--${row.flag}`] : []), envOf(key, row)].join(', ')})`;
}
