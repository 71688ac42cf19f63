import {
  composed,
  listed,
  row,
  type ConflictCode,
  type SettingProblem,
  type InvalidField,
} from './error-row.js';

export interface KvAddress {
  readonly host: string;
  readonly port: number;
  readonly sentinels?: string;
  readonly nodes?: string;
}
type KvFailure = KvAddress & { readonly reason: string };

function kvName({ host, port, sentinels, nodes }: KvAddress): string {
  if (nodes) return `the Redis Cluster with ${nodes}`;
  return sentinels
    ? `the Redis master behind the Sentinels ${sentinels}`
    : `Redis at ${host}:${port}`;
}

function kvSettings({ sentinels, nodes }: KvAddress): string {
  if (nodes) return 'kv.cluster.addresses (--kv-cluster-addresses, GATEWAY_KV_CLUSTER_ADDRESSES)';
  return sentinels
    ? 'kv.sentinel.addresses (--kv-sentinel-addresses, GATEWAY_KV_SENTINEL_ADDRESSES) and kv.sentinel.master_name (--kv-sentinel-master-name, GATEWAY_KV_SENTINEL_MASTER_NAME)'
    : 'kv.host (--kv-host, GATEWAY_KV_HOST), kv.port (--kv-port, GATEWAY_KV_PORT) and kv.scheme (--kv-scheme, GATEWAY_KV_SCHEME; rediss for TLS)';
}

const WAIT = 'wait {retryAfterSeconds} s, as given in Retry-After';
const SEND_AGAIN = 'send the request again after {retryAfterSeconds} s, as given in Retry-After';
const REASON_IS_LOGGED = 'the operator can find the reason in the server log';
const DB_HOST = 'database.host (--db-host, GATEWAY_DB_HOST)';
const DB_USERNAME = 'database.username (--db-username, GATEWAY_DB_USERNAME)';
const DB_CONNECTIONS =
  'database.max_open_connections (GATEWAY_DB_MAX_OPEN_CONNECTIONS) and database.max_builder_connections (GATEWAY_DB_MAX_BUILDER_CONNECTIONS)';
const SMTP_URL = 'smtp.url (--smtp-url, GATEWAY_SMTP_URL)';
const NEW_KEY =
  'generate one with `openssl rand -base64 32` and set encryption_key in the file or GATEWAY_ENCRYPTION_KEY';
const SET_KEY = 'set encryption_key / GATEWAY_ENCRYPTION_KEY to the key that';
const SET_LICENCE = 'set license_key / GATEWAY_LICENSE_KEY to';

/** Precedes the fix for an answer of an SMTP server, which may be temporary. */
const unlessTemporary = (answer: string) =>
  answer.startsWith('4') ? 'wait, because the answer is temporary; if it lasts, ' : '';

const wrongOnes =
  (things: 'settings' | 'flags') =>
  ({ problems }: { problems: readonly SettingProblem[] }) =>
    problems.length === 1
      ? problems[0]!.sentence
      : `${problems.length} ${things} are wrong:\n${listed(problems)}`;

const ofShard = (shard: string | undefined) =>
  shard === undefined ? '' : ` of the shard ${shard}`;

