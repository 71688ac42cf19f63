import dns from 'node:dns';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import type { buildConnector } from 'undici';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { addressGuard, checkHost, guardedConnector, RefusedAddressError } from '#agent/request/ssrf-guard';
import { endpoint } from '../../support/endpoint.js';

const guard = suite('agent/request/ssrf-guard');

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.1',
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
  '169.254.169.254',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.2.1',
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
  for (const address of ['10.1.0.1', '10.1.255.255', '127.0.0.1', '::ffff:127.0.0.1', '64:ff9b::a01:1', 'fd00:1::5', '8.8.8.8'])
    assert.ok(mayReach(address), address);
  for (const address of ['10.0.255.255', '10.2.0.0', '127.0.0.2', '::1', 'fd00:2::1', '::ffff:10.2.0.0'])
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
    assert.throws(() => addressGuard([network]), /is not a network in CIDR form, like 10\.0\.0\.0\/8/, network);
  }
});

type Looked = (error: null, addresses: readonly { address: string; family: number }[]) => void;

/** Runs with a name server of one's own: each look-up is answered when and as the test says. */
async function withNames(answer: (name: string, looked: Looked) => void, test: () => Promise<void>): Promise<void> {
  const { lookup } = dns;
  const { lookup: promised } = dns.promises;
  const own = (name: string, _: unknown, looked: Looked) => answer(name, looked);
  Object.assign(dns, { lookup: own });
  Object.assign(dns.promises, { lookup: (name: string) => new Promise((resolve) => answer(name, (_, found) => resolve(found))) });
  syncBuiltinESMExports();
  try {
    await test();
  } finally {
    Object.assign(dns, { lookup });
    Object.assign(dns.promises, { lookup: promised });
    syncBuiltinESMExports();
  }
}

/** Connects to a name; gives the address that it is connected to, or the sentence why not. */
function connection(connect: buildConnector.connector, name: string, port: number): Promise<string> {
  const options = { hostname: name, host: `${name}:${port}`, protocol: 'http:', port: String(port), httpSocket: undefined } as never;
  return new Promise((resolve) =>
    connect(options, (error, socket) => {
      resolve(error ? error.message : (socket.remoteAddress ?? ''));
      socket?.destroy();
    }),
  );
}

guard('a name that changes its mind is connected to the address that was looked at, and refused by the next look', async () => {
  const receiver = await endpoint();
  const answers = ['127.0.0.1', '127.0.0.2', '127.0.0.1', '10.0.0.1'];
  let looks = 0;
  const answer = (_: string, looked: Looked) => looked(null, [{ address: answers[looks++]!, family: 4 }]);
  try {
    await withNames(answer, async () => {
      const connect = guardedConnector(addressGuard(['127.0.0.1/32']), 5_000);
      const seen: string[] = [];
      for (const _ of answers) seen.push(await connection(connect, 'rebind.test', receiver.port));
      assert.is(looks, answers.length, 'one look for each connection');
      assert.equal([seen[0], seen[2]], ['127.0.0.1', '127.0.0.1']);
      assert.match(seen[1]!, 'rebind.test resolves to 127.0.0.2, which is in a private or reserved network');
      assert.match(seen[3]!, 'rebind.test resolves to 10.0.0.1, which is in a private or reserved network');
    });
  } finally {
    await receiver.close();
  }
});

guard('of several addresses of a name only those that may be reached are tried', async () => {
  // It listens at all of them: whichever is tried first answers.
  const receiver = net.createServer((socket) => socket.on('error', () => undefined));
  await new Promise<void>((resolve) => receiver.listen(0, '0.0.0.0', resolve));
  const { port } = receiver.address() as net.AddressInfo;
  const addresses = ['127.0.0.2', '127.0.0.1', '127.0.0.3'].map((address) => ({ address, family: 4 }));
  try {
    await withNames(
      (_, looked) => looked(null, addresses),
      async () => {
        assert.is(await connection(guardedConnector(addressGuard(['127.0.0.0/8']), 5_000), 'several.test', port), '127.0.0.2');
        assert.is(await connection(guardedConnector(addressGuard(['127.0.0.1/32']), 5_000), 'several.test', port), '127.0.0.1');
      },
    );
  } finally {
    receiver.close();
  }
});

guard('through a proxy, which may choose any address of a name, one that may not be reached refuses the name', async () => {
  const names: Record<string, string[]> = { 'public.test': ['8.8.8.8', '1.1.1.1'], 'mixed.test': ['8.8.8.8', '10.0.0.1'] };
  const mayReach = addressGuard([]);
  await withNames(
    (name, looked) =>
      looked(
        null,
        names[name]!.map((address) => ({ address, family: 4 })),
      ),
    async () => {
      await checkHost('public.test', mayReach);
      const refusal: unknown = await checkHost('mixed.test', mayReach).catch((error: unknown) => error);
      assert.instance(refusal, RefusedAddressError);
      assert.match((refusal as Error).message, 'mixed.test resolves to 8.8.8.8, 10.0.0.1, which is in a private or reserved network');
    },
  );
});

guard('a name whose server does not answer is looked up once, however many wait for it', async () => {
  const receiver = await endpoint();
  const waiting: Looked[] = [];
  const answer = (_: string, looked: Looked) => void waiting.push(looked);
  try {
    await withNames(answer, async () => {
      const connect = guardedConnector(addressGuard(['127.0.0.1/32']), 5_000);
      const connections = Array.from({ length: 50 }, () => connection(connect, 'slow.test', receiver.port));
      const other = connection(connect, 'other.test', receiver.port);
      assert.is(waiting.length, 2, 'one for each name');
      for (const looked of waiting.splice(0)) looked(null, [{ address: '127.0.0.1', family: 4 }]);
      assert.equal(new Set(await Promise.all([...connections, other])), new Set(['127.0.0.1']));
      const again = connection(connect, 'slow.test', receiver.port);
      assert.is(waiting.length, 1, 'asked again when that was over');
      waiting[0]!(null, [{ address: '10.0.0.1', family: 4 }]);
      assert.match(await again, 'private or reserved');
    });
  } finally {
    await receiver.close();
  }
});

guard.run();
