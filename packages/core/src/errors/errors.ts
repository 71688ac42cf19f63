/** One mistake in the settings: which, from where, and a whole sentence. */
export interface Problem {
  readonly key: string;
  /** A flag (`--port`), a variable (`AGENT_PORT`) or the file (`./gateway.json`). */
  readonly origin: string;
  readonly sentence: string;
}

/** One mistake in a request: a path into the body, and what is wrong there. */
export interface InvalidField {
  readonly field: string;
  readonly sentence: string;
}

interface Row<Details> {
  /** Exit status of a command that ends with this error: 1 failed, 2 wrong use. */
  readonly exit: 1 | 2;
  /** Status of an HTTP answer that carries it. */
  readonly http: number;
  /** What happened, to which thing. */
  readonly message: (details: Details) => string;
  /** What to do about it. */
  readonly fix: (details: Details) => string;
}

type None = Record<never, never>;
interface DatabaseAddress {
  readonly host: string;
  readonly port: number;
  readonly database: string;
  readonly username: string;
}
interface KvAddress {
  readonly host: string;
  readonly port: number;
  /** Addresses of the Sentinels that were asked. */
  readonly sentinels?: string;
  /** Addresses of the nodes of the Cluster that were asked. */
  readonly nodes?: string;
}
interface SmtpServer {
  readonly host: string;
  readonly port: number;
}
interface Plugin {
  readonly kind: string;
  readonly name: string;
}

function kvName({ host, port, sentinels, nodes }: KvAddress): string {
  if (nodes) return `the Redis Cluster with ${nodes}`;
  return sentinels ? `Redis, looked for through the Sentinels ${sentinels},` : `Redis at ${host}:${port}`;
}

function kvSettings({ sentinels, nodes }: KvAddress): string {
  if (nodes) return 'kv.cluster.addresses (--kv-cluster-addresses, GATEWAY_KV_CLUSTER_ADDRESSES)';
  return sentinels
    ? 'kv.sentinel.addresses (--kv-sentinel-addresses, GATEWAY_KV_SENTINEL_ADDRESSES) and kv.sentinel.master_name (--kv-sentinel-master-name, GATEWAY_KV_SENTINEL_MASTER_NAME)'
    : 'kv.host (--kv-host, GATEWAY_KV_HOST), kv.port (--kv-port, GATEWAY_KV_PORT) and kv.scheme (--kv-scheme, GATEWAY_KV_SCHEME), which is rediss where it speaks TLS';
}

const row = <Details = None>(it: Row<Details>): Row<Details> => it;
const list = (lines: readonly { readonly sentence: string }[]) => lines.map(({ sentence }) => `  ${sentence}`).join('\n');

/**
 * Every error that a person may meet. A row is added here and nowhere else; commands take the exit status from it and the HTTP layer the
 * status. Secrets never go into the details.
 */
