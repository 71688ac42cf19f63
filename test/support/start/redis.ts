import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { freePort } from '../ports.js';
import { tempFolder } from './keep.js';
import { installed } from './packages.js';
import { ServerProcess } from './server-process.js';

/** A private Redis without persistence: after a stop or crash it starts empty. */
export interface RedisServer extends ServerProcess {
  /** Database 0. */
  readonly url: string;
  readonly port: number;
}

/**
 * Starts a real Redis on a free port, from the system's `redis-server`.
 * @param more additional server settings, `{ replicaof: '127.0.0.1 6379' }`
 * @throws `Unavailable` if it cannot be installed
 */
export async function startRedis(
  more: Readonly<Record<string, string | number>> = {},
): Promise<RedisServer> {
  installed('redis-server', ['redis-server'], 'for the tests of the KV');
  const folder = tempFolder('redis');
  const port = await freePort();
  const settings = {
    port,
    bind: '127.0.0.1',
    dir: folder,
    save: '',
    appendonly: 'no',
    databases: 4096,
    daemonize: 'no',
    ...more,
  };
  const server = new ServerProcess({
    name: 'Redis',
    program: 'redis-server',
    args: Object.entries(settings).flatMap(([key, value]) => [
      `--${key}`,
      ...String(value).split(' '),
    ]),
    folder,
    log: path.join(folder, 'redis.log'),
    stopSignal: 'SIGTERM',
    ready: () => pongs(port),
    startWithinMs: 30_000,
  });
  await server.start();
  return Object.assign(server, { url: `redis://127.0.0.1:${port}`, port });
}

/**
 * Starts a real Sentinel that promotes a replica half a second after the master disappears.
 * @param name of the master
 * @param settings additional lines of its configuration
 */
export async function startSentinel(
  name: string,
  masterPort: number,
  settings: readonly string[] = [],
): Promise<RedisServer> {
  installed('redis-server', ['redis-server'], 'for the tests of the KV');
  const folder = tempFolder('sentinel');
  const port = await freePort();
  const file = path.join(folder, 'sentinel.conf');
  const lines = [
    `port ${port}`,
    'bind 127.0.0.1',
    `dir ${folder}`,
    `sentinel monitor ${name} 127.0.0.1 ${masterPort} 1`,
    `sentinel down-after-milliseconds ${name} 500`,
    `sentinel failover-timeout ${name} 2000`,
    ...settings,
  ];
  fs.writeFileSync(file, `${lines.join('\n')}\n`);
  const server = new ServerProcess({
    name: 'Sentinel',
    program: 'redis-server',
    args: [file, '--sentinel'],
    folder,
    log: path.join(folder, 'sentinel.log'),
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
    // A server that requires a password is ready too.
    socket.once('data', (bytes) => settle(/^(\+PONG|-NOAUTH)/.test(bytes.toString())));
    socket.once('error', () => settle(false));
    socket.setTimeout(2_000, () => settle(false));
  });
}
