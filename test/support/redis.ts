import { Redis } from 'ioredis';
import { services } from './services.js';

/** A Redis database of one's own: `FLUSHDB` in it touches nobody else. (`FLUSHALL` would: start `own.redis()` for that.) */
export interface RedisDatabase {
  readonly url: string;
  /** The fields of `url`, as the settings `kv.*` want them. */
  readonly connection: { readonly host: string; readonly port: number; readonly database: string };
  readonly client: Redis;
  /** Empties it and closes `client`. */
  close(): Promise<void>;
}

/**
 * Takes a database of the shared Redis that no other test file uses.
 * @param options.server another server to take it in
 */
export async function redis(options: { server?: { readonly url: string } } = {}): Promise<RedisDatabase> {
  const { url: shared } = options.server ?? (await services.redis());
  const number = await nextDatabase(shared);
  const url = new URL(shared);
  url.pathname = `/${number}`;
  const client = new Redis(url.href);
  client.on('error', () => undefined); // the server was stopped: the next command says so
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

/** Counts in database 0, which is nobody's; starts again at 1 after the last. */
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