export const errors = {
  // Settings
  invalid_settings: row<{ problems: readonly Problem[] }>({
    exit: 1,
    http: 500,
    message: ({ problems }) =>
      problems.length === 1 ? problems[0]!.sentence : `${problems.length} settings are wrong:\n${list(problems)}`,
    fix: () => 'correct them where they come from; `gateway config --help` tells where settings are read',
  }),
  wrong_flags: row<{ problems: readonly Problem[] }>({
    exit: 2,
    http: 500,
    message: ({ problems }) => (problems.length === 1 ? problems[0]!.sentence : `${problems.length} flags are wrong:\n${list(problems)}`),
    fix: () => 'run the command with --help to see its flags',
  }),
  withdrawn: row<{ form: string; instead: string }>({
    exit: 2,
    http: 500,
    message: ({ form }) => `${form} is no longer valid`,
    fix: ({ instead }) => instead,
  }),
  wrong_use: row<{ sentence: string; fix: string }>({
    exit: 2,
    http: 400,
    message: ({ sentence }) => sentence,
    fix: ({ fix }) => fix,
  }),
  config_unreadable: row<{ path: string; reason: string }>({
    exit: 1,
    http: 500,
    message: ({ path, reason }) => `the configuration file ${path} cannot be read: ${reason}`,
    fix: () => 'name a readable file with --config, or leave the flag away to use ./gateway.json if there is one',
  }),
  config_not_json: row<{ path: string; reason: string }>({
    exit: 1,
    http: 500,
    message: ({ path, reason }) => `the configuration file ${path} is not a JSON object: ${reason}`,
    fix: ({ path }) => `correct the JSON in ${path}`,
  }),
  encryption_key_missing: row({
    exit: 1,
    http: 500,
    message: () => 'there is no encryption key: secrets of endpoints and sources are kept sealed with it',
    fix: () =>
      'make one with `openssl rand -base64 32` and set encryption_key in the file or GATEWAY_ENCRYPTION_KEY, the same for every process',
  }),
  encryption_key_invalid: row<{ bytes?: number }>({
    exit: 1,
    http: 500,
    message: ({ bytes }) =>
      bytes === undefined ? 'encryption_key is not base64' : `encryption_key holds ${bytes} bytes; it must be exactly 32, in base64`,
    fix: () => 'make one with `openssl rand -base64 32` and set encryption_key in the file or GATEWAY_ENCRYPTION_KEY',
  }),
  not_unsealable: row({
    exit: 1,
    http: 500,
    message: () => 'a stored secret cannot be opened with this encryption key',
    fix: () => 'set encryption_key / GATEWAY_ENCRYPTION_KEY to the key that it was sealed with',
  }),
  reseal_refused: row<{ problems: readonly { readonly sentence: string }[] }>({
    exit: 1,
    http: 500,
    message: ({ problems }) => `nothing was changed, because these do not open with the present encryption key:\n${list(problems)}`,
    fix: () =>
      'set encryption_key / GATEWAY_ENCRYPTION_KEY to the key that they were sealed with; what nobody can open any more is given anew or deleted over the management API',
  }),
  agents_running: row<{ names: readonly string[] }>({
    exit: 1,
    http: 409,
    message: ({ names }) =>
      `${names.length === 1 ? 'an agent is' : `${names.length} agents are`} running (${names.join(', ')}) and would at once read secrets that they cannot open; nothing was changed`,
    fix: () =>
      'stop the agents, run this again, and start them with the new key; until then deliveries wait in Postgres and messages with their brokers',
  }),
  licence_invalid: row<{ reason: string; fix?: string }>({
    exit: 1,
    http: 403,
    message: ({ reason }) => `the licence is not valid: ${reason}; the community licence applies`,
    fix: ({ fix }) => fix ?? 'set license_key / GATEWAY_LICENSE_KEY to the token as you received it, or remove it',
  }),
  licence_expired: row<{ expiredAt: string; organisation: string; now: string }>({
    exit: 1,
    http: 403,
    message: ({ expiredAt, organisation }) => `the licence of ${organisation} expired at ${expiredAt}; the community licence applies`,
    fix: ({ now }) =>
      `renew it and set license_key / GATEWAY_LICENSE_KEY to the new token; if that time is still to come, set the clock of this machine, which says ${now}`,
  }),
  licence_not_yet: row<{ issuedAt: string; organisation: string; now: string }>({
    exit: 1,
    http: 403,
    message: ({ issuedAt, organisation, now }) =>
      `the licence of ${organisation} was issued at ${issuedAt}, and the clock of this machine says ${now}; the community licence applies`,
    fix: () => 'set the clock of this machine, and keep it right with NTP',
  }),
  licence_key_file: row<{ path: string; reason: string; fix?: string }>({
    exit: 1,
    http: 500,
    message: ({ path, reason }) => `the key file ${path} ${reason}`,
    fix: ({ fix }) =>
      fix ?? 'name the file with the private key of the distribution; `gateway license issue --generate-key <file>` makes one',
  }),

  // What the gateway stands on
  database_unreachable: row<DatabaseAddress & { reason: string }>({
    exit: 1,
    http: 503,
    message: ({ host, port, reason }) => `Postgres at ${host}:${port} cannot be reached: ${reason}`,
    fix: () => 'see that it runs, and check database.host (--db-host, GATEWAY_DB_HOST) and database.port (--db-port, GATEWAY_DB_PORT)',
  }),
  database_tls: row<DatabaseAddress & { reason: string }>({
    exit: 1,
    http: 503,
    message: ({ host, port, reason }) => `TLS with Postgres at ${host}:${port} failed: ${reason}`,
    fix: () =>
      'correct sslmode, sslrootcert, sslcert and sslkey in database.options (--db-options, GATEWAY_DB_OPTIONS), and give in database.host the host that its certificate is for',
  }),
  database_refused: row<DatabaseAddress>({
    exit: 1,
    http: 503,
    message: ({ host, port, username }) => `Postgres at ${host}:${port} refused the user ${username}`,
    fix: () => 'check database.username (--db-username, GATEWAY_DB_USERNAME) and database.password (--db-password, GATEWAY_DB_PASSWORD)',
  }),
  database_missing: row<DatabaseAddress>({
    exit: 1,
    http: 503,
    message: ({ host, port, database }) => `there is no database ${database} on Postgres at ${host}:${port}`,
    fix: ({ database }) => `create it with \`createdb ${database}\`, or check database.database (--db-database, GATEWAY_DB_DATABASE)`,
  }),
  database_full: row<DatabaseAddress>({
    exit: 1,
    http: 503,
    message: ({ host, port }) => `Postgres at ${host}:${port} has no connection left for us`,
    fix: () =>
      'raise max_connections of Postgres, or lower database.max_open_connections (GATEWAY_DB_MAX_OPEN_CONNECTIONS) and database.max_builder_connections (GATEWAY_DB_MAX_BUILDER_CONNECTIONS)',
  }),
  database_read_only: row<DatabaseAddress>({
    exit: 1,
    http: 503,
    message: ({ host, port }) => `Postgres at ${host}:${port} is read-only: it is a replica, or default_transaction_read_only is on`,
    fix: () => 'name the primary in database.host (--db-host, GATEWAY_DB_HOST), or make this one writable',
  }),
  database_exhausted: row<DatabaseAddress & { reason: string }>({
    exit: 1,
    http: 503,
    message: ({ host, port, reason }) => `Postgres at ${host}:${port} has nothing left to write with: ${reason}`,
    fix: () => 'give it disk space or memory; nothing has to be restarted here',
  }),
  migration_pending: row<{ pending: readonly string[] }>({
    exit: 1,
    http: 503,
    message: ({ pending }) =>
      `the database lacks ${pending.length === 1 ? 'a migration' : `${pending.length} migrations`}: ${pending.join(', ')}`,
    fix: () => 'run `gateway migrate up`, then start again',
  }),
  database_newer: row<{ unknown: readonly string[] }>({
    exit: 1,
    http: 503,
    message: ({ unknown }) => `the database is newer than this gateway: it has ${unknown.join(', ')}`,
    fix: () => 'install the version of the gateway that made these migrations, or a later one',
  }),
  migration_drops: row<{ migrations: readonly string[]; tables: readonly string[]; before: number }>({
    exit: 1,
    http: 409,
    message: ({ migrations, tables }) =>
      `rolling back ${migrations.join(', ')} would drop ${tables.length === 1 ? 'a table that holds' : 'tables that hold'} data: ${tables.join(', ')}; nothing was rolled back`,
    fix: ({ before }) =>
      `${before > 0 ? `\`--max ${before}\` stops before that; ` : ''}to lose them on purpose, back Postgres up and repeat it with \`--drop-data\``,
  }),
  migration_failed: row<{ file: string; reason: string; left: string }>({
    exit: 1,
    http: 503,
    message: ({ file, reason, left }) => `the migration ${file} failed: ${reason}; ${left}`,
    fix: ({ file }) => `see to what Postgres says, or correct ${file}, and run it again`,
  }),
  migration_locked: row<{ file: string; seconds: number; holders: readonly string[] }>({
    exit: 1,
    http: 503,
    message: ({ file, seconds, holders }) =>
      `the migration ${file} could not have its locks in ${seconds} s; nothing of it stays; ${
        holders.length === 0 ? 'other sessions hold them' : `the longest transactions are of ${holders.join(', ')}`
      }`,
    fix: () => 'let what they do end, such as a backup, or end them with `select pg_terminate_backend(pid)`, and run it again',
  }),
  kv_unreachable: row<KvAddress & { reason: string }>({
    exit: 1,
    http: 503,
    message: (it) => `${kvName(it)} cannot be reached: ${it.reason}`,
    fix: (it) => `see that it runs, and check ${kvSettings(it)}`,
  }),
  kv_tls: row<KvAddress & { reason: string }>({
    exit: 1,
    http: 503,
    message: (it) => `TLS with ${kvName(it)} failed: ${it.reason}`,
    fix: (it) =>
      `name its certificate authority with kv.tls.ca_file (--kv-tls-ca-file, GATEWAY_KV_TLS_CA_FILE), the certificate that it wants with kv.tls.cert_file and kv.tls.key_file, and give the host that its certificate is for: ${kvSettings(it)}`,
  }),
  kv_refused: row<KvAddress & { reason: string }>({
    exit: 1,
    http: 503,
    message: (it) => `${kvName(it)} refused us: ${it.reason}`,
    fix: ({ sentinels }) =>
      `check kv.username, kv.password and kv.database${sentinels ? ', and kv.sentinel.username and kv.sentinel.password' : ''} (--kv-username, --kv-password, --kv-database, or GATEWAY_KV_USERNAME and so on)`,
  }),
  billing_setting: row<{ setting: 'url' | 'api_key' }>({
    exit: 1,
    http: 500,
    message: ({ setting }) => `billing.enabled is true, and billing.${setting} is not set`,
    fix: ({ setting }) => {
      const name =
        setting === 'url'
          ? 'billing.url (--billing-url, GATEWAY_BILLING_URL)'
          : 'billing.api_key (--billing-api-key, GATEWAY_BILLING_API_KEY)';
      return `set ${name}, or set billing.enabled to false`;
    },
  }),
  smtp_setting: row<{ sentence: string; fix: string }>({
    exit: 1,
    http: 500,
    message: ({ sentence }) => sentence,
    fix: ({ fix }) => fix,
  }),
  smtp_unreachable: row<SmtpServer & { reason: string }>({
    exit: 1,
    http: 503,
    message: ({ host, port, reason }) => `the SMTP server at ${host}:${port} cannot be reached: ${reason}`,
    fix: () =>
      'see that it runs, and check smtp.url (--smtp-url, GATEWAY_SMTP_URL), smtp.port (--smtp-port, GATEWAY_SMTP_PORT) and smtp.ssl (--smtp-ssl, GATEWAY_SMTP_SSL)',
  }),
  smtp_tls: row<SmtpServer & { reason: string }>({
    exit: 1,
    http: 503,
    message: ({ host, port, reason }) => `TLS with the SMTP server at ${host}:${port} failed: ${reason}`,
    fix: () =>
      'name its certificate authority with smtp.ca_file (GATEWAY_SMTP_CA_FILE), give in smtp.url (--smtp-url, GATEWAY_SMTP_URL) the host that its certificate is for, and set smtp.ssl (--smtp-ssl, GATEWAY_SMTP_SSL) only for a port that speaks TLS from the first byte, usually 465',
  }),
  smtp_login: row<SmtpServer & { username: string | undefined; answer: string }>({
    exit: 1,
    http: 503,
    message: ({ host, port, username, answer }) =>
      `the SMTP server at ${host}:${port} refused ${username === undefined ? 'us without a login' : `the login of ${username}`}: ${answer}`,
    fix: () => 'check smtp.username (--smtp-username, GATEWAY_SMTP_USERNAME) and smtp.password (--smtp-password, GATEWAY_SMTP_PASSWORD)',
  }),
  smtp_refused: row<SmtpServer & { what: string; setting: string; answer: string }>({
    exit: 1,
    http: 503,
    message: ({ host, port, what, answer }) => `the SMTP server at ${host}:${port} refused ${what}: ${answer}`,
    fix: ({ setting }) => `check ${setting}, or what this login may send on that server`,
  }),
  port_in_use: row<{ port: number; bind: string; setting: string; flag: string }>({
    exit: 1,
    http: 500,
    message: ({ port, bind }) => `port ${port} on ${bind} is already in use`,
    fix: ({ setting, flag }) => `stop what listens there, or choose another port with ${flag} or ${setting}`,
  }),
  port_refused: row<{ port: number; bind: string; setting: string; flag: string; reason: string; addressSetting?: string }>({
    exit: 1,
    http: 500,
    message: ({ port, bind, reason }) => `cannot listen on ${bind}:${port}: ${reason}`,
    fix: ({ setting, flag, addressSetting = 'server.http.bind' }) =>
      `choose a port that this user may open with ${flag} or ${setting}, and an address of this machine with ${addressSetting}`,
  }),
  host_invalid: row<{ host: string; reason: string }>({
    exit: 1,
    http: 500,
    message: ({ host, reason }) => `the host ${JSON.stringify(host)} cannot be used: ${reason}`,
    fix: () => 'give the public name alone with --host or GATEWAY_HOST, such as gateway.example.com or https://gateway.example.com:8443',
  }),
  credential_invalid: row<{ setting: string; flag: string; env: string; number: number; reason: string; fix: string }>({
    exit: 1,
    http: 500,
    message: ({ setting, number, reason }) => `entry ${number} of ${setting} ${reason}`,
    fix: ({ flag, env, fix }) => `${fix}; it comes from ${flag}, ${env} or the configuration file`,
  }),
  no_credentials: row({
    exit: 1,
    http: 500,
    message: () => 'nobody could reach the API: server.auth.native is off, and the process has no credentials of its own',
    fix: () =>
      'give some with --api-auth (GATEWAY_API_AUTH) or --basic-auth (GATEWAY_BASIC_AUTH), or accept the stored API keys with --native (GATEWAY_NATIVE_AUTH=true)',
  }),
  tls_incomplete: row<{ sentence: string; fix: string }>({
    exit: 1,
    http: 500,
    message: ({ sentence }) => sentence,
    fix: ({ fix }) => fix,
  }),
  tls_file: row<{ what: string; path: string; reason: string; setting: string; flag: string }>({
    exit: 1,
    http: 500,
    message: ({ what, path, reason }) => `the ${what} in ${path} cannot be used: ${reason}`,
    fix: ({ setting, flag }) => `correct the file, or name another with ${flag} or ${setting}`,
  }),

  // Plugins
  plugin_manifest_broken: row<{ package: string; reason: string }>({
    exit: 1,
    http: 500,
    message: ({ package: name, reason }) => `the manifest of the plugin package ${name} is broken: ${reason}`,
    fix: () => 'correct the `gateway` object in its package.json, or install another version',
  }),
  plugin_setting_claimed: row<Plugin & { what: string; owner: string }>({
    exit: 1,
    http: 500,
    message: ({ kind, name, what, owner }) => `the ${kind} plugin ${name} claims ${what}, which belongs to ${owner}`,
    fix: () => 'rename it in the settings file of the plugin, or remove one of the two',
  }),
  plugin_not_installed: row<{ package: string; folder: string }>({
    exit: 1,
    http: 500,
    message: ({ package: name, folder }) => `the plugin package ${name} is named in ${folder}/package.json and is not installed`,
    fix: ({ package: name, folder }) => `run \`npm install\` in ${folder}, or \`gateway plugins uninstall ${name}\``,
  }),
  plugin_unknown: row<{ name: string; known: string; hint: string }>({
    exit: 1,
    http: 404,
    message: ({ name, hint }) => `there is no plugin and no plugin package named ${name}${hint}`,
    fix: ({ known }) => `give one of those that are installed: ${known}`,
  }),
  not_a_plugin: row<{ package: string; reason: string }>({
    exit: 1,
    http: 500,
    message: ({ package: name, reason }) => `${name} is not a plugin of the gateway: ${reason}`,
    fix: () => 'name a package with a `gateway` object in its package.json; docs/guides/write-a-plugin.md tells what stands in it',
  }),
  plugins_dir_unwritable: row<{ path: string; reason: string }>({
    exit: 1,
    http: 500,
    message: ({ path, reason }) => `the plugin folder ${path} cannot be written: ${reason}`,
    fix: () => 'give this user the right to write there, or name another folder with plugins.dir (GATEWAY_PLUGINS_DIR)',
  }),
  npm_missing: row<{ reason: string }>({
    exit: 1,
    http: 500,
    message: ({ reason }) => `npm cannot be run: ${reason}`,
    fix: () => 'install npm, which comes with Node, and see that it is on the PATH',
  }),
  npm_failed: row<{ command: string; folder: string; reason: string }>({
    exit: 1,
    http: 500,
    message: ({ command, folder, reason }) => `\`${command}\` failed in ${folder}: ${reason}`,
    fix: () => 'check the name and version of the package, and that its registry can be reached from here',
  }),
  plugin_without_rig: row<Plugin & { file: string }>({
    exit: 1,
    http: 500,
    message: ({ kind, name, file }) => `the ${kind} plugin ${name} has no rig for the conformance suite: ${file}`,
    fix: ({ kind }) =>
      `name the module with the rig as \`conformance\` in the manifest; \`gateway plugins create ${kind} <name>\` writes one to start from`,
  }),
  plugins_missed: row<{ problems: readonly { readonly sentence: string }[] }>({
    exit: 1,
    http: 500,
    message: ({ problems }) => `plugins.strict is set, and not every plugin that the configuration asks for is active:\n${list(problems)}`,
    fix: () => '`gateway plugins` lists all of them with what to do; without --strict-plugins the process starts and does without',
  }),
  plugin_missing: row<Plugin & { hint: string; setting: string }>({
    exit: 1,
    http: 500,
    message: ({ kind, name, hint }) => `no ${kind} plugin named ${name} is installed${hint}`,
    fix: ({ setting }) => `install it, or correct ${setting}`,
  }),
  plugin_api: row<Plugin & { range: string; ours: string }>({
    exit: 1,
    http: 500,
    message: ({ kind, name, range, ours }) => `the ${kind} plugin ${name} wants plugin API ${range}, this gateway has ${ours}`,
    fix: () => 'install a version of the plugin, or of the gateway, that fits the other',
  }),
  plugin_not_selected: row<Plugin & { how: string }>({
    exit: 1,
    http: 500,
    message: () => 'not selected',
    fix: ({ how }) => how,
  }),
  plugin_flag_off: row<Plugin & { flag: string }>({
    exit: 1,
    http: 500,
    message: ({ flag }) => `the feature flag ${flag} is off`,
    fix: ({ flag }) => `switch ${flag} on with --enable-feature-flag=${flag} or GATEWAY_ENABLE_FEATURE_FLAG=${flag}`,
  }),
  plugin_not_entitled: row<Plugin & { entitlement: string; licence: string }>({
    exit: 1,
    http: 403,
    message: ({ entitlement, licence }) => `${licence} does not include ${entitlement}`,
    fix: ({ entitlement }) => `set license_key / GATEWAY_LICENSE_KEY to a licence that includes ${entitlement}`,
  }),
  metrics_no_backend: row<Plugin & { selected?: string | undefined }>({
    exit: 1,
    http: 500,
    message: ({ selected }) => (selected ? `the metrics backend that is selected is ${selected}` : 'no metrics backend is selected'),
    fix: ({ name }) => `set metrics.metrics_backend to ${name} (--metrics-backend=${name}, GATEWAY_METRICS_BACKEND=${name})`,
  }),
  metrics_off: row<Plugin & { origin?: string | undefined }>({
    exit: 1,
    http: 500,
    message: ({ origin }) => `metrics.enabled is false${origin ? ` (from ${origin})` : ''}`,
    fix: () => 'set metrics.enabled to true (--metrics-enabled, GATEWAY_METRICS_ENABLED=true)',
  }),
  metrics_closed: row<Plugin & { gates: readonly { readonly reason: string; readonly fix: string }[] }>({
    exit: 1,
    http: 500,
    message: ({ gates }) => `${gates.length} gates are closed: ${gates.map(({ reason }) => reason).join(', ')}`,
    fix: ({ gates }) => gates.map(({ fix }) => fix).join(', and '),
  }),
  plugin_settings: row<Plugin & { problems: readonly Problem[] }>({
    exit: 1,
    http: 500,
    message: ({ problems }) => `its settings are wrong: ${problems.map(({ sentence }) => sentence).join('; ')}`,
    fix: () => 'correct them where they come from',
  }),
  plugin_import: row<Plugin & { module: string; reason: string }>({
    exit: 1,
    http: 500,
    message: ({ module, reason }) => `importing ${module} failed: ${reason}`,
    fix: () => 'reinstall the plugin; if it stays, report it to its author',
  }),
  plugin_start: row<Plugin & { reason: string; fix: string }>({
    exit: 1,
    http: 500,
    message: ({ reason }) => `it failed to start: ${reason}`,
    fix: ({ fix }) => fix,
  }),
  plugin_second_tracer: row<Plugin & { active: string }>({
    exit: 1,
    http: 500,
    message: ({ name, active }) => `the tracer ${active} is active in this process already; ${name} cannot be a second one`,
    fix: () => 'set tracer.type (--tracer-type, GATEWAY_TRACER_PROVIDER) to one tracer',
  }),

  // Requests to the control plane
  not_found: row<{ thing: string; id?: string; fix?: string }>({
    exit: 1,
    http: 404,
    message: ({ thing, id }) => (id === undefined ? `${thing} not found` : `${thing} ${id} not found`),
    fix: ({ fix }) => fix ?? 'check the id, and that the key may see the project it belongs to',
  }),
  unauthorized: row<{ reason: string; fix: string }>({
    exit: 1,
    http: 401,
    message: ({ reason }) => reason,
    fix: ({ fix }) => fix,
  }),
  too_many_requests: row<{ limit: number; retryAfterSeconds: number }>({
    exit: 1,
    http: 429,
    message: ({ limit }) => `this credential has made more than ${limit} requests in a second, which is api_rate_limit`,
    fix: ({ retryAfterSeconds }) =>
      `wait ${retryAfterSeconds} s, as Retry-After says, and send fewer at a time; the operator raises the limit with --api-rate-limit or GATEWAY_API_RATE_LIMIT`,
  }),
  database_away: row<{ outcome: string; retryAfterSeconds: number }>({
    exit: 1,
    http: 503,
    message: ({ outcome }) => `the database of the gateway cannot be reached: ${outcome}`,
    fix: ({ retryAfterSeconds }) =>
      `send the request again after ${retryAfterSeconds} s, as Retry-After says; the operator finds the reason in the log of the server and at /healthz?ready`,
  }),
  database_takes_no_writes: row<{ outcome: string; retryAfterSeconds: number }>({
    exit: 1,
    http: 503,
    message: ({ outcome }) => `the database of the gateway takes no writes now: ${outcome}`,
    fix: ({ retryAfterSeconds }) =>
      `send the request again after ${retryAfterSeconds} s, as Retry-After says; what only reads is answered meanwhile; the operator finds the reason in the log of the server`,
  }),
  kv_away: row<{ outcome: string; retryAfterSeconds: number }>({
    exit: 1,
    http: 503,
    message: ({ outcome }) => `the KV store of the gateway cannot be reached: ${outcome}`,
    fix: ({ retryAfterSeconds }) =>
      `send the request again after ${retryAfterSeconds} s, as Retry-After says; the operator finds the reason in the log of the server`,
  }),
  forbidden: row<{ reason: string }>({
    exit: 1,
    http: 403,
    message: ({ reason }) => reason,
    fix: () => 'use an API key of a user or project that may do this',
  }),
  conflict: row<{ sentence: string; fix?: string }>({
    exit: 1,
    http: 409,
    message: ({ sentence }) => sentence,
    fix: ({ fix }) => fix ?? 'read the current state and decide again',
  }),
  invalid_request: row<{ problems: readonly InvalidField[] }>({
    exit: 1,
    http: 422,
    message: ({ problems }) => problems.map((it) => `${it.field}: ${it.sentence}`).join('; '),
    fix: () => 'correct the named fields',
  }),
  bad_body: row<{ reason: string }>({
    exit: 1,
    http: 400,
    message: ({ reason }) => `the body ${reason}`,
    fix: () => 'send a JSON object in UTF-8',
  }),
  body_too_large: row<{ limit: number }>({
    exit: 1,
    http: 413,
    message: ({ limit }) => `the body is larger than ${limit} bytes`,
    fix: () => 'send less at once; for events the limit is ingest.max_message_bytes (GATEWAY_INGEST_MAX_MESSAGE_BYTES)',
  }),
  unsupported_media_type: row<{ given: string }>({
    exit: 1,
    http: 415,
    message: ({ given }) => (given ? `a body of ${given} is not understood` : 'the body has no content type'),
    fix: () => 'send JSON with `content-type: application/json` and without a content encoding',
  }),
  method_not_allowed: row<{ method: string; path: string; allowed: string }>({
    exit: 1,
    http: 405,
    message: ({ method, path }) => `${method} is not a method of ${path}`,
    fix: ({ allowed }) => `use ${allowed}`,
  }),
  source_check_failed: row<{ kind: string; reason: string; fix: string }>({
    exit: 1,
    http: 422,
    message: ({ kind, reason }) => `the ${kind} connection does not work: ${reason}`,
    fix: ({ fix }) => fix,
  }),
  quarantined_unknown: row<{ unknown: readonly string[] }>({
    exit: 1,
    http: 404,
    message: ({ unknown }) => `there is no quarantined message ${unknown.join(', ')}; nothing was done`,
    fix: () => '`gateway utils quarantine list` shows the ids; messages of deleted projects are not there any more',
  }),
  editor_failed: row<{ editor: string; reason: string }>({
    exit: 1,
    http: 500,
    message: ({ editor, reason }) => `the editor \`${editor}\` ${reason}; the message is unchanged`,
    fix: () =>
      'set VISUAL or EDITOR to a command that returns when the file is closed, such as `code --wait`, or give the bytes with --file',
  }),
  event_unknown: row<{ sentence: string; fix: string }>({
    exit: 1,
    http: 404,
    message: ({ sentence }) => sentence,
    fix: ({ fix }) => fix,
  }),
  openapi_broken: row<{ file: string; reason: string; fix?: string }>({
    exit: 1,
    http: 422,
    message: ({ file, reason }) => `${file}: ${reason}`,
    fix: ({ fix }) => fix ?? 'correct the document; docs/guides/openapi.md tells what is read of it',
  }),
  event_type_twice: row<{ name: string; first: string; second: string }>({
    exit: 1,
    http: 409,
    message: ({ name, first, second }) => `the event type ${name} is announced twice: by ${first} and by ${second}`,
    fix: () => 'rename one of the two, or give the documents one at a time',
  }),
  email_in_use: row<{ email: string }>({
    exit: 1,
    http: 409,
    message: ({ email }) => `there is a user with the email ${email} already`,
    fix: () => 'choose another email',
  }),
  internal: row<{ reason: string }>({
    exit: 1,
    http: 500,
    message: ({ reason }) => reason,
    fix: () => 'this is a fault of the gateway: run again with --log-level=debug and report what it says',
  }),
} as const;

