import dns from 'node:dns';
import fs from 'node:fs';
import path from 'node:path';
import { syncBuiltinESMExports } from 'node:module';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LookupError, LookupsBusyError, Names } from '#core/http/names';
import {
  askingServers,
  nameServer,
  type NameServer,
  type Said,
} from '../../support/name-server.js';
import { tempFolder } from '../../support/start/keep.js';
import { within } from '../../support/until.js';

const names = suite('core/http/names');

const folder = tempFolder('names');
let files = 0;

function machine(hosts = '', resolv = ''): { hosts: string; resolv: string } {
  const at = {
    hosts: path.join(folder, `hosts-${++files}`),
    resolv: path.join(folder, `resolv-${files}`),
  };
  fs.writeFileSync(at.hosts, hosts);
  fs.writeFileSync(at.resolv, resolv);
  return at;
}

async function withServers(
  says: ((name: string, family: 4 | 6) => Said)[],
  test: (servers: NameServer[]) => Promise<void>,
): Promise<void> {
  const servers = await Promise.all(says.map(nameServer));
  try {
    await askingServers(
      servers.map(({ address }) => address),
      () => test(servers),
    );
  } finally {
    await Promise.all(servers.map((server) => server.close()));
  }
}

const addresses = (found: readonly dns.LookupAddress[]) => found.map(({ address }) => address);
const failed = (lookup: Promise<unknown>) => lookup.then(String, (error: LookupError) => error);

names('both families are asked for, each time anew', () =>
  withServers([() => ['192.0.2.1', '2001:db8::1', '192.0.2.2']], async ([server]) => {
    const own = new Names(10, machine());
    for (let turn = 1; turn <= 2; turn++) {
      const found = await own.addresses('a.test', 'p');
      assert.equal(addresses(found).sort(), ['192.0.2.1', '192.0.2.2', '2001:db8::1']);
      assert.ok(found.every(({ address, family }) => family === (address.includes(':') ? 6 : 4)));
      assert.equal([...server!.asked].sort(), [
        ...Array<string>(turn).fill('a.test 4'),
        ...Array<string>(turn).fill('a.test 6'),
      ]);
    }
  }),
);

names('a long answer comes over TCP', async () => {
  const truncated = Array.from({ length: 200 }, (_, n) => `192.0.2.${n}`);
  await withServers([() => ({ truncated })], async () => {
    assert.equal(addresses(await new Names(10, machine()).addresses('long.test', 'p')), truncated);
  });
});

names('where one server answers with an error or not at all the next one is asked', () =>
  withServers(
    [
      (name) => (name === 'silent.test' ? 'silence' : 'servfail'),
      (name) => (name === 'broken.test' ? 'servfail' : ['192.0.2.2']),
    ],
    async () => {
      const own = new Names(10, machine());
      assert.equal(addresses(await own.addresses('a.test', 'p')), ['192.0.2.2']);
      assert.equal(addresses(await own.addresses('silent.test', 'p')), ['192.0.2.2']);
      const error = (await failed(own.addresses('broken.test', 'p'))) as LookupError;
      assert.is(
        error.message,
        'broken.test cannot be looked up: its name servers answer with an error (SERVFAIL). Check the DNS records of its domain.',
      );
      assert.is(error.code, 'EAI_AGAIN');
    },
  ),
);

names('a name that does not exist is told from one whose server is silent', () =>
  withServers(
    [(name) => (name === 'silent.test' ? 'silence' : name === 'empty.test' ? [] : 'nxdomain')],
    async () => {
      const own = new Names(10, machine());
      const errors = await Promise.all(
        ['no.test', 'empty.test', 'silent.test'].map((name) => failed(own.addresses(name, 'p'))),
      );
      assert.equal(
        errors.map((error) => [(error as LookupError).code, (error as LookupError).message]),
        [
          [
            'ENOTFOUND',
            'no.test cannot be looked up: there is no host of that name. Check its spelling and its DNS records.',
          ],
          [
            'ENOTFOUND',
            'empty.test cannot be looked up: there is no host of that name. Check its spelling and its DNS records.',
          ],
          [
            'EAI_AGAIN',
            'silent.test cannot be looked up: no name server answered within 5000 ms. Check the name servers of its domain.',
          ],
        ],
      );
    },
  ),
);

names(
  'name servers that answer for no name at all are told from those of one domain, and heard again when they are back',
  async () => {
    for (const said of ['servfail', 'silence'] as const) {
      let isAway = true;
      await withServers(
        [(name) => (isAway ? said : name === 'bad.test' ? said : 'nxdomain')],
        async () => {
          const own = new Names(10, machine());
          const away = (await failed(own.addresses('a.test', 'p'))) as LookupError;
          assert.is(
            away.message,
            'a.test cannot be looked up: no name server answers. An operator must check /etc/resolv.conf of this machine.',
          );
          assert.equal([away.isResolverAway, own.isResolverAway], [true, true]);
          isAway = false;
          await new Promise((resolve) => setTimeout(resolve, 2_600));
          const bad = (await failed(own.addresses('bad.test', 'p'))) as LookupError;
          assert.equal([bad.isResolverAway, own.isResolverAway], [false, false], said);
        },
      );
    }
    await askingServers(['127.0.0.1:1'], async () => {
      const gone = await failed(new Names(10, machine()).addresses('a.test', 'p'));
      assert.ok((gone as LookupError).isResolverAway);
    });
  },
);

names('a server that is silent to one family does not keep the addresses of the other', () =>
  withServers([(_, family) => (family === 6 ? 'silence' : ['192.0.2.1'])], async () => {
    const startedAtMs = performance.now();
    assert.equal(addresses(await new Names(10, machine()).addresses('half.test', 'p')), [
      '192.0.2.1',
    ]);
    assert.ok(performance.now() - startedAtMs < 4_000);
  }),
);

