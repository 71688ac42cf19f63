import { parseDatabaseOptions } from './database-options.js';
import type { SettingProblem } from '../errors/error-row.js';
import { maskAddress } from '../logging/redaction.js';
import { envOf, settingAt, settings, type Config, type Setting } from './settings.js';

type Origins = ReadonlyMap<string, string>;
type Key = keyof typeof settings;
type Conflict = readonly [key: Key, sentence: string, hint?: string | undefined];

/** Conflicts between settings that are valid on their own. Does not access files or the network. */
export function crossChecks(config: Config, origins: Origins = new Map()): SettingProblem[] {
  return [
    ...connectionChecks(config, origins),
    ...serverChecks(config, origins),
    ...problemsOf(otherConflicts(config), origins),
  ];
}

/** The server refuses to start if there are any. */
export function serverChecks(config: Config, origins: Origins = new Map()): SettingProblem[] {
  return problemsOf(serverConflicts(config), origins);
}

/** Postgres and KV. No command runs if there are any. */
export function connectionChecks(config: Config, origins: Origins): SettingProblem[] {
  return problemsOf(connectionConflicts(config), origins);
}

function problemsOf(found: Iterable<Conflict>, origins: Origins): SettingProblem[] {
  return Array.from(found, ([key, sentence, hint = '']) => {
    const origin = origins.get(key) ?? key;
    return {
      key,
      origin,
      sentence: `${maskAddress(sentence)}${origins.has(key) ? ` (from ${origin})` : ''}${hint}`,
    };
  });
}

function* connectionConflicts(config: Config): Generator<Conflict> {
  const options = parseDatabaseOptions(config.database.options);
  if ('wrong' in options)
    yield ['database.options', `database.options ${options.wrong}`, options.hint];
  if (config.database.pooled && config.database.direct.host !== undefined)
    yield [
      'database.pooled',
      'database.pooled and database.direct.host are both set; set only one of them',
    ];
  yield* emptyAddresses('database.replicas', config.database.replicas);
  if (config.kv.type !== 'redis') return;
  yield* kvPlaceConflicts(config);
  yield* kvTlsConflicts(config);
}

/** Listeners accept an address without a host or a port, but clients cannot use it. */
function* emptyAddresses(key: Key, addresses: readonly string[]): Generator<Conflict> {
  const without = addresses.find((address) => /^:|:0*$/.test(address));
  if (without !== undefined)
    yield [key, `${key} holds ${JSON.stringify(without)}, which names no host or no port`];
}

function* kvPlaceConflicts(config: Config): Generator<Conflict> {
  const { sentinel, cluster, database } = config.kv;
  const nodes = cluster.addresses.length > 0;
  if (nodes && (sentinel.addresses.length > 0 || sentinel.master_name !== undefined)) {
    yield [
      'kv.cluster.addresses',
      'kv.cluster.addresses and kv.sentinel are both set; set only one of them',
    ];
    return;
  }
  yield* unmetNeeds(config, [
    ['kv.sentinel.addresses', 'kv.sentinel.master_name'],
    ['kv.sentinel.master_name', 'kv.sentinel.addresses'],
    ['kv.sentinel.username', 'kv.sentinel.addresses'],
    ['kv.sentinel.password', 'kv.sentinel.addresses'],
  ]);
  for (const key of ['sentinel', 'cluster'] as const)
    yield* emptyAddresses(`kv.${key}.addresses`, config.kv[key].addresses);
  if (!/^\d{0,9}$/.test(database))
    yield ['kv.database', `kv.database must be a number, not ${JSON.stringify(database)}`];
  else if (nodes && Number(database) !== 0) {
    yield [
      'kv.database',
      `kv.database is ${database}, but a Redis Cluster (kv.cluster.addresses) has only database 0`,
    ];
  }
}

function* kvTlsConflicts(config: Config): Generator<Conflict> {
  const { scheme, tls } = config.kv;
  const unused = (['ca_file', 'cert_file', 'key_file', 'insecure_skip_verify'] as const).find(
    (it) => tls[it],
  );
  if (scheme !== 'rediss' && unused) {
    const key = `kv.tls.${unused}` as const;
    yield [
      key,
      `${key} is set, but kv.scheme is redis, which does not use TLS; set ${named('kv.scheme')} to rediss`,
    ];
    return;
  }
  yield* unmetNeeds(config, [
    ['kv.tls.cert_file', 'kv.tls.key_file'],
    ['kv.tls.key_file', 'kv.tls.cert_file'],
  ]);
  if (tls.insecure_skip_verify && tls.ca_file !== undefined) {
    const sentence =
      'kv.tls.insecure_skip_verify is set, so kv.tls.ca_file has no effect; remove one of them';
    yield ['kv.tls.insecure_skip_verify', sentence];
  }
}

