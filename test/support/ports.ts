import { once } from 'node:events';
import net from 'node:net';

/** Ports that this process was told of: nobody may listen on them yet. */
const given = new Set<number>();

/** Those from which they are taken. `npm test` gives a part to each of the files that it runs at once. */
const [first, last] = (process.env['TEST_PORTS'] ?? '20000-31999').split('-').map(Number) as [number, number];

/**
 * Ports of 127.0.0.1 on which nothing listens, below the range from which the system takes the ports of outgoing connections: a server
 * that is killed and started again finds its port still free.
 */
export async function freePorts(count: number): Promise<number[]> {
  const servers: net.Server[] = [];
  while (servers.length < count) {
    const port = first + Math.floor(Math.random() * (last - first + 1));
    if (given.has(port)) continue;
    const server = await listen(port);
    if (server) servers.push(server);
    given.add(port);
  }
  const ports = servers.map((server) => (server.address() as net.AddressInfo).port);
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  return ports;
}

/** One free port, see `freePorts`. */
export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

/** Lets a server listen on 127.0.0.1, on a port that the system picks or on this one, and gives the port. Rejects when it cannot. */
export async function loopback(server: net.Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as net.AddressInfo).port;
}

/** Whether something accepts connections there. */
export function answers(port: number, host = '127.0.0.1'): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

function listen(port: number): Promise<net.Server | undefined> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ port, host: '127.0.0.1', exclusive: true }, () => resolve(server));
  });
}