names('/etc/hosts comes first, is read again when it changes, and is not asked of a server', () =>
  withServers([() => 'nxdomain'], async ([server]) => {
    const at = machine('192.0.2.7 Db.Internal db # 192.0.2.9 no\n\n2001:db8::7 db\nnonsense db\n');
    const own = new Names(10, at);
    assert.equal(addresses(await own.addresses('db', 'p')), ['192.0.2.7', '2001:db8::7']);
    assert.equal(addresses(await own.addresses('DB.internal.', 'p')), ['192.0.2.7']);
    assert.equal(addresses(await own.addresses('localhost', 'p')), ['127.0.0.1', '::1']);
    fs.writeFileSync(at.hosts, '192.0.2.8 db\n');
    assert.equal(addresses(await own.addresses('db', 'p')), ['192.0.2.8']);
    assert.equal(server!.asked, []);
    fs.rmSync(at.hosts);
    assert.instance(await failed(own.addresses('db', 'p')), LookupError);
  }),
);

names(
  'the search list of /etc/resolv.conf applies to names with fewer dots than ndots first, to others last',
  () =>
    withServers(
      [
        (name) =>
          name === 'hooks.shop.svc.cluster.test' || name === 'a.b.c.d.svc.cluster.test'
            ? ['192.0.2.1']
            : 'nxdomain',
      ],
      async ([server]) => {
        const own = new Names(
          10,
          machine(
            '',
            'domain old.test\nsearch cluster.test svc.cluster.test.\noptions timeout:1 ndots:3\n',
          ),
        );
        const asked = async (name: string) => {
          const before = server!.asked.length;
          await failed(own.addresses(name, 'p'));
          return server!.asked
            .slice(before)
            .flatMap((question) => (question.endsWith(' 4') ? question.slice(0, -2) : []));
        };
        assert.equal(await asked('hooks.shop'), [
          'hooks.shop.cluster.test',
          'hooks.shop.svc.cluster.test',
        ]);
        assert.equal(await asked('a.b.c.d'), [
          'a.b.c.d',
          'a.b.c.d.cluster.test',
          'a.b.c.d.svc.cluster.test',
        ]);
        assert.equal(await asked('hooks.shop.'), ['hooks.shop']);
        assert.equal(await asked('x.y'), ['x.y.cluster.test', 'x.y.svc.cluster.test', 'x.y']);
      },
    ),
);

names('getaddrinfo is asked for nothing', () =>
  withServers([(name) => (name.startsWith('silent') ? 'silence' : 'nxdomain')], async () => {
    const { lookup } = dns;
    let asked = 0;
    Object.assign(dns, { lookup: () => asked++ });
    syncBuiltinESMExports();
    try {
      const own = new Names(10, machine());
      await Promise.all(
        ['silent.test', 'no.test', 'localhost'].map((name) => failed(own.addresses(name, 'p'))),
      );
    } finally {
      Object.assign(dns, { lookup });
      syncBuiltinESMExports();
    }
    assert.is(asked, 0);
  }),
);

names(
  'an owner has no more names looked up than its share, the next ones wait in order, and other owners do not',
  () =>
    withServers(
      [(name) => (name.startsWith('silent') ? 'silence' : ['192.0.2.1'])],
      async ([server]) => {
        const own = new Names(2, machine());
        const silent = [1, 2].map((n) => failed(own.addresses(`silent${n}.test`, 'p')));
        const late = failed(own.addresses('late.test', 'p'));
        assert.equal(
          ['silent1.test', 'silent2.test', 'late.test', 'x.test'].map((name) =>
            own.stateOf(name, 'p'),
          ),
          ['asking', 'asking', 'waiting', undefined],
        );
        assert.is(own.stateOf('late.test', 'q'), undefined);
        assert.equal(
          addresses(await within(own.addresses('late.test', 'q'), 1_500, 'another owner')),
          ['192.0.2.1'],
        );
        // Connections that undici opens itself have no owner, and wait for none.
        assert.equal(addresses(await within(own.addresses('late.test'), 1_500, 'no owner')), [
          '192.0.2.1',
        ]);
        const refused = await late;
        assert.instance(refused, LookupsBusyError);
        assert.is(
          server!.asked.filter((question) => question === 'late.test 4').length,
          2,
          'its own question was never asked',
        );
        assert.ok(
          (await Promise.all(silent)).every((error) =>
            (error as Error).message.includes('no name server answered'),
          ),
        );
        assert.equal(own.stateOf('silent1.test', 'p'), undefined);
        assert.equal(addresses(await own.addresses('late.test', 'p')), ['192.0.2.1']);
      },
    ),
);

names(
  'a share of one is enough for many names whose servers answer, each asked once however many want it',
  () =>
    withServers([() => ['192.0.2.1']], async ([server]) => {
      const own = new Names(1, machine());
      const wanted = Array.from({ length: 60 }, (_, n) => own.addresses(`n${n % 20}.test`, 'p'));
      assert.ok(
        (await Promise.all(wanted)).every((found) => addresses(found).join() === '192.0.2.1'),
      );
      assert.is(server!.asked.length, 40);
    }),
);

names('lookups that begin in the work of an owner are its own', () =>
  withServers([() => ['192.0.2.1']], async () => {
    const own = new Names(1, machine());
    let lookup: Promise<unknown> | undefined;
    own.askFor('p', () => {
      own.askFor('q', () => undefined);
      lookup = failed(own.addresses('a.test'));
    });
    assert.is(own.stateOf('a.test', 'p'), 'asking');
    const other = failed(own.addresses('b.test'));
    assert.is(own.stateOf('b.test', 'p'), undefined);
    await Promise.all([lookup, other]);
  }),
);

names.run();
