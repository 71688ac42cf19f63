import { Redis } from 'ioredis';
import { freePorts } from './ports.js';
import { own } from './services.js';
import { until } from './until.js';

/** A Redis Cluster of three masters on 127.0.0.1. */
export interface RedisCluster {
  readonly addresses: readonly string[];
  readonly clients: readonly Redis[];
  close(): Promise<void>;
}

const SLOTS = 16_384;
const NODES = 3;

/**
 * @param settings additional settings of a node, by its number from 0
 */
export async function redisCluster(
  settings: (n: number) => Readonly<Record<string, string | number>> = () => ({}),
): Promise<RedisCluster> {
  const busPorts = await freePorts(NODES);
  const of = (n: number) => ({
    'cluster-enabled': 'yes',
    'cluster-port': busPorts[n]!,
    'cluster-node-timeout': 2000,
    databases: 1,
    ...settings(n),
  });
  const servers = await Promise.all(busPorts.map((_, n) => own.redis(of(n))));
  const clients = servers.map(({ url }) => new Redis(url));
  for (const [n, client] of clients.entries()) {
    const [first, end] = [Math.floor((n * SLOTS) / NODES), Math.floor(((n + 1) * SLOTS) / NODES)];
    await client.cluster('SET-CONFIG-EPOCH', n + 1);
    await client.cluster('ADDSLOTS', ...Array.from({ length: end - first }, (_, k) => first + k));
    if (n > 0)
      await clients[0]!.call(
        'CLUSTER',
        'MEET',
        '127.0.0.1',
        settings(n)['tls-port'] ?? servers[n]!.port,
        busPorts[n]!,
      );
  }
  const whole = async (client: Redis) => {
    const info = String(await client.cluster('INFO'));
    return /cluster_state:ok/.test(info) && info.includes(`cluster_known_nodes:${NODES}`);
  };
  await until('the Cluster to be whole', async () =>
    (await Promise.all(clients.map(whole))).every(Boolean),
  );
  return {
    addresses: servers.map(({ port }) => `127.0.0.1:${port}`),
    clients,
    async close() {
      for (const client of clients) client.disconnect();
      await Promise.all(servers.map((server) => server.close()));
    },
  };
}
