import pg from 'pg';
import type { Tls } from './database-connection.js';

type Connected = Parameters<Parameters<pg.Pool['connect']>[0]>;

/** A pool that finds before it connects whether Postgres takes TLS. */
export class NegotiatingPool extends pg.Pool {
  readonly #way: () => Promise<Tls>;

  constructor(config: pg.PoolConfig, way: () => Promise<Tls>) {
    super(config);
    this.#way = way;
  }

  override connect(): Promise<pg.PoolClient>;
  override connect(callback: (...connected: Connected) => void): void;
  override connect(callback?: (...connected: Connected) => void): Promise<pg.PoolClient> | void {
    const connecting = this.#connect();
    if (!callback) return connecting;
    connecting.then(
      (client) => callback(undefined, client, (release?: Error | boolean) => client.release(release)),
      (error: Error) => callback(error, undefined, () => undefined),
    );
  }

  async #connect(): Promise<pg.PoolClient> {
    this.options.ssl = await this.#way();
    return super.connect();
  }
}
