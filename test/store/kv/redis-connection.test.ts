import { Redis } from 'ioredis';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { explainKvError, kvReason } from '#core/errors/connection-errors';
import { isGatewayError, type GatewayError } from '#core/errors/errors';
import type { Kv, KvSettings, SignalQueue } from '#store/kv/kv';
import { openKv } from '#store/kv/redis-kv';
import { RedisKv } from '#store/kv/redis-kv';
import { authority, type Authority, type Issued } from '../../support/authority.js';
import { freePort, freePorts } from '../../support/ports.js';
import { redisCluster } from '../../support/redis-cluster.js';
import { own } from '../../support/services.js';
import { until, within } from '../../support/until.js';

const connection = suite('store/kv/redis-connection');

type Server = Awaited<ReturnType<typeof own.redis>>;

const quiet = () => undefined;
const settings = (more: Partial<KvSettings>): KvSettings => ({
  type: 'redis',
  scheme: 'redis',
  host: '127.0.0.1',
  port: 1,
  ...more,
});

async function open(more: Partial<KvSettings>, options?: { takeOverMs: number }): Promise<RedisKv> {
  const kv = new RedisKv(settings(more), quiet, options);
  try {
    await until('KV to answer', () => kv.ping().then(() => true), { withinMs: 10_000 });
  } catch (error) {
    await kv.close();
    throw error;
  }
  return kv;
}

/** The error for an unusable KV, at start (a connection error) and later (a command's error). */
async function sentence(more: Partial<KvSettings>, expected: RegExp): Promise<GatewayError> {
  const errors: Error[] = [];
  const place = settings(more);
  const kv = openKv(place, (error) => errors.push(error));
  try {
    const [first] = await until('an error', () => errors.length > 0 && errors);
    const command = await kv.ping().then(
      () => assert.unreachable('it works'),
      (error: unknown) => error,
    );
    const [atStart, later] = [explainKvError(first, place), explainKvError(command, place)];
    assert.ok(
      isGatewayError(atStart),
      `${String(atStart)} ${JSON.stringify(atStart)} ${String(atStart.cause)}`,
    );
    assert.ok(expected.test(atStart.message), atStart.message);
    assert.is(
      later.message,
      atStart.message,
      `${later.message} ${String(command)} ${String(later.cause)} ${String((command as Error).cause)}, first ${String(first)} ${String(first?.cause)}`,
    );
    assert.is(kvReason(command, place), atStart.message);
    return atStart;
  } finally {
    await kv.close();
  }
}

const never = new AbortController().signal;
const pull = async (queue: SignalQueue) => {
  const signals = await within(queue.pull(10, never), 20_000, 'signals');
  await queue.done(signals.map(({ ticket }) => ticket));
  return signals.map(({ text }) => text);
};

/** Uses every operation of agents and servers. */
async function useAll(one: Kv, other: Kv): Promise<void> {
  for (const name of ['create-event', 'match-subscriptions'] as const) {
    const waiting = pull(other.queue(name));
    await one.queue(name).push(['a', 'b']);
    const first = await waiting;
    assert.equal(
      [...first, ...(first.length < 2 ? await pull(other.queue(name)) : [])],
      ['a', 'b'],
    );
    await until(
      'the signals to be acknowledged',
      async () => (await one.queue(name).depth()) === 0,
    );
  }
  for (const bucket of ['ingest', 'api:1', 'api:2'])
    assert.is((await one.takeTokens(bucket, 10, 4)).granted, 4);
  await one.set('answer', '42', { ttlMs: 10_000 });
  await one.set('answer', '43', { ttlMs: 10_000, ifAbsent: true });
  assert.is(await other.get('answer'), '42');
  assert.is(await other.get('nothing'), undefined);
  for (const n of [1, 2]) await one.set(`answers:{p}:${n}`, `${n}`, { ttlMs: 10_000 });
  assert.equal(await other.getAll(['answers:{p}:1', 'answers:{p}:2', 'answers:{p}:3']), [
    '1',
    '2',
    undefined,
  ]);
}

let trusted: Authority;
let stranger: Authority;
let right: Issued;
let client: Issued;
let secure: Server & { tlsPort: number };

