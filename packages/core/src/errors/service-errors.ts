import { composed, row } from './error-row.js';

export interface KvAddress {
  readonly host: string;
  readonly port: number;
  /** Addresses of the Sentinels that were asked. */
  readonly sentinels?: string;
  /** Addresses of the nodes of the Cluster that were asked. */
  readonly nodes?: string;
}
type KvFailure = KvAddress & { readonly reason: string };

function kvName({ host, port, sentinels, nodes }: KvAddress): string {
  if (nodes) return `the Redis Cluster with ${nodes}`;
  return sentinels ? `the Redis master behind the Sentinels ${sentinels}` : `Redis at ${host}:${port}`;
}

function kvSettings({ sentinels, nodes }: KvAddress): string {
  if (nodes) return 'kv.cluster.addresses (--kv-cluster-addresses, GATEWAY_KV_CLUSTER_ADDRESSES)';
  return sentinels
    ? 'kv.sentinel.addresses (--kv-sentinel-addresses, GATEWAY_KV_SENTINEL_ADDRESSES) and kv.sentinel.master_name (--kv-sentinel-master-name, GATEWAY_KV_SENTINEL_MASTER_NAME)'
    : 'kv.host (--kv-host, GATEWAY_KV_HOST), kv.port (--kv-port, GATEWAY_KV_PORT) and kv.scheme (--kv-scheme, GATEWAY_KV_SCHEME; rediss for TLS)';
}

