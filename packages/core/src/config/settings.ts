/**
 * A row of the settings table, from which types, validation, flags, help, redaction and the
 * reference page are derived.
 */
export interface Setting {
  readonly type: 'integer' | 'number' | 'boolean' | 'string' | 'list';
  readonly default?: number | boolean | string | readonly string[];
  /**
   * The environment variable. Default: GATEWAY_ and the upper-case key, with underscores for dots
   * and dashes.
   */
  readonly env?: string;
  readonly flag?: string;
  /** Alternative keys of this setting in the configuration file. */
  readonly also?: readonly string[];
  /** The commands that accept the flag. Default: all. */
  readonly on?: readonly string[];
  readonly alias?: { readonly flag: string; readonly on: readonly string[] };
  /** Flag values that count as unset: negative numbers, or zero. */
  readonly flagUnset?: 'negative' | 'zero';
  /** The allowed values, matched case-insensitively. */
  readonly options?: readonly string[];
  /** Whether to convert the value, a plugin name, to lowercase. */
  readonly lowerCase?: true;
  readonly min?: number;
  readonly max?: number;
  /**
   * The format of a string: `cidr` is a network, `host` a host without a port, `login` an address
   * without credentials, `address` is host:port, `target` is host:port with or without http(s)://,
   * `dsn` is a Sentry DSN, `prefix` a path prefix, and `ancestor` an origin for `frame-ancestors`.
   */
  readonly format?:
    | 'cidr'
    | 'url'
    | 'host'
    | 'login'
    | 'address'
    | 'target'
    | 'dsn'
    | 'prefix'
    | 'email'
    | 'ancestor';
  readonly secret?: boolean;
  readonly summary: string;
  /** The words by which error messages name an option, such as `feature flag`. */
  readonly noun?: string;
  readonly required?: boolean;
  readonly owner?: string;
  /**
   * Marks a setting that no longer exists. The text is an error message that names its replacement.
   */
  readonly withdrawn?: string;
}

export type SettingsTable = Readonly<Record<string, Setting>>;

export interface FeatureFlag {
  readonly summary: string;
  readonly stability: 'experimental' | 'beta' | 'stable';
  readonly declaredBy: string;
}

export type FlagTable = Readonly<Record<string, FeatureFlag>>;

/** Returns the table with `enable_feature_flag` limited to the given flags. */
export function withFlags(table: SettingsTable, flags: FlagTable): SettingsTable {
  const row = table['enable_feature_flag'];
  return row
    ? {
        ...table,
        enable_feature_flag: { ...row, options: Object.keys(flags).sort(), noun: 'feature flag' },
      }
    : table;
}

type ValueOf<S> = S extends { type: 'list' }
  ? readonly string[]
  : S extends { options: readonly (infer Option)[] }
    ? Option
    : S extends { type: 'integer' | 'number' }
      ? number
      : S extends { type: 'boolean' }
        ? boolean
        : string;
type Nested<Key extends string, S> = Key extends `${infer Head}.${infer Tail}`
  ? { readonly [P in Head]: Nested<Tail, S> }
  : S extends { default: unknown }
    ? { readonly [P in Key]: ValueOf<S> }
    : { readonly [P in Key]?: ValueOf<S> };
type Intersected<Union> = (Union extends unknown ? (it: Union) => void : never) extends (
  it: infer All,
) => void
  ? All
  : never;
type Plain<T> = T extends readonly unknown[]
  ? T
  : T extends object
    ? { readonly [P in keyof T]: Plain<T[P]> }
    : T;

/** The nested settings of a table. Settings without a default are optional. */
type ConfigOf<Table> = Plain<
  Intersected<
    {
      [Key in keyof Table & string]: Table[Key] extends { withdrawn: string }
        ? never
        : Nested<Key, Table[Key]>;
    }[keyof Table & string]
  >
>;

export function settingAt(config: object, key: string): unknown {
  return key
    .split('.')
    .reduce<unknown>((at, part) => (at as Record<string, unknown> | undefined)?.[part], config);
}

export function envOf(key: string, setting: Setting): string {
  return setting.env ?? `GATEWAY_${key.toUpperCase().replaceAll(/[.-]/g, '_')}`;
}

export function keysOf(key: string, { also = [] }: Setting): string[] {
  return [key, ...also];
}