async function startSecure(
  certificate: Issued,
  more: Record<string, string> = {},
): Promise<Server & { tlsPort: number }> {
  const tlsPort = await freePort();
  const files = {
    'tls-cert-file': certificate.certificate,
    'tls-key-file': certificate.key,
    'tls-ca-cert-file': trusted.file,
  };
  return Object.assign(
    await own.redis({ 'tls-port': tlsPort, 'tls-auth-clients': 'no', ...files, ...more }),
    { tlsPort },
  );
}

connection.before(async () => {
  [trusted, stranger] = [authority(), authority()];
  right = trusted.issue('right', ['DNS:localhost', 'IP:127.0.0.1']);
  client = trusted.issue('client', []);
  secure = await startSecure(right);
});

connection.after(async () => {
  await secure.close();
  trusted.close();
  stranger.close();
});

connection('ACL: each kind of command that is refused is named by what health asks', async () => {
  const server = await own.redis({});
  const admin = new Redis({ port: server.port });
  const allow = async (...rights: string[]) => {
    const all = ['+@read', '+@write', '+@connection', '+@scripting', '+info', '+time', ...rights];
    await admin.call('ACL', 'SETUSER', 'gw', 'on', '>secret', 'nocommands', 'resetkeys', ...all);
  };
  const way = { port: server.port, username: 'gw', password: 'secret' };
  try {
    await allow('~gateway:*');
    const one = await open(way);
    await useAll(one, one);
    const reason = () =>
      one.ping().then(String, (error: unknown) => kvReason(error, settings(way)));
    for (const command of 'eval get mget set time hgetall xadd xgroup xreadgroup xautoclaim xpending xack xdel'.split(
      ' ',
    )) {
      await allow('~gateway:*', `-${command}`);
      assert.match(
        await reason(),
        new RegExp(`: the ACL of its user refuses the command ${command.toUpperCase()}[|;]`),
        command,
      );
    }
    await allow('~other:*');
    assert.match(await reason(), ': the ACL of its user refuses keys that begin with gateway:');
    await allow('~gateway:*');
    assert.is(await reason(), 'undefined');
    await one.close();
  } finally {
    admin.disconnect();
    await server.close();
  }
});

connection('TLS: the authority that is named is believed, and everything works', async () => {
  const way = { scheme: 'rediss', port: secure.tlsPort, tls: { ca_file: trusted.file } };
  const [one, other] = [await open(way), await open({ ...way, host: 'localhost' })];
  await useAll(one, other);
  await Promise.all([one.close(), other.close()]);
});

connection(
  'TLS: a certificate of an unknown authority is refused unless that is asked for',
  async () => {
    const way = { scheme: 'rediss', port: secure.tlsPort };
    const expected = new RegExp(
      `^TLS with Redis at 127.0.0.1:${secure.tlsPort} failed: its certificate is signed by an unknown authority$`,
    );
    for (const tls of [{}, { ca_file: stranger.file }]) {
      const { fix } = await sentence({ ...way, tls }, expected);
      for (const part of ['kv.tls.ca_file', '--kv-tls-ca-file', 'GATEWAY_KV_TLS_CA_FILE'])
        assert.match(fix, part);
    }
    const kv = await open({ ...way, tls: { insecure_skip_verify: true } });
    await kv.close();
  },
);

connection(
  'TLS: an expired certificate, one for another host, and a server that is asked without TLS are told apart',
  async () => {
    const cases: [Issued, RegExp][] = [
      [
        trusted.issue('expired', ['IP:127.0.0.1'], { expired: true }),
        /failed: its certificate has expired$/,
      ],
      [
        trusted.issue('other', ['DNS:kv.example.com']),
        /failed: its certificate is for another host$/,
      ],
    ];
    for (const [certificate, expected] of cases) {
      const server = await startSecure(certificate);
      await sentence(
        { scheme: 'rediss', port: server.tlsPort, tls: { ca_file: trusted.file } },
        expected,
      );
      await server.close();
    }
    const { fix } = await sentence(
      { port: secure.tlsPort },
      /cannot be reached: the connection was cut$/,
    );
    assert.match(fix, 'kv.scheme (--kv-scheme, GATEWAY_KV_SCHEME; rediss for TLS)');
  },
);

