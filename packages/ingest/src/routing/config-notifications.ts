import { backoffMs } from '@gateway/core/process';
import type { Database } from '@gateway/store/postgres';

/** Uses its own connection. After a reconnect, notifications are presumed missed. */
export class ConfigNotifications {
  readonly #channels = new Map<string, (payload: string) => void>();
  #client: Awaited<ReturnType<Database['connect']>> | undefined;
  #closed = false;

  constructor(private readonly database: Pick<Database, 'connect' | 'canListen'>) {}

  /** Call before `start`. An empty payload means that notifications may have been missed. */
  on(channel: string, listener: (payload: string) => void): void {
    this.#channels.set(channel, listener);
  }

  /** Does not listen if a pooler prevents it. Rejects if Postgres is unreachable. */
  async start(): Promise<void> {
    if (this.database.canListen) await this.#listen(0);
  }

  /** Never rejects. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#client?.end().catch(() => undefined);
  }

  async #listen(failures: number): Promise<void> {
    if (this.#closed) return;
    let client;
    try {
      client = await this.database.connect();
    } catch (error) {
      if (failures === 0) throw error;
      await this.#listenAgain(failures + 1);
      return;
    }
    this.#client = client;
    client.on('notification', ({ channel, payload }) =>
      this.#channels.get(channel)?.(payload ?? ''),
    );
    client.once('end', () => void this.#listenAgain(1));
    try {
      if (this.#closed) await client.end();
      else for (const channel of this.#channels.keys()) await client.query(`listen ${channel}`);
    } catch (error) {
      void client.end().catch(() => undefined);
      if (failures === 0) throw error;
      return;
    }
    if (failures > 0) for (const listener of this.#channels.values()) listener('');
  }

  async #listenAgain(failures: number): Promise<void> {
    if (this.#closed) return;
    await new Promise((resolve) => setTimeout(resolve, backoffMs(failures)).unref());
    await this.#listen(failures);
  }
}
