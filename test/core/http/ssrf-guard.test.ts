import { spawn } from 'node:child_process';
import http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import tls from 'node:tls';
import { once } from 'node:events';
import { asProcess } from '@gateway/plugin';
import type { buildConnector } from 'undici';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { connectToAny, guardedConnector, RefusedAddressError } from '#core/http/connect-any';
import { LookupError, LookupsBusyError } from '#core/http/names';
import { addressGuard, checkHost, sourceGuard } from '#core/http/ssrf-guard';
import { endpoint } from '../../support/endpoint.js';
import { askingServers, nameServer } from '../../support/name-server.js';

const guard = suite('core/http/ssrf-guard');

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
  '168.63.129.15',
  '168.63.129.17',
  '172.15.255.255',
  '172.32.0.0',
  '192.167.255.255',
  '223.255.255.255',
  '2606:4700:4700::1111',
  '2a00:1450:4001::1',
  '::ffff:8.8.8.8',
  '64:ff9b::808:808',
];

const REFUSED = [
  '0.0.0.0',
  '0.1.2.3',
  '10.0.0.1',
  '10.255.255.255',
  '100.64.0.1',
  '100.127.255.255',
  '127.0.0.1',
  '127.255.255.254',
  '168.63.129.16',
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '192.88.99.1',
  '192.168.0.1',
  '198.18.0.1',
  '198.19.255.255',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '240.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  'fc00::1',
  'fdff:ffff::1',
  'fe80::1',
  'fe80::1%eth0',
  'febf::1',
  'fec0::1',
  'ff02::1',
  '100::1',
  '2001:db8::1',
  '2001::1',
  '2002:7f00:1::1',
  '3fff::1',
];

guard('addresses of the internet may be reached', () => {
  const mayReach = addressGuard([]);
  assert.equal(
    PUBLIC.filter((address) => !mayReach(address)),
    [],
  );
});

guard('private, loopback, link-local, shared, reserved and multicast addresses may not', () => {
  const mayReach = addressGuard([]);
  assert.equal(REFUSED.filter(mayReach), []);
});

guard('an IPv4 address counts as itself in every clothing of IPv6', () => {
  const mayReach = addressGuard([]);
  for (const [inner, hex] of [
    ['127.0.0.1', '7f00:1'],
    ['10.0.0.1', 'a00:1'],
    ['169.254.169.254', 'a9fe:a9fe'],
    ['192.168.0.0', 'c0a8:0'],
    ['0.0.0.5', '0:5'],
  ] as const) {
    const clothings = [
      `::ffff:${inner}`,
      `::ffff:${hex}`,
      `0:0:0:0:0:ffff:${hex}`,
      `::FFFF:${hex}`,
      `64:ff9b::${hex}`,
      `64:ff9b:0:0:0:0:${inner}`,
      `::${inner}`,
      `::ffff:0:${hex}`,
    ];
    assert.equal(clothings.filter(mayReach), []);
  }
});

guard('a network that is allowed may be reached, and its neighbours may not', () => {
  const mayReach = addressGuard(['10.1.0.0/16', '127.0.0.1', 'fd00:1::/32']);
  for (const address of [
    '10.1.0.1',
    '10.1.255.255',
    '127.0.0.1',
    '::ffff:127.0.0.1',
    '64:ff9b::a01:1',
    'fd00:1::5',
    '8.8.8.8',
  ])
    assert.ok(mayReach(address), address);
  for (const address of [
    '10.0.255.255',
    '10.2.0.0',
    '127.0.0.2',
    '::1',
    'fd00:2::1',
    '::ffff:10.2.0.0',
  ])
    assert.not.ok(mayReach(address), address);
});

guard('everything may be allowed', () => {
  const mayReach = addressGuard(['0.0.0.0/0', '::/0']);
  assert.equal(
    [...PUBLIC, ...REFUSED].filter((address) => !mayReach(address)),
    [],
  );
});