/** Postgres, KV, the SMTP server, and the ports that the gateway listens on. */
// prettier-ignore
export const serviceErrors = {
  database_unreachable: row(503, 'Postgres at {host}:{port} cannot be reached: {reason}',
    'check that it runs, and correct database.host (--db-host, GATEWAY_DB_HOST) and database.port (--db-port, GATEWAY_DB_PORT)'),
  database_tls: row(503, 'TLS with Postgres at {host}:{port} failed: {reason}',
    'correct sslmode, sslrootcert, sslcert and sslkey in database.options (--db-options, GATEWAY_DB_OPTIONS), and set database.host to the host that its certificate is for'),
  database_refused: row(503, 'Postgres at {host}:{port} refused the user {username}',
    'check database.username (--db-username, GATEWAY_DB_USERNAME) and database.password (--db-password, GATEWAY_DB_PASSWORD)'),
  database_missing: row(503, 'there is no database {database} on Postgres at {host}:{port}',
    'create it with `createdb {database}`, or check database.database (--db-database, GATEWAY_DB_DATABASE)'),
  database_full: row(503, 'Postgres at {host}:{port} has no free connections: {reason}',
    'raise that limit, or lower database.max_open_connections (GATEWAY_DB_MAX_OPEN_CONNECTIONS) and database.max_builder_connections (GATEWAY_DB_MAX_BUILDER_CONNECTIONS)'),
  database_busy: row(503, 'no connection to Postgres at {host}:{port} became free in time: all those of this process are in use',
    'find in pg_stat_activity what their statements wait for; if they only have much to do, raise database.max_open_connections (GATEWAY_DB_MAX_OPEN_CONNECTIONS) and database.max_builder_connections (GATEWAY_DB_MAX_BUILDER_CONNECTIONS)'),
  database_timeout: row(503, 'Postgres at {host}:{port} cancelled a statement: {reason}',
    'find in pg_stat_activity which session holds the locks that it waits for, and end that; if Postgres is only slow, raise that limit where it is set: for the role {username}, the database {database}, the server, or in database.options (GATEWAY_DB_OPTIONS)'),
  database_forbidden: row(503, 'Postgres at {host}:{port} does not allow the user {username} what the gateway does: {reason}',
    'make {username} the owner of the tables in {database}, or set database.username (--db-username, GATEWAY_DB_USERNAME) to the owner, with which `gateway migrate up` ran'),
  database_pooled: row(503, 'a connection pooler answers at {host}:{port}, where Postgres itself is expected: {reason}',
    'set database.direct.host (GATEWAY_DB_DIRECT_HOST) and database.direct.port (GATEWAY_DB_DIRECT_PORT) to Postgres itself, and the pooler to transaction mode; docs/guides/deploy.md, Connection pooler'),
  database_read_only: row(503, 'Postgres at {host}:{port} is read-only: it is a replica, or default_transaction_read_only is on',
    'set database.host (--db-host, GATEWAY_DB_HOST) to the primary, or make this server writable'),
  database_exhausted: row(503, 'Postgres at {host}:{port} cannot write: {reason}',
    'free disk space or memory on its host; the gateway needs no restart'),
  migration_pending: row(503,
    ({ pending }: { pending: readonly string[] }) =>
      `the database lacks ${pending.length === 1 ? 'a migration' : `${pending.length} migrations`}: ${pending.join(', ')}`,
    'run `gateway migrate up`, then start again'),
  database_newer: row(503,
    ({ unknown }: { unknown: readonly string[] }) => `the database is newer than this gateway: it has ${unknown.join(', ')}`,
    'install the version of the gateway that made these migrations, or a later one'),
  migration_drops: row(409,
    ({ migrations, tables }: { migrations: readonly string[]; tables: readonly string[] }) =>
      `rolling back ${migrations.join(', ')} would drop ${tables.length === 1 ? 'a table that holds' : 'tables that hold'} data: ${tables.join(', ')}; nothing was rolled back`,
    ({ before }: { before: number }) =>
      `${before > 0 ? `\`--max ${before}\` stops before that; ` : ''}to lose them on purpose, back Postgres up and repeat it with \`--drop-data\``),
  migration_failed: row(503, 'the migration {file} failed: {reason}; {left}',
    'resolve what Postgres reports, or correct {file}, then run the command again'),
  migration_locked: row(503,
    ({ file, seconds, holders }: { file: string; seconds: number; holders: readonly string[] }) =>
      `the migration ${file} could not lock its tables within ${seconds} s and was rolled back; ${
        holders.length === 0 ? 'other sessions hold them' : `the longest transactions are of ${holders.join(', ')}`
      }`,
    'wait until they finish (a backup, for example) or end them with `select pg_terminate_backend(pid)`, then run the command again'),
  kv_unreachable: row(503, (it: KvFailure) => `${kvName(it)} cannot be reached: ${it.reason}`,
    (it: KvFailure) => `check that it runs, and correct ${kvSettings(it)}`),
  kv_tls: row(503, (it: KvFailure) => `TLS with ${kvName(it)} failed: ${it.reason}`,
    (it: KvFailure) =>
      `name its certificate authority with kv.tls.ca_file (--kv-tls-ca-file, GATEWAY_KV_TLS_CA_FILE), the client certificate that it requires with kv.tls.cert_file and kv.tls.key_file, and the host that its certificate is for with ${kvSettings(it)}`),
  kv_refused: row(503, (it: KvFailure) => `${kvName(it)} refused the connection: ${it.reason}`,
    ({ sentinels }: KvFailure) =>
      `check kv.username, kv.password and kv.database${sentinels ? ', and kv.sentinel.username and kv.sentinel.password' : ''} (--kv-username, --kv-password, --kv-database, or GATEWAY_KV_USERNAME and so on)`),
  billing_setting: row(500, 'billing.enabled is true, but billing.{setting} is not set',
    ({ setting }: { setting: 'url' | 'api_key' }) => {
      const name = setting === 'url' ? 'billing.url (--billing-url, GATEWAY_BILLING_URL)' : 'billing.api_key (--billing-api-key, GATEWAY_BILLING_API_KEY)';
      return `set ${name}, or set billing.enabled to false`;
    }),
  smtp_setting: composed(),
  smtp_unreachable: row(503, 'the SMTP server at {host}:{port} cannot be reached: {reason}',
    'check that it runs, and correct smtp.url (--smtp-url, GATEWAY_SMTP_URL), smtp.port (--smtp-port, GATEWAY_SMTP_PORT) and smtp.ssl (--smtp-ssl, GATEWAY_SMTP_SSL)'),
  smtp_tls: row(503, 'TLS with the SMTP server at {host}:{port} failed: {reason}',
    'name its certificate authority with smtp.ca_file (GATEWAY_SMTP_CA_FILE), set smtp.url (--smtp-url, GATEWAY_SMTP_URL) to the host that its certificate is for, and set smtp.ssl (--smtp-ssl, GATEWAY_SMTP_SSL) only for a port that speaks TLS from the first byte, usually 465'),
  smtp_login: row(503,
    ({ host, port, username, answer }: { host: string; port: number; username: string | undefined; answer: string }) =>
      `the SMTP server at ${host}:${port} refused ${username === undefined ? 'the connection without a login' : `the login of ${username}`}: ${answer}`,
    'check smtp.username (--smtp-username, GATEWAY_SMTP_USERNAME) and smtp.password (--smtp-password, GATEWAY_SMTP_PASSWORD)'),
  smtp_refused: row(503, 'the SMTP server at {host}:{port} refused {what}: {answer}',
    'correct {setting}, or allow this login to send on that server'),
  port_in_use: row(500, 'port {port} on {bind} is already in use',
    'stop the process that listens there, or choose another port with {flag} or {setting}'),
  port_refused: row(500, 'cannot listen on {bind}:{port}: {reason}',
    ({ setting, flag, addressSetting = 'server.http.bind' }: { setting: string; flag: string; addressSetting?: string }) =>
      `choose a port that this user may open with ${flag} or ${setting}, and an address of this machine with ${addressSetting}`),
  host_invalid: row(500, ({ host, reason }: { host: string; reason: string }) => `the host ${JSON.stringify(host)} cannot be used: ${reason}`,
    'give the public name alone with --host or GATEWAY_HOST, such as gateway.example.com or https://gateway.example.com:8443'),
  credential_invalid: row(500, 'entry {number} of {setting} {reason}', '{fix}; it is set by {flag}, {env} or the configuration file'),
  no_credentials: row(500,
    'no request could be authenticated: server.auth.native is false and neither server.auth.api_keys nor server.auth.basic is set',
    'set credentials with --api-auth (GATEWAY_API_AUTH) or --basic-auth (GATEWAY_BASIC_AUTH), or accept the stored API keys with --native (GATEWAY_NATIVE_AUTH=true)'),
  tls_incomplete: composed(),
  tls_file: row(500, 'the {what} in {path} cannot be used: {reason}', 'correct the file, or name another with {flag} or {setting}'),
} as const;
