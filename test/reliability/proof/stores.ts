import crypto from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createCitusDatabase, dropCitusDatabase } from '../../support/citus-database.js';
import { connectionOf, type Database } from '../../support/database.js';
import { endAll } from '../../support/end-all.js';
import { replicated, synchronous, type Replicated } from '../../support/failover.js';
import { freeze } from '../../support/frozen.js';
import { own } from '../../support/services.js';
import { startCitus } from '../../support/start/citus.js';
import type { PostgresServer } from '../../support/start/postgres.js';
import type { ServerProcess } from '../../support/start/server-process.js';
import { until } from '../../support/until.js';

export interface StoreOptions {
  /** The number of workers of a Citus cluster; 0 for a Postgres server per shard. */
  readonly workers: number;
  readonly shards: number;
  /** Gives the Postgres of the control plane a synchronous standby; not on Citus. */
  readonly standby?: boolean;
  /** Opens a way for the gateway to a server on this port, and returns its port. */
  readonly through?: (server: string, port: number) => Promise<number>;
}

/** The databases of a run: the control plane and the shards. */
export interface Stores {
  /** The settings `database.*`. */
  readonly settings: Database['connection'];
  readonly rows: Database['rows'];
  readonly shards: readonly ShardStore[];
  /** The server of the control plane. Undefined if it was not started here. */
  readonly first: FirstServer | undefined;
  /** Servers of shards that can fail: workers that were started here, or the Postgres of each shard. */
  readonly servers: readonly StoreServer[];
  /** The log files by name of the server. */
  readonly logs: Readonly<Record<string, string>>;
  /** The name of the server that has a shard. */
  serverOf(shard: ShardStore): Promise<string>;
  /** Gives the last worker no schemas, or its share of them. Undefined without Citus. */
  readonly rebalance: ((lastWorker: 'empty' | 'share') => Promise<void>) | undefined;
  versions(): Promise<string>;
  close(): Promise<void>;
}

export interface ShardStore {
  readonly name: string;
  /** Arguments of `gateway shards add` after the name. Empty for the default shard. */
  readonly place: readonly string[];
  readonly rows: Database['rows'];
}

/** Can fail over if it has a standby. */
export type FirstServer = Pick<ServerProcess, 'start' | 'stop' | 'crash'> &
  Partial<Pick<Replicated, 'killPrimary' | 'promoteStandby'>>;

export interface StoreServer {
  /** `postgres`, `postgres-2` or `worker-1` */
  readonly name: string;
  readonly process: ServerProcess;
  /** Stops the server and its sessions until `thaw`: connections stay open. */
  freeze(): void;
  thaw(): void;
}

const REBALANCED_WITHIN_MS = 300_000;

