/** One row of the table of settings: types, precedence, validation, flags, help, redaction and the reference page come from it. */
export interface Setting {
  readonly type: 'integer' | 'number' | 'boolean' | 'string' | 'list';
  readonly default?: number | boolean | string | readonly string[];
  /** Environment variable; without one it is GATEWAY_ and the key in upper case. */
  readonly env?: string;
  readonly flag?: string;
  /** Commands that take the flag; without it every command does. */
  readonly on?: readonly string[];
  /** A second flag of the same setting. */
  readonly alias?: { readonly flag: string; readonly on: readonly string[] };
  /** Values of the flag that mean "not given": the setting then comes from elsewhere. */
  readonly flagUnset?: 'negative' | 'zero';
  readonly options?: readonly string[];
  readonly min?: number;
  readonly max?: number;
  readonly format?: 'cidr';
  readonly secret?: boolean;
  readonly summary: string;
  /** What an option is called in errors: `feature flag`. */
  readonly noun?: string;
  /** A setting of a plugin that the plugin cannot do without. */
  readonly required?: boolean;
  /** The plugin that brought the row, for a person; none for the gateway's own. */
  readonly owner?: string;
  /** The setting is gone; the sentence says what replaced it. */
  readonly withdrawn?: string;
}

export type SettingsTable = Readonly<Record<string, Setting>>;