connection('TLS: a certificate of ours is shown to a server that wants one', async () => {
  const server = await startSecure(right, { 'tls-auth-clients': 'yes' });
  const way = { scheme: 'rediss', port: server.tlsPort };
  const kv = await open({
    ...way,
    tls: { ca_file: trusted.file, cert_file: client.certificate, key_file: client.key },
  });
  await kv.close();
  await sentence(
    { ...way, tls: { ca_file: trusted.file } },
    /failed: (it requires a client certificate|the connection was cut; it may require a client certificate)$/,
  );
  await server.close();
});

connection('TLS: a file that cannot be used is told before anything is connected', () => {
  const told = (tls: KvSettings['tls']) => {
    try {
      openKv(settings({ scheme: 'rediss', ...(tls ? { tls } : {}) }), quiet);
    } catch (error) {
      assert.ok(isGatewayError(error, 'tls_file'));
      return `${error.message}; ${error.fix}`;
    }
    throw new Error('it was used');
  };
  assert.match(
    told({ ca_file: '/none.pem' }),
    /certificate in \/none\.pem cannot be used: there is no such file or folder; .*--kv-tls-ca-file.*kv\.tls\.ca_file/,
  );
  assert.match(
    told({ cert_file: client.certificate, key_file: right.key }),
    /is not the key of the certificate.*--kv-tls-key-file/,
  );
});

connection('Sentinel: the master is found, and after a failover the new one', async () => {
  const master = await own.redis();
  const replica = await own.redis({ replicaof: `127.0.0.1 ${master.port}` });
  const sentinel = await own.sentinel('mine', master.port);
  const dead = `127.0.0.1:${await freePort()}`;
  const way = {
    sentinel: { master_name: 'mine', addresses: [dead, `127.0.0.1:${sentinel.port}`] },
  };
  const admin = new Redis(sentinel.url);
  const watched = async () =>
    String(await admin.call('SENTINEL', 'replicas', 'mine')).includes(String(replica.port));
  const [one, other] = [await open(way), await open(way)];
  try {
    await until('the Sentinel to know the replica', watched);
    await useAll(one, other);
    const waiting = until(
      'a signal after the failover',
      async () => (await other.queue('create-event').pull(10, never))[0]?.text,
    );
    await master.crash();
    await until('the queue to work again', () =>
      one
        .queue('create-event')
        .push(['after'])
        .then(() => true),
    );
    assert.is(await waiting, 'after');
    await other.queue('create-event').depth();
    assert.is((await one.takeTokens('ingest', 10, 1)).granted, 1);
  } finally {
    await Promise.all([one.close(), other.close()]);
    admin.disconnect();
    await Promise.all([sentinel.close(), replica.close(), master.close()]);
  }
});

connection(
  'Sentinel: with a password, and what a person reads when it is wrong, the name is unknown, or none is there',
  async () => {
    const master = await own.redis();
    const sentinel = await own.sentinel('mine', master.port, [
      'requirepass hunter2',
      'user ada on >hunter3 +@all ~* &*',
    ]);
    const at = `127.0.0.1:${sentinel.port}`;
    const named = (more: object) => ({
      sentinel: { master_name: 'mine', addresses: [at], ...more },
    });
    try {
      for (const login of [{ password: 'hunter2' }, { username: 'ada', password: 'hunter3' }])
        await (await open(named(login))).close();
      const refused = await sentence(
        named({}),
        /^the Redis master behind the Sentinels 127\.0\.0\.1:\d+ refused the connection: the user or password is wrong or missing$/,
      );
      assert.match(refused.fix, 'kv.sentinel.password');
      const unknown = await sentence(
        named({ password: 'hunter2', master_name: 'other' }),
        /: the Sentinels do not know the master in kv\.sentinel\.master_name$/,
      );
      assert.match(unknown.fix, /--kv-sentinel-master-name.*GATEWAY_KV_SENTINEL_MASTER_NAME/);
      const addresses = (await freePorts(2)).map((port) => `127.0.0.1:${port}`);
      await sentence(
        named({ addresses }),
        new RegExp(`Sentinels ${addresses.join(', ')} cannot be reached: nothing listens there$`),
      );
    } finally {
      await Promise.all([sentinel.close(), master.close()]);
    }
  },
);

