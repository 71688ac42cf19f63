import { createRequire } from 'node:module';
import type { Knex } from 'knex';
import pg from 'pg';
import { databaseConnection, type DatabaseSettings } from './connection.js';
import { DeadConnectionDetector } from './dead-connections.js';

export type { DatabaseSettings } from './connection.js';

export interface Database {
  /** The query builder. It is loaded on first use: an agent needs none. */
  readonly knex: Knex;
  /** Its pool, once it is loaded. */
  readonly builderPool: BuilderPool | undefined;
  /** Connections for the hot statements, which are prepared by name and planned once. */
  readonly pool: pg.Pool;
  /** Opens a connection outside the pools, for `listen`; the caller ends it. */
  connect(): Promise<pg.Client>;
  close(): Promise<void>;
}

/** Knex's pool: https://github.com/vincit/tarn.js */
export interface BuilderPool {
  on(event: 'createSuccess', listener: (id: number, client: pg.Client) => void): void;
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

const require = createRequire(import.meta.url);

// Statements of the hot path find their rows by primary key. After `migrate up` tables have no statistics, and the planner would choose sequential
// scans; these settings forbid them, and plan once.
const PLANNING = '-c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off -c plan_cache_mode=force_generic_plan -c jit=off';

/**
 * Opens the pools, which connect on first use. The client waits a second longer than the statement timeout `answerMs`, then closes the connection.
 * Throws `invalid_settings`, `tls_file`.
 */
export function openDatabase(
  settings: DatabaseSettings,
  { poolSize, name, answerMs = 30_000 }: { poolSize: number; name: string; answerMs?: number },
): Database {
  const connection = databaseConnection(settings, name);
  const { max_builder_connections: builderSize = 10, idle_timeout_seconds: idleSeconds = 60 } = settings;
  const pool = new pg.Pool({
    ...connection,
    max: poolSize,
    statement_timeout: answerMs,
    query_timeout: answerMs + 1_000,
    idleTimeoutMillis: idleSeconds * 1000,
    options: [...(connection.options ? [connection.options] : []), PLANNING].join(' '),
  });
  // An idle connection that the server closes is replaced on next use; an error event without a listener would end the process.
  pool.on('error', () => undefined);
  const connect = async (more: pg.ClientConfig = {}) => {
    const client = new pg.Client({ ...connection, ...more });
    client.on('error', () => undefined);
    await client.connect();
    return client;
  };
  const detector = new DeadConnectionDetector((withinMs) => connect({ connectionTimeoutMillis: withinMs, query_timeout: withinMs }));
  pool.on('connect', (client) => detector.watch(client));
  const openBuilder = () => {
    const { knex: create } = require('knex') as typeof import('knex');
    const opened = create({
      client: 'pg',
      // A function: knex would clone an object, with the certificates.
      connection: () => ({ ...connection }),
      pool: { min: 0, max: builderSize, idleTimeoutMillis: idleSeconds * 1000 },
      acquireConnectionTimeout: Math.max(10_000, connection.connectionTimeoutMillis * 2),
      // Otherwise errors, which are logged, contain values of statements that use a `?` operator of jsonb.
      compileSqlOnError: false,
      // Errors are thrown; knex would also print them.
      log: { warn() {}, error() {}, deprecate() {}, debug() {} },
    });
    poolOf(opened).on('createSuccess', (_id, client) => detector.watch(client));
    return opened;
  };
  let builder: Knex | undefined;
  return {
    get knex() {
      return (builder ??= openBuilder());
    },
    get builderPool() {
      return builder && poolOf(builder);
    },
    pool,
    async connect() {
      const client = await connect();
      detector.watch(client);
      return client;
    },
    async close() {
      await Promise.all([pool.end(), builder?.destroy(), detector.close()]);
    },
  };
}

function poolOf(knex: Knex): BuilderPool {
  return (knex.client as { readonly pool: BuilderPool }).pool;
}