/** Every error that a user may see. Details must not contain secrets. */
// prettier-ignore
export const errors = {
  // Errors in settings, secrets and licences.
  invalid_settings: row(500,
    wrongOnes('settings'),
    'correct each setting where it is set; `gateway config --help` lists where settings are read from'),
  wrong_flags: row(500,
    wrongOnes('flags'),
    'run the command with --help to see its flags', 2),
  withdrawn: row(500, '{form} is no longer valid', '{instead}', 2),
  wrong_use: composed(400, 2),
  config_unreadable: row(500, 'the configuration file {path} cannot be read: {reason}',
    'name a readable file with --config, or omit the flag to use ./gateway.json if there is one'),
  config_not_json: row(500, 'the configuration file {path} is not a JSON object: {reason}', 'correct the JSON in {path}'),
  encryption_key_missing: row(500, 'no encryption key is set; secrets of endpoints and sources are stored encrypted with it',
    `${NEW_KEY}, the same for every process`),
  encryption_key_invalid: row(500,
    ({ bytes }: { bytes?: number }) =>
      bytes === undefined ? 'encryption_key is not base64' : `encryption_key holds ${bytes} bytes; it must be exactly 32, in base64`,
    NEW_KEY),
  not_unsealable: row(500, 'a stored secret cannot be decrypted with this encryption key',
    `${SET_KEY} it was encrypted with; if other secrets can be decrypted, this one was changed or moved in the database: set it again over the management API`),
  reseal_refused: row(500,
    ({ problems }: { problems: readonly { readonly sentence: string }[] }) =>
      `nothing was changed; the current encryption key does not decrypt:\n${listed(problems)}`,
    `${SET_KEY} they were encrypted with; replace or delete, over the management API, the secrets that no key decrypts any more`),
  agents_running: row(409,
    ({ names }: { names: readonly string[] }) =>
      `${names.length === 1 ? 'an agent is' : `${names.length} agents are`} running (${names.join(', ')}) and could not decrypt the new secrets; nothing was changed`,
    'stop the agents, run this again, and start them with the new key; until then, deliveries wait in Postgres and messages at their brokers'),
  licence_invalid: row(403, 'the licence is not valid: {reason}; the community licence applies',
    ({ fix = `${SET_LICENCE} the token as you received it, or remove it` }: { fix?: string }) => fix),
  licence_expired: row(403, 'the licence of {organisation} expired at {expiredAt}; the community licence applies',
    `renew it and ${SET_LICENCE} the new token; if that time is in the future, correct the clock of this machine, which says {now}`),
  licence_not_yet: row(403,
    'the licence of {organisation} was issued at {issuedAt}, but the clock of this machine says {now}; the community licence applies',
    'correct the clock of this machine and synchronise it with NTP'),

  // Errors of Postgres, KV, the SMTP server and listening ports.
  database_unreachable: row(503, 'Postgres at {host}:{port} cannot be reached: {reason}',
    `check that it runs, and correct ${DB_HOST} and database.port (--db-port, GATEWAY_DB_PORT)`),
  database_tls: row(503, 'TLS with Postgres at {host}:{port} failed: {reason}',
    'correct sslmode, sslrootcert, sslcert and sslkey in database.options (--db-options, GATEWAY_DB_OPTIONS), and set database.host to the host name in its certificate'),
  database_refused: row(503, 'Postgres at {host}:{port} refused the user {username}',
    `check ${DB_USERNAME} and database.password (--db-password, GATEWAY_DB_PASSWORD), and restart; database.password_file and database.password_command take effect without a restart`),
  password_unreadable: row(503, '{setting} gives no password: {reason}',
    'run the command, or read the file, as the user of the gateway, and correct what fails'),
  database_missing: row(503, 'there is no database {database} on Postgres at {host}:{port}',
    'create it with `createdb --encoding UTF8 --template template0 --locale C {database}`, or check database.database (--db-database, GATEWAY_DB_DATABASE)'),
  database_full: row(503, 'Postgres at {host}:{port} has no free connections: {reason}',
    `raise that limit, or lower ${DB_CONNECTIONS}`),
  database_busy: row(503, 'no connection to Postgres at {host}:{port} became free in time: all connections of this process are in use',
    `find in pg_stat_activity what their statements wait for; if they are only busy, raise ${DB_CONNECTIONS}`),
  database_timeout: row(503, 'Postgres at {host}:{port} cancelled a statement: {reason}',
    'find the session in pg_stat_activity that holds the locks, and end it; if Postgres is only slow, raise the limit where it is set: for the role {username}, the database {database}, the server, or in database.options (GATEWAY_DB_OPTIONS)'),
  database_forbidden: row(503, 'Postgres at {host}:{port} denies the user {username} a permission that the gateway needs: {reason}',
    `make {username} the owner of the tables in {database}, or set ${DB_USERNAME} to the owner, who ran \`gateway migrate up\``),
  database_pooled: row(503, 'a connection pooler answers at {host}:{port}, where Postgres itself is expected: {reason}',
    'set database.direct.host (GATEWAY_DB_DIRECT_HOST) and database.direct.port (GATEWAY_DB_DIRECT_PORT) to Postgres itself, or database.pooled (GATEWAY_DB_POOLED) to true if only the pooler is reachable, and the pooler to transaction mode; docs/guides/deploy.md, Connection pooler'),
  database_setting: row(503, 'Postgres at {host}:{port} runs sessions of the gateway with {name} = {value}, set by {origin}; the gateway needs {needed}', '{remedy}'),
  database_encoding: row(503, 'the database {database} on Postgres at {host}:{port} has the encoding {encoding}, which cannot store all text; the gateway requires UTF8',
    `create a database with \`createdb --encoding UTF8 --template template0 --locale C gateway\`, and set database.database (--db-database, GATEWAY_DB_DATABASE) to it; move existing data with pg_dump and pg_restore`),
  database_time: row(503, 'Postgres sent a time that cannot be read: {text}',
    'find what changes DateStyle for sessions of the gateway, such as connect_query of the pooler, and remove it; then start again'),
  database_read_only: row(503, 'Postgres at {host}:{port} is read-only: it is a replica, or default_transaction_read_only is on',
    `set ${DB_HOST} to the primary, or make this server writable`),
  database_exhausted: row(503, 'Postgres at {host}:{port} cannot write: {reason}',
    'free disk space or memory on its host; the gateway needs no restart'),
  migration_pending: row(503,
    ({ pending, shard }: { pending: readonly string[]; shard?: string }) =>
      `the database${ofShard(shard)} lacks ${pending.length === 1 ? 'a migration' : `${pending.length} migrations`}: ${pending.join(', ')}`,
    'run `gateway migrate up`, then start again'),
  database_newer: row(503,
    ({ unknown, shard }: { unknown: readonly string[]; shard?: string }) => `the database${ofShard(shard)} is newer than this gateway: it has ${unknown.join(', ')}`,
    'install the version of the gateway that made these migrations, or a later one'),
  shard_unknown: row(503, 'this process does not know the shard {name}',
    'try again in a few seconds, when it has read the shards; if it stays, compare the project with `gateway shards list`'),
  project_moved: row(503, 'the project is being moved to another shard: nothing was stored', SEND_AGAIN),
  shard_schema: row(503, 'the sessions of the shard {name} use the schema {found} instead of {schema}',
    'create the schema if it is missing; a pooler in transaction mode keeps no search_path: set it with `alter role … in database … set search_path`'),
  shard_unusable: row(409, 'the shard {name} cannot be used: {reason}',
    'check that its database runs, and the address, user and password of the shard; `gateway shards set` changes those of one that was added'),
  shards_failed: row(503,
    ({ problems }: { problems: readonly { readonly sentence: string }[] }) =>
      `${problems.length === 1 ? 'a shard' : `${problems.length} shards`} failed, and the others are done:\n${listed(problems)}`,
    'resolve what is reported, then run the command again: it continues with what is left'),
  migration_drops: row(409,
    ({ migrations, tables }: { migrations: readonly string[]; tables: readonly string[] }) =>
      `rolling back ${migrations.join(', ')} would drop ${tables.length === 1 ? 'a table that holds' : 'tables that hold'} data: ${tables.join(', ')}; nothing was rolled back`,
    ({ before }: { before: number }) =>
      `${before > 0 ? `\`--max ${before}\` stops before that; ` : ''}to delete the data, back up Postgres and run the command again with \`--drop-data\``),
  migration_failed: row(503, 'the migration {file} failed: {reason}; {left}',
    'resolve what Postgres reports, or correct {file}, then run the command again'),
  migration_locked: row(503,
    ({ file, seconds, holders }: { file: string; seconds: number; holders: readonly string[] }) =>
      `the migration ${file} could not lock its tables within ${seconds} s and was rolled back; ${
        holders.length === 0 ? 'other sessions hold them' : `the longest transactions belong to ${holders.join(', ')}`
      }`,
    'wait until they finish (a backup, for example) or end them with `select pg_terminate_backend(pid)`, then run the command again'),
  kv_unreachable: row(503, (it: KvFailure) => `${kvName(it)} cannot be reached: ${it.reason}`,
    (it: KvFailure) => `check that it runs, and correct ${kvSettings(it)}`),
  kv_tls: row(503, (it: KvFailure) => `TLS with ${kvName(it)} failed: ${it.reason}`,
    (it: KvFailure) =>
      `set its certificate authority with kv.tls.ca_file (--kv-tls-ca-file, GATEWAY_KV_TLS_CA_FILE), the client certificate that it requires with kv.tls.cert_file and kv.tls.key_file, and the host name in its certificate with ${kvSettings(it)}`),
  kv_refused: row(503, (it: KvFailure) => `${kvName(it)} refused the connection: ${it.reason}`,
    ({ sentinels }: KvFailure) =>
      `check kv.username, kv.password and kv.database${sentinels ? ', and kv.sentinel.username and kv.sentinel.password' : ''} (--kv-username, --kv-password, --kv-database, or GATEWAY_KV_USERNAME and so on), and restart; kv.password_file takes effect without a restart`),
  kv_denied: row(503, (it: KvFailure & { readonly what: string }) => `${kvName(it)} ${it.reason}`, '{what}'),
  smtp_setting: composed(),
  smtp_unreachable: row(503, 'the SMTP server at {host}:{port} cannot be reached: {reason}',
    `check that it runs, and correct ${SMTP_URL}, smtp.port (--smtp-port, GATEWAY_SMTP_PORT) and smtp.ssl (--smtp-ssl, GATEWAY_SMTP_SSL)`),
  smtp_tls: row(503, 'TLS with the SMTP server at {host}:{port} failed: {reason}',
    ({ answer }: { answer?: string | undefined }) => answer === undefined
      ? `name its certificate or certificate authority with smtp.ca_file (GATEWAY_SMTP_CA_FILE), set ${SMTP_URL} to the host that its certificate is for, and set smtp.ssl (--smtp-ssl, GATEWAY_SMTP_SSL) only for a port that speaks TLS from the first byte, usually 465; for a relay on this machine, smtp.insecure_skip_verify (GATEWAY_SMTP_INSECURE_SKIP_VERIFY) accepts any certificate`
      : 'set smtp.starttls (GATEWAY_SMTP_STARTTLS): required, if the server demands TLS; opportunistic, if it refuses TLS and takes emails without a login; off, to send emails and the login unencrypted, which is safe on this machine only'),
  smtp_login: row(503,
    ({ host, port, username, answer }: { host: string; port: number; username: string | undefined; answer: string }) =>
      `the SMTP server at ${host}:${port} refused ${username === undefined ? 'the connection without a login' : `the login of ${username}`}: ${answer}`,
    ({ answer }: { answer: string }) => `${unlessTemporary(answer)}check smtp.username (--smtp-username, GATEWAY_SMTP_USERNAME) and smtp.password (--smtp-password, GATEWAY_SMTP_PASSWORD), and restart; smtp.password_file takes effect without a restart`),
  smtp_refused: row(503, 'the SMTP server at {host}:{port} refused {what}: {answer}',
    ({ answer, fix }: { answer: string; fix: string }) => unlessTemporary(answer) + fix),
  port_in_use: row(500, 'port {port} on {bind} is already in use',
    'stop the process that listens there, or choose another port with {flag} or {setting}'),
  port_refused: row(500, 'cannot listen on {bind}:{port}: {reason}',
    ({ setting, flag, addressSetting = 'server.http.bind' }: { setting: string; flag: string; addressSetting?: string }) =>
      `choose a port that this user may open with ${flag} or ${setting}, and an address of this machine with ${addressSetting}`),
  host_invalid: row(500, ({ host, reason }: { host: string; reason: string }) => `the host ${JSON.stringify(host)} cannot be used: ${reason}`,
    'give only the public host name with --host or GATEWAY_HOST, such as gateway.example.com or https://gateway.example.com:8443'),
  credential_invalid: row(500, 'entry {number} of {setting} {reason}', '{fix}; it is set by {flag}, {env} or the configuration file'),
  no_credentials: row(500,
    'no request could be authenticated: server.auth.native is false and neither server.auth.api_keys nor server.auth.basic is set',
    'set credentials with --api-auth (GATEWAY_API_AUTH) or --basic-auth (GATEWAY_BASIC_AUTH), or accept the stored API keys with --native (GATEWAY_NATIVE_AUTH=true)'),
  tls_file: row(500, 'the {what} in {path} cannot be used: {reason}', 'correct the file, or name another with {flag} or {setting}'),

  // Errors of the archive.
  archive_off: row(500, 'there is no archive: archive.url is not set',
    'set archive.url (GATEWAY_ARCHIVE_URL) to a bucket or a folder, as the agents have it; see docs/guides/archive.md'),
  archive_unavailable: row(503, 'the archive {place} cannot be used: {reason}',
    ({ fix }: { fix: string | undefined }) =>
      fix ?? 'check archive.url, archive.region, archive.endpoint and the credentials, and that they allow s3:GetObject, s3:PutObject and s3:ListBucket, or that this user may write to the folder'),
  archive_broken: row(500, '{key} in the archive {place} cannot be read: {reason}',
    'restore an earlier version of the object, or upgrade this gateway if a newer one wrote it'),

  // Errors of packages and plugins, and of the plugin folder.
  package_missing: row(500, '{neededBy} needs the package {name}, which is not installed',
    'run `npm install {name}@{version}` in the folder where the gateway is installed, or `npm install -g @gateway/cli@{version} {name}@{version}` if it is installed with -g'),
  plugin_manifest_broken: row(500, 'the manifest of the plugin package {package} is broken: {reason}',
    'correct the `gateway` object in its package.json, or install another version'),
  plugin_setting_claimed: row(500, 'the {kind} plugin {name} claims {what}, which belongs to {owner}',
    'rename it in the settings file of the plugin, or remove one of the two'),
  plugin_not_installed: row(500, 'the plugin package {package} is named in {folder}/package.json but is not installed',
    'run `npm install` in {folder}, or `npm uninstall {package}` there'),
  plugin_unknown: row(404, 'there is no plugin and no plugin package named {name}{hint}', 'name one of the installed plugins: {known}'),
  not_a_plugin: row(500, '{package} is not a plugin of the gateway: {reason}',
    'name a package with a `gateway` object in its package.json; see docs/guides/write-a-plugin.md'),
  plugins_dir_unwritable: row(500, 'the plugin folder {path} cannot be written: {reason}',
    'give this user the right to write there, or name another folder with plugins.dir (GATEWAY_PLUGINS_DIR)'),
  plug_n_play: row(500, 'the gateway is installed by Yarn Plug\'n\'Play, which keeps packages in archives; functions run in processes that cannot read them',
    'set `nodeLinker: node-modules` in .yarnrc.yml, and run `yarn install`'),
  npm_missing: row(500, 'npm cannot be run: {reason}', 'install npm, which comes with Node, and put it on the PATH'),
  npm_failed: row(500, '`{command}` failed in {folder}: {reason}',
    'check the name and version of the package, and that its registry can be reached from here'),
  plugin_without_rig: row(500, 'the {kind} plugin {name} has no conformance rig: {file}',
    'name the module with the rig as `conformance` in the manifest; `gateway plugins create source <name>` creates a plugin that has one'),
  plugins_missed: row(500,
    ({ problems }: { problems: readonly { readonly sentence: string }[] }) =>
      `plugins.strict is set, but these plugins that the configuration selects are not active:\n${listed(problems)}`,
    'follow `gateway plugins`, which lists every plugin with its fix, or start without --strict-plugins to run without them'),
  plugin_missing: row(500, 'no {kind} plugin named {name} is installed{hint}', 'install it, or correct {setting}'),
  plugin_api: row(500, 'the {kind} plugin {name} ({package} {version}) is built for plugin API {range}, but this gateway has {ours}',
    'install a version of {package} for plugin API {ours}; if there is none, ask its author to build it with @gateway/plugin of this gateway and to widen `gateway.api`'),
  plugin_not_selected: row(500, 'not selected', '{how}'),
  plugin_flag_off: row(500, 'the feature flag {flag} is off',
    'switch {flag} on with --enable-feature-flag={flag} or GATEWAY_ENABLE_FEATURE_FLAG={flag}'),
  plugin_not_entitled: row(403, '{licence} does not include {entitlement}',
    `${SET_LICENCE} a licence that includes {entitlement}`),
  metrics_no_backend: row(500,
    ({ selected }: { selected: string | undefined }) =>
      selected ? `the selected metrics backend is ${selected}` : 'no metrics backend is selected',
    'set metrics.metrics_backend to {name} (--metrics-backend={name}, GATEWAY_METRICS_BACKEND={name})'),
  metrics_off: row(500,
    ({ origin }: { origin: string | undefined }) => `metrics.enabled is false${origin ? ` (from ${origin})` : ''}`,
    'set metrics.enabled to true (--metrics-enabled, GATEWAY_METRICS_ENABLED=true)'),
  metrics_closed: row(500,
    ({ gates }: { gates: readonly { reason: string; fix: string }[] }) =>
      `${gates.length} gates are closed: ${gates.map(({ reason }) => reason).join(', ')}`,
    ({ gates }: { gates: readonly { reason: string; fix: string }[] }) => gates.map(({ fix }) => fix).join(', and ')),
  plugin_settings: row(500,
    ({ problems }: { problems: readonly SettingProblem[] }) => `its settings are wrong: ${problems.map(({ sentence }) => sentence).join('; ')}`,
    'correct each setting where it is set'),
  plugin_import: row(500, 'importing {module} failed: {reason}',
    ({ fix = 'reinstall the plugin; if the error persists, report it to its author' }: { fix?: string }) => fix),
  plugin_start: row(500, 'it failed to start: {reason}', '{fix}'),
  plugin_second_tracer: row(500, 'the tracer {active} is already active in this process, which can have only one; {name} was not started',
    'set tracer.type (--tracer-type, GATEWAY_TRACER_PROVIDER) to one tracer'),

  // Errors in requests to the control plane and in the arguments of commands.
  not_found: row(404,
    ({ thing, id }: { thing: string; id?: string }) => (id === undefined ? `${thing} not found` : `${thing} ${id} not found`),
    ({ fix = 'check the id, and that your key has access to the project it belongs to' }: { fix?: string }) => fix),
  unauthorized: row(401, '{reason}', '{fix}'),
  server_unreachable: row(503, 'the server at {url} cannot be used: {reason}',
    'check that it runs, and client.url (GATEWAY_URL or --url); without it, the command works on the database of the settings'),
  server_refused: row(401, 'the server at {url} refuses the request: {reason}',
    'set client.key (GATEWAY_KEY or --key) to a personal key, as from `gateway bootstrap`, or to a key of the project'),
  too_many_requests: row(429, 'this credential made more than {limit} requests in one second (api_rate_limit)',
    `${WAIT}, and send requests more slowly; the operator can raise the limit with --api-rate-limit or GATEWAY_API_RATE_LIMIT`),
  too_many_portal_requests: row(429, 'this portal link made more than {limit} requests a second (portal.requests_per_second)',
    `${WAIT}, and send requests more slowly; the operator can raise the limit with GATEWAY_PORTAL_REQUESTS_PER_SECOND`),
  too_many_tests: row(429, 'this project tested the connections of sources more often than {limit} times a second (server.connection_tests)',
    `${WAIT}, or send skip_check=true and check in the health of the agents whether the source is read; the operator can raise the limit with GATEWAY_CONNECTION_TESTS`),
  too_many_resets: row(429, 'too many password reset links were requested from this address', 'wait, or ask the operator for a link: `gateway utils users reset-password`'),
  too_many_function_tests: row(429, 'this project tested functions more often than {limit} times a second (server.function_tests)',
    `${WAIT}; the operator can raise the limit with GATEWAY_FUNCTION_TESTS`),
  too_many_test_events: row(429, 'test events were sent to endpoints of this owner more often than {limit} times a second', WAIT),
  too_many_searches: row(429, '{waiting} searches and batches of this project are already waiting; one of a project runs at a time, and {most} of all projects',
    `${WAIT}, and narrow the search with startDate, event_type or status`),
  too_many_events: row(429, 'this project sent more than {limit} events in one second to this server (limits.events_per_second); each 16 KB of an event counts as one more',
    `${WAIT}, and send events more slowly; the operator can raise limits.events_per_second (GATEWAY_LIMITS_EVENTS_PER_SECOND)`),
  too_many_at_once: row(429, 'too many requests are waiting: {limit} run at a time ({setting})',
    `${WAIT}, and send fewer requests at a time; the operator can raise {setting}`),
  too_many_logins: row(429, 'too many logins {where} have failed',
    `${WAIT}, and correct the credentials; if this is the address of a load balancer, the operator must add it to server.trusted_proxies (GATEWAY_TRUSTED_PROXIES)`),
  too_many_passwords: row(429, 'too many passwords are being checked, so this one was not; each check takes half a second',
    `${WAIT}, and sign in again; browsers that have signed in before are served first`),
  took_too_long: row(503, 'the request took longer than {seconds} s, though the database answers: {outcome}',
    'send the request again later; the operator can find it in the server log by its request id'),
  database_away: row(503, 'the database of the gateway is unavailable: {outcome}',
    `${SEND_AGAIN}; ${REASON_IS_LOGGED} and at /healthz?ready`),
  database_takes_no_writes: row(503, 'the database of the gateway accepts no writes: {outcome}',
    `${SEND_AGAIN}; read requests still work; ${REASON_IS_LOGGED}`),
  shard_away: row(503, 'the database of the shard {shard} {state}: {outcome}',
    `${SEND_AGAIN}; projects on other shards are not affected; ${REASON_IS_LOGGED} and at /healthz?ready`),
  closing: row(503, 'this process is shutting down; nothing was stored',
    `${SEND_AGAIN}, to another process or to this one once it runs again`),
  kv_away: row(503, 'the KV store of the gateway cannot be reached: {outcome}',
    `${SEND_AGAIN}; ${REASON_IS_LOGGED}`),
  functions_unavailable: row(503, 'transform functions cannot run now: {reason}',
    `${SEND_AGAIN}; ${REASON_IS_LOGGED}`),
  signature_invalid: row(401, 'the request cannot be verified: {reason}',
    'check the verifier of the source, and that the sender uses the same secret'),
  request_refused: row(400, '{reason}', '{fix}'),
  push_failed: row(503, 'the source plugin {name} failed: {reason}', `${SEND_AGAIN}; ${REASON_IS_LOGGED}`),
  codec_unavailable: row(503, 'the codec {name} cannot decode messages now: {reason}', '{fix}'),
  source_paused: row(503, 'this source is paused',
    `${SEND_AGAIN}; to end the pause, resume the source`),
  forbidden: row(403, '{reason}', 'use an API key of a user or project with this permission'),
  scope_missing: row(403, 'this requires the scope {scope}, which the API key {key} does not have',
    'use another API key, or add {scope} to the scopes of this one'),
  csrf_token_missing: row(403, 'a request of a session that changes data needs a valid x-csrf-token header',
    'send the csrf_token of GET /api/v1/auth/session in the header x-csrf-token; programs should use an API key instead of a session'),
  login_failed: row(401, 'the email address or the password is wrong', 'check both; an admin of the organisation can invite you again'),
  oidc_off: row(404, 'sign-in with an OpenID Connect provider is not set up', 'sign in with email address and password; the operator can set up a provider with oidc.issuer'),
  oidc_unavailable: row(503, 'the sign-in provider is unavailable: {reason}',
    'try again in a minute; the operator can find the cause in the server log'),
  oidc_failed: row(401, 'the sign-in failed: {reason}', 'start again on the sign-in page; if it fails again, ask the operator, who can find the cause in the server log'),
  oidc_refused: row(403, 'this gateway does not allow {email} to sign in: {reason}', '{fix}'),
  invitation_invalid: row(404, 'the invitation is not valid: it was accepted, was revoked, or has expired', 'ask an admin of the organisation for a new one'),
  reset_invalid: row(404, 'the link is not valid: it was used or has expired', 'request a new one on the sign-in page, or ask the operator'),
  conflict: row(409, '{sentence}', ({ fix = 'read the current state and try again' }: { fix?: string; conflict?: ConflictCode }) => fix),
  stale: row(412, 'the object has changed: its ETag is {current}, which is not in If-Match',
    'read the object again, apply your change to it, and send it with the new ETag'),
  idempotency_key_reused: row(422, 'this Idempotency-Key was used for a different request',
    'use a new key for each request, and repeat a key only with the same request'),
  request_in_progress: row(409, 'a request with this Idempotency-Key is in progress', 'send it again after {retryAfterSeconds} s, as given in Retry-After'),
  outcome_unknown: row(409, 'a request with this Idempotency-Key was interrupted; whether it created something is unknown',
    'check whether the object exists; if not, send the request with a new key'),
  host_header_invalid: row(400, 'the request has {problem}', 'send one Host header with the name and the port of this server'),
  invalid_request: row(422,
    ({ problems }: { problems: readonly InvalidField[] }) => problems.map((it) => `${it.field}: ${it.sentence}`).join('; '),
    'correct the named fields'),
  project_full: row(422, 'the project has {max} {things}, and {setting} allows no more',
    'delete {things} that are not needed; the operator can raise {setting}'),
  bad_body: row(400, 'the body {reason}', 'send a JSON object in UTF-8'),
  body_slow: row(408, 'the body did not arrive within {seconds} s',
    'send the whole body at once; the operator can raise server.http.body_timeout_seconds (GATEWAY_BODY_TIMEOUT_SECONDS)'),
  too_many_bodies: row(429, 'too many request bodies at a time: those of one sender may hold {limit} bytes',
    `${WAIT}, and send fewer or smaller requests at a time`),
  body_too_large: row(413, 'the body is larger than {limit} bytes',
    'send a smaller body; ingest.max_message_bytes (GATEWAY_INGEST_MAX_MESSAGE_BYTES) sets the limit for events and quarantined messages, other limits are fixed'),
  unsupported_media_type: row(415,
    ({ given }: { given: string }) => (given ? `the content type ${given} is not supported` : 'the request has no content type'),
    'send JSON with `content-type: application/json` and without a content encoding'),
  method_not_allowed: row(405, '{path} does not support {method}', 'use {allowed}'),
  source_check_failed: row(422, 'the {kind} connection does not work: {reason}', '{fix}'),
  source_not_moved: row(422, 'the {kind} source was not moved: {reason}', '{fix}'),
  quarantined_unknown: row(404,
    ({ unknown }: { unknown: readonly string[] }) => `there is no quarantined message ${unknown.join(', ')}; nothing was changed`,
    '`gateway utils quarantine list` shows the ids; deleting a project deletes its messages'),
  editor_failed: row(500, 'the editor `{editor}` {reason}; the message is unchanged',
    'set VISUAL or EDITOR to a command that returns when the file is closed, such as `code --wait`, or give the content with --file'),
  event_unknown: composed(404),
  openapi_broken: row(422, '{file}: {reason}',
    ({ fix = 'correct the document; docs/guides/openapi.md describes what is read from it' }: { fix?: string }) => fix),
  event_type_twice: row(409, 'the event type {name} is declared twice: by {first} and by {second}',
    'rename one of the two, or import the documents one at a time'),
  email_in_use: row(409, 'a user with the email {email} already exists', 'choose another email'),
  internal: row(500, '{reason}', 'this is a bug in the gateway: run the command again with --log-level=debug and report the output'),
} as const;
