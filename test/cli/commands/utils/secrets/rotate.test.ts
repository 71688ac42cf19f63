import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startAgent } from '@gateway/agent';
import { isBound, sealer } from '#core/crypto/sealing';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { deleteEndpoint } from '#store/config/endpoints';
import { findSource, insertSource } from '#store/config/sources';
import { deregisterAgent, registerAgent } from '#store/deliveries/agents';
import { MemoryKv } from '#store/kv/memory-kv';
import { migrateUp } from '#store/postgres/migrate';
import { insertShard } from '#store/shards/shards';
import {
  ENCRYPTION_KEY,
  makeEndpoint,
  makeProject,
  secretRecord,
  makeSecret,
  sealed,
  sealedFirst,
} from '../../../../agent/records.js';
import { agentConfig, pluginsOf } from '../../../../agent/running.js';
import { lockAwaited } from '../../../../store/batches.js';
import { readSnapshot } from '../../../../store/made.js';
import { migratedDatabase, openUrl } from '../../../../store/migrated.js';
import { connectionOf, database } from '../../../../support/database.js';
import { runGateway } from '../../../../support/gateway.js';
import { until } from '../../../../support/until.js';

const rotate = suite('cli/commands/utils/secrets/rotate');

const folder = mkdtempSync(join(tmpdir(), 'gateway-rotate-'));
rotate.after(() => rmSync(folder, { recursive: true, force: true }));

const newKey = randomBytes(32).toString('base64');
const newKeyFile = file('new.key', `${newKey}\n`);
const old = sealer(ENCRYPTION_KEY);
const fresh = sealer(newKey);

function file(name: string, content: string): string {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
}

let db: Awaited<ReturnType<typeof migratedDatabase>>;
rotate.before(async () => {
  db = await migratedDatabase();
});
rotate.after(() => db.close());
rotate.before.each(async () => {
  for (const table of ['sources', 'endpoints', 'agents']) await db.rows(`delete from ${table}`);
});

const run = (...args: string[]) =>
  runGateway(['utils', 'secrets', 'rotate', ...args], {
    config: { encryption_key: ENCRYPTION_KEY, database: connectionOf(db.url) },
  });

rotate(
  'an endpoint gets a new secret, printed alone, and the present one signs until the overlap is over',
  async () => {
    const projectId = await makeProject(db);
    const { id, secret: present } = await makeEndpoint(db, projectId, {
      url: 'https://example.com',
      name: 'shop',
    });
    const before = Date.now();
    const { code, stdout, stderr } = await run('--endpoint-id', id, '--overlap', '2h');
    assert.is(code, 0, stderr);
    assert.match(stdout, /^whsec_[A-Za-z0-9+/]{43}=\n$/);
    assert.match(stderr, 'new secret of the endpoint shop. It is not shown again');
    const { secrets } = (await readSnapshot(db.pool)).endpoints[0]!;
    assert.equal(
      secrets.map(({ value }) => old.open(value, ['endpoints', id, 'secrets'])),
      [stdout.trim(), present],
    );
    assert.is(secrets[0]!.expires_at, null);
    const endsInMs = Date.parse(secrets[1]!.expires_at!) - before;
    assert.ok(endsInMs >= 7_200_000 && endsInMs < 7_260_000, String(endsInMs));

    const alone = await run('--endpoint-id', id, '--overlap', '0', '--json');
    const { value, others } = JSON.parse(alone.stdout) as { value: string; others: unknown[] };
    assert.equal(others, []);
    const after = (await readSnapshot(db.pool)).endpoints[0]!.secrets;
    assert.equal(
      after.map((it) => old.open(it.value, ['endpoints', id, 'secrets'])),
      [value],
    );
  },
);

rotate('with another encryption key than the present secrets have nothing is rotated', async () => {
  const { id } = await makeEndpoint(db, await makeProject(db), { url: 'https://example.com' });
  const before = (await readSnapshot(db.pool)).endpoints;
  const config = { encryption_key: newKey, database: connectionOf(db.url) };
  const { code, stdout, stderr } = await runGateway(
    ['utils', 'secrets', 'rotate', '--endpoint-id', id],
    { config },
  );
  assert.equal([code, stdout], [1, '']);
  assert.match(stderr, 'error: a stored secret cannot be decrypted with this encryption key');
  assert.equal((await readSnapshot(db.pool)).endpoints, before);
});

