import knexModule, { type Knex } from 'knex';
import pg from 'pg';
import { databaseConnection, negotiated, type DatabaseSettings } from './connection.js';
import { NegotiatingPool } from './negotiating-pool.js';
import { DeadConnectionDetector } from './dead-connections.js';

export type { DatabaseSettings } from './connection.js';

export interface Database {
  /** Builder for plain reads and writes. */
  readonly knex: Knex;
  /** Connections for the statements that matter: prepared by name, planned once. */
  readonly pool: pg.Pool;
  /** One connection outside of the pools, for `listen`; the caller ends it. */
  connect(): Promise<pg.Client>;
  close(): Promise<void>;
}

/** What knex keeps its connections in: https://github.com/vincit/tarn.js */
interface BuilderPool {
  on(event: 'createFail', listener: () => void): void;
  on(event: 'createSuccess', listener: (id: number, client: pg.Client) => void): void;
}

// A statement of the hot path names its rows by primary key. Tables fresh from `migrate up` have no statistics, and the planner would
// read them whole: these connections may not, and plan once.
const PLANNING = '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_generic_plan -c jit=off';

/**
 * Opens the pools; connects on first use.
 *
 * @param poolSize connections for the prepared statements
 * @param name what `pg_stat_activity` shows
 * @param answerMs a statement of the pool that takes longer is ended by the server; when not even that is heard of, it fails and costs its connection.
 *   Connections that are dead while Postgres answers others are found sooner, as `DeadConnectionDetector` tells
 * @throws GatewayError `invalid_settings` for options that cannot be, `tls_file` for a file of theirs that cannot be used
 */
export function openDatabase(
  settings: DatabaseSettings,
  { poolSize, name, answerMs = 30_000 }: { poolSize: number; name: string; answerMs?: number },
): Database {
  const connection = databaseConnection(settings, name);
  const { session, ways } = connection;
  const { max_builder_connections: builderSize = 10, idle_timeout_seconds: idleSeconds = 60 } = settings;
  const way = ways.length > 1 ? negotiated(connection) : undefined;
  const tls = () => way?.find() ?? Promise.resolve(ways[0]);
  const shared = { ...connection.config, ssl: ways[0] };
  const plain = { ...shared, ...(session ? { options: session } : {}) };
  const prepared = {
    ...shared,
    max: poolSize,
    statement_timeout: answerMs,
    query_timeout: answerMs + 1_000,
    idleTimeoutMillis: idleSeconds * 1000,
    options: [...(session ? [session] : []), PLANNING].join(' '),
  };
  const pool = way ? new NegotiatingPool(prepared, way) : new pg.Pool(prepared);
  // An idle connection that the server closes is replaced at the next use; without a listener it would end the process.
  pool.on('error', () => undefined);
  const knex = knexModule({
    client: 'pg',
    // An object knex would copy, with the certificates; so it asks for it.
    connection: async () => ({ ...plain, ssl: await tls(), ...(way ? { expirationChecker: () => !way.isKnown } : {}) }),
    pool: { min: 0, max: builderSize, idleTimeoutMillis: idleSeconds * 1000 },
    acquireConnectionTimeout: Math.max(10_000, shared.connectionTimeoutMillis * 2),
    // Else the sentence of an error, which goes to logs, has values of its statement where that has a `?` of its own, an operator of jsonb.
    compileSqlOnError: false,
    // What goes wrong is thrown; knex would print it as well.
    log: { warn() {}, error() {}, deprecate() {}, debug() {} },
  });
  const builderPool = (knex.client as { readonly pool: BuilderPool }).pool;
  if (way) builderPool.on('createFail', () => way.forget());
  const connect = async (more: pg.ClientConfig = {}) => {
    const client = new pg.Client({ ...plain, ...more, ssl: await tls() });
    // A connection that breaks fails its query; without a listener it would end the process as well.
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const silent = new DeadConnectionDetector((withinMs) => connect({ connectionTimeoutMillis: withinMs, query_timeout: withinMs }));
  pool.on('connect', (client) => silent.watch(client));
  builderPool.on('createSuccess', (_id, client) => silent.watch(client));
  return {
    knex,
    pool,
    async connect() {
      const client = await connect();
      silent.watch(client);
      return client;
    },
    async close() {
      await Promise.all([pool.end(), knex.destroy(), silent.close()]);
    },
  };
}
