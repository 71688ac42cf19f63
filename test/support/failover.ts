import pg from 'pg';
import { proxy } from './proxy.js';
import type { PostgresServer } from './start/postgres.js';
import { until } from './until.js';

/**
 * Settings of both servers. Each commit waits for the standby, also while there is none: a promotion
 * loses nothing that was acknowledged.
 */
export const synchronous = {
  synchronous_standby_names: '*',
  // After an outage of the primary, the standby needs log that a checkpoint would remove.
  wal_keep_size: '256MB',
  wal_retrieve_retry_interval: '100ms',
};

/** A primary and its standby, at an address that leads to the primary. */
export interface Replicated extends Pick<
  PostgresServer,
  'url' | 'port' | 'start' | 'stop' | 'crash' | 'close'
> {
  /** Ends the primary with SIGKILL. */
  killPrimary(): Promise<void>;
  /** Promotes the standby of a killed primary, which becomes the standby of the promoted server. */
  promoteStandby(): Promise<void>;
}

/**
 * Gives two servers an address.
 * @param primary started with the settings `synchronous`, as its standby
 * @returns `close` closes only the address
 */
export async function replicated(
  primary: PostgresServer,
  standby: PostgresServer,
): Promise<Replicated> {
  const address = await proxy({
    get port() {
      return primary.port;
    },
  });
  const url = new URL(primary.url);
  url.port = String(address.port);
  return {
    url: url.href,
    port: address.port,
    start: () => primary.start(),
    stop: () => primary.stop(),
    crash: () => primary.crash(),
    close: () => address.close(),
    killPrimary: async () => {
      // A transaction that waited for the standby when the primary crashed is visible after the
      // restart, before the standby has it. Who manages a failover promotes no such standby.
      const [row] = await query<{ lsn: string }>(primary, 'select pg_current_wal_lsn() as lsn');
      const behind = `select from pg_stat_replication where sync_state = 'sync' and flush_lsn >= $1`;
      await until('the standby to be in sync', () => query(primary, behind, [row!.lsn]));
      await primary.kill();
    },
    promoteStandby: async () => {
      await query(standby, 'select pg_promote()');
      [primary, standby] = [standby, primary];
      await standby.follow(primary);
    },
  };
}

async function query<Row extends pg.QueryResultRow>(
  { url }: PostgresServer,
  sql: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return (await client.query<Row>(sql, [...values]).finally(() => client.end())).rows;
}
