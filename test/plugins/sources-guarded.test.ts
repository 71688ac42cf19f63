import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import { gzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { SourcePlugin } from '@gateway/plugin';
import { activated } from '../server/api.js';
import { kafka } from '../support/kafka.js';
import { heldBy } from '../support/memory.js';
import { proxy } from '../support/proxy.js';
import { until } from '../support/until.js';
import { failure, reading } from './reading.js';

/**
 * Limits on what a project's servers, and the servers they refer to, can do to a source. The
 * plugins are guarded as in server and agent.
 */
const guarded = suite('plugins/sources-guarded');

const MB = 1024 * 1024;
const broker = await kafka();
const closing: (() => unknown)[] = [() => broker.close()];
guarded.after(async () => {
  for (const close of closing) await close();
});

async function plugin(name: 'kafka' | 'sqs', allowed: string[]): Promise<SourcePlugin> {
  const { sources } = await activated({}, { source: { allowed_networks: allowed } });
  return sources.get(name)!.load();
}

async function server(
  listener: net.Server,
  host = '127.0.0.1',
  port = 0,
): Promise<{ port: number; connections: () => number }> {
  let connections = 0;
  const sockets = new Set<net.Socket>();
  listener.on(
    'connection',
    (socket: net.Socket) => (connections++, sockets.add(socket.on('error', () => undefined))),
  );
  closing.push(() => (listener.close(), sockets.forEach((socket) => socket.destroy())));
  await once(listener.listen(port, host), 'listening');
  return { port: (listener.address() as net.AddressInfo).port, connections: () => connections };
}

const context = () => ({ signal: new AbortController().signal, settings: {} });
const queue = (endpoint: string) => ({
  access_key_id: 'A',
  secret_key: 'B',
  default_region: 'eu-west-1',
  queue_name: 'orders',
  endpoint,
});
const topic = (port: number, topic_name = 'orders') => ({
  brokers: [`127.0.0.1:${port}`],
  topic_name,
});
const tokens = (port: number, host = '127.0.0.1') => ({
  brokers: [broker.listeners.saslPlaintext],
  topic_name: 'orders',
  auth: {
    type: 'oauthbearer',
    token_endpoint: `http://${host}:${port}/token`,
    client_id: 'a',
    client_secret: 'b',
  },
});

/** Replaces the host in a broker's responses. */
function advertising(host: string): (answer: Buffer) => Buffer {
  const text = (value: string) =>
    Buffer.concat([Buffer.from([0, value.length]), Buffer.from(value)]);
  return (answer) => {
    const [own, other] = ['127.0.0.1', host].map(text) as [Buffer, Buffer];
    const parts: Buffer[] = [];
    for (let from = 0, at; from < answer.length; from = at + own.length) {
      at = answer.indexOf(own, from);
      parts.push(answer.subarray(from, at < 0 ? answer.length : at));
      if (at < 0) break;
      parts.push(other);
    }
    const changed = Buffer.concat(parts);
    // A response starts with its length.
    changed.writeInt32BE(answer.readInt32BE() + changed.length - answer.length);
    return changed;
  };
}

for (const host of ['127.0.0.3', '169.254.169.254']) {
  guarded(
    `an address that a broker advertises is refused like one that is given: ${host}`,
    async () => {
      const port = Number(broker.listeners.plaintext.split(':')[1]);
      const inside = host.startsWith('127.')
        ? await server(net.createServer(), host, port)
        : undefined;
      const lying = await proxy({ port }, { rewrite: advertising(host) });
      closing.push(() => lying.close());
      const connection = topic(lying.port, await broker.topic());
      const source = await plugin('kafka', ['127.0.0.1/32']);
      const sentence = `${host}:${port} (an address that the cluster advertises) is in a network that sources may not reach.`;
      assert.is((await failure(source.check(connection, context()))).message, sentence);
      assert.is((await failure(reading(source, connection).done)).message, sentence);
      assert.is(inside?.connections() ?? 0, 0);
    },
  );
}

/**
 * A broker with one topic and as many partition leaders, each at this port; it reports the offsets
 * of arbitrarily many partitions.
 */
function crowd(brokers: number, partitions: number, offsets = partitions): net.Server {
  const int = (bytes: 2 | 4, value: number) => {
    const buffer = Buffer.alloc(bytes);
    buffer.writeIntBE(value, 0, bytes);
    return buffer;
  };
  const text = (value: string) => Buffer.concat([int(2, value.length), Buffer.from(value)]);
  const list = (length: number, item: (n: number) => Buffer[]) =>
    Buffer.concat([int(4, length), ...Array.from({ length }, (_, n) => item(n)).flat()]);
  const [API_VERSIONS, METADATA, LIST_OFFSETS] = [18, 3, 2];
  return net.createServer((socket) => {
    const port = socket.localPort!;
    const leader = (n: number) => int(4, n % brokers);
    const answers: Record<number, () => Buffer[]> = {
      [API_VERSIONS]: () => {
        const keys = [API_VERSIONS, METADATA, LIST_OFFSETS];
        return [
          int(2, 0),
          list(keys.length, (n) => [int(2, keys[n]!), int(2, 0), int(2, 0)]),
          int(4, 0),
        ];
      },
      [METADATA]: () => [
        list(brokers, (n) => [int(4, n), text('127.0.0.1'), int(4, port)]),
        list(1, () => [
          ...[int(2, 0), text('orders')],
          list(partitions, (n) => [
            int(2, 0),
            int(4, n),
            leader(n),
            list(1, () => [leader(n)]),
            list(1, () => [leader(n)]),
          ]),
        ]),
      ],
      [LIST_OFFSETS]: () => [
        list(1, () => [
          text('orders'),
          list(offsets, (n) => [int(4, n), int(2, 0), list(1, () => [int(4, 0), int(4, 0)])]),
        ]),
      ],
    };
    socket.on('data', (requests) => {
      for (let at = 0; at < requests.length; at += 4 + requests.readInt32BE(at)) {
        const body = Buffer.concat([
          requests.subarray(at + 8, at + 12),
          ...(answers[requests.readInt16BE(at + 4)]?.() ?? []),
        ]);
        socket.write(Buffer.concat([int(4, body.length), body]));
      }
    });
  });
}

guarded(
  'a broker that names more brokers or partitions than any cluster has is not followed',
  async () => {
    const source = await plugin('kafka', ['127.0.0.1/32']);
    const check = (port: number) => source.check(topic(port), context());
    await check((await server(crowd(2, 4))).port);
    for (const [what, brokers, partitions, offsets] of [
      ['more than 500 brokers', 501, 501, 501],
      ['more than 4000 partitions for one source', 1, 4_001, 1],
      ['more than 4000 partitions for one source', 1, 1, 4_001],
    ] as const) {
      const { port, connections } = await server(crowd(brokers, partitions, offsets));
      const { message } = await failure(check(port));
      assert.is(message, `The cluster behind 127.0.0.1:${port} names ${what}.`);
      assert.ok(connections() < 10);
    }
  },
);

guarded('an answer of a broker that is longer than any is refused at its first bytes', async () => {
  let bytes = 0;
  const { port } = await server(
    net.createServer((socket) =>
      socket.on('data', () => {
        const length = Buffer.alloc(4);
        length.writeInt32BE(bytes);
        socket.write(length);
      }),
    ),
  );
  const source = await plugin('kafka', ['127.0.0.1/32']);
  const sentence = `127.0.0.1:${port} does not answer as a Kafka broker does.`;
  bytes = 16 * MB + 1;
  assert.is((await failure(source.check(topic(port), context()))).message, sentence);
  bytes = 100 * MB + 1;
  assert.is((await failure(reading(source, topic(port)).done)).message, sentence);
});

guarded(
  'brokers that answer nothing are asked by one member, whatever the workers, and are left at once',
  async () => {
    const source = await plugin('kafka', ['127.0.0.1/32']);
    const { port, connections } = await server(net.createServer());
    const run = reading(source, topic(port), { workers: 20 });
    await until('the first connection', () => connections() > 0);
    await run.stop();
    assert.is(connections(), 1, 'members wait until the offsets of the group are known');
    assert.not(
      run.logs.some(({ sentence }) =>
        sentence.includes('the consumer did not leave the group in time'),
      ),
    );

    const refusing = await server(net.createServer((socket) => socket.destroy()));
    await failure(reading(source, topic(refusing.port), { workers: 20 }).done);
    assert.ok(
      refusing.connections() < 20,
      `${refusing.connections()} connections, retries included`,
    );
  },
);

/** Returns the growth of this process during `work`, in megabytes. */
async function growth(work: () => Promise<unknown>): Promise<number> {
  const before = heldBy(process.pid)?.rssMb ?? 0;
  let most = before;
  const timer = setInterval(() => (most = Math.max(most, heldBy(process.pid)?.rssMb ?? 0)), 20);
  await work().finally(() => clearInterval(timer));
  return most - before;
}

/** Sends up to `pieces` pieces, until the client disconnects. */
function streaming(headers: http.OutgoingHttpHeaders, piece: Buffer, pieces: number): http.Server {
  return http.createServer((request, response) => {
    request.resume();
    response.writeHead(200, headers);
    const send = (left: number): void => {
      if (response.destroyed) return;
      if (left === 0) return void response.end();
      if (response.write(piece)) setImmediate(send, left - 1);
      else response.once('drain', () => send(left - 1));
    };
    send(pieces);
  });
}

const WORDS = Buffer.from(
  JSON.stringify({ message: 'words-from-inside'.repeat(65_536) }).padEnd(MB),
);

guarded('an answer of 500 MB from a queue takes no memory, and is repeated to nobody', async () => {
  const { port } = await server(
    streaming({ 'content-type': 'application/x-amz-json-1.0' }, WORDS, 500),
  );
  const source = await plugin('sqs', ['127.0.0.1/32']);
  let message = '';
  const grown = await growth(async () => {
    const error = await failure(source.check(queue(`http://127.0.0.1:${port}`), context()));
    message = `${error.message} ${error.fix}`;
  });
  assert.match(message, `Reading the queue "orders" from http://127.0.0.1:${port} failed.`);
  assert.not.match(message, /words.from.inside/);
  assert.ok(grown < 150, `${grown} MB`);
});

for (const [what, headers, piece] of [
  ['plain', {}, WORDS],
  ['compressed', { 'content-encoding': 'gzip' }, gzipSync(Buffer.alloc(500 * MB))],
] as const) {
  guarded(`a token endpoint whose answer does not end, ${what}, takes no memory`, async () => {
    const { port } = await server(
      streaming({ ...headers, 'content-type': 'application/json' }, piece, 500),
    );
    const source = await plugin('kafka', ['127.0.0.1/32']);
    let message = '';
    const grown = await growth(
      async () => (message = (await failure(source.check(tokens(port), context()))).message),
    );
    assert.match(message, 'refused the client "a": status 200 without a token.');
    assert.ok(grown < 150, `${grown} MB`);
  });
}

guarded('a token endpoint is guarded like a broker, and no redirect is followed', async () => {
  const inside = await server(
    http.createServer((_request, response) => void response.end('{"access_token":"inside"}')),
    '127.0.0.2',
  );
  const moved = await server(
    http.createServer((_request, response) => {
      response.writeHead(307, { location: `http://127.0.0.2:${inside.port}/` }).end();
    }),
  );
  const source = await plugin('kafka', ['127.0.0.1/32']);
  const refused = await failure(source.check(tokens(inside.port, '127.0.0.2'), context()));
  assert.is(
    refused.message,
    `http://127.0.0.2:${inside.port}/token is in a network that sources may not reach.`,
  );
  // The redirect is refused even within the networks that sources are allowed to reach.
  for (const allowed of [['127.0.0.1/32'], ['127.0.0.0/8']]) {
    const error = await failure(
      (await plugin('kafka', allowed)).check(tokens(moved.port), context()),
    );
    assert.match(error.message, 'could not be asked for a token');
    await failure(
      (await plugin('sqs', allowed)).check(queue(`http://127.0.0.1:${moved.port}`), context()),
    );
  }
  assert.is(inside.connections(), 0);
  assert.ok(moved.connections() > 0);
});

guarded.run();