rotate(
  'a sixth live secret, an endpoint that is not there and a deleted one are refused',
  async () => {
    const projectId = await makeProject(db);
    const id = newId();
    const secrets = Array.from({ length: 5 }, () => secretRecord(makeSecret(), null, id));
    const full = await makeEndpoint(db, projectId, { id, url: 'https://example.com', secrets });
    const conflict = await run('--endpoint-id', full.id);
    assert.is(conflict.code, 1);
    assert.match(conflict.stderr, 'error: the endpoint would have 6 live secrets, more than 5');
    await deleteEndpoint(db.knex, projectId, full.id);
    for (const gone of [full.id, newId()]) {
      const { code, stderr, stdout } = await run('--endpoint-id', gone);
      assert.equal([code, stdout], [1, '']);
      assert.match(stderr, `error: endpoint ${gone} not found`);
    }
  },
);

rotate(
  'every stored secret is sealed with the new key for its place, once, and a dry run only counts',
  async () => {
    const projectId = await makeProject(db);
    const secret = makeSecret();
    // Some secrets are in the old format, which is not bound to a place.
    const authentication = {
      type: 'basic',
      basic: { username: 'ada', password: sealedFirst('hunter2') },
    } as const;
    const mtls_client_cert = {
      client_cert: 'PEM',
      client_key: sealedFirst('key'),
      expires_at: '2099-12-31T00:00:00.000Z',
    };
    const both = await makeEndpoint(db, projectId, {
      url: 'https://a.example.com',
      secret,
      authentication,
      mtls_client_cert,
    });
    await makeEndpoint(db, projectId, { url: 'https://b.example.com' });
    const { id: gone } = await makeEndpoint(db, projectId, {
      url: 'https://c.example.com',
      secrets: [{ ...secretRecord('x'), value: 'lost' }],
    });
    await deleteEndpoint(db.knex, projectId, gone);
    const [kafkaId, absentId] = [newId(), newId()];
    const source = (id: string, pub_sub: { type: string } & Record<string, unknown>) =>
      insertSource(db.knex, projectId, {
        id,
        name: pub_sub.type,
        type: 'pub_sub',
        pub_sub,
        body_function: null,
        is_disabled: false,
      });
    const auth = {
      type: 'plain',
      username: 'ada',
      password: sealed('kafka-password', ['sources', kafkaId, 'auth', 'password']),
    };
    await source(kafkaId, {
      type: 'kafka',
      workers: 2,
      kafka: { brokers: ['a:9092'], topic_name: 'sealed:v1:topic', auth },
    });
    await source(absentId, {
      type: 'absent',
      absent: { list: [{ token: sealedFirst('token') }], plain: 'as it is' },
    });

    const hooksId = newId();
    await insertSource(db.knex, projectId, {
      id: hooksId,
      name: 'hooks',
      type: 'http',
      pub_sub: { type: 'http' },
      mask_id: 'm',
      http: {
        verifier: { type: 'github', secret: sealed('hub', ['sources', hooksId, 'secret']) },
        ...{ event_type: null, format: null, event_type_location: null, custom_response: null },
        ...{ idempotency_keys: [], forward_headers: [] },
      },
      body_function: null,
      is_disabled: false,
    });

    const channelId = newId();
    await db.knex('notification_channels').insert({
      project_id: projectId,
      id: channelId,
      name: 'On call',
      type: 'pagerduty',
      settings: {
        routing_key: sealed('R1', ['notification_channels', channelId, 'routing_key']),
        api_url: 'https://events.pagerduty.com',
      },
    });

    const counts = async (...args: string[]) => {
      const { code, stdout, stderr } = await run(
        '--encryption-key-file',
        newKeyFile,
        '--json',
        ...args,
      );
      assert.is(code, 0, stderr);
      return (JSON.parse(stdout) as { resealed: number; already: number }[]).map(
        ({ resealed, already }) => [resealed, already],
      );
    };
    const unchanged = JSON.stringify(await readSnapshot(db.pool));
    const expected = [
      [2, 0],
      [0, 0],
      [1, 0],
      [1, 0],
      [2, 0],
      [1, 0],
      [1, 0],
      [0, 0],
    ];
    assert.equal(await counts('--dry-run'), expected);
    assert.is(JSON.stringify(await readSnapshot(db.pool)), unchanged);
    assert.equal(await counts(), expected);

    const { endpoints, sources } = await readSnapshot(db.pool);
    const endpoint = endpoints.find(({ id }) => id === both.id)!;
    assert.is(fresh.open(endpoint.secrets[0]!.value, ['endpoints', both.id, 'secrets']), secret);
    assert.throws(() => old.open(endpoint.secrets[0]!.value, ['endpoints', both.id, 'secrets']));
    assert.ok(
      endpoint.authentication?.type === 'basic' && endpoint.authentication.basic.username === 'ada',
    );
    assert.is(
      fresh.open(endpoint.authentication.basic.password, ['endpoints', both.id, 'authentication']),
      'hunter2',
    );
    assert.ok(isBound(endpoint.authentication.basic.password));
    const { client_key: key, ...shown } = endpoint.mtls_client_cert!;
    assert.equal(
      [fresh.open(key, ['endpoints', both.id, 'mtls_client_cert']), shown.client_cert],
      ['key', 'PEM'],
    );
    assert.is(endpoints.find(({ id }) => id !== both.id)!.authentication, null);
    const [kafka, absent] = ['kafka', 'absent'].map(
      (type) =>
        sources.find(({ pub_sub }) => pub_sub.type === type)!.pub_sub[type] as typeof auth &
          Record<string, never>,
    );
    assert.is(
      fresh.open((kafka!['auth'] as unknown as typeof auth).password, [
        'sources',
        kafkaId,
        'auth',
        'password',
      ]),
      'kafka-password',
    );
    assert.is(kafka!['topic_name'], 'sealed:v1:topic');
    const { http } = (await findSource(db.knex, projectId, hooksId))!;
    assert.is(
      fresh.open(http!.verifier['secret'] as string, ['sources', hooksId, 'secret']),
      'hub',
    );
    assert.is(
      fresh.open((absent!['list'] as unknown as { token: string }[])[0]!.token, [
        'sources',
        absentId,
        'list',
        '0',
        'token',
      ]),
      'token',
    );

    assert.equal(await counts(), [
      [0, 2],
      [0, 0],
      [0, 1],
      [0, 1],
      [0, 2],
      [0, 1],
      [0, 1],
      [0, 0],
    ]);
    const [channel] = await db.rows<{ settings: Record<string, string> }>(
      'select settings from notification_channels where id = $1',
      [channelId],
    );
    assert.is(
      fresh.open(channel!.settings['routing_key']!, [
        'notification_channels',
        channelId,
        'routing_key',
      ]),
      'R1',
    );
    assert.equal((await readSnapshot(db.pool)).endpoints, endpoints);
  },
);

