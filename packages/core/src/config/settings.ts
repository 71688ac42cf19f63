/** Types, validation, flags, help, redaction and the reference page are derived from it. */
export interface Setting {
  readonly type: 'integer' | 'number' | 'boolean' | 'string' | 'list';
  readonly default?: number | boolean | string | readonly string[];
  /**
   * Default: GATEWAY_ and the upper-case key, with underscores for dots and dashes, DB for
   * `database`, and without `server` and `server.http`.
   */
  readonly env?: string;
  readonly flag?: string;
  /** Alternative keys in the configuration file. */
  readonly also?: readonly string[];
  /** The commands that accept the flag. Default: all. */
  readonly on?: readonly string[];
  readonly alias?: { readonly flag: string; readonly on: readonly string[] };
  /** Flag values that count as unset: negative numbers, or zero. */
  readonly flagUnset?: 'negative' | 'zero';
  /** Matched case-insensitively. */
  readonly options?: readonly string[];
  /** The value, a plugin name, is converted to lowercase. */
  readonly lowerCase?: true;
  readonly min?: number;
  readonly max?: number;
  /**
   * `cidr` is a network, `host` a host without a port, `login` an address without credentials,
   * `address` is host:port, `target` is host:port with or without http(s)://, `dsn` is a Sentry
   * DSN, `prefix` a path prefix, `ancestor` an origin for `frame-ancestors`, `archive` is
   * s3://bucket/prefix or an absolute path, `day` a UTC day, and `id` that of a resource.
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
    | 'ancestor'
    | 'archive'
    | 'day'
    | 'id';
  /** Tells in an error message how to name several hosts. */
  readonly oneHost?: string;
  readonly secret?: boolean;
  readonly summary: string;
  /** Names the option in error messages, such as `feature flag`. */
  readonly noun?: string;
  readonly required?: boolean;
  readonly owner?: string;
  /** The setting no longer exists. The error message names its replacement. */
  readonly withdrawn?: string;
}

export type SettingsTable = Readonly<Record<string, Setting>>;

export interface FeatureFlag {
  readonly summary: string;
  readonly stability: 'experimental' | 'beta' | 'stable';
  readonly declaredBy: string;
}

export type FlagTable = Readonly<Record<string, FeatureFlag>>;

/** Limits `enable_feature_flag` to the given flags. */
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

/** Settings without a default are optional. */
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
  const short = key.replace(/^database\./, 'db.').replace(/^server\.(http\.)?/, '');
  return setting.env ?? wholeEnvOf(short);
}

/** Without abbreviations, as a user may guess. */
export function wholeEnvOf(key: string): string {
  return `GATEWAY_${key.toUpperCase().replaceAll(/[.-]/g, '_')}`;
}

export function keysOf(key: string, { also = [] }: Setting): string[] {
  return [key, ...also];
}

export function flagsOf(setting: Setting, command: string): string[] {
  const taken: string[] = [];
  if (setting.flag && (!setting.on || setting.on.includes(command))) taken.push(setting.flag);
  if (setting.alias?.on.includes(command)) taken.push(setting.alias.flag);
  return taken;
}

const ONE_POSTGRES =
  'name the address that follows the primary, such as a Service, a pooler or a virtual IP; database.replicas names replicas for reads';

/** These use the management API, of a server or within their process. */
const API_COMMANDS = [
  ...['openapi', 'retry'],
  ...['add', 'drain', 'list', 'move', 'remove', 'set'].map((it) => `shards:${it}`),
  ...['circuit-breakers', 'explain', 'transform', 'usage', 'secrets:rotate'].map(
    (it) => `utils:${it}`,
  ),
  ...['list', 'mute', 'retry'].map((it) => `utils:issues:${it}`),
  ...['discard', 'edit', 'list', 'replay', 'show'].map((it) => `utils:quarantine:${it}`),
  ...['list', 'resume'].map((it) => `utils:sources:${it}`),
];

const limitOf = (things: string, most: number) =>
  ({
    type: 'integer',
    default: most,
    min: 1,
    summary: `${things} that a project may have; the management API refuses to create more.`,
  }) as const;

const MAIL_COMMANDS = ['agent', 'utils:doctor'];