connection('Sentinel: with TLS the Sentinels speak it as well as the master', async () => {
  const files = [
    `tls-cert-file ${right.certificate}`,
    `tls-key-file ${right.key}`,
    `tls-ca-cert-file ${trusted.file}`,
    'tls-auth-clients no',
  ];
  const tlsPort = await freePort();
  const sentinel = await own.sentinel('mine', secure.tlsPort, [
    `tls-port ${tlsPort}`,
    'tls-replication yes',
    ...files,
  ]);
  const named = {
    scheme: 'rediss',
    sentinel: { master_name: 'mine', addresses: [`localhost:${tlsPort}`] },
  };
  try {
    const [one, other] = [
      await open({ ...named, tls: { ca_file: trusted.file } }),
      await open({ ...named, tls: { ca_file: trusted.file } }),
    ];
    await useAll(one, other);
    await Promise.all([one.close(), other.close()]);
    await sentence(
      { ...named, tls: { ca_file: stranger.file } },
      /^TLS with the Redis master behind the Sentinels localhost:\d+ failed: its certificate is signed by an unknown authority/,
    );
  } finally {
    await sentinel.close();
  }
});

connection('Cluster: over TLS', async () => {
  const files = {
    'tls-cert-file': right.certificate,
    'tls-key-file': right.key,
    'tls-ca-cert-file': trusted.file,
    'tls-auth-clients': 'no',
  };
  const ports = await freePorts(3);
  const cluster = await redisCluster((n) => ({
    ...files,
    'tls-port': ports[n]!,
    'tls-cluster': 'yes',
  }));
  const way = {
    scheme: 'rediss',
    tls: { ca_file: trusted.file },
    cluster: { addresses: [`127.0.0.1:${ports[0]}`] },
  };
  try {
    const [one, other] = [await open(way), await open(way)];
    await useAll(one, other);
    await Promise.all([one.close(), other.close()]);
    await sentence(
      { ...way, tls: {} },
      /failed: its certificate is signed by an unknown authority$/,
    );
  } finally {
    await cluster.close();
  }
});

connection(
  'Cluster: everything works, spread over its nodes, and what a dead agent held is taken over',
  async () => {
    const cluster = await redisCluster();
    const way = { cluster: { addresses: [cluster.addresses[1]!] } };
    const [one, other] = [
      await open(way, { takeOverMs: 300 }),
      await open(way, { takeOverMs: 300 }),
    ];
    try {
      await useAll(one, other);
      await one.queue('create-event').push(['held']);
      const held = await within(one.queue('create-event').pull(10, never), 10_000, 'a signal');
      assert.equal(
        await pull(other.queue('create-event')),
        held.map(({ text }) => text),
      );
      const stop = new AbortController();
      const waiting = one.queue('create-event').pull(10, stop.signal);
      stop.abort();
      assert.equal(await within(waiting, 5_000, 'the aborted pull'), []);
      const keys = (await Promise.all(cluster.clients.map((node) => node.keys('gateway:*')))).map(
        (found) => found.length,
      );
      assert.ok(
        keys.filter((count) => count > 0).length >= 2,
        `keys on the nodes: ${keys.join(', ')}`,
      );
    } finally {
      await Promise.all([one.close(), other.close()]);
      await cluster.close();
    }
  },
);

connection(
  'Cluster: what a person reads when no node is there, or when it is no Cluster',
  async () => {
    const addresses = (await freePorts(2)).map((port) => `127.0.0.1:${port}`);
    const away = await sentence(
      { cluster: { addresses } },
      new RegExp(
        `^the Redis Cluster with ${addresses.join(', ')} cannot be reached: nothing listens there$`,
      ),
    );
    assert.match(
      away.fix,
      'kv.cluster.addresses (--kv-cluster-addresses, GATEWAY_KV_CLUSTER_ADDRESSES)',
    );
    await sentence(
      { cluster: { addresses: [`127.0.0.1:${secure.port}`] } },
      /refused the connection: it is not a Cluster$/,
    );
  },
);

connection.run();
