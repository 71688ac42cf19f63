import { RedisKv } from '#store/kv/redis-kv';
import type { RedisDatabase } from '../support/redis.js';
import { until } from '../support/until.js';

/**
 * A KV on a Redis database, once it answers.
 * @param options.port where Redis is reached, when through a proxy
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