export type ErrorCode = keyof typeof errors;
export type ErrorDetails<Code extends ErrorCode> = Parameters<(typeof errors)[Code]['message'] | (typeof errors)[Code]['fix']>[0];
type Rest<Code extends ErrorCode> =
  None extends ErrorDetails<Code>
    ? [details?: ErrorDetails<Code>, options?: { cause?: unknown }]
    : [details: ErrorDetails<Code>, options?: { cause?: unknown }];

/** An error of the table: a code, a sentence, a remedy, and the statuses of its row. */
export class GatewayError<Code extends ErrorCode = ErrorCode> extends Error {
  readonly code: Code;
  readonly fix: string;
  readonly exitStatus: 1 | 2;
  readonly httpStatus: number;
  readonly details: ErrorDetails<Code>;

  constructor(code: Code, ...[details, options]: Rest<Code>) {
    const it = errors[code] as Row<unknown>;
    const known = (details ?? {}) as ErrorDetails<Code>;
    super(it.message(known), options);
    this.name = 'GatewayError';
    this.code = code;
    this.details = known;
    this.fix = it.fix(known);
    this.exitStatus = it.exit;
    this.httpStatus = it.http;
  }

  override toString(): string {
    return `${this.message}\n${this.fix}`;
  }
}

/** True for an error of the table, and for that code when one is given. */
export function isGatewayError<Code extends ErrorCode>(error: unknown, code?: Code): error is GatewayError<Code> {
  return error instanceof GatewayError && (code === undefined || error.code === code);
}
