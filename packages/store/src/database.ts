import knexModule, { type Knex } from 'knex';
import pg from 'pg';

/** How to reach Postgres: the `database` settings. */
export interface DatabaseSettings {
  scheme: string;
  host: string;
  port: number;
  username: string;
  password?: string | undefined;
  database: string;
  /** Query string of the connection URL, for example `sslmode=require`. */
  options?: string | undefined;
}

export interface Database {
  /** Builder for plain reads and writes. */
  readonly knex: Knex;
  /** Connections for the statements that matter: prepared by name, planned once. */
  readonly pool: pg.Pool;
  /** One connection outside of the pools, for `listen`; the caller ends it. */
  connect(): Promise<pg.Client>;
  close(): Promise<void>;
}

/** The connection URL of the settings, without asking anything of the network. Holds the password: never log it. */
export function databaseUrl(settings: DatabaseSettings): string {
  const credentials = [settings.username, ...(settings.password ? [settings.password] : [])].map(encodeURIComponent).join(':');
  const host = settings.host.includes(':') ? `[${settings.host}]` : settings.host;
  const query = settings.options ? `?${settings.options.replace(/^\?/, '')}` : '';
  return `${settings.scheme}://${credentials}@${host}:${settings.port}/${encodeURIComponent(settings.database)}${query}`;
}

/**
 * Opens the pools; connects on first use.
 *
 * @param poolSize connections for the prepared statements
 * @param name what `pg_stat_activity` shows
 * @param answerMs a statement of the pool that takes longer is ended by the server; when not even that is heard of, it fails and costs its connection:
 *   the server may be gone without a word, and the network would take a quarter of an hour to say so
 */
export function openDatabase(
  settings: DatabaseSettings,
  { poolSize, name, answerMs = 30_000 }: { poolSize: number; name: string; answerMs?: number },
): Database {
  const connectionString = databaseUrl(settings);
  const shared = { connectionString, application_name: name, connectionTimeoutMillis: 5_000, keepAlive: true };
  // A statement of the hot path names its rows by primary key. Tables fresh from `migrate up` have no statistics, and the planner would
  // read them whole: these connections may not, and plan once.
  const pool = new pg.Pool({
    ...shared,
    max: poolSize,
    statement_timeout: answerMs,
    query_timeout: answerMs + 1_000,
    idleTimeoutMillis: 60_000,
    options: '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_generic_plan -c jit=off',
  });
  // An idle connection that the server closes is replaced at the next use; without a listener it would end the process.
  pool.on('error', () => undefined);
  const knex = knexModule({
    client: 'pg',
    connection: shared,
    pool: { min: 0, max: 10, idleTimeoutMillis: 30_000 },
    acquireConnectionTimeout: 10_000,
    // What goes wrong is thrown; knex would print it as well.
    log: { warn() {}, error() {}, deprecate() {}, debug() {} },
  });
  return {
    knex,
    pool,
    async connect() {
      const client = new pg.Client(shared);
      // A connection that breaks fails its query; without a listener it would end the process as well.
      client.on('error', () => undefined);
      await client.connect();
      return client;
    },
    async close() {
      await Promise.all([pool.end(), knex.destroy()]);
    },
  };
}
