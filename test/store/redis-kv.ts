import { RedisKv } from '#store/kv/redis-kv';
import type { RedisDatabase } from '../support/redis.js';
import { until } from '../support/until.js';

/**
 * Opens a KV on a Redis database and waits until it answers.
 * @param options.port of a proxy to Redis
 */
export async function openRedisKv(
  connection: RedisDatabase['connection'],
  { port, ...options }: { port?: number; takeOverMs?: number } = {},
): Promise<RedisKv> {
  const way = port === undefined ? connection : { ...connection, host: '127.0.0.1', port };
  const kv = new RedisKv({ type: 'redis', scheme: 'redis', ...way }, () => undefined, options);
  await until('Redis to answer', () => kv.ping().then(() => true));
  return kv;
}