guard('a block that cannot be read is refused with what one looks like', () => {
  for (const network of [
    '',
    'localhost',
    '10.0.0.0/33',
    '10.0.0.0/-1',
    '10.0.0.0/8.5',
    '10.0.0.0/',
    '10.0.0/8',
    '::/129',
    '10.0.0.0/8/8',
    '10.0.0.0/x',
  ]) {
    assert.throws(
      () => addressGuard([network]),
      /is not a network in CIDR form, like 10\.0\.0\.0\/8/,
      network,
    );
  }
});

const v4 = (...addresses: string[]) => addresses.map((address) => ({ address, family: 4 }));

/** Connects to a name. Returns the connected address, or the error sentence. */
function connection(
  connect: buildConnector.connector,
  name: string,
  port: number,
): Promise<string> {
  const options = {
    hostname: name,
    host: `${name}:${port}`,
    protocol: 'http:',
    port: String(port),
    httpSocket: undefined,
  } as never;
  return new Promise((resolve) =>
    connect(options, (error, socket) => {
      resolve(error ? error.message : (socket.remoteAddress ?? ''));
      socket?.destroy();
    }),
  );
}

guard(
  'a name that changes its mind is connected to the address that was looked at, and refused by the next look',
  async () => {
    const receiver = await endpoint();
    const answers = ['127.0.0.1', '127.0.0.2', '127.0.0.1', '10.0.0.1'];
    let looks = 0;
    try {
      const connect = guardedConnector(
        addressGuard(['127.0.0.1/32']),
        () => Promise.resolve(v4(answers[looks++]!)),
        { connectTimeoutMs: 5_000 },
      );
      const seen: string[] = [];
      for (const _ of answers) seen.push(await connection(connect, 'rebind.test', receiver.port));
      assert.is(looks, answers.length, 'one look for each connection');
      assert.equal([seen[0], seen[2]], ['127.0.0.1', '127.0.0.1']);
      assert.match(
        seen[1]!,
        'rebind.test resolves to 127.0.0.2, which is in a private or reserved network',
      );
      assert.match(
        seen[3]!,
        'rebind.test resolves to 10.0.0.1, which is in a private or reserved network',
      );
    } finally {
      await receiver.close();
    }
  },
);

guard(
  'connections that are opened together are each to the address of their own name',
  async () => {
    const receiver = net.createServer((socket) => socket.on('error', () => undefined));
    await once(receiver.listen(0, '0.0.0.0'), 'listening');
    const { port } = receiver.address() as net.AddressInfo;
    try {
      const connect = guardedConnector(
        addressGuard(['127.0.0.0/8']),
        (name) => Promise.resolve(v4(`127.0.0.${name.slice(1)}`)),
        { connectTimeoutMs: 5_000 },
      );
      const seen = await Promise.all(
        Array.from({ length: 20 }, (_, n) => connection(connect, `n${n + 1}`, port)),
      );
      assert.equal(
        seen,
        Array.from({ length: 20 }, (_, n) => `127.0.0.${n + 1}`),
      );
    } finally {
      receiver.close();
    }
  },
);

guard('of several addresses of a name only those that may be reached are tried', async () => {
  // Listens on all addresses: the first one tried answers.
  const receiver = net.createServer((socket) => socket.on('error', () => undefined));
  await new Promise<void>((resolve) => receiver.listen(0, '0.0.0.0', resolve));
  const { port } = receiver.address() as net.AddressInfo;
  const find = () => Promise.resolve(v4('127.0.0.2', '127.0.0.1', '127.0.0.3'));
  try {
    assert.is(
      await connection(
        guardedConnector(addressGuard(['127.0.0.0/8']), find, { connectTimeoutMs: 5_000 }),
        'several.test',
        port,
      ),
      '127.0.0.2',
    );
    assert.is(
      await connection(
        guardedConnector(addressGuard(['127.0.0.1/32']), find, { connectTimeoutMs: 5_000 }),
        'several.test',
        port,
      ),
      '127.0.0.1',
    );
  } finally {
    receiver.close();
  }
});