rotate('a secret that opens with neither key is named, and nothing is changed', async () => {
  const projectId = await makeProject(db);
  await makeEndpoint(db, projectId, { url: 'https://a.example.com' });
  const id = newId();
  const value = sealer(randomBytes(32).toString('base64')).seal('whsec_x', [
    'endpoints',
    id,
    'secrets',
  ]);
  await makeEndpoint(db, projectId, {
    id,
    url: 'https://b.example.com',
    name: 'stranger',
    secrets: [{ ...secretRecord('x'), value }],
  });
  const before = JSON.stringify(await readSnapshot(db.pool));
  const { code, stderr } = await run('--encryption-key-file', newKeyFile);
  assert.is(code, 1);
  assert.match(stderr, 'nothing was changed; the current encryption key does not decrypt:');
  assert.match(stderr, `a secret of the endpoint stranger (${id}) in the project shop`);
  assert.is(JSON.stringify(await readSnapshot(db.pool)), before);
});

rotate(
  'a secret that was moved to another endpoint in the database is named, and nothing is changed',
  async () => {
    const projectId = await makeProject(db);
    const { secrets } = await makeEndpoint(db, projectId, { url: 'https://a.example.com' });
    const { id } = await makeEndpoint(db, projectId, {
      url: 'https://b.example.com',
      name: 'swapped',
      secrets,
    });
    const before = JSON.stringify(await readSnapshot(db.pool));
    const { code, stderr } = await run('--encryption-key-file', newKeyFile);
    assert.is(code, 1);
    assert.match(stderr, `a secret of the endpoint swapped (${id}) in the project shop`);
    assert.is(JSON.stringify(await readSnapshot(db.pool)), before);
  },
);

rotate('while an agent runs the key is not changed under it', async () => {
  await db.rows(
    `insert into agents (name, expires_at) values ('far', now() + interval '1 hour'), ('dead', now())`,
  );
  const { code, stderr } = await run('--encryption-key-file', newKeyFile);
  assert.is(code, 1);
  assert.match(
    stderr,
    'error: an agent is running (far) and could not decrypt the new secrets; nothing was changed',
  );
  assert.is((await run('--encryption-key-file', newKeyFile, '--dry-run')).code, 0);
});

