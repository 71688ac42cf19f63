import { Redis } from 'ioredis';
import { services } from './services.js';

/**
 * A private Redis database: `FLUSHDB` affects no other test. (`FLUSHALL` does: start `own.redis()`
 * for it.)
 */
export interface RedisDatabase {
  readonly url: string;
  /** The fields of `url` for the settings `kv.*`. */
  readonly connection: { readonly host: string; readonly port: number; readonly database: string };
  readonly client: Redis;
  /** Empties the database and closes `client`. */
  close(): Promise<void>;
}

/**
 * Allocates a database of the shared Redis.
 * @param options.server another server
 */
export async function redis(
  options: { server?: { readonly url: string } } = {},
): Promise<RedisDatabase> {
  const { url: shared } = options.server ?? (await services.redis());
  const number = await nextDatabase(shared);
  const url = new URL(shared);
  url.pathname = `/${number}`;
  const client = new Redis(url.href);
  client.on('error', () => undefined); // the server was stopped: the next command reports it
  await client.flushdb();
  return {
    url: url.href,
    connection: { host: url.hostname, port: Number(url.port || 6379), database: String(number) },
    client,
    close: async () => {
      await client.flushdb();
      await client.quit();
    },
  };
}

/** Counts in database 0, which no test uses; wraps around to 1 after the last. */
async function nextDatabase(url: string): Promise<number> {
  const admin = new Redis(url);
  try {
    const [, databases = '16'] = (await admin.config('GET', 'databases')) as string[];
    const taken = await admin.incr('test:databases');
    return 1 + (taken % (Number(databases) - 1));
  } finally {
    await admin.quit();
  }
}
