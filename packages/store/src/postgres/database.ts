import { createRequire } from 'node:module';
import { explainDatabaseError } from '@gateway/core/errors';
import type { Knex } from 'knex';
import pg from 'pg';
import { databaseConnection, directConnection, type DatabaseSettings } from './connection.js';
import { DeadConnectionDetector } from './dead-connections.js';
import { SessionClient, type SessionConfig, type SessionStart } from './session-client.js';
import { pooledParameters, sessionOptions } from './session-settings.js';
import { DUPLICATE_DATABASE, sqlState } from './sqlstate.js';

export { hasTable, type DatabaseSettings } from './connection.js';

export interface Database {
  /** Loaded on first use: agents do not need it. */
  readonly knex: Knex;
  readonly builderPool: BuilderPool | undefined;
  /**
   * For the hot path: statements are prepared by name and planned once or, behind a pooler, on each
   * execution.
   */
  readonly pool: pg.Pool;
  /**
   * For work under advisory locks. The same as `pool` unless that is behind a pooler. With
   * `database.pooled`, its connections are no sessions either.
   */
  readonly sessions: pg.Pool;
  /** The only one of the `search_path`. Undefined for the role's. */
  readonly schema: string | undefined;
  /** `connect` opens a session, which can `listen`. False with `database.pooled`. */
  readonly canListen: boolean;
  /** Outside the pools. The caller must end it. */
  connect(): Promise<pg.Client>;
  close(): Promise<void>;
}

/** https://github.com/vincit/tarn.js */
interface BuilderPool {
  on(event: 'createSuccess', listener: (id: number, client: pg.Client) => void): void;
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

const require = createRequire(import.meta.url);

// Hot-path statements look up primary keys. Without statistics, as after `migrate up`, the planner
// would scan tables instead. jit would cost more than it saves.
const PLANNING = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  jit: 'off',
};

/**
 * Prepared statements are planned once, or on each execution. Citus needs the latter: only with the
 * values can it send a whole statement to a worker.
 */
export type Plans = 'generic' | 'custom';

/** For advisory locks: maintenance, counts, and a sample with its second connection. */
const SESSIONS = 4;
/** With `database.pooled`, each lock has a connection of its own, beside that of the work. */
const POOLED_SESSIONS = 2 * SESSIONS + 1;

interface OpenOptions {
  readonly poolSize: number;
  readonly name: string;
  /** For the next connection. By default, that of the settings. */
  readonly password?: () => string;
  readonly answerMs?: number;
  /** By default, that of the role. */
  readonly schema?: string | undefined;
  readonly plans?: Plans;
}

/**
 * The pools connect on first use. The client waits a second longer than the statement timeout
 * `answerMs`, then closes the connection. With `database.direct.host`, sessions bypass
 * `database.host`, a pooler in transaction mode. With `database.pooled`, there are no sessions.
 * @throws GatewayError `invalid_settings` if `database.options` are invalid; `tls_file`
 */