rotate('passwords of shards are sealed again, while no agent runs on any shard', async () => {
  const far = await database();
  const shard = openUrl(far.url);
  const place = ['shards', 'far', 'password'] as const;
  const passwordBy = async ({ open }: typeof fresh) => {
    const rows = await db.rows<{ password: string }>(
      `select password from shards where name = 'far'`,
    );
    return open(rows[0]!.password, place);
  };
  try {
    await migrateUp(shard, { shard: 'far' });
    const address = { ...far.connection, password: old.seal('secret', place), options: null };
    await insertShard(db.pool, { name: 'far', address, schema: null, isCitus: false });
    const id = await registerAgent(shard.pool, 'distant', 60_000);
    const refused = await run('--encryption-key-file', newKeyFile);
    assert.match(refused.stderr, 'an agent is running (distant)');
    assert.is(await passwordBy(old), 'secret');
    await deregisterAgent(shard.pool, id);
    for (const line of [/^shard passwords +1 +0$/m, /^shard passwords +0 +1$/m]) {
      const { code, stdout, stderr } = await run('--encryption-key-file', newKeyFile);
      assert.is(code, 0, stderr);
      assert.match(stdout, line);
      assert.is(await passwordBy(fresh), 'secret');
    }
  } finally {
    await db.rows(`delete from shards where name = 'far'`);
    await shard.close();
    await far.close();
  }
});

rotate(
  'an agent that starts meanwhile waits until all is sealed again, and does not run with the old key',
  async () => {
    await makeEndpoint(db, await makeProject(db), { url: 'https://example.com' });
    const held = await db.connect();
    try {
      await held.query('begin');
      await held.query('lock table sources in row exclusive mode');
      const rotated = run('--encryption-key-file', newKeyFile);
      await lockAwaited(db, 'the rotation to wait');
      const started = startAgent({
        config: agentConfig(db.url),
        plugins: pluginsOf(),
        log: silentLog,
        kv: new MemoryKv(),
      }).then(
        async (agent) => {
          await agent.close();
          return undefined;
        },
        (error: unknown) => error,
      );
      await until('the agent to wait', async () => {
        const rows = await db.rows(
          `select from pg_stat_activity where wait_event_type = 'Lock' and query like 'insert into agents%'`,
        );
        return rows.length > 0;
      });
      await held.query('commit');
      const { code, stderr } = await rotated;
      assert.is(code, 0, stderr);
      assert.ok(isGatewayError(await started, 'not_unsealable'), String(await started));
      assert.equal(await db.rows('select from agents'), []);
    } finally {
      await held.end();
    }
  },
);

rotate('what makes no sense is wrong use, before any database is asked', async () => {
  const id = newId();
  const cases = [
    [[], 'gateway utils secrets rotate needs something to rotate'],
    [['--endpoint-id', id, '--encryption-key-file', newKeyFile], 'were both given'],
    [['--endpoint-id', 'shop'], '--endpoint-id must be an id'],
    [['--endpoint-id', id, '--overlap', 'tomorrow'], '--overlap must be a duration'],
    [['--endpoint-id', id, '--overlap', '31d'], '--overlap is at most 30d'],
    [['--endpoint-id', id, '--dry-run'], '--dry-run has no effect with --endpoint-id'],
    [
      ['--encryption-key-file', newKeyFile, '--overlap', '1h'],
      '--overlap has no effect with --encryption-key-file',
    ],
    [
      ['--encryption-key-file', join(folder, 'none')],
      'cannot be read: there is no such file or folder',
    ],
    [
      ['--encryption-key-file', file('short.key', 'c2hvcnQ=')],
      'does not hold an encryption key: it is not 32 bytes in base64',
    ],
    [
      ['--encryption-key-file', file('same.key', ENCRYPTION_KEY)],
      'holds the current encryption key, not a new one',
    ],
  ] as const;
  const config = { encryption_key: ENCRYPTION_KEY };
  const told = await Promise.all(
    cases.map(([args]) => runGateway(['utils', 'secrets', 'rotate', ...args], { config })),
  );
  for (const [at, { code, stderr }] of told.entries()) {
    assert.is(code, 2, stderr);
    assert.match(stderr, cases[at]![1]);
    assert.not.match(stderr, newKey);
  }
});

rotate.run();