function* serverConflicts(config: Config): Generator<Conflict> {
  const { http } = config.server;
  yield* unmetNeeds(config, [
    ['server.http.ssl', 'server.http.ssl_cert_file'],
    ['server.http.ssl', 'server.http.ssl_key_file'],
    ['billing.enabled', 'billing.url'],
    ['billing.enabled', 'billing.api_key'],
  ]);
  for (const file of ['ssl_cert_file', 'ssl_key_file'] as const) {
    if (http.ssl || http[file] === undefined) continue;
    yield [
      `server.http.${file}`,
      `server.http.${file} is set, but ${named('server.http.ssl')} is not true`,
    ];
  }
  yield* signInConflicts(config);
}

/** No process refuses to start. */
function* otherConflicts(config: Config): Generator<Conflict> {
  const { smtp } = config;
  yield* unmetNeeds(config, [
    ['archive.endpoint', 'archive.url'],
    ['archive.sse_kms_key_id', 'archive.sse'],
    ['archive.access_key_id', 'archive.secret_access_key'],
    ['archive.secret_access_key', 'archive.access_key_id'],
  ]);
  const effect = ', so no notifications are sent';
  yield* unmetNeeds(
    config,
    [[smtp.url === undefined ? 'smtp.provider' : 'smtp.url', 'smtp.from']],
    effect,
  );
  if (smtp.provider === undefined) yield* unmetNeeds(config, [['smtp.from', 'smtp.url']], effect);
  if (smtp.insecure_skip_verify && smtp.ca_file !== undefined) {
    const sentence =
      'smtp.insecure_skip_verify is set, so smtp.ca_file has no effect; remove one of them';
    yield ['smtp.insecure_skip_verify', sentence];
  }
}

function* signInConflicts(config: Config): Generator<Conflict> {
  const { dashboard, oidc, server } = config;
  yield* unmetNeeds(config, [
    ['oidc.issuer', 'oidc.client_id'],
    ['oidc.client_id', 'oidc.issuer'],
    ['oidc.organisation', 'oidc.issuer'],
  ]);
  yield* unmetNeeds(
    config,
    [['oidc.issuer', 'host']],
    ', so the provider cannot redirect users back',
  );
  if (oidc.issuer !== undefined && !isPrivateChannel(oidc.issuer)) {
    yield [
      'oidc.issuer',
      'oidc.issuer must begin with https://: over plain HTTP, anyone on the way could sign in as anyone',
    ];
  }
  if (oidc.issuer !== undefined && !server.auth.native) {
    yield [
      'oidc.issuer',
      `oidc.issuer is set, but ${named('server.auth.native')} is false, so no session is accepted`,
    ];
  }
  if (oidc.issuer !== undefined && !dashboard.enabled) {
    yield [
      'oidc.issuer',
      `oidc.issuer is set, but ${named('dashboard.enabled')} is false, so the provider cannot redirect users back`,
    ];
  }
  if (!server.auth.passwords && oidc.issuer === undefined) {
    yield [
      'server.auth.passwords',
      `server.auth.passwords is false without ${named('oidc.issuer')}, so no one can sign in`,
    ];
  }
}

/** HTTPS or the loopback interface is safe from attackers on the network. */
function isPrivateChannel(url: string): boolean {
  const { protocol, hostname } = new URL(url);
  return protocol === 'https:' || /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
}

function* unmetNeeds(
  config: Config,
  needs: readonly (readonly [key: Key, needed: Key])[],
  effect = '',
): Generator<Conflict> {
  const isSet = (key: Key) => {
    const value = settingAt(config, key);
    return Array.isArray(value) ? value.length > 0 : value !== undefined && value !== false;
  };
  for (const [key, needed] of needs) {
    if (!isSet(key) || isSet(needed)) continue;
    yield [
      key,
      `${key} is ${settingAt(config, key) === true ? 'true' : 'set'} without ${named(needed)}${effect}`,
    ];
  }
}

function named(key: Key): string {
  const row: Setting = settings[key];
  return `${key} (${[...(row.flag ? [`--${row.flag}`] : []), envOf(key, row)].join(', ')})`;
}