/** By path in the configuration file. `discovery.ts` adds plugin settings. */
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
    summary: 'Messages that the instance ingests per second, across all agents; 0 is unlimited.' },
  api_rate_limit: { type: 'integer', default: 1000, min: 0, flag: 'api-rate-limit',
    summary: 'Requests to the management API per second and credential, across all servers; 0 is unlimited.' },
  'client.url': { type: 'string', format: 'url', env: 'GATEWAY_URL', flag: 'url', on: API_COMMANDS,
    summary: 'Server on whose management API the command works. Without it, the command works on the database of the settings.' },
  'client.key': { type: 'string', env: 'GATEWAY_KEY', flag: 'key', on: API_COMMANDS, secret: true,
    summary: 'API key for the server at client.url.' },
  enable_feature_flag: { type: 'list', default: [], flag: 'enable-feature-flag', summary: 'Feature flags to enable.' },
  feature_flag: { type: 'string', flag: 'feature-flag', summary: 'Withdrawn.',
    withdrawn: 'flags are enabled by name: use --enable-feature-flag=<flag> or GATEWAY_ENABLE_FEATURE_FLAG=<flag>' },
  license_key: { type: 'string', flag: 'license-key', secret: true, summary: 'Licence token; without one the community licence applies.' },
  license_public_key: { type: 'string', summary: 'Ed25519 public key that verifies licences: 32 bytes in base64, or PEM.' },
  encryption_key: { type: 'string', secret: true,
    summary: 'Key that encrypts stored secrets: 32 bytes in base64, the same for every process.' },
  consumer_pool_size: { type: 'integer', default: 500, min: 0, flag: 'consumers', on: ['agent'], flagUnset: 'negative',
    summary: 'Concurrent deliveries per agent. 0 sizes the pool by the machine: 250 per core, at most one per 2 MiB of memory.' },
  max_response_size: { type: 'integer', default: 50, min: 0, flag: 'max-response-size', on: ['server', 'agent'],
    summary: 'Kilobytes kept per response.' },

  'agent.interval_seconds': { type: 'integer', default: 10, min: 1, max: 86_400, flag: 'interval', on: ['agent'],
    summary: 'Seconds between reads of the configuration. Every agent refreshes its in-memory copy from the database this often.' },
  'agent.mode': { type: 'string', default: 'default', options: ['events', 'retry', 'default'], flag: 'mode', on: ['agent'],
    summary: 'Attempts the agent makes. events: first attempts; retry: later attempts; default: both.' },
  'agent.shards': { type: 'list', default: [], flag: 'shards', on: ['agent'],
    summary: 'Shards that the agent works on. Default: all.' },
  'agent.drain_timeout_seconds': { type: 'integer', default: 25, min: 0, max: 86_400,
    summary: 'Seconds that a stopping process may take to finish its work in progress.' },

  'limits.api_keys_per_project': limitOf('Valid API keys', 100),
  'limits.idempotency_keys_per_credential': { type: 'integer', default: 1000, min: 1,
    summary: 'Responses to requests with an Idempotency-Key that are kept per credential, for 24 hours; beyond that, the oldest are dropped.' },
  'limits.portal_links_per_project': limitOf('Valid portal links', 10_000),
  'limits.endpoints_per_owner': { type: 'integer', default: 20, min: 1,
    summary: 'Endpoints above which an owner cannot create more over a portal link.' },
  'limits.subscriptions_per_owner': { type: 'integer', default: 100, min: 1,
    summary: 'Subscriptions, across all endpoints of an owner, above which the owner cannot create more over a portal link.' },
  'limits.organisations_per_user': { type: 'integer', default: 20, min: 1,
    summary: 'Organisations above which a user, as their member, cannot create another one.' },
  'limits.invitations_per_organisation': { type: 'integer', default: 200, min: 1,
    summary: 'Open invitations that an organisation may have at a time.' },
  'limits.event_types_per_project': { type: 'integer', default: 2_000, min: 1,
    summary: 'Event types that a project may have; the management API refuses to create more, `gateway openapi` does not count them.' },
  'limits.endpoints_per_project': limitOf('Endpoints', 10_000),
  'limits.client_certificates_per_project': { type: 'integer', default: 200, min: 1,
    summary: 'Endpoints of a project that may have a client certificate; the management API refuses more.' },
  'limits.subscriptions_per_project': limitOf('Subscriptions', 1000),
  'limits.sources_per_project': limitOf('Sources', 100),
  'limits.scheduled_events_per_project': limitOf('Scheduled events', 10_000),
  'limits.workers_per_project': { type: 'integer', default: 200, min: 1,
    summary: 'Workers that the enabled sources of a project may have in total; the management API refuses more.' },
  'limits.failure_threshold': { type: 'integer', default: 90, min: 1, max: 100,
    summary: 'Highest failure_threshold that a project may set for its circuit breakers, which it cannot turn off.' },
  'limits.minimum_request_count': { type: 'integer', default: 50, min: 1, max: 1000,
    summary: 'Highest minimum_request_count that a project may set for its circuit breakers.' },

  'limits.events_per_second': { type: 'integer', default: 0, min: 0,
    summary: 'Events per second and project that each agent accepts from sources, and each server over the API and HTTP sources. Every 16 KB of an event counts as one more; quarantined messages count too. Beyond the limit, messages wait and requests get 429. 0: only instance_ingest_rate and api_rate_limit apply.' },
  'limits.event_loop_ms': { type: 'integer', default: 500, min: 0, max: 1000,
    summary: 'Milliseconds per second that the event loop of each agent spends on the messages and deliveries of one project while other projects have work too; beyond that, they wait. About a third of the time is measured; an eighth of the limit is for reading the configuration. 0: no limit.' },
  'limits.response_bytes_per_second': { type: 'integer', default: 1_048_576, min: 0,
    summary: 'Bytes of response bodies that each agent stores per project and second; beyond that, it stores the first 1,000 bytes of each. 0: only max_response_size applies.' },
  'limits.routing_work': { type: 'integer', default: 5_000_000, min: 0,
    summary: 'Routing work that each agent does per project and second, in filter comparisons; beyond that, events wait. Each character of a body that filters read counts as one, each delivery of an event after the first as 1,000. 0: no limit.' },

  'ingest.max_message_bytes': { type: 'integer', default: 1_048_576, min: 1,
    summary: 'Maximum size of a message in bytes; larger messages are quarantined.' },
  'ingest.window': { type: 'integer', default: 1000, min: 1, summary: 'Messages in flight per partition or worker, at most limits.events_per_second; 1 processes them one at a time.' },
  'ingest.batch_size': { type: 'integer', default: 500, min: 1, max: 5000, summary: 'Maximum messages and events per commit; a single message that creates more events is still committed at once.' },
  'ingest.idempotency_window_seconds': { type: 'integer', default: 86_400, min: 0, max: 315_360_000,
    summary: 'Seconds during which a repeated idempotency key does not create another event.' },

  'ingest.inline_routing': { type: 'boolean', default: true,
    summary: 'Route each event in the agent that accepts it, if that agent has room; false sends every event through both queues.' },

  'transform.deadline_ms': { type: 'integer', default: 1000, min: 10, max: 3_600_000,
    summary: 'Milliseconds that one call of a transform function may take.' },
  'transform.memory_mb': { type: 'integer', default: 64, min: 16, max: 16_384,
    summary: 'Heap size in megabytes of each process that runs transform functions.' },
  'transform.max_output_bytes': { type: 'integer', default: 1_048_576, min: 2, max: 67_108_864,
    summary: 'Maximum output of a transform function in bytes.' },
  'transform.processes': { type: 'integer', default: 2, min: 1, max: 64, summary: 'Processes that run transform functions.' },
  'transform.pause_overruns': { type: 'integer', default: 5, min: 0, max: 10_000,
    summary: 'Overruns (of time or memory, or a crashed process) of the transform functions of a project within transform.pause_window_seconds that pause their sources. Sources with fewer than a tenth of their calls overrunning are not paused. 0 never pauses.' },
  'transform.pause_window_seconds': { type: 'integer', default: 60, min: 1, max: 86_400,
    summary: 'Window in seconds over which overruns of a transform function are counted. It is extended if transform.deadline_ms is too long for it, and while the function runs without a break.' },
  'transform.pause_seconds': { type: 'integer', default: 60, min: 1, max: 3600,
    summary: 'Seconds until a paused source resumes, doubled with each consecutive pause up to an hour. Changing the function shortens the pause to this.' },

  'delivery.endpoint_concurrency': { type: 'integer', default: 50, min: 1,
    summary: 'Concurrent deliveries to one endpoint, per agent.' },
  'delivery.lookups_per_project': { type: 'integer', default: 32, min: 1,
    summary: 'Concurrent DNS lookups per project and agent; further lookups wait.' },
  'delivery.allowed_networks': { type: 'list', default: [], format: 'cidr',
    summary: 'Private networks that endpoints may be in, as CIDRs; all other private networks are refused.' },
  'source.allowed_networks': { type: 'list', default: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'], format: 'cidr',
    summary: 'Private networks that sources may be in, as CIDRs. Loopback, link-local, metadata and other reserved addresses are refused unless listed.' },
  'delivery.proxy': { type: 'string', format: 'url', env: 'GATEWAY_PROXY', flag: 'proxy', on: ['server', 'agent'], secret: true,
    summary: 'Proxy for outgoing HTTP requests.' },
  'delivery.no_proxy': { type: 'list', default: [], env: 'NO_PROXY',
    summary: 'Hosts that are reached without the proxy: names, which include their subdomains, addresses and networks, each with an optional port, or *.' },
  'delivery.ca_file': { type: 'string',
    summary: 'PEM file with additional certificate authorities to trust for endpoints.' },
  'delivery.max_outstanding': { type: 'integer', default: 4000, min: 1,
    summary: 'Maximum deliveries that an agent holds, waiting or in progress, shared between projects and endpoints.' },
  'delivery.max_outstanding_bytes': { type: 'integer', default: 41_943_040, min: 1_048_576,
    summary: 'Maximum bytes of the events that an agent holds, waiting or in progress, shared between projects and endpoints.' },

  'circuit_breaker.failure_threshold': { type: 'integer', default: 70, min: 0, max: 100,
    summary: 'Percentage of failed requests that opens the circuit breaker of an endpoint; 0 never opens it. A project can override it.' },
  'circuit_breaker.minimum_request_count': { type: 'integer', default: 10, min: 1, max: 1000,
    summary: 'Minimum requests to an endpoint before its circuit breaker can open.' },
  'circuit_breaker.observability_window': { type: 'integer', default: 5, min: 1, max: 1440,
    summary: 'Minutes over which the circuit breaker counts the requests to an endpoint.' },
  'circuit_breaker.error_timeout': { type: 'integer', default: 30, min: 1, max: 3600,
    summary: 'Seconds from opening a circuit breaker to the first probe; the wait doubles after each failed probe.' },
  'circuit_breaker.max_error_timeout': { type: 'integer', default: 600, min: 1, max: 86_400,
    summary: 'Maximum seconds between two probes of an endpoint with an open circuit breaker.' },

  'database.type': { type: 'string', default: 'postgres', options: ['postgres'], flag: 'db-type',
    summary: 'Kind of database.' },
  'database.scheme': { type: 'string', default: 'postgres', options: ['postgres', 'postgresql'], flag: 'db-scheme',
    summary: 'Scheme of the database URL.' },
  'database.host': { type: 'string', format: 'host', default: 'localhost', flag: 'db-host', oneHost: ONE_POSTGRES, summary: 'Host of the database.' },
  'database.port': { type: 'integer', default: 5432, min: 1, max: 65_535, flag: 'db-port',
    summary: 'Port of the database.' },
  'database.username': { type: 'string', default: 'postgres', flag: 'db-username', summary: 'User of the database.' },
  'database.password': { type: 'string', flag: 'db-password', secret: true, summary: 'Password of the database.' },
  'database.password_file': { type: 'string',
    summary: 'File with the password of the database, read for each new connection; instead of database.password.' },
  'database.password_command': { type: 'string',
    summary: 'Shell command that prints the password of the database, run for each new connection; instead of database.password. For tokens, such as those of RDS IAM.' },
  'database.database': { type: 'string', default: 'gateway', flag: 'db-database', summary: 'Name of the database.' },
  'database.options': { type: 'string', default: '', flag: 'db-options',
    summary: 'Query string of the database URL, for example sslmode=verify-full&sslrootcert=/etc/ca.pem.' },
  'database.direct.host': { type: 'string', format: 'host', oneHost: ONE_POSTGRES,
    summary: 'Host of Postgres itself, for long-lived sessions, if database.host is a connection pooler in transaction mode.' },
  'database.direct.port': { type: 'integer', default: 5432, min: 1, max: 65_535,
    summary: 'Port of Postgres itself, with database.direct.host.' },
  'database.pooled': { type: 'boolean', default: false,
    summary: 'The database is reachable only through a connection pooler in transaction mode: poll for changes, and hold locks in transactions.' },
  'database.replicas': { type: 'list', default: [], format: 'address',
    summary: 'Streaming replicas of the database, as <host>:<port>, for lists, searches and metrics. User, password, database and options are the same.' },
  'database.max_replica_lag_seconds': { type: 'integer', default: 5, min: 2, max: 300,
    summary: 'Seconds by which the data of a replica may be behind; reads go to the primary while it is further behind.' },
  'database.max_open_connections': { type: 'integer', default: 10, min: 2,
    summary: 'Maximum database connections per process for prepared statements.' },
  'database.max_builder_connections': { type: 'integer', default: 10, min: 1,
    summary: 'Maximum database connections per process for other queries, such as those of the management API.' },
  'database.idle_timeout_seconds': { type: 'integer', default: 60, min: 1, max: 86_400,
    summary: 'Seconds after which an unused connection to the database is closed.' },

  'kv.type': { type: 'string', default: 'redis', options: ['redis', 'in-memory'], flag: 'kv-type',
    summary: 'Key-value store; in-memory supports only a single process.' },
  'kv.scheme': { type: 'string', default: 'redis', options: ['redis', 'rediss'], flag: 'kv-scheme', summary: 'Scheme of the KV URL; rediss uses TLS.' },
  'kv.host': { type: 'string', format: 'host', default: 'localhost', flag: 'kv-host',
    oneHost: 'name the nodes of a Redis Cluster with kv.cluster.addresses, or the Sentinels with kv.sentinel.addresses and kv.sentinel.master_name',
    summary: 'Host of the KV.' },
  'kv.port': { type: 'integer', default: 6379, min: 1, max: 65_535, flag: 'kv-port', summary: 'Port of the KV.' },
  'kv.username': { type: 'string', flag: 'kv-username', summary: 'User of the KV.' },
  'kv.password': { type: 'string', flag: 'kv-password', secret: true, summary: 'Password of the KV.' },
  'kv.password_file': { type: 'string', summary: 'File with the password of the KV, read for each new connection; instead of kv.password.' },
  'kv.password_command': { type: 'string',
    summary: 'Shell command that prints the password of the KV, run for each new connection; instead of kv.password. After a change, the first connection may fail.' },
  'kv.database': { type: 'string', default: '0', flag: 'kv-database', summary: 'Number of the KV database.' },
  'kv.tls.ca_file': { type: 'string', flag: 'kv-tls-ca-file', summary: 'PEM file with the certificate authority of the KV; used with the scheme rediss.' },
  'kv.tls.cert_file': { type: 'string', flag: 'kv-tls-cert-file', summary: 'PEM file with the client certificate for the KV.' },
  'kv.tls.key_file': { type: 'string', flag: 'kv-tls-key-file', summary: 'PEM file with the private key of the client certificate for the KV.' },
  'kv.tls.insecure_skip_verify': { type: 'boolean', default: false, flag: 'kv-tls-insecure-skip-verify',
    summary: 'Do not verify the certificate of the KV.' },
  'kv.sentinel.master_name': { type: 'string', flag: 'kv-sentinel-master-name', summary: 'Name of the master that the Sentinels monitor; they provide the address of the KV.' },
  'kv.sentinel.addresses': { type: 'list', default: [], format: 'address', flag: 'kv-sentinel-addresses',
    summary: 'Sentinels, as <host>:<port>.' },
  'kv.sentinel.username': { type: 'string', flag: 'kv-sentinel-username', summary: 'User of the Sentinels.' },
  'kv.sentinel.password': { type: 'string', flag: 'kv-sentinel-password', secret: true, summary: 'Password of the Sentinels.' },
  'kv.cluster.addresses': { type: 'list', default: [], format: 'address', flag: 'kv-cluster-addresses',
    summary: 'Nodes of a Redis Cluster, as <host>:<port>; one reachable node is enough.' },

  'logger.level': { type: 'string', default: 'info', options: ['debug', 'info', 'warn', 'error', 'silent'], flag: 'log-level',
    alias: { flag: 'logger', on: ['server'] },
    summary: 'Log level.' },

  'server.http.port': { type: 'integer', default: 5005, min: 0, max: 65_535, env: 'PORT', flag: 'port', on: ['server'],
    summary: 'HTTP port. Serves the management API and the dashboard.' },
  'server.http.agent_port': { type: 'integer', default: 5008, min: 0, max: 65_535, env: 'AGENT_PORT', flag: 'port', on: ['agent'], flagUnset: 'zero',
    summary: 'HTTP port. Serves /ingest, health and metrics of the data plane.' },
  'server.http.bind': { type: 'string', format: 'host', default: '::', env: 'GATEWAY_HTTP_BIND', summary: 'Address that both processes listen on. Default: all, IPv6 and IPv4.' },
  'server.http.body_timeout_seconds': { type: 'integer', default: 10, min: 1, max: 3600,
    summary: 'Seconds to receive the body of a request, plus one per 64 KB; slower requests get 408. While the bodies of one sender hold 16 MB, each has one second.' },
  'server.http.drain_delay_seconds': { type: 'integer', default: 0, min: 0, max: 300,
    summary: 'Seconds after SIGTERM during which a process still answers requests while `/healthz?ready` returns 503. Set it to two health check intervals of your load balancer.' },
  'server.http.ssl': { type: 'boolean', default: false, flag: 'ssl', on: ['server'], summary: 'Serve the control plane over TLS.' },
  'server.http.ssl_cert_file': { type: 'string', flag: 'ssl-cert-file', on: ['server'],
    summary: 'PEM file with the certificate chain.' },
  'server.http.ssl_key_file': { type: 'string', flag: 'ssl-key-file', on: ['server'],
    summary: 'PEM file with the private key.' },
  'server.pulladdr': { type: 'string', format: 'address', flag: 'pulladdr', on: ['server'],
    summary: 'Extra address that serves only /metrics. Written <host>:<port>; applies to the server.' },
  'agent.pulladdr': { type: 'string', format: 'address', flag: 'pulladdr', on: ['agent'],
    summary: 'Extra address that serves only /metrics. Written <host>:<port>; applies to the agent.' },
  'server.cache': { type: 'string', default: 'kv', options: ['kv', 'in-memory'], flag: 'cache', on: ['server'],
    summary: 'Cache of lookups. kv shares it among all servers; in-memory keeps one per server.' },
  'server.limiter': { type: 'string', default: 'kv', options: ['kv', 'in-memory'], flag: 'limiter', on: ['server'],
    summary: 'Store of rate-limit counters. Counts requests towards api_rate_limit and failed logins: kv for all servers together, in-memory per server.' },
  'server.trusted_proxies': { type: 'list', default: [], format: 'cidr',
    summary: 'Proxies and load balancers in front of the control plane, as CIDRs. The client address is the last one in X-Forwarded-For that is not among them.' },
  'server.connection_tests': { type: 'integer', default: 1, min: 0,
    summary: 'Connection tests of sources per second and project, across all servers, after a burst of 20; 0 is unlimited.' },
  'server.function_tests': { type: 'integer', default: 1, min: 0,
    summary: 'Tests of transform functions per second and project, across all servers, after a burst of 20; 0 is unlimited.' },
  'server.project_concurrency': { type: 'integer', default: 8, min: 1, max: 10_000,
    summary: 'Concurrent requests per project and server, a quarter of them with bodies over 64 KB, and 32 times as many for small events. Further requests wait; beyond a hundred times the limit they are refused. Each HTTP source, and all portal links of a project together, have a limit of the same size.' },
  'server.auth.api_keys': { type: 'list', default: [], env: 'GATEWAY_API_AUTH', flag: 'api-auth', on: ['server'], secret: true,
    summary: 'API keys with access to every organisation. At least 16 characters each, without commas; valid for this process only.' },
  'server.auth.basic': { type: 'list', default: [], env: 'GATEWAY_BASIC_AUTH', flag: 'basic-auth', on: ['server'], secret: true,
    summary: 'Basic-auth logins for every organisation. Written <username>:<password>, without commas; valid for this process only.' },
  'server.auth.native': { type: 'boolean', default: true, env: 'GATEWAY_NATIVE_AUTH', flag: 'native', on: ['server'],
    summary: 'Accept API keys from the database.' },
  'server.auth.max_failures': { type: 'integer', default: 10, min: 0, max: 100_000,
    summary: 'Failed logins that lock out an address until it regains one attempt, a minute later. Ten times as many failures delay the logins of an account. 0: no limit.' },

  'server.auth.passwords': { type: 'boolean', default: true,
    summary: 'Accept logins with email address and password; false leaves oidc.issuer as the only way to sign in.' },

  'oidc.issuer': { type: 'string', format: 'url',
    summary: 'Issuer URL of the OpenID Connect provider for sign-in. The provider must serve /.well-known/openid-configuration below it.' },
  'oidc.client_id': { type: 'string', summary: 'OAuth client id of the gateway at the provider.' },
  'oidc.client_secret': { type: 'string', secret: true, summary: 'OAuth client secret of the gateway; omit it for a public client.' },
  'oidc.label': { type: 'string', default: 'single sign-on', summary: 'Name of the provider on the sign-in page: `Sign in with <label>`.' },
  'oidc.scopes': { type: 'list', default: ['openid', 'email', 'profile'], summary: 'Scopes to request; openid is always included.' },
  'oidc.require_verified_email': { type: 'boolean', default: true,
    summary: 'Accept only email addresses that the provider marks as verified; false also accepts addresses without that mark, as from Entra ID.' },
  'oidc.allowed_domains': { type: 'list', default: [],
    summary: 'Email domains that may sign in with the provider; empty allows all.' },
  'oidc.organisation': { type: 'string', format: 'id',
    summary: 'Id of the organisation that people join when they first sign in without an invitation. Unset: only invited people and existing users may sign in.' },
  'oidc.role': { type: 'string', default: 'viewer', options: ['viewer', 'member', 'admin'],
    summary: 'Role in oidc.organisation for people who join it.' },
  'oidc.allowed_networks': { type: 'list', default: ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'], format: 'cidr',
    summary: 'Private networks that the provider may be in, as CIDRs. Loopback, link-local, metadata and other reserved addresses are refused unless listed.' },

  'dashboard.enabled': { type: 'boolean', default: true,
    summary: 'Serve the dashboard, below the root path of the server.' },
  'dashboard.stylesheet': { type: 'string',
    summary: 'CSS file loaded last by the dashboard and the portal, to replace the name (--brand-name), the logo (--brand-mark) and the colours.' },
  'portal.frame_ancestors': { type: 'list', default: [], format: 'ancestor',
    summary: "Origins that may embed the portal in an iframe, such as https://app.example.com; 'self' is the server itself. Empty: none." },
  'portal.requests_per_second': { type: 'integer', default: 20, min: 0,
    summary: 'Requests to the management API per second and portal link, across all servers, after a burst of 5 seconds; 0 is unlimited.' },

  'smtp.provider': { type: 'string', flag: 'smtp-provider', on: MAIL_COMMANDS,
    summary: 'Name of the SMTP provider. For example SendGrid; sets the URL, the port and TLS.' },
  'smtp.url': { type: 'string', format: 'login', flag: 'smtp-url', on: MAIL_COMMANDS,
    summary: 'SMTP server. A host, smtp://<host>:<port> or smtps://<host>:<port>. Notifications are sent once smtp.url and smtp.from are set.' },
  'smtp.port': { type: 'integer', min: 1, max: 65_535, flag: 'smtp-port', on: MAIL_COMMANDS, flagUnset: 'zero',
    summary: 'Port of the SMTP server. Default: 587, or 465 with smtp.ssl.' },
  'smtp.ssl': { type: 'boolean', default: false, flag: 'smtp-ssl', on: MAIL_COMMANDS,
    summary: 'Connect to the SMTP server over TLS. Otherwise the connection is upgraded with STARTTLS if the server offers it.' },
  'smtp.username': { type: 'string', flag: 'smtp-username', on: MAIL_COMMANDS, summary: 'User of the SMTP server.' },
  'smtp.password': { type: 'string', flag: 'smtp-password', on: MAIL_COMMANDS, secret: true, summary: 'Password of the SMTP server.' },
  'smtp.password_file': { type: 'string', summary: 'File with the password of the SMTP server, read for each email; instead of smtp.password.' },
  'smtp.password_command': { type: 'string',
    summary: 'Shell command that prints the password of the SMTP server, run for each email; instead of smtp.password.' },
  'smtp.from': { type: 'string', format: 'email', flag: 'smtp-from', on: MAIL_COMMANDS, summary: 'Sender of notification emails.' },
  'smtp.reply_to': { type: 'string', format: 'email', flag: 'smtp-reply-to', on: MAIL_COMMANDS, summary: 'Reply-to address of notification emails.' },
  'smtp.starttls': { type: 'string', options: ['required', 'opportunistic', 'off'],
    summary: 'STARTTLS with the SMTP server: required; opportunistic, which goes on unencrypted and without a login if the server refuses it; or off. Default: if the server offers it, and then required.' },
  'smtp.ca_file': { type: 'string', summary: 'PEM file with the certificate of the SMTP server, or with its certificate authority.' },
  'smtp.insecure_skip_verify': { type: 'boolean', default: false, summary: 'Do not verify the certificate of the SMTP server.' },

  'notifications.endpoint_failures': { type: 'integer', default: 10, min: 1,
    summary: 'Consecutive failed delivery attempts in one agent after which an endpoint is reported as failing.' },
  'notifications.source_seconds': { type: 'integer', default: 300, min: 1, max: 604_800,
    summary: 'Seconds that a source may stay unread before it is reported as failing.' },
  'notifications.quiet_seconds': { type: 'integer', default: 600, min: 0, max: 604_800,
    summary: 'Minimum seconds between two notifications that the same endpoint or source is failing. After ten of a kind for an organisation, further ones are combined for this long.' },

  'retention.enabled': { type: 'boolean', default: true, flag: 'retention-enabled', summary: 'Delete finished events and their deliveries after retention.days.' },
  'retention.days': { type: 'integer', default: 30, min: 1, max: 36_500, flag: 'retention-days',
    summary: 'Days to keep events, event deliveries and delivery attempts; a day with unfinished work is kept until that is done.' },
  'retention.audit_days': { type: 'integer', default: 365, min: 1, max: 36_500,
    summary: 'Days to keep entries of the audit log.' },

  'archive.url': { type: 'string', format: 'archive',
    summary: 'Bucket or folder to which retention copies events before it deletes them: s3://<bucket>/<prefix> or an absolute path. Unset: they are only deleted.' },
  'archive.region': { type: 'string', summary: 'Region of the bucket. Default: that of the environment or the AWS profile.' },
  'archive.endpoint': { type: 'string', format: 'url', summary: 'URL of an S3-compatible store; unset for Amazon S3.' },
  'archive.path_style': { type: 'boolean', default: false,
    summary: 'Put the bucket into the path instead of the host name, as some S3-compatible stores require.' },
  'archive.access_key_id': { type: 'string',
    summary: 'Access key for the bucket. Unset: the process uses its AWS credentials, from the environment, a profile, a web identity, the container or the machine.' },
  'archive.secret_access_key': { type: 'string', secret: true, summary: 'Secret key of archive.access_key_id.' },
  'archive.sse': { type: 'string', options: ['AES256', 'aws:kms', 'aws:kms:dsse'],
    summary: 'Server-side encryption to request for each object. Default: that of the bucket.' },
  'archive.sse_kms_key_id': { type: 'string', summary: 'KMS key of archive.sse aws:kms and aws:kms:dsse. Default: that of the bucket or of S3.' },
  'archive.give_up_before': { type: 'string', format: 'day',
    summary: 'UTC day such as 2026-01-31. Retention deletes expired days before it without a copy if they cannot be archived. Unset: it keeps every day that it cannot archive.' },
  'archive.max_delay_days': { type: 'integer',
    withdrawn: 'a day that cannot be archived is kept, however long; remove the setting, and let go of days with archive.give_up_before',
    summary: 'Replaced by archive.give_up_before.' },

  'billing.enabled': { type: 'boolean', default: false, flag: 'billing-enabled', summary: 'Post the daily usage of each organisation to billing.url.' },
  'billing.url': { type: 'string', format: 'url', flag: 'billing-url', summary: 'URL that receives usage records.' },
  'billing.api_key': { type: 'string', flag: 'billing-api-key', secret: true, summary: 'API key for billing.url, sent as a bearer token.' },

  'metrics.enabled': { type: 'boolean', default: false, flag: 'metrics-enabled',
    summary: 'Export metrics. Without metrics.metrics_backend, true also selects pullmetrics and enables its feature flag.' },
  'metrics.bearer_token': { type: 'string', flag: 'metrics-bearer-token', secret: true,
    summary: 'Token that scrapers of /metrics must send as `Authorization: Bearer <token>`; without it, no login is needed.' },
  'metrics.max_label_sets': { type: 'integer', default: 1000, min: 1, flag: 'metrics-max-label-sets',
    summary: 'Maximum label sets per series; the rest are combined under the label value "other".' },
  'metrics.metrics_backend': { type: 'string', lowerCase: true, env: 'GATEWAY_METRICS_BACKEND', flag: 'metrics-backend', summary: 'Metrics backend.' },
  query_timeout: { type: 'integer', default: 30, min: 1, max: 86_400, env: 'GATEWAY_METRICS_QUERY_TIMEOUT',
    also: ['metrics.query_timeout', 'metrics.pullmetrics_metrics.query_timeout'],
    summary: 'Timeout of metrics queries in seconds.' },
  'tracer.type': { type: 'string', lowerCase: true, env: 'GATEWAY_TRACER_PROVIDER', flag: 'tracer-type', summary: 'Tracer provider.' },
  'plugins.dir': { type: 'string', default: './gateway-plugins',
    summary: 'Folder with third-party plugins, which are the dependencies of its package.json.' },
  'plugins.strict': { type: 'boolean', default: false, flag: 'strict-plugins', on: ['server', 'agent'],
    summary: 'Fail to start if a plugin is inactive. Counts only plugins that the configuration selects.' },
} as const satisfies SettingsTable;

/** Deeply frozen. Plugin settings are included but untyped; read them with `settingsAt`. */
export type Config = ConfigOf<typeof settings>;
