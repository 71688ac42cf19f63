import pg from 'pg';
import type { Negotiated } from './connection.js';

type Connected = Parameters<Parameters<pg.Pool['connect']>[0]>;

/** A pool that finds before it makes a connection whether Postgres takes TLS. */
export class NegotiatingPool extends pg.Pool {
  readonly #way: Negotiated;

  constructor(config: pg.PoolConfig, way: Negotiated) {
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
    if (this.idleCount > 0 || this.totalCount >= this.options.max) return super.connect();
    this.options.ssl = await this.#way.find();
    try {
      return await super.connect();
    } catch (error) {
      this.#way.forget();
      throw error;
    }
  }
}
