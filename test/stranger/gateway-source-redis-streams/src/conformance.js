import { Redis } from 'ioredis';
import { connect, createServer } from 'node:net';

/**
 * Opens the rig on the Redis at REDIS_ADDRESS, by default `127.0.0.1:6379`.
 *
 * @returns {Promise<import('@gateway/plugin-conformance').SourceRig>}
 */
export default async function open() {
  const address = process.env.REDIS_ADDRESS ?? '127.0.0.1:6379';
  const [host, port] = address.split(':');
  const client = new Redis({ host, port: Number(port) });
  const silent = await listenInSilence();
  const made = [];
  const proxies = [];
  const opened = async () => {
    const stream = `conformance-${process.pid}-${made.length}`;
    made.push(stream);
    // A group that starts before the first message, as operators create it.
    await client.xgroup('CREATE', stream, 'gateway', '0', 'MKSTREAM');
    return place(client, { address, stream, group: 'gateway' });
  };
  return {
    shape: 'queue',
    settings: { take_over_ms: 2_000 },
    leaseMs: 2_000,
    open: opened,
    openBreakable: async () => {
      const proxy = await proxyOf({ host, port: Number(port) });
      proxies.push(proxy);
      const { connection, ...rest } = await opened();
      return {
        ...rest,
        connection: { ...connection, address: proxy.address },
        cut: proxy.cut,
        heal: proxy.heal,
      };
    },
    reader: import.meta.resolve('./index.js'),
    wrongCredentials: {
      connection: { address, username: 'nobody', password: 'hunter2', stream: 's', group: 'g' },
      secrets: ['hunter2'],
    },
    missing: { connection: { address, stream: 'conformance-nowhere', group: 'gateway' } },
    silent: {
      connection: { address: `127.0.0.1:${silent.address().port}`, stream: 's', group: 'g' },
    },
    close: async () => {
      if (made.length > 0) await client.del(...made);
      await client.quit();
      for (const proxy of proxies) await proxy.cut();
      silent.close();
    },
  };
}

function place(client, connection) {
  const { stream, group } = connection;
  return {
    connection,
    send: async (messages) => {
      for (const { body, headers } of messages)
        await client.xadd(
          stream,
          '*',
          ...Object.entries(headers).flat(),
          'body',
          Buffer.from(body),
        );
    },
    unacknowledged: async () => {
      const groups = await client.xinfo('GROUPS', stream);
      const ours = groups
        .map((fields) => Object.fromEntries(pairs(fields)))
        .find(({ name }) => name === group);
      const behind = await client.xrange(stream, `(${ours['last-delivered-id']}`, '+');
      return ours.pending + behind.length;
    },
  };
}

function pairs(fields) {
  return fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1]]] : []));
}

function listenInSilence() {
  const server = createServer(() => {});
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

/** A proxy between the plugin and Redis that can be stopped. */
async function proxyOf(target) {
  const sockets = new Set();
  let server;
  let port = 0;
  const heal = async () => {
    server = createServer((socket) => {
      const upstream = connect(target);
      for (const [from, to] of [
        [socket, upstream],
        [upstream, socket],
      ]) {
        sockets.add(from);
        from.on('error', () => to.destroy());
        from.on('close', () => sockets.delete(from) && to.destroy());
        from.pipe(to);
      }
    });
    await new Promise((resolve) => server.listen(port, '127.0.0.1', resolve));
    port = server.address().port;
  };
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  await heal();
  return { address: `127.0.0.1:${port}`, cut, heal };
}
