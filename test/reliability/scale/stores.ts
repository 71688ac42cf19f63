import crypto from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { createCitusDatabase, dropCitusDatabase } from '../../support/citus-database.js';
import { connectionOf, type Database } from '../../support/database.js';
import { endAll } from '../../support/end-all.js';
import { own } from '../../support/services.js';
import { startCitus } from '../../support/start/citus.js';
import type { ServerProcess } from '../../support/start/server-process.js';
import { until } from '../../support/until.js';

export interface StoreOptions {
  /** The number of workers of a Citus cluster; 0 for a Postgres server per shard. */
  readonly workers: number;
  readonly shards: number;
}

/** The databases of a run: the control plane and the shards. */
export interface Stores {
  /** The settings `database.*`. */
  readonly settings: Database['connection'];
  readonly control: pg.Pool;
  readonly rows: Database['rows'];
  readonly shards: readonly ShardStore[];
  /** Servers that can crash: workers that were started here, or the Postgres of each shard. */
  readonly servers: readonly ServerProcess[];
  /** Gives the last worker its share of the schemas. Undefined without Citus. */
  readonly rebalance: (() => Promise<void>) | undefined;
  versions(): Promise<string>;
  close(): Promise<void>;
}

export interface ShardStore {
  readonly name: string;
  /** Arguments of `gateway shards add` after the name. Empty for the default shard. */
  readonly place: readonly string[];
  readonly pool: pg.Pool;
  readonly rows: Database['rows'];
}

const REBALANCED_WITHIN_MS = 300_000;

/** Starts a Postgres server per shard, or a Citus cluster with a schema per shard. */
export async function startStores({ workers, shards }: StoreOptions): Promise<Stores> {
  const closing: (() => unknown)[] = [];
  const close = async () => {
    const failures = await endAll(closing);
    if (failures.length > 0) throw failures[0];
  };
  const open = (url: string, schema = 'public'): Pick<ShardStore, 'pool' | 'rows'> => {
    const options = `-c search_path=${schema}`;
    const pool = new pg.Pool({ connectionString: url, max: 1, options, application_name: 'scale' });
    pool.on('error', () => undefined); // Postgres was stopped: the next statement reports it
    closing.push(() => pool.end());
    const rows = async <Row extends pg.QueryResultRow>(
      sql: string,
      values: readonly unknown[] = [],
    ) => (await pool.query<Row>(sql, [...values])).rows;
    return { pool, rows };
  };
  const names = Array.from({ length: shards }, (_, k) => `s${k + 1}`);
  try {
    if (workers === 0) {
      const servers = await Promise.all(names.map(() => own.postgres()));
      closing.push(() => Promise.all(servers.map((server) => server.close())));
      const stores = servers.map(({ url }, k): ShardStore => {
        const { host, port, username, database } = connectionOf(url);
        const place = { host, port, username, database };
        return {
          name: k === 0 ? 'default' : names[k]!,
          place:
            k === 0
              ? []
              : Object.entries(place).flatMap(([flag, value]) => [`--${flag}`, String(value)]),
          ...open(url),
        };
      });
      return {
        settings: connectionOf(servers[0]!.url),
        control: stores[0]!.pool,
        rows: stores[0]!.rows,
        shards: stores,
        servers,
        rebalance: undefined,
        versions: () => versions(stores[0]!.rows),
        close,
      };
    }
    const cluster = await startCitus(workers);
    closing.push(() => cluster.close());
    const name = `scale_${crypto.randomBytes(8).toString('hex')}`;
    await createCitusDatabase(cluster.url, name);
    closing.push(() => dropCitusDatabase(cluster.url, name));
    const url = new URL(`/${name}`, cluster.url).href;
    const { pool: control, rows } = open(url);
    await setLastWorker(rows, false);
    return {
      settings: connectionOf(url),
      control,
      rows,
      shards: names.map((schema) => ({
        name: schema,
        place: ['--schema', schema],
        ...open(url, schema),
      })),
      servers: cluster.nodes.slice(1),
      rebalance: () => rebalance(rows),
      versions: () => versions(rows),
      close,
    };
  } catch (error) {
    await close().catch(() => undefined);
    throw error;
  }
}

/** Crashes a server in the middle of its work and starts it again a second later. */
export async function restart(server: ServerProcess): Promise<void> {
  await server.crash();
  await sleep(1_000);
  await server.start();
}

/** Sets whether Citus places schemas on the last worker: it joins the others in `rebalance`. */
function setLastWorker(rows: Database['rows'], has: boolean): Promise<unknown> {
  return rows(
    `select citus_set_node_property(nodename, nodeport, 'shouldhaveshards', $1)
     from (select * from pg_dist_node where groupid > 0 order by groupid desc limit 1) n`,
    [has],
  );
}

async function rebalance(rows: Database['rows']): Promise<void> {
  await setLastWorker(rows, true);
  await rows('select citus_rebalance_start()');
  await until(
    'Citus to move schemas',
    async () => {
      const [job] = await rows<{ state: string; details: object }>(
        'select state, details from citus_rebalance_status()',
      );
      if (job && ['failed', 'cancelled'].includes(job.state))
        throw new Error(`the job ${job.state}: ${JSON.stringify(job.details)}`);
      return !job || job.state === 'finished';
    },
    { withinMs: REBALANCED_WITHIN_MS, everyMs: 500 },
  );
}

async function versions(rows: Database['rows']): Promise<string> {
  const [found] = await rows<{ postgres: string; citus: string | null }>(
    `select current_setting('server_version') as postgres, (select extversion from pg_extension where extname = 'citus') as citus`,
  );
  return `Postgres ${found!.postgres}${found!.citus === null ? '' : `, Citus ${found!.citus}`}`;
}