/** Returns the flags of a setting that a command accepts. */
export function flagsOf(setting: Setting, command: string): string[] {
  const taken: string[] = [];
  if (setting.flag && (!setting.on || setting.on.includes(command))) taken.push(setting.flag);
  if (setting.alias?.on.includes(command)) taken.push(setting.alias.flag);
  return taken;
}

/** The settings, by their path in the configuration file. `discovery.ts` adds plugin settings. */
// Two lines per row keep the table readable.
// prettier-ignore
export const settings = {
  env: { type: 'string', default: 'development', flag: 'env', on: ['server'],
    summary: 'Environment name. Appears in health, logs and traces.' },
  host: { type: 'string', format: 'login', flag: 'host', on: ['server'],
    summary: 'Public host name of the control plane. Links start with it, with the scheme of the listener unless it has one: https://gateway.example.com:8443.' },
  root_path: { type: 'string', default: '', format: 'prefix', flag: 'root-path', on: ['server'],
    summary: 'Path prefix behind a reverse proxy. Applies to the control plane; for example /gateway.' },
  instance_ingest_rate: { type: 'integer', default: 1000, min: 0, flag: 'instance-ingest-rate',
    summary: 'Messages that the whole instance ingests per second, all agents together; 0 is unlimited.' },
  api_rate_limit: { type: 'integer', default: 1000, min: 0, flag: 'api-rate-limit',
    summary: 'Requests to the management API per second and credential, all servers together; 0 is unlimited.' },
  enable_feature_flag: { type: 'list', default: [], flag: 'enable-feature-flag', summary: 'Feature flags to enable.' },
  feature_flag: { type: 'string', flag: 'feature-flag', summary: 'Withdrawn.',
    withdrawn: 'flags are enabled by name: use --enable-feature-flag=<flag> or GATEWAY_ENABLE_FEATURE_FLAG=<flag>' },
  license_key: { type: 'string', flag: 'license-key', secret: true, summary: 'Licence token; without one the community licence applies.' },
  license_public_key: { type: 'string', summary: 'Ed25519 public key that licences are checked against: base64 of its 32 bytes, or PEM.' },
  encryption_key: { type: 'string', secret: true,
    summary: 'Key that stored secrets are sealed with: 32 bytes in base64, the same for every process.' },
  consumer_pool_size: { type: 'integer', default: 500, min: 0, flag: 'consumers', on: ['agent'], flagUnset: 'negative',
    summary: 'Concurrent deliveries per agent. 0 sizes the pool by the machine: 250 per core, at most one per 2 MiB of memory.' },
  max_response_size: { type: 'integer', default: 50, min: 0, flag: 'max-response-size', on: ['server', 'agent'],
    summary: 'Kilobytes kept per response.' },

  'agent.interval_seconds': { type: 'integer', default: 10, min: 1, max: 86_400, flag: 'interval', on: ['agent'],
    summary: 'Seconds between reads of the configuration. Every agent refreshes its in-memory copy from the database this often.' },
  'agent.mode': { type: 'string', default: 'default', options: ['events', 'retry', 'default'], flag: 'mode', on: ['agent'],
    summary: 'Attempts the agent makes. events: first attempts; retry: later attempts; default: both.' },
  'agent.drain_timeout_seconds': { type: 'integer', default: 25, min: 0, max: 86_400,
    summary: 'Seconds that a stopping process may take to settle what is in flight.' },

  'limits.api_keys_per_project': { type: 'integer', default: 100, min: 1,
    summary: 'Valid API keys that a project may have; the management API refuses to create more.' },
  'limits.idempotency_keys_per_credential': { type: 'integer', default: 1000, min: 1,
    summary: 'Answers that are kept of the creates of a credential with an Idempotency-Key, for 24 hours; the oldest are dropped beyond.' },
  'limits.portal_links_per_project': { type: 'integer', default: 10_000, min: 1,
    summary: 'Valid portal links that a project may have; the management API refuses to create more.' },
  'limits.endpoints_per_owner': { type: 'integer', default: 20, min: 1,
    summary: 'Endpoints that an owner may have and still create another one over a portal link.' },
  'limits.subscriptions_per_owner': { type: 'integer', default: 100, min: 1,
    summary: 'Subscriptions that the endpoints of an owner may have together, for another one to be created over a portal link.' },
  'limits.organisations_per_user': { type: 'integer', default: 20, min: 1,
    summary: 'Organisations that a user may be in and still create another one.' },
  'limits.invitations_per_organisation': { type: 'integer', default: 200, min: 1,
    summary: 'Invitations of an organisation that may be open at a time.' },
  'limits.event_types_per_project': { type: 'integer', default: 2_000, min: 1,
    summary: 'Event types that a project may have; the management API refuses to create more, `gateway openapi` does not count them.' },
  'limits.endpoints_per_project': { type: 'integer', default: 10_000, min: 1,
    summary: 'Endpoints that a project may have; the management API refuses to create more.' },
  'limits.client_certificates_per_project': { type: 'integer', default: 200, min: 1,
    summary: 'Endpoints of a project that may have a client certificate; the management API refuses more.' },
  'limits.subscriptions_per_project': { type: 'integer', default: 1000, min: 1,
    summary: 'Subscriptions that a project may have; the management API refuses to create more.' },
  'limits.sources_per_project': { type: 'integer', default: 100, min: 1,
    summary: 'Sources that a project may have; the management API refuses to create more.' },
  'limits.notification_channels_per_project': { type: 'integer', default: 20, min: 1,
    summary: 'Notification channels that a project may have; the management API refuses to create more.' },
  'limits.workers_per_project': { type: 'integer', default: 200, min: 1,
    summary: 'Workers that the enabled sources of a project may have together; the management API refuses more, and agents run one reader for each source beyond.' },
  'limits.failure_threshold': { type: 'integer', default: 90, min: 1, max: 100,
    summary: 'Highest failure_threshold that a project may have for its circuit breakers, which it cannot turn off.' },
  'limits.minimum_request_count': { type: 'integer', default: 50, min: 1, max: 1000,
    summary: 'Highest minimum_request_count that a project may have for its circuit breakers.' },

  'limits.events_per_second': { type: 'integer', default: 0, min: 0,
    summary: 'Events of a project that each agent accepts from its sources per second, and each server over the API and from its HTTP sources; one counts again for each 16 KB, and quarantined messages count too. Beyond, messages wait, and requests are answered with 429. 0: no limit but instance_ingest_rate and api_rate_limit.' },
  'limits.event_loop_ms': { type: 'integer', default: 500, min: 0, max: 1000,
    summary: 'Milliseconds of its event loop that each agent spends on messages and deliveries of a project in a second in which others have some too; about a third of what they take is counted. They wait beyond. An eighth is for reading its configuration. 0: no limit.' },
  'limits.response_bytes_per_second': { type: 'integer', default: 1_048_576, min: 0,
    summary: 'Bytes of response bodies that each agent keeps for a project in a second; of responses beyond, the first 1,000 bytes. 0: no limit but max_response_size.' },
  'limits.routing_work': { type: 'integer', default: 5_000_000, min: 0,
    summary: 'Routing that each agent does for a project in a second, in comparisons of filters; a character of a body that filters look at counts as one, a second delivery of an event and each further one as 1,000. Events wait beyond. 0: no limit.' },

  'ingest.max_message_bytes': { type: 'integer', default: 1_048_576, min: 1,
    summary: 'Largest message that is accepted; larger ones are quarantined.' },
  'ingest.window': { type: 'integer', default: 1000, min: 1, summary: 'Messages in flight per partition or worker, at most limits.events_per_second; 1 is strict lockstep.' },
  'ingest.batch_size': { type: 'integer', default: 500, min: 1, max: 5000, summary: 'Most messages that one commit accepts, and most events, unless one message alone makes more.' },
  'ingest.idempotency_window_seconds': { type: 'integer', default: 86_400, min: 0, max: 315_360_000,
    summary: 'Seconds during which an idempotency key makes no second event.' },

  'ingest.inline_routing': { type: 'boolean', default: true,
    summary: 'Route an event in the agent that accepts it while it has room; false sends every event through both queues.' },

  'transform.deadline_ms': { type: 'integer', default: 1000, min: 10, max: 3_600_000,
    summary: 'Milliseconds that one call of a transform function may take.' },
  'transform.memory_mb': { type: 'integer', default: 64, min: 16, max: 16_384,
    summary: 'Megabytes of heap of a process that runs transform functions.' },
  'transform.max_output_bytes': { type: 'integer', default: 1_048_576, min: 2, max: 67_108_864,
    summary: 'Largest output of a transform function.' },
  'transform.processes': { type: 'integer', default: 2, min: 1, max: 64, summary: 'Processes that run transform functions.' },
  'transform.pause_overruns': { type: 'integer', default: 5, min: 0, max: 10_000,
    summary: 'Calls of the transform functions of a project that overrun (time, memory, a process that dies) within transform.pause_window_seconds, after which their sources are paused; sources are left out while less than a tenth of their calls overrun; 0: never.' },
  'transform.pause_window_seconds': { type: 'integer', default: 60, min: 1, max: 86_400,
    summary: 'Seconds in which overruns of a transform function are counted together; more where transform.deadline_ms is so long that they would not fit, and as long as the function is at work without a break.' },
  'transform.pause_seconds': { type: 'integer', default: 60, min: 1, max: 3600,
    summary: 'Seconds until a paused source is tried again; twice as many with each pause that follows, up to an hour. A changed function shortens a pause to this.' },

  'delivery.endpoint_concurrency': { type: 'integer', default: 50, min: 1,
    summary: 'Deliveries under way at a time to one endpoint, per agent.' },
  'delivery.lookups_per_project': { type: 'integer', default: 32, min: 1,
    summary: 'Names of endpoints that an agent looks up at a time for one project; further ones wait for their turn.' },
  'delivery.allowed_networks': { type: 'list', default: [], format: 'cidr',
    summary: 'Private networks that endpoints may be in, as CIDRs; all others are refused.' },
  'source.allowed_networks': { type: 'list', default: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'], format: 'cidr',
    summary: 'Networks beside the internet that sources may reach, as CIDRs; loopback, link-local, metadata and other reserved addresses are refused unless named.' },
  'delivery.proxy': { type: 'string', format: 'url', env: 'GATEWAY_PROXY', flag: 'proxy', on: ['server', 'agent'], secret: true,
    summary: 'Proxy for outgoing HTTP requests.' },
  'delivery.ca_file': { type: 'string',
    summary: 'PEM file with certificate authorities that endpoints may be certified by, beside the usual ones.' },
  'delivery.max_outstanding': { type: 'integer', default: 4000, min: 1,
    summary: 'Deliveries that an agent holds, waiting or under way; projects and endpoints have shares of them.' },
  'delivery.max_outstanding_bytes': { type: 'integer', default: 41_943_040, min: 1_048_576,
    summary: 'Bytes of the events that an agent holds, waiting or under way; projects and endpoints have shares of them.' },

  'circuit_breaker.failure_threshold': { type: 'integer', default: 70, min: 0, max: 100,
    summary: 'Percent of the requests to an endpoint that fail, from which on nothing is sent to it for a while; 0 never stops. A project may say otherwise.' },
  'circuit_breaker.minimum_request_count': { type: 'integer', default: 10, min: 1, max: 1000,
    summary: 'Requests to an endpoint below which its circuit breaker decides nothing.' },
  'circuit_breaker.observability_window': { type: 'integer', default: 5, min: 1, max: 1440,
    summary: 'Minutes over which requests to an endpoint are counted for its circuit breaker.' },
  'circuit_breaker.error_timeout': { type: 'integer', default: 30, min: 1, max: 3600,
    summary: 'Seconds until an endpoint whose circuit breaker has opened is tried again; each further time it is twice as long.' },
  'circuit_breaker.max_error_timeout': { type: 'integer', default: 600, min: 1, max: 86_400,
    summary: 'Most seconds between two tries of an endpoint whose circuit breaker is open.' },

  'database.type': { type: 'string', default: 'postgres', options: ['postgres'], env: 'GATEWAY_DB_TYPE', flag: 'db-type',
    summary: 'Kind of database.' },
  'database.scheme': { type: 'string', default: 'postgres', options: ['postgres', 'postgresql'], env: 'GATEWAY_DB_SCHEME', flag: 'db-scheme',
    summary: 'Scheme of the database URL.' },
  'database.host': { type: 'string', format: 'host', default: 'localhost', env: 'GATEWAY_DB_HOST', flag: 'db-host', summary: 'Host of the database.' },
  'database.port': { type: 'integer', default: 5432, min: 1, max: 65_535, env: 'GATEWAY_DB_PORT', flag: 'db-port',
    summary: 'Port of the database.' },
  'database.username': { type: 'string', default: 'postgres', env: 'GATEWAY_DB_USERNAME', flag: 'db-username', summary: 'User of the database.' },
  'database.password': { type: 'string', env: 'GATEWAY_DB_PASSWORD', flag: 'db-password', secret: true, summary: 'Password of the database.' },
  'database.database': { type: 'string', default: 'gateway', env: 'GATEWAY_DB_DATABASE', flag: 'db-database', summary: 'Name of the database.' },
  'database.options': { type: 'string', default: '', env: 'GATEWAY_DB_OPTIONS', flag: 'db-options',
    summary: 'Query string of the database URL, for example sslmode=verify-full&sslrootcert=/etc/ca.pem.' },
  'database.direct.host': { type: 'string', format: 'host', env: 'GATEWAY_DB_DIRECT_HOST',
    summary: 'Host of Postgres itself, where database.host is a connection pooler in transaction mode: sessions that last are opened there.' },
  'database.direct.port': { type: 'integer', default: 5432, min: 1, max: 65_535, env: 'GATEWAY_DB_DIRECT_PORT',
    summary: 'Port of Postgres itself, with database.direct.host.' },
  'database.max_open_connections': { type: 'integer', default: 10, min: 2, env: 'GATEWAY_DB_MAX_OPEN_CONNECTIONS',
    summary: 'Connections to the database that a process opens for its prepared statements.' },
  'database.max_builder_connections': { type: 'integer', default: 10, min: 1, env: 'GATEWAY_DB_MAX_BUILDER_CONNECTIONS',
    summary: 'Connections to the database that a process opens for other reads and writes, such as those of the management API.' },
  'database.idle_timeout_seconds': { type: 'integer', default: 60, min: 1, max: 86_400, env: 'GATEWAY_DB_IDLE_TIMEOUT_SECONDS',
    summary: 'Seconds after which an unused connection to the database is closed.' },

  'kv.type': { type: 'string', default: 'redis', options: ['redis', 'in-memory'], flag: 'kv-type',
    summary: 'Key-value store; in-memory is for one process alone.' },
  'kv.scheme': { type: 'string', default: 'redis', options: ['redis', 'rediss'], flag: 'kv-scheme', summary: 'Scheme of the KV URL; rediss is TLS.' },
  'kv.host': { type: 'string', format: 'host', default: 'localhost', flag: 'kv-host', summary: 'Host of the KV.' },
  'kv.port': { type: 'integer', default: 6379, min: 1, max: 65_535, flag: 'kv-port', summary: 'Port of the KV.' },
  'kv.username': { type: 'string', flag: 'kv-username', summary: 'User of the KV.' },
  'kv.password': { type: 'string', flag: 'kv-password', secret: true, summary: 'Password of the KV.' },
  'kv.database': { type: 'string', default: '0', flag: 'kv-database', summary: 'Number of the KV database.' },
  'kv.tls.ca_file': { type: 'string', flag: 'kv-tls-ca-file', summary: 'PEM file with the certificate authority of the KV; used with the scheme rediss.' },
  'kv.tls.cert_file': { type: 'string', flag: 'kv-tls-cert-file', summary: 'PEM file with the certificate that the gateway shows to the KV.' },
  'kv.tls.key_file': { type: 'string', flag: 'kv-tls-key-file', summary: 'PEM file with the key of that certificate.' },
  'kv.tls.insecure_skip_verify': { type: 'boolean', default: false, flag: 'kv-tls-insecure-skip-verify',
    summary: 'Do not verify the certificate of the KV.' },
  'kv.sentinel.master_name': { type: 'string', flag: 'kv-sentinel-master-name', summary: 'Name of the master that Sentinels watch; the KV is found through them.' },
  'kv.sentinel.addresses': { type: 'list', default: [], format: 'address', flag: 'kv-sentinel-addresses',
    summary: 'Sentinels, as <host>:<port>.' },
  'kv.sentinel.username': { type: 'string', flag: 'kv-sentinel-username', summary: 'User of the Sentinels.' },
  'kv.sentinel.password': { type: 'string', flag: 'kv-sentinel-password', secret: true, summary: 'Password of the Sentinels.' },
  'kv.cluster.addresses': { type: 'list', default: [], format: 'address', flag: 'kv-cluster-addresses',
    summary: 'Nodes of a Redis Cluster, as <host>:<port>; one that answers is enough.' },

  'logger.level': { type: 'string', default: 'info', options: ['debug', 'info', 'warn', 'error', 'silent'], flag: 'log-level',
    alias: { flag: 'logger', on: ['server'] },
    summary: 'Log level.' },

  'server.http.port': { type: 'integer', default: 5005, min: 0, max: 65_535, env: 'PORT', flag: 'port', on: ['server'],
    summary: 'HTTP port. Serves the management API and the dashboard.' },
  'server.http.agent_port': { type: 'integer', default: 5008, min: 0, max: 65_535, env: 'AGENT_PORT', flag: 'port', on: ['agent'], flagUnset: 'zero',
    summary: 'HTTP port. Serves /ingest, health and metrics of the data plane.' },
  'server.http.bind': { type: 'string', format: 'host', default: '0.0.0.0', env: 'GATEWAY_HTTP_BIND', summary: 'Address that both processes listen on.' },
  'server.http.body_timeout_seconds': { type: 'integer', default: 10, min: 1, max: 3600, env: 'GATEWAY_BODY_TIMEOUT_SECONDS',
    summary: 'Seconds that the body of a request may take to arrive, and one more for each 64 KB of it; a request that takes longer is answered with 408. While those of its sender hold 16 MB it may take one second.' },
  'server.http.drain_delay_seconds': { type: 'integer', default: 0, min: 0, max: 300, env: 'GATEWAY_DRAIN_DELAY_SECONDS',
    summary: 'Seconds after SIGTERM during which a process still answers requests, while `/healthz?ready` answers 503: two intervals of the health check of your load balancer.' },
  'server.http.ssl': { type: 'boolean', default: false, env: 'GATEWAY_SSL', flag: 'ssl', on: ['server'], summary: 'Serve the control plane over TLS.' },
  'server.http.ssl_cert_file': { type: 'string', env: 'GATEWAY_SSL_CERT_FILE', flag: 'ssl-cert-file', on: ['server'],
    summary: 'PEM file with the certificate chain.' },
  'server.http.ssl_key_file': { type: 'string', env: 'GATEWAY_SSL_KEY_FILE', flag: 'ssl-key-file', on: ['server'],
    summary: 'PEM file with the private key.' },
  'server.pulladdr': { type: 'string', format: 'address', env: 'GATEWAY_PULLADDR', flag: 'pulladdr', on: ['server'],
    summary: 'Extra address that serves only /metrics. Written <host>:<port>; applies to the server.' },
  'agent.pulladdr': { type: 'string', format: 'address', flag: 'pulladdr', on: ['agent'],
    summary: 'Extra address that serves only /metrics. Written <host>:<port>; applies to the agent.' },
  'server.cache': { type: 'string', default: 'kv', options: ['kv', 'in-memory'], env: 'GATEWAY_CACHE', flag: 'cache', on: ['server'],
    summary: 'Cache of lookups. kv shares it among all servers; in-memory keeps one per server.' },
  'server.limiter': { type: 'string', default: 'kv', options: ['kv', 'in-memory'], env: 'GATEWAY_LIMITER', flag: 'limiter', on: ['server'],
    summary: 'Store of rate-limit counters. Counts requests towards api_rate_limit and failed logins: kv for all servers together, in-memory per server.' },
  'server.trusted_proxies': { type: 'list', default: [], format: 'cidr', env: 'GATEWAY_TRUSTED_PROXIES',
    summary: 'Proxies and load balancers in front of the control plane, as CIDRs: the client is the last address of X-Forwarded-For that is none of them.' },
  'server.connection_tests': { type: 'integer', default: 1, min: 0, env: 'GATEWAY_CONNECTION_TESTS',
    summary: 'Connection tests of sources per second and project, all servers together, after 20 at once; 0 is unlimited.' },
  'server.function_tests': { type: 'integer', default: 1, min: 0, env: 'GATEWAY_FUNCTION_TESTS',
    summary: 'Tests of transform functions per second and project, all servers together, after 20 at once; 0 is unlimited.' },
  'server.project_concurrency': { type: 'integer', default: 8, min: 1, max: 10_000, env: 'GATEWAY_PROJECT_CONCURRENCY',
    summary: 'Requests for one project that a server works on at a time, a quarter of them with bodies above 64 KB, and 32 times as many small events; the others wait, and beyond a hundred times as many are refused. Each HTTP source has as many, and so have all portal links of a project together.' },
  'server.auth.api_keys': { type: 'list', default: [], env: 'GATEWAY_API_AUTH', flag: 'api-auth', on: ['server'], secret: true,
    summary: 'API keys with access to every organisation. At least 16 characters each, without commas; valid for this process only.' },
  'server.auth.basic': { type: 'list', default: [], env: 'GATEWAY_BASIC_AUTH', flag: 'basic-auth', on: ['server'], secret: true,
    summary: 'Basic-auth logins for every organisation. Written <username>:<password>, without commas; valid for this process only.' },
  'server.auth.native': { type: 'boolean', default: true, env: 'GATEWAY_NATIVE_AUTH', flag: 'native', on: ['server'],
    summary: 'Accept API keys from the database.' },
  'server.auth.max_failures': { type: 'integer', default: 10, min: 0, max: 100_000, env: 'GATEWAY_AUTH_MAX_FAILURES',
    summary: 'Failed logins from one address that lock it out until it regains one, a minute later; ten times as many of one account delay its logins. 0: no limit.' },

  'server.auth.passwords': { type: 'boolean', default: true, env: 'GATEWAY_AUTH_PASSWORDS',
    summary: 'Accept logins with email address and password; false leaves oidc.issuer as the only way to sign in.' },

  'oidc.issuer': { type: 'string', format: 'url',
    summary: 'OpenID Connect provider that people sign in with: its issuer URL, below which it answers /.well-known/openid-configuration.' },
  'oidc.client_id': { type: 'string', summary: 'Id of this gateway at the provider.' },
  'oidc.client_secret': { type: 'string', secret: true, summary: 'Secret of this gateway at the provider; without one it is a public client.' },
  'oidc.label': { type: 'string', default: 'single sign-on', summary: 'Name of the provider on the sign-in page: `Sign in with <label>`.' },
  'oidc.scopes': { type: 'list', default: ['openid', 'email', 'profile'], summary: 'Scopes that are asked for; openid is among them always.' },
  'oidc.require_verified_email': { type: 'boolean', default: true,
    summary: 'Take only email addresses that the provider says it has verified; false also takes those of which it says nothing, as Entra ID does.' },
  'oidc.allowed_domains': { type: 'list', default: [],
    summary: 'Domains of the email addresses that may sign in with the provider; all when it is empty.' },
  'oidc.organisation': { type: 'string',
    summary: 'Id of the organisation that people join who sign in for the first time without an invitation; unset: only people who were invited or have an account may sign in.' },
  'oidc.role': { type: 'string', default: 'viewer', options: ['viewer', 'member', 'admin'],
    summary: 'Role in oidc.organisation of those who join it.' },
  'oidc.allowed_networks': { type: 'list', default: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'], format: 'cidr',
    summary: 'Networks beside the internet that the provider may be in, as CIDRs; loopback, link-local, metadata and other reserved addresses are refused unless named.' },

  'dashboard.enabled': { type: 'boolean', default: true,
    summary: 'Serve the dashboard, below the root path of the server.' },
  'dashboard.stylesheet': { type: 'string',
    summary: 'CSS file that pages load after their own, to replace the name (--brand-name), the mark (--brand-mark) and the colours of the dashboard and the portal.' },
  'portal.frame_ancestors': { type: 'list', default: [], format: 'ancestor',
    summary: "Origins whose pages may show the portal in an iframe, such as https://app.example.com; 'self' is the server itself. Empty: none." },
  'portal.requests_per_second': { type: 'integer', default: 20, min: 0,
    summary: 'Requests to the management API per second and portal link, all servers together, after a burst of 5 seconds; 0 is unlimited.' },

  'smtp.provider': { type: 'string', flag: 'smtp-provider', on: ['agent', 'utils:doctor'],
    summary: 'Name of the SMTP provider. For example SendGrid; sets the URL, the port and TLS.' },
  'smtp.url': { type: 'string', format: 'login', flag: 'smtp-url', on: ['agent', 'utils:doctor'],
    summary: 'SMTP server. A host, smtp://<host>:<port> or smtps://<host>:<port>. Notifications are sent once smtp.url and smtp.from are set.' },
  'smtp.port': { type: 'integer', min: 1, max: 65_535, flag: 'smtp-port', on: ['agent', 'utils:doctor'], flagUnset: 'zero',
    summary: 'Port of the SMTP server. Default: 587, or 465 with smtp.ssl.' },
  'smtp.ssl': { type: 'boolean', default: false, flag: 'smtp-ssl', on: ['agent', 'utils:doctor'],
    summary: 'Connect to the SMTP server over TLS. Otherwise the connection is upgraded with STARTTLS if the server offers it.' },
  'smtp.username': { type: 'string', flag: 'smtp-username', on: ['agent', 'utils:doctor'], summary: 'User of the SMTP server.' },
  'smtp.password': { type: 'string', flag: 'smtp-password', on: ['agent', 'utils:doctor'], secret: true, summary: 'Password of the SMTP server.' },
  'smtp.from': { type: 'string', format: 'email', flag: 'smtp-from', on: ['agent', 'utils:doctor'], summary: 'Sender of notification emails.' },
  'smtp.reply_to': { type: 'string', format: 'email', flag: 'smtp-reply-to', on: ['agent', 'utils:doctor'], summary: 'Reply-to address of notification emails.' },
  'smtp.ca_file': { type: 'string', summary: 'PEM file with the certificate authority of the SMTP server.' },
  'smtp.to': { type: 'list', default: [], format: 'email',
    summary: 'Addresses that get notifications about the whole instance, such as a licence that expires; without them the admins of every organisation do.' },

  'notifications.endpoint_failures': { type: 'integer', default: 10, min: 1,
    summary: 'Failed delivery attempts in a row, in one agent, after which an endpoint is said to be failing.' },
  'notifications.source_seconds': { type: 'integer', default: 300, min: 1, max: 604_800,
    summary: 'Seconds that a source may be unread before it is said to be failing.' },
  'notifications.quiet_seconds': { type: 'integer', default: 600, min: 0, max: 604_800,
    summary: 'Seconds in which at most one notification says that the same endpoint or source is failing; after ten of a kind for an organisation the next are gathered for so long.' },

  'retention.enabled': { type: 'boolean', default: true, flag: 'retention-enabled', summary: 'Delete finished events and their deliveries when they are old.' },
  'retention.days': { type: 'integer', default: 30, min: 1, max: 36_500, flag: 'retention-days',
    summary: 'Days that events, event deliveries and delivery attempts are kept; a day with unfinished work is kept until it is done.' },
  'retention.audit_days': { type: 'integer', default: 365, min: 1, max: 36_500,
    summary: 'Days that entries of the audit log are kept.' },

  'billing.enabled': { type: 'boolean', default: false, flag: 'billing-enabled', summary: 'Post the daily usage of each organisation to billing.url.' },
  'billing.url': { type: 'string', format: 'url', flag: 'billing-url', summary: 'URL that usage records are posted to.' },
  'billing.api_key': { type: 'string', flag: 'billing-api-key', secret: true, summary: 'Key that is sent to billing.url as a bearer token.' },

  'metrics.enabled': { type: 'boolean', default: false, flag: 'metrics-enabled',
    summary: 'Export metrics. Without metrics.metrics_backend, true also selects pullmetrics and enables its feature flag.' },
  'metrics.bearer_token': { type: 'string', flag: 'metrics-bearer-token', secret: true,
    summary: 'Token that scrapers of /metrics must send as `Authorization: Bearer <token>`; without it, no login is needed.' },
  'metrics.max_label_sets': { type: 'integer', default: 1000, min: 1, flag: 'metrics-max-label-sets',
    summary: 'Label sets shown per series; the rest is put together under the label value "other".' },
  'metrics.metrics_backend': { type: 'string', lowerCase: true, env: 'GATEWAY_METRICS_BACKEND', flag: 'metrics-backend', summary: 'Metrics backend.' },
  query_timeout: { type: 'integer', default: 30, min: 1, max: 86_400, env: 'GATEWAY_METRICS_QUERY_TIMEOUT',
    also: ['metrics.query_timeout', 'metrics.pullmetrics_metrics.query_timeout'],
    summary: 'Seconds that a query for metrics may take.' },
  'tracer.type': { type: 'string', lowerCase: true, env: 'GATEWAY_TRACER_PROVIDER', flag: 'tracer-type', summary: 'Tracer provider.' },
  'plugins.dir': { type: 'string', default: './gateway-plugins',
    summary: 'Folder with plugins of third parties: the dependencies of its package.json.' },
  'plugins.strict': { type: 'boolean', default: false, flag: 'strict-plugins', on: ['server', 'agent'],
    summary: 'Fail to start if a plugin is inactive. Counts only plugins that the configuration selects.' },
} as const satisfies SettingsTable;

/**
 * The resolved settings, deeply frozen. Plugin settings are included but untyped; read them with
 * `settingsAt`.
 */
export type Config = ConfigOf<typeof settings>;