/** The settings of the gateway itself; plugins add theirs (`discovery.ts`). Keys are paths into the configuration file. */
// Two lines a row, so that the table reads as one.
// prettier-ignore
export const settings = {
  instance_ingest_rate: {
    type: 'integer', default: 1000, min: 0, flag: 'instance-ingest-rate',
    summary: 'Messages that the whole instance ingests per second, all agents together; 0 is unlimited.',
  },
  enable_feature_flag: {
    type: 'list', default: [], flag: 'enable-feature-flag',
    summary: 'Feature flags to enable.',
  },
  feature_flag: {
    type: 'string', flag: 'feature-flag', summary: 'Withdrawn.',
    withdrawn: 'flags are enabled by name: use --enable-feature-flag=<flag> or GATEWAY_ENABLE_FEATURE_FLAG=<flag>',
  },
  license_key: {
    type: 'string', flag: 'license-key', secret: true,
    summary: 'Licence token; without one the community licence applies.',
  },
  license_public_key: {
    type: 'string',
    summary: 'Ed25519 public key that licences are checked against: base64 of its 32 bytes, or PEM.',
  },
  encryption_key: {
    type: 'string', env: 'GATEWAY_ENCRYPTION_KEY', secret: true,
    summary: 'Key that stored secrets are sealed with: 32 bytes in base64, the same for every process.',
  },
  consumer_pool_size: {
    type: 'integer', default: 500, min: 1, flag: 'consumers', on: ['agent'], flagUnset: 'negative',
    summary: 'Event deliveries that an agent has under way at a time.',
  },
  max_response_size: {
    type: 'integer', default: 50, min: 0, flag: 'max-response-size', on: ['server', 'agent'],
    summary: "Kilobytes kept of an endpoint's response.",
  },

  'agent.interval_seconds': {
    type: 'integer', default: 10, min: 1, flag: 'interval', on: ['agent'],
    summary: 'Seconds between refreshes of the in-memory store from the database.',
  },
  'agent.mode': {
    type: 'string', default: 'default', options: ['events', 'retry', 'default'], flag: 'mode', on: ['agent'],
    summary: 'Deliveries that the agent makes: first attempts (events), later ones (retry), or both (default).',
  },
  'agent.drain_timeout_seconds': {
    type: 'integer', default: 25, min: 0,
    summary: 'Seconds that a stopping process may take to settle what is in flight.',
  },

  'ingest.max_message_bytes': {
    type: 'integer', default: 1_048_576, min: 1,
    summary: 'Largest message that is accepted; larger ones are quarantined.',
  },
  'ingest.window': {
    type: 'integer', default: 1000, min: 1,
    summary: 'Messages in flight per partition or worker; 1 is strict lockstep.',
  },
  'ingest.batch_size': {
    type: 'integer', default: 500, min: 1, max: 5000,
    summary: 'Most messages that one commit accepts.',
  },
  'ingest.idempotency_window_seconds': {
    type: 'integer', default: 86_400, min: 0,
    summary: 'Seconds during which an idempotency key makes no second event.',
  },

  'ingest.inline_routing': {
    type: 'boolean', default: true,
    summary: 'Route an event in the agent that accepts it while it has room; false sends every event through both queues.',
  },

  'transform.deadline_ms': {
    type: 'integer', default: 1000, min: 10, max: 3_600_000,
    summary: 'Milliseconds that one call of a transform function may take.',
  },
  'transform.memory_mb': {
    type: 'integer', default: 64, min: 16, max: 16_384,
    summary: 'Megabytes of heap of a process that runs transform functions.',
  },
  'transform.max_output_bytes': {
    type: 'integer', default: 1_048_576, min: 2, max: 67_108_864,
    summary: 'Largest output of a transform function.',
  },
  'transform.processes': {
    type: 'integer', default: 2, min: 1, max: 64,
    summary: 'Processes that run transform functions.',
  },

  'delivery.endpoint_concurrency': {
    type: 'integer', default: 50, min: 1,
    summary: 'Deliveries under way at a time to one endpoint, per agent.',
  },
  'delivery.allowed_networks': {
    type: 'list', default: [], format: 'cidr',
    summary: 'Private networks that endpoints may be in, as CIDRs; all others are refused.',
  },
  'delivery.max_outstanding': {
    type: 'integer', default: 4000, min: 1,
    summary: 'Deliveries that an agent holds, waiting or under way.',
  },

  'database.type': {
    type: 'string', default: 'postgres', options: ['postgres'], env: 'GATEWAY_DB_TYPE', flag: 'db-type',
    summary: 'Kind of database.',
  },
  'database.scheme': {
    type: 'string', default: 'postgres', options: ['postgres', 'postgresql'], env: 'GATEWAY_DB_SCHEME', flag: 'db-scheme',
    summary: 'Scheme of the database URL.',
  },
  'database.host': { type: 'string', default: 'localhost', env: 'GATEWAY_DB_HOST', flag: 'db-host', summary: 'Host of the database.' },
  'database.port': {
    type: 'integer', default: 5432, min: 1, max: 65_535, env: 'GATEWAY_DB_PORT', flag: 'db-port',
    summary: 'Port of the database.',
  },
  'database.username': { type: 'string', default: 'postgres', env: 'GATEWAY_DB_USERNAME', flag: 'db-username', summary: 'User of the database.' },
  'database.password': { type: 'string', env: 'GATEWAY_DB_PASSWORD', flag: 'db-password', secret: true, summary: 'Password of the database.' },
  'database.database': { type: 'string', default: 'gateway', env: 'GATEWAY_DB_DATABASE', flag: 'db-database', summary: 'Name of the database.' },
  'database.options': {
    type: 'string', default: '', env: 'GATEWAY_DB_OPTIONS', flag: 'db-options',
    summary: 'Query string of the database URL, for example sslmode=require.',
  },
  'database.max_open_connections': {
    type: 'integer', default: 10, min: 2, env: 'GATEWAY_DB_MAX_OPEN_CONNECTIONS',
    summary: 'Connections to the database that a process opens for its prepared statements.',
  },

  'kv.type': {
    type: 'string', default: 'redis', options: ['redis', 'in-memory'], flag: 'kv-type',
    summary: 'Key-value store; in-memory is for one process alone.',
  },
  'kv.scheme': { type: 'string', default: 'redis', options: ['redis', 'rediss'], flag: 'kv-scheme', summary: 'Scheme of the KV URL; rediss is TLS.' },
  'kv.host': { type: 'string', default: 'localhost', flag: 'kv-host', summary: 'Host of the KV.' },
  'kv.port': { type: 'integer', default: 6379, min: 1, max: 65_535, flag: 'kv-port', summary: 'Port of the KV.' },
  'kv.username': { type: 'string', flag: 'kv-username', summary: 'User of the KV.' },
  'kv.password': { type: 'string', flag: 'kv-password', secret: true, summary: 'Password of the KV.' },
  'kv.database': { type: 'string', default: '0', flag: 'kv-database', summary: 'Number of the KV database.' },

  'logger.level': {
    type: 'string', default: 'info', options: ['debug', 'info', 'warn', 'error', 'silent'], flag: 'log-level',
    alias: { flag: 'logger', on: ['server'] },
    summary: 'Log level.',
  },

  'server.http.port': {
    type: 'integer', default: 5005, min: 0, max: 65_535, env: 'PORT', flag: 'port', on: ['server'],
    summary: 'HTTP port of the control plane.',
  },
  'server.http.agent_port': {
    type: 'integer', default: 5008, min: 0, max: 65_535, env: 'AGENT_PORT', flag: 'port', on: ['agent'], flagUnset: 'zero',
    summary: 'HTTP port of the data plane.',
  },
  'server.http.bind': { type: 'string', default: '0.0.0.0', env: 'GATEWAY_HTTP_BIND', summary: 'Address that both processes listen on.' },

  'metrics.enabled': { type: 'boolean', default: false, flag: 'metrics-enabled', summary: 'Export metrics.' },
  'metrics.max_label_sets': {
    type: 'integer', default: 1000, min: 1, flag: 'metrics-max-label-sets',
    summary: 'Label sets shown per series; the rest is folded into one with the label values "other".',
  },
  'metrics.metrics_backend': { type: 'string', env: 'GATEWAY_METRICS_BACKEND', flag: 'metrics-backend', summary: 'Metrics backend.' },
  query_timeout: {
    type: 'integer', default: 30, min: 1, env: 'GATEWAY_METRICS_QUERY_TIMEOUT',
    summary: 'Seconds that a query for metrics may take.',
  },
  'tracer.type': { type: 'string', env: 'GATEWAY_TRACER_PROVIDER', flag: 'tracer-type', summary: 'Tracer provider.' },
  'plugins.dir': {
    type: 'string', default: './gateway-plugins',
    summary: 'Folder with plugins of third parties: the dependencies of its package.json.',
  },
} as const satisfies SettingsTable;

