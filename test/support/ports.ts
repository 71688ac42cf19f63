import { once } from 'node:events';
import net from 'node:net';

/** Ports that this process has handed out, possibly without a listener yet. */
const given = new Set<number>();

/** The port range. `npm test` gives each concurrent file a part of it. */
const [first, last] = (process.env['TEST_PORTS'] || '20000-31999').split('-').map(Number) as [
  number,
  number,
];

/**
 * Returns unused ports of 127.0.0.1 below the ephemeral range, so that a killed server finds its
 * port still free.
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

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

/**
 * Makes a server listen on 127.0.0.1, by default on a port that the system picks. Returns the port;
 * rejects on failure.
 */
export async function loopback(server: net.Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as net.AddressInfo).port;
}

/** True if the port accepts connections. */
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