/** Starts a Postgres server per shard, or a Citus cluster with a schema per shard. */
export async function startStores({
  workers,
  shards,
  standby = false,
  through = async (_server, port) => port,
}: StoreOptions): Promise<Stores> {
  const closing: (() => unknown)[] = [];
  const close = async () => {
    const failures = await endAll(closing);
    if (failures.length > 0) throw failures[0];
  };
  const open = (url: string, schema = 'public'): Database['rows'] => {
    const options = `-c search_path=${schema}`;
    const pool = new pg.Pool({ connectionString: url, max: 2, options, application_name: 'test' });
    pool.on('error', () => undefined); // Postgres was stopped: the next statement reports it
    closing.push(() => pool.end());
    return async <Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []) =>
      (await pool.query<Row>(sql, [...values])).rows;
  };
  const names = Array.from({ length: shards }, (_, k) => `s${k + 1}`);
  try {
    if (workers === 0) {
      const processes = await Promise.all(
        names.map((_name, k) => own.postgres(standby && k === 0 ? synchronous : {})),
      );
      closing.push(() => Promise.all(processes.map((server) => server.close())));
      const [primary, ...others] = processes as [PostgresServer, ...PostgresServer[]];
      const second = standby ? await own.standby(primary, synchronous) : undefined;
      if (second) closing.push(() => second.close());
      const first = second ? await replicated(primary, second) : primary;
      if (second) closing.push(() => first.close());
      const addressed = [first, ...others];
      const servers = processes.map((process, k) =>
        storeServer(k === 0 ? 'postgres' : `postgres-${k + 1}`, process),
      );
      closing.push(() => servers.forEach((server) => server.thaw()));
      const addresses = await Promise.all(
        addressed.map(async ({ url, port }, k) => ({
          ...connectionOf(url),
          port: await through(servers[k]!.name, port),
        })),
      );
      const stores = addressed.map(({ url }, k): ShardStore => {
        const flags = Object.entries(addresses[k]!);
        return {
          name: k === 0 ? 'default' : names[k]!,
          place: k === 0 ? [] : flags.flatMap(([flag, value]) => [`--${flag}`, String(value)]),
          rows: open(url),
        };
      });
      return {
        settings: addresses[0]!,
        rows: stores[0]!.rows,
        shards: stores,
        first,
        servers,
        logs: { ...logsOf(servers), ...(second && { standby: second.log }) },
        serverOf: async (shard) => servers[stores.indexOf(shard)]!.name,
        rebalance: undefined,
        versions: () => versions(stores[0]!.rows),
        close,
      };
    }
    const cluster = await startCitus(workers);
    closing.push(() => cluster.close());
    const name = `test_${crypto.randomBytes(8).toString('hex')}`;
    await createCitusDatabase(cluster.url, name);
    closing.push(() => dropCitusDatabase(cluster.url, name));
    const url = new URL(`/${name}`, cluster.url).href;
    const rows = open(url);
    const settings = connectionOf(url);
    const servers = cluster.nodes
      .slice(1)
      .map((process, k) => storeServer(`worker-${k + 1}`, process));
    closing.push(() => servers.forEach((server) => server.thaw()));
    return {
      settings: { ...settings, port: await through('postgres', settings.port) },
      rows,
      shards: names.map((schema) => ({
        name: schema,
        place: ['--schema', schema],
        rows: open(url, schema),
      })),
      first: cluster.nodes[0],
      servers,
      logs: { ...(cluster.nodes[0] && { postgres: cluster.nodes[0].log }), ...logsOf(servers) },
      serverOf: ({ name: schema }) => workerOf(rows, schema),
      rebalance: (lastWorker) => rebalance(rows, lastWorker),
      versions: () => versions(rows),
      close,
    };
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

function storeServer(name: string, process: ServerProcess): StoreServer {
  let resume: (() => void) | undefined;
  return {
    name,
    process,
    freeze: () => (resume = freeze(process.pid)),
    thaw: () => {
      resume?.();
      resume = undefined;
    },
  };
}

function logsOf(servers: readonly StoreServer[]): Record<string, string> {
  return Object.fromEntries(servers.map(({ name, process }) => [name, process.log]));
}

/** Crashes a server in the middle of its work and starts it again a second later. */
export async function restart({ process }: StoreServer): Promise<void> {
  await process.crash();
  await sleep(1_000);
  await process.start();
}

/** Workers are numbered in the order in which they joined. */
async function workerOf(rows: Database['rows'], schema: string): Promise<string> {
  const [row] = await rows<{ worker: number }>(
    `select w.number::int as worker
     from (select groupid, row_number() over (order by groupid) as number from pg_dist_node where groupid > 0) w
     where groupid in (select groupid from pg_dist_placement join pg_dist_shard using (shardid) where logicalrelid = ($1 || '.events')::regclass)`,
    [schema],
  );
  return `worker-${row!.worker}`;
}

async function rebalance(rows: Database['rows'], lastWorker: 'empty' | 'share'): Promise<void> {
  await rows(
    `select citus_set_node_property(nodename, nodeport, 'shouldhaveshards', $1)
     from (select * from pg_dist_node where groupid > 0 order by groupid desc limit 1) n`,
    [lastWorker === 'share'],
  );
  await rows('select citus_rebalance_start()');
  const { state, details } = await until(
    'Citus to move schemas',
    async () => {
      const [job = { state: 'finished', details: {} }] = await rows<{
        state: string;
        details: object;
      }>('select state, details from citus_rebalance_status()');
      return ['finished', 'failed', 'cancelled'].includes(job.state) && job;
    },
    { withinMs: REBALANCED_WITHIN_MS, everyMs: 500 },
  );
  if (state !== 'finished') throw new Error(`the job ${state}: ${JSON.stringify(details)}`);
}

async function versions(rows: Database['rows']): Promise<string> {
  const [found] = await rows<{ postgres: string; citus: string | null }>(
    `select current_setting('server_version') as postgres, (select extversion from pg_extension where extname = 'citus') as citus`,
  );
  return `Postgres ${found!.postgres}${found!.citus === null ? '' : `, Citus ${found!.citus}`}`;
}