/** Runs a test with a port of 127.0.0.1 whose connections open after a second. */
async function withSlowHandshake(test: (port: number) => Promise<void>): Promise<void> {
  const listening = `require('net').createServer((s) => s.on('error', () => {}))
    .listen({ host: '127.0.0.1', port: 0, backlog: 1 }, function () { console.log(this.address().port); })`;
  const child = spawn(process.execPath, ['-e', listening], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const waiting: net.Socket[] = [];
  try {
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const port = Number(String(line));
    // Nothing is accepted, and the queue is full: the kernel drops further packets, which are
    // repeated after a second.
    child.kill('SIGSTOP');
    for (let k = 0; k < 4; k++)
      waiting.push(net.connect(port, '127.0.0.1').on('error', () => undefined));
    await new Promise((resolve) => setTimeout(resolve, 50));
    setTimeout(() => child.kill('SIGCONT'), 600);
    await test(port);
  } finally {
    for (const socket of waiting) socket.destroy();
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}

guard('an address with a slow handshake is not given up for another that fails', () =>
  withSlowHandshake(async (port) => {
    const find = () => Promise.resolve(v4('127.0.0.1', '127.0.0.2', '127.0.0.3'));
    const connect = guardedConnector(addressGuard(['127.0.0.0/8']), find, {
      connectTimeoutMs: 5_000,
    });
    assert.is(await connection(connect, 'slow.test', port), '127.0.0.1');
  }),
);

guard('fetch of a source waits for a slow handshake too', () =>
  withSlowHandshake(async (port) => {
    const servers = await nameServer(() => ['127.0.0.1', '127.0.0.2']);
    try {
      await askingServers([servers.address], async () => {
        const error: unknown = await sourceGuard(['127.0.0.0/8'])(1_000, () =>
          fetch(`http://slow.test:${port}/`, { signal: AbortSignal.timeout(2_500) }),
        ).catch((error: unknown) => error);
        assert.is((error as Error).name, 'TimeoutError', 'it is connected, and has no answer');
      });
    } finally {
      await servers.close();
    }
  }),
);

guard('the next address is tried while a silent one is waited for', async () => {
  const receiver = net.createServer((socket) => socket.on('error', () => undefined));
  await once(receiver.listen(0, '127.0.0.9'), 'listening');
  const { port } = receiver.address() as net.AddressInfo;
  const tried: string[] = [];
  try {
    const silent: buildConnector.connector = ({ hostname }, callback) => {
      tried.push(hostname);
      if (hostname !== '127.0.0.9') return;
      const socket = net.connect(port, hostname, () => callback(null, socket));
    };
    const addresses = [
      ...v4('127.0.0.7', '127.0.0.8', '127.0.0.9', '127.0.0.10'),
      { address: '::7', family: 6 },
    ];
    const startedAtMs = performance.now();
    const connected = await new Promise<net.Socket>((resolve, reject) =>
      connectToAny(
        silent,
        { hostname: 'a.test', protocol: 'http:', port: String(port) },
        addresses,
        (error, socket) => (error ? reject(error) : resolve(socket)),
      ),
    );
    connected.destroy();
    assert.equal(tried, ['127.0.0.7', '::7', '127.0.0.8', '127.0.0.9'], 'families take turns');
    assert.ok(performance.now() - startedAtMs < 2_000);
  } finally {
    receiver.close();
  }
});

guard(
  'through a proxy, which may choose any address of a name, one that may not be reached refuses the name',
  async () => {
    const names: Record<string, string[]> = {
      'public.test': ['8.8.8.8', '1.1.1.1'],
      'mixed.test': ['8.8.8.8', '10.0.0.1'],
    };
    const mayReach = addressGuard([]);
    const find = (name: string) => Promise.resolve(v4(...names[name]!));
    await checkHost('public.test', mayReach, find);
    const refusal: unknown = await checkHost('mixed.test', mayReach, find).catch(
      (error: unknown) => error,
    );
    assert.instance(refusal, RefusedAddressError);
    assert.match(
      (refusal as Error).message,
      'mixed.test resolves to 8.8.8.8, 10.0.0.1, which is in a private or reserved network',
    );
  },
);

guard('to a proxy is left what has no address here, and not what was never looked up', async () => {
  const failing = (error: Error) =>
    checkHost('a.test', addressGuard([]), () => Promise.reject(error));
  await failing(new LookupError('a.test', 'ENOTFOUND'));
  const busy: unknown = await failing(new LookupsBusyError('a.test')).catch(
    (error: unknown) => error,
  );
  assert.instance(busy, LookupsBusyError);
});

guard(
  'a source whose names are silent does not keep another one from its own, over sockets and fetch',
  async () => {
    const receiver = await endpoint();
    const servers = await nameServer((name) =>
      name.startsWith('silent') ? 'silence' : ['127.0.0.1'],
    );
    const guarded = sourceGuard(['127.0.0.0/8']);
    const reason = (error: Error): string =>
      error.cause instanceof Error ? reason(error.cause) : error.message;
    const opened = (name: string) => {
      const socket = net.connect(receiver.port, `${name}.test`);
      return once(socket, 'connect').then(() => (socket.destroy(), 'open'), reason);
    };
    const fetched = (name: string) =>
      fetch(`http://${name}.test:${receiver.port}`).then(({ status }) => `${status}`, reason);
    const both = (name: string, count: number) =>
      guarded(100, () =>
        Promise.all(
          Array.from({ length: count }, (_, n) => [
            opened(`${name}-a${n}`),
            fetched(`${name}-b${n}`),
          ]).flat(),
        ),
      );
    try {
      await askingServers([servers.address], async () => {
        const silent = both('silent', 8);
        assert.equal(await Promise.race([both('broker', 1), silent]), ['open', '200']);
        for (const said of await silent)
          assert.match(said, / cannot be looked up: no name server answered within 5000 ms\./);
      });
    } finally {
      await Promise.all([servers.close(), receiver.close()]);
    }
  },
);

/**
 * A server on loopback, and each way in which a client library connects to it; a way returns its
 * error name.
 */
async function ways(
  test: (of: {
    opened: () => Promise<string>[];
    connections: () => number;
    port: number;
  }) => Promise<void>,
) {
  let connections = 0;
  const server = http
    .createServer((_request, response) => response.end('inside'))
    .on('connection', () => connections++);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as net.AddressInfo;
  const name = (error: Error): string => (error.cause ? name(error.cause as Error) : error.name);
  const socket = (open: () => net.Socket) =>
    new Promise<string>((done) => {
      const it = open()
        .on('connect', () => (done('open'), it.destroy()))
        .on('error', (error) => done(name(error)));
    });
  const agent = new http.Agent({ keepAlive: true });
  const opened = () => [
    socket(() => net.connect(port, '127.0.0.1')),
    socket(() => net.connect({ port, host: 'localhost', family: 4 })),
    socket(() => net.createConnection({ port, host: '::ffff:127.0.0.1' })),
    socket(() => tls.connect({ port, host: '127.0.0.1' })),
    socket(() => new net.Socket().connect(port)),
    socket(() => net.connect({ port, host: 'localhost', autoSelectFamily: true })),
    new Promise<string>((done) => {
      const session = http2.connect(
        `http://127.0.0.1:${port}`,
        () => (done('open'), session.destroy()),
      );
      session.on('error', (error) => done(name(error)));
    }),
    fetch(`http://127.0.0.1:${port}`).then(async (it) => (await it.text(), 'open'), name),
    new Promise<string>((done) => {
      const request = http.get(
        { port, host: 'localhost', family: 4, agent },
        (response) => (response.resume(), done('open')),
      );
      request.on('error', (error) => done(name(error)));
    }),
  ];
  try {
    await test({ opened, connections: () => connections, port });
  } finally {
    agent.destroy();
    server.closeAllConnections();
    server.close();
  }
}

guard(
  'whichever way guarded work connects, loopback is refused, also later and where other work has a connection',
  () =>
    ways(async ({ opened, connections }) => {
      const open = await Promise.all(opened());
      assert.equal([...new Set(open)], ['open']);
      const before = connections();
      const work = sourceGuard([]);
      const refused = open.map(() => 'RefusedAddressError');
      assert.equal(await Promise.all(work(100, opened)), refused);
      const later = work(100, async () => {
        await new Promise((done) => setTimeout(done, 1));
        return Promise.all(opened());
      });
      assert.equal(await later, refused);
      assert.is(connections(), before);
      assert.equal(await Promise.all(sourceGuard(['127.0.0.0/8', '::1'])(100, opened)), open);
      assert.equal(await Promise.all(work(100, () => asProcess(opened))), open);
    }),
);

guard(
  'guarded work connects to the address of the very look-up, and of several to one that may be reached',
  () =>
    ways(async ({ connections, port }) => {
      const names: Record<string, string[][]> = {
        'rebind.test': [['127.0.0.1'], ['127.0.0.2']],
        'several.test': [['127.0.0.2', '127.0.0.1', '127.0.0.3']],
      };
      const servers = await nameServer((name, family) =>
        family === 4 ? names[name]!.shift()! : [],
      );
      const connect = async (host: string) => {
        const socket = net.connect({ port, host });
        return once(socket, 'connect').then(
          () => (socket.destroy(), 'open'),
          (error: Error) => error.message.replace(/ An operator.*/, ''),
        );
      };
      const test = () =>
        sourceGuard(['127.0.0.1/32'])(100, async () => {
          assert.is(await connect('rebind.test'), 'open');
          assert.is(
            await connect('rebind.test'),
            'rebind.test resolves to 127.0.0.2, which is in a private or reserved network.',
          );
          assert.is(await (await fetch(`http://several.test:${port}`)).text(), 'inside');
        });
      await askingServers([servers.address], test).finally(() => servers.close());
      assert.is(connections(), 2);
    }),
);

guard('guarded work opens no socket file', async () => {
  const error = await sourceGuard(['127.0.0.0/8'])(100, () =>
    once(net.connect('/var/run/docker.sock'), 'connect'),
  ).catch((it: Error) => it);
  assert.is((error as Error).name, 'RefusedAddressError');
});

guard('an HTTP answer to guarded work ends at its limit', async () => {
  const server = http.createServer(
    (_request, response) => void response.end(Buffer.alloc(100_000)),
  );
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as net.AddressInfo;
  const bytesOf = async (answer: Promise<AsyncIterable<Uint8Array>>) => {
    let bytes = 0;
    try {
      for await (const chunk of await answer) bytes += chunk.length;
      return String(bytes);
    } catch (error) {
      return (error as Error).name;
    }
  };
  const get = () =>
    bytesOf(
      new Promise((done, failed) =>
        http.get({ port, host: '127.0.0.1', agent: false }, done).on('error', failed),
      ),
    );
  const fetched = () =>
    bytesOf(
      fetch(`http://127.0.0.1:${port}`).then(
        (response) => response.body as AsyncIterable<Uint8Array>,
      ),
    );
  try {
    const work = sourceGuard(['127.0.0.1']);
    for (const read of [get, fetched]) {
      assert.is(await work(100_000, read), '100000');
      assert.match(await work(99_999, read), 'Error');
      assert.is(await read(), '100000');
    }
  } finally {
    server.close();
    server.closeAllConnections();
  }
});

guard.run();
