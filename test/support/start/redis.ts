import net from 'node:net';
import path from 'node:path';
import { freePort } from '../ports.js';
import { tempFolder } from './keep.js';
import { installed } from './packages.js';
import { ServerProcess } from './server-process.js';

/** A Redis of our own. It keeps nothing on disk: after a stop or crash it starts empty. */
export interface RedisServer extends ServerProcess {
  /** Database 0. */
  readonly url: string;
  readonly port: number;
}

/**
 * Starts a real Redis on a free port, from the system's `redis-server`.
 * @throws `Unavailable` when there is none and it cannot be installed
 */
export async function startRedis(): Promise<RedisServer> {
  installed('redis-server', ['redis-server'], 'for the tests of the KV');
  const folder = tempFolder('redis');
  const port = await freePort();
  const settings = { port, bind: '127.0.0.1', dir: folder, save: '', appendonly: 'no', databases: 4096, daemonize: 'no' };
  const server = new ServerProcess({
    name: 'Redis',
    program: 'redis-server',
    args: Object.entries(settings).flatMap(([key, value]) => [`--${key}`, String(value)]),
    folder,
    log: path.join(folder, 'redis.log'),
    stopSignal: 'SIGTERM',
    ready: () => pongs(port),
    startWithinMs: 30_000,
  });
  await server.start();
  return Object.assign(server, { url: `redis://127.0.0.1:${port}`, port });
}

function pongs(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1' }, () => socket.write('PING\r\n'));
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('data', (bytes) => settle(bytes.toString().startsWith('+PONG')));
    socket.once('error', () => settle(false));
    socket.setTimeout(2_000, () => settle(false));
  });
}