type Value<S> = S extends { type: 'list' }
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
    ? { readonly [P in Key]: Value<S> }
    : { readonly [P in Key]?: Value<S> };
type Intersected<Union> = (Union extends unknown ? (it: Union) => void : never) extends (it: infer All) => void ? All : never;
type Plain<T> = T extends readonly unknown[] ? T : T extends object ? { readonly [P in keyof T]: Plain<T[P]> } : T;

/** The nested, typed value of a table of settings: what has no default may be missing. */
export type ConfigOf<Table> = Plain<
  Intersected<
    { [Key in keyof Table & string]: Table[Key] extends { withdrawn: string } ? never : Nested<Key, Table[Key]> }[keyof Table & string]
  >
>;

/** The resolved settings, frozen. Settings of plugins are in it too, at their keys (`settingsAt`). */
export type Config = ConfigOf<typeof settings>;

/** Name of the environment variable of a setting. */
export function envOf(key: string, setting: Setting): string {
  return setting.env ?? `GATEWAY_${key.toUpperCase().replaceAll('.', '_')}`;
}

/** The flags of a setting that a command takes. */
export function flagsOf(setting: Setting, command: string): string[] {
  const taken: string[] = [];
  if (setting.flag && (!setting.on || setting.on.includes(command))) taken.push(setting.flag);
  if (setting.alias?.on.includes(command)) taken.push(setting.alias.flag);
  return taken;
}