export function openDatabase(
  settings: DatabaseSettings,
  { poolSize, name, password, answerMs = 30_000, schema, plans = 'generic' }: OpenOptions,
): Database {
  const connection = { ...databaseConnection(settings, name), ...(password && { password }) };
  const { max_builder_connections: builderSize = 10, idle_timeout_seconds: idleSeconds = 60 } =
    settings;
  const direct = directConnection(settings, connection);
  const started = (more: Readonly<Record<string, string>> = {}) => ({
    ...pooledParameters,
    options: sessionOptions(
      { ...(schema && { search_path: schema }), ...more },
      connection.session,
    ),
  });
  const isPooled = direct !== undefined || settings.pooled === true;
  const pooled: SessionStart = isPooled ? pooledParameters : started();
  const connect = async (more: SessionConfig) => {
    const client = new SessionClient(more);
    await client.connect();
    return client;
  };
  const detectorAt = (place: typeof connection, start: SessionStart) =>
    new DeadConnectionDetector((withinMs) =>
      connect({ ...place, start, connectionTimeoutMillis: withinMs, query_timeout: withinMs }),
    );
  const openPool = (more: pg.PoolConfig & SessionConfig, watch: DeadConnectionDetector) => {
    const opened = new pg.Pool({
      query_timeout: answerMs + 1_000,
      idleTimeoutMillis: idleSeconds * 1000,
      Client: SessionClient,
      ...more,
    });
    // Without a listener, an error event would end the process. A connection closed by the server
    // is replaced on next use. The pool listens only while a connection is idle in it.
    opened.on('error', () => undefined);
    opened.on('connect', (client) => watch.watch(client));
    return opened;
  };
  const openSessions = (max: number) => {
    const start = started({
      ...PLANNING,
      plan_cache_mode: `force_${plans}_plan`,
      statement_timeout: String(answerMs),
    });
    return openPool({ ...(direct ?? connection), max, start }, sessionDetector);
  };
  const detector = detectorAt(connection, pooled);
  // A pooler announces PIDs other than the backends', so each address has its own detector.
  const sessionDetector = direct ? detectorAt(direct, started()) : detector;
  const openPooled = (max: number) =>
    openPool({ ...connection, start: pooled, max, isPooled: true }, detector).on(
      'connect',
      prepareNothing,
    );
  const pool = isPooled ? openPooled(poolSize) : openSessions(poolSize);
  const sessions = direct ? openSessions(SESSIONS) : isPooled ? openPooled(POOLED_SESSIONS) : pool;
  const openBuilder = () => {
    const { knex: create } = require('knex') as typeof import('knex');
    const opened = create({
      client: 'pg',
      // A function, because knex would clone an object together with the certificates.
      connection: () => ({ ...connection, start: pooled }),
      pool: { min: 0, max: builderSize, idleTimeoutMillis: idleSeconds * 1000 },
      acquireConnectionTimeout: Math.max(10_000, connection.connectionTimeoutMillis * 2),
      // Logged errors would contain the values of statements that use the `?` operator of jsonb.
      compileSqlOnError: false,
      // Knex would print errors that it also throws.
      log: { warn() {}, error() {}, deprecate() {}, debug() {} },
    });
    Object.assign(opened.client as object, { driver: { Client: SessionClient } });
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
    sessions,
    canListen: direct !== undefined || !isPooled,
    schema,
    async connect() {
      const start = direct ? started() : pooled;
      const client = await connect({ ...(direct ?? connection), start });
      sessionDetector.watch(client);
      return client;
    },
    async close() {
      await Promise.all([...new Set([pool, sessions])].map((it) => it.end()));
      await Promise.all([builder?.destroy(), detector.close(), sessionDetector.close()]);
    },
  };
}

/** Exists on every server, for such connections. */
const MAINTENANCE = 'postgres';

/**
 * Unless it exists. Locale `C` fits each encoding of the server, and its order never changes, while
 * that of others may with an upgrade of the system, which breaks indexes. Throws
 * `database_forbidden`, and connection errors.
 */
export async function createDatabase(settings: DatabaseSettings): Promise<void> {
  const options = { poolSize: 1, name: 'gateway' };
  const server = openDatabase({ ...settings, database: MAINTENANCE }, options);
  try {
    const client = await server.connect();
    try {
      const name = pg.escapeIdentifier(settings.database);
      await client.query(
        `create database ${name} encoding 'UTF8' locale_provider libc locale 'C' template template0`,
      );
    } finally {
      await client.end();
    }
  } catch (error) {
    if (sqlState(error) !== DUPLICATE_DATABASE) throw explainDatabaseError(error, settings);
  } finally {
    await server.close();
  }
}

/**
 * Behind a pooler, a statement may run in another session, where its name is unprepared or was
 * prepared by another version.
 */
function prepareNothing(client: pg.PoolClient): void {
  const query = client.query.bind(client) as (...given: unknown[]) => unknown;
  const unnamed = (given: unknown) =>
    given && typeof given === 'object' && 'name' in given ? { ...given, name: undefined } : given;
  client.query = ((given: unknown, ...more: unknown[]) =>
    query(unnamed(given), ...more)) as typeof client.query;
}

function poolOf(knex: Knex): BuilderPool {
  return (knex.client as { readonly pool: BuilderPool }).pool;
}
