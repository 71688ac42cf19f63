import { createRequire } from 'node:module';
import type { Knex } from 'knex';
import pg from 'pg';
import type { Meter } from '@gateway/core/metrics/meter';
import { databaseConnection, directConnection, type DatabaseSettings } from './connection.js';
import { DeadConnectionDetector } from './dead-connections.js';
import { SessionClient, type SessionConfig, type SessionStart } from './session-client.js';
import { pooledParameters, sessionOptions } from './session-settings.js';

export type { DatabaseSettings } from './connection.js';

export interface Database {
  /** Loaded on first use: an agent needs none. */
  readonly knex: Knex;
  readonly builderPool: BuilderPool | undefined;
  /**
   * Hot path: statements are prepared by name and planned once; behind a pooler, planned each time.
   */
  readonly pool: pg.Pool;
  /** Persistent sessions, for advisory locks. The same pool, unless it is behind a pooler. */
  readonly sessions: pg.Pool;
  /** Opens a persistent session outside the pools, for `listen`; the caller ends it. */
  connect(): Promise<pg.Client>;
  close(): Promise<void>;
}

/** Knex's pool: https://github.com/vincit/tarn.js */
interface BuilderPool {
  on(event: 'createSuccess', listener: (id: number, client: pg.Client) => void): void;
  numUsed(): number;
  numFree(): number;
  numPendingAcquires(): number;
}

const require = createRequire(import.meta.url);

// Hot-path statements find rows by primary key. After `migrate up` tables have no statistics, and
// the planner would choose sequential scans; these settings forbid them, and plan once.
const PLANNING = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
};

/** Advisory locks of a process: maintenance, counts, and a sample with its second connection. */
const SESSIONS = 4;

/**
 * Opens the pools, which connect on first use. The client waits a second longer than the statement
 * timeout `answerMs`, then closes the connection. With `database.direct.host`, sessions bypass
 * `database.host`, a pooler in transaction mode. Throws `invalid_settings`, `tls_file`.
 */
export function openDatabase(
  settings: DatabaseSettings,
  { poolSize, name, answerMs = 30_000 }: { poolSize: number; name: string; answerMs?: number },
): Database {
  const connection = databaseConnection(settings, name);
  const { max_builder_connections: builderSize = 10, idle_timeout_seconds: idleSeconds = 60 } =
    settings;
  const direct = directConnection(settings, connection);
  const started = (more: Readonly<Record<string, string>> = {}) => ({
    ...pooledParameters,
    options: sessionOptions(more, connection.session),
  });
  const pooled: SessionStart = direct ? pooledParameters : started();
  const connect = async (more: SessionConfig) => {
    const client = new SessionClient(more);
    client.on('error', () => undefined);
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
    // A connection closed by the server is replaced on next use; an error event without a listener
    // would end the process.
    opened.on('error', () => undefined);
    opened.on('connect', (client) => watch.watch(client));
    return opened;
  };
  const openSessions = (max: number) => {
    const start = started({ ...PLANNING, statement_timeout: String(answerMs) });
    return openPool({ ...(direct ?? connection), max, start }, sessionDetector);
  };
  const detector = detectorAt(connection, pooled);
  // A pooler announces PIDs other than the backends': each endpoint is queried about its own
  // connections.
  const sessionDetector = direct ? detectorAt(direct, started()) : detector;
  const pool = direct
    ? openPool({ ...connection, start: pooled, max: poolSize }, detector)
    : openSessions(poolSize);
  if (direct) pool.on('connect', prepareNothing);
  const sessions = direct ? openSessions(SESSIONS) : pool;
  const openBuilder = () => {
    const { knex: create } = require('knex') as typeof import('knex');
    const opened = create({
      client: 'pg',
      // A function: knex would clone an object, with the certificates.
      connection: () => ({ ...connection, start: pooled }),
      pool: { min: 0, max: builderSize, idleTimeoutMillis: idleSeconds * 1000 },
      acquireConnectionTimeout: Math.max(10_000, connection.connectionTimeoutMillis * 2),
      // Otherwise logged errors contain values of statements that use a `?` operator of jsonb.
      compileSqlOnError: false,
      // Errors are thrown; knex would also print them.
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
    async connect() {
      const client = await connect({ ...(direct ?? connection), start: started() });
      sessionDetector.watch(client);
      return client;
    },
    async close() {
      await Promise.all([...new Set([pool, sessions])].map((it) => it.end()));
      await Promise.all([builder?.destroy(), detector.close(), sessionDetector.close()]);
    },
  };
}

/**
 * Removes statement names: in another session, a statement is not prepared, or from another
 * version.
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

type Pools = Pick<Database, 'pool' | 'sessions' | 'builderPool'>;

/** `waiting`: queued requests for a connection. */
export function poolUsage({
  pool,
  sessions,
  builderPool: builder,
}: Pools): Readonly<Record<'busy' | 'idle' | 'waiting', number>> {
  const sum = (count: (it: Database['pool']) => number) =>
    [...new Set([pool, sessions])].reduce((total, it) => total + count(it), 0);
  return {
    busy: sum((it) => it.totalCount - it.idleCount) + (builder?.numUsed() ?? 0),
    idle: sum((it) => it.idleCount) + (builder?.numFree() ?? 0),
    waiting: sum((it) => it.waitingCount) + (builder?.numPendingAcquires() ?? 0),
  };
}

/** An agent and a server in one process have separate pools. */
const exported = new WeakMap<Meter, Set<Pools>>();

/** Exports pool connections, read at each exposition. Returns a function that stops it. */
export function exportPoolMetrics(meter: Meter, database: Pools): () => void {
  const databases = exported.get(meter) ?? new Set();
  exported.set(meter, databases.add(database));
  const stop = meter.collect(() => {
    const usages = [...databases].map(poolUsage);
    for (const state of ['busy', 'idle', 'waiting'] as const) {
      const n = usages.reduce((sum, usage) => sum + usage[state], 0);
      meter.set('gateway_pool_connections', { state }, n);
    }
  });
  return () => {
    databases.delete(database);
    stop();
  };
}
