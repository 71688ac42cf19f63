import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { sealer } from '#core/crypto/sealing';
import { newId } from '#core/events/ids';
import { checkConfig } from '#cli/config/check';
import { deregisterAgent, registerAgent } from '#store/deliveries/agents';
import { migrateUp } from '#store/postgres/migrate';
import { insertShard } from '#store/shards/shards';
import { insertSource, type SourceRow } from '#store/config/sources';
import { bucket } from '../../../support/bucket.js';
import { connectionOf, database } from '../../../support/database.js';
import { endpoint } from '../../../support/endpoint.js';
import { gateway, runGateway } from '../../../support/gateway.js';
import { kafka } from '../../../support/kafka.js';
import { oidcProvider } from '../../../support/oidc-provider.js';
import { freePort } from '../../../support/ports.js';
import { redis } from '../../../support/redis.js';
import { smtp } from '../../../support/smtp.js';
import { sqs } from '../../../support/sqs.js';
import { tempFolder } from '../../../support/start/keep.js';
import { findingLines } from '#cli/doctor/finding';
import { examine } from '#cli/doctor/examine';
import { installation } from '#cli/app/installation';
import { redisCluster } from '../../../support/redis-cluster.js';
import { runHere } from '../../run-here.js';
import { makeEndpoint, makeProject } from '../../../store/made.js';
import { migratedDatabase, openUrl } from '../../../store/migrated.js';

const doctor = suite('cli/commands/utils/doctor');

interface Finding {
  check: string;
  state: string;
  sentence: string;
  fix?: string;
}

const db = await migratedDatabase();
const kv = await redis();
const key = crypto.randomBytes(32).toString('base64');
const ports = { port: await freePort(), agent_port: await freePort(), bind: '127.0.0.1' };
const fine = {
  source: { allowed_networks: ['127.0.0.0/8'] },
  encryption_key: key,
  database: connectionOf(db.url),
  kv: kv.connection,
  server: { http: ports },
};
doctor.after(async () => {
  await kv.close();
  await db.close();
});

async function examined(config: object, args: readonly string[] = []) {
  const { code, stdout, stderr } = await runHere('utils:doctor', ['--json', ...args], config);
  const findings = JSON.parse(stdout || `"${stderr}"`) as Finding[];
  const found = (check: string): Finding => {
    const finding = findings.find((it) => it.check === check);
    if (!finding) throw new Error(`no ${check} in ${stdout}`);
    return finding;
  };
  return {
    code,
    findings,
    found,
    states: Object.fromEntries(findings.map(({ check, state }) => [check, state])),
  };
}

async function addSource(
  queueName: string,
  { id = newId(), ...connection }: { id?: string },
  fields: { is_disabled?: boolean; pub_sub?: SourceRow['pub_sub'] } = {},
) {
  const { id: projectId } = await makeProject(db);
  await insertSource(db.knex, projectId, {
    id,
    name: queueName,
    type: 'pub_sub',
    pub_sub: { type: 'sqs', workers: 1, sqs: connection },
    body_function: null,
    is_disabled: false,
    ...fields,
  });
}

doctor('a gateway that stands well has a line for everything, and nothing failed', async () => {
  const { code, stdout, stderr } = await runGateway(['utils', 'doctor'], { config: fine });
  assert.is(code, 0, stdout + stderr);
  for (const line of [
    /^ok +settings +\d+ settings given/m,
    /^ok +encryption key +32 bytes/m,
    /^ok +licence +community/m,
    /^ok +database +Postgres \d+\.\d+ at 127\.0\.0\.1:\d+, database test_\w+, no TLS, [\d.]+ ms/m,
    /^ok +migrations +all applied/m,
    /^ok +clock +[\d.]+ s (behind|ahead of) that of Postgres/m,
    /^warning +agents +none is running\n +fix: start one with `gateway agent`/m,
    /^ok +kv +Redis [\d.]+ at 127\.0\.0\.1:\d+, noeviction/m,
    /^ok +plugin kafka +source/m,
    /^skipped +archive +archive\.url is not set/m,
    /^skipped +plugin apm +tracer, inactive: not selected/m,
    /^skipped +sources +there are none/m,
    /^skipped +projects +there are none/m,
    /^(ok|warning) +sandbox +a function answered after \d+ ms/m,
    /^(ok|warning) +open files +\d+/m,
    /^skipped +smtp +smtp\.url is not set/m,
    /^skipped +proxy +delivery\.proxy is not set/m,
    /^skipped +sign-in +oidc\.issuer is not set/m,
  ])
    assert.match(stdout, line);
  assert.match(stderr, /^\d+ ok, \d+ warning, \d+ skipped$/m);
  assert.not.ok(stdout.includes(key.slice(0, 10)));
});

doctor('each shard is checked as the database is', async () => {
  const shard = await database();
  const opened = openUrl(shard.url);
  const address = { ...shard.connection, password: null, options: null };
  const place = { schema: null, isCitus: false };
  try {
    await insertShard(db.pool, { name: 'big', address, ...place });
    await insertShard(db.pool, { name: 'away', address: { ...address, port: 1 }, ...place });
    const { code, found } = await examined(fine);
    assert.is(code, 1);
    assert.match(found('shard away').sentence, ':1 cannot be reached');
    assert.match(found('shard away').fix!, 'the address, user and password of the shard');
    assert.match(
      found('shard big').sentence,
      /the database of the shard big lacks \d+ migrations: /,
    );
    await migrateUp(opened, { shard: 'big' });
    await opened.pool.query(
      `drop table events_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`,
    );
    await registerAgent(opened.pool, 'far', 60_000);
    assert.match(
      (await examined(fine)).found('shard big').sentence,
      'partitions: no partition for',
    );
    await opened.pool.query(`select ensure_day((now() at time zone 'UTC')::date)`);
    assert.match((await examined(fine)).found('shard big').sentence, /^Postgres \d+/);
  } finally {
    await db.rows(`delete from shards where name <> 'default'`);
    await opened.close();
    await shard.close();
  }
});

doctor('without Postgres what needs it is skipped and the rest is looked at', async () => {
  const port = await freePort();
  const { code, found, states } = await examined({
    ...fine,
    database: { host: '127.0.0.1', port },
  });
  assert.is(code, 1);
  assert.match(
    found('database').sentence,
    new RegExp(`127\\.0\\.0\\.1:${port} cannot be reached: nothing listens there`),
  );
  assert.match(found('database').fix ?? '', /database\.host/);
  assert.equal(
    [states['migrations'], states['clock'], states['agents'], states['sources']],
    ['skipped', 'skipped', 'skipped', 'skipped'],
  );
  assert.is(found('sources').sentence, 'because of the database');
  assert.is(states['kv'], 'ok');
});

doctor('a user that Postgres does not know is told with the settings to check', async () => {
  const { found, code } = await examined({
    ...fine,
    database: { ...connectionOf(db.url), username: 'nobody', password: 'secret-word' },
  });
  assert.is(code, 1);
  const { sentence, fix } = found('database');
  assert.match(sentence, /refused the user nobody|role "nobody" does not exist/);
  assert.match(fix ?? '', /database\.(username|password)/);
});

doctor('a Postgres that takes no writes fails, as it is bad on Overview', async () => {
  const readOnly = {
    ...connectionOf(db.url),
    options: 'options=-c%20default_transaction_read_only%3Don',
  };
  const { found, code } = await examined({ ...fine, database: readOnly });
  assert.is(code, 1);
  assert.equal(found('database').state, 'failed');
  assert.match(found('database').sentence, /is read-only: it is a replica, or default_transaction/);
});

doctor('a pending migration fails, and names the command', async () => {
  const empty = await database();
  try {
    const { code, found, states } = await examined({ ...fine, database: empty.connection });
    assert.is(code, 1);
    assert.match(found('migrations').fix ?? '', /gateway migrate up/);
    assert.equal(
      [states['database'], states['clock'], states['agents'], found('sources').sentence],
      ['ok', 'ok', 'skipped', 'because of the migrations'],
    );
  } finally {
    await empty.close();
  }
});

doctor('KV that is away fails, and one that may evict signals is a warning', async () => {
  const port = await freePort();
  const { found, code } = await examined({ ...fine, kv: { host: '127.0.0.1', port } });
  assert.is(code, 1);
  assert.match(
    found('kv').sentence,
    new RegExp(`Redis at 127\\.0\\.0\\.1:${port} cannot be reached`),
  );
  assert.equal((await examined({ ...fine, kv: { type: 'in-memory' } })).states['kv'], 'warning');
});

doctor('KV is named as it is looked for: by its Sentinels, or as a Cluster', async () => {
  const sentinel = `127.0.0.1:${await freePort()}`;
  const away = await examined({
    ...fine,
    kv: { sentinel: { addresses: [sentinel], master_name: 'main' } },
  });
  assert.match(
    away.found('kv').sentence,
    new RegExp(`the Sentinels ${sentinel} cannot be reached: nothing listens there`),
  );
  assert.match(away.found('kv').fix ?? '', /kv\.sentinel\.addresses/);
  const cluster = await redisCluster();
  try {
    const { found, states } = await examined({
      ...fine,
      kv: { cluster: { addresses: cluster.addresses } },
    });
    assert.is(states['kv'], 'ok', found('kv').sentence);
    assert.match(
      found('kv').sentence,
      new RegExp(
        `^Redis [\\d.]+ on one node of the Cluster with ${cluster.addresses.join(', ')}, noeviction`,
      ),
    );
  } finally {
    await cluster.close();
  }
});

doctor('the archive is written, read and listed, and a refusal names the step', async () => {
  const s3 = await bucket();
  const denying = await endpoint({
    answer: ({ url }) =>
      url.includes('list-type=2')
        ? { status: 403, body: '<Error><Code>AccessDenied</Code><Message>No.</Message></Error>' }
        : {},
  });
  const found = async (archive: object) => {
    const { code, found } = await examined({ ...fine, archive: { ...s3.settings, ...archive } });
    const finding = found('archive');
    assert.not.match(JSON.stringify(finding), new RegExp(s3.settings.secret_access_key));
    assert.is(code, finding.state === 'failed' ? 1 : 0);
    return finding;
  };
  try {
    assert.equal(await found({}), {
      check: 'archive',
      state: 'ok',
      sentence: `${s3.settings.url} can be written, read and listed`,
    });
    const missing = await found({ url: 's3://no-such-bucket' });
    assert.match(missing.sentence, /^writing doctor\.txt: the archive \S+ .*: NoSuchBucket/);
    assert.match(missing.fix!, /create the bucket, or correct archive\.url/);
    const unlisted = await found({ endpoint: denying.url });
    assert.match(unlisted.sentence, /^listing folders: .*: AccessDenied: No\.$/);
    assert.match(unlisted.fix!, /s3:ListBucket/);

    const folder = tempFolder('archive');
    assert.is((await found({ url: folder })).state, 'ok');
    assert.equal(fs.readdirSync(folder), ['doctor.txt']);
    const absent = path.join(folder, 'absent');
    assert.is((await found({ url: absent })).state, 'warning');
    assert.not.ok(fs.existsSync(absent), 'it is not created');
    assert.match(
      (await found({ url: path.join(folder, 'doctor.txt') })).sentence,
      /^writing doctor/,
    );
  } finally {
    await denying.close();
    await s3.close();
  }
});

doctor('what never answers fails when the time is up, and nothing waits longer', async () => {
  const options = {
    env: {},
    file: JSON.parse(JSON.stringify(fine)) as object,
    rows: installation().rows,
  } as Parameters<typeof checkConfig>[0];
  const parts = {
    checked: checkConfig(options, installation()),
    resolved: resolveConfig(options),
    discovery: installation(),
    smtpTo: undefined,
  };
  const client = await db.pool.connect();
  await client.query('begin; lock table sources in access exclusive mode');
  try {
    const findings: Finding[] = [];
    for await (const finding of examine(parts, { withinMs: 1500 })) findings.push(finding);
    assert.is(findings.find(({ check }) => check === 'migrations')?.state, 'ok');
    assert.is(
      findings.find(({ check }) => check === 'sources')?.sentence,
      'no answer within 1.5 s',
    );
  } finally {
    await client.query('rollback');
    client.release();
  }
});

doctor('what servers say cannot steer the terminal', () => {
  const told = findingLines({
    check: 'kv',
    state: 'failed',
    sentence: 'Redis 7\x1b]0;owned\x07\nok everything',
    fix: 'a\x1b[2J',
  });
  assert.match(told, /^failed +kv +Redis 7\\x1b\]0;owned\\x07 ok everything\n +fix: a\\x1b\[2J$/);
});

doctor('a long name is cut, and long sentences stay in their column', () => {
  const long = {
    check: `source ${'orders '.repeat(9)}`,
    state: 'warning',
    fix: 'resume it',
  } as const;
  const [first, second, third] = findingLines(
    { ...long, sentence: 'it is paused: messages wait with the broker' },
    72,
  ).split('\n');
  assert.is(first, 'warning  source orders orders orders o…  it is paused: messages wait');
  assert.is(second, `${' '.repeat(41)}with the broker`);
  assert.is(third, `${' '.repeat(41)}fix: resume it`);
});

doctor('the health of each project is told as on its Overview, with where to mend it', async () => {
  const { id } = await makeProject(db, 'shop');
  const { id: endpointId } = await makeEndpoint(db, id, { name: 'billing' });
  const agentId = await registerAgent(db.pool, 'one', 60_000);
  try {
    const projects = async (settings: object = fine) => {
      const { findings, code } = await examined(settings);
      assert.is(code, 0);
      return findings.filter(({ check }) => /^projects?\b/.test(check));
    };
    const [healthy] = await projects();
    assert.equal([healthy!.state, healthy!.sentence], ['ok', '1 of 1 are healthy']);
    await db.rows(`update endpoints set status = 'inactive' where id = $1`, [endpointId]);
    await insertSource(db.knex, id, {
      name: 'stock',
      type: 'pub_sub',
      pub_sub: { type: 'kafka', kafka: {} },
      body_function: null,
      is_disabled: false,
    });
    const url = `http://127.0.0.1:${ports.port}/projects/${id}`;
    const told = (await examined(fine)).findings.filter(({ check }) => check === 'project shop');
    assert.equal(
      told.map(({ state, sentence }) => `${state}: ${sentence.replace(/\d\d:\d\d/, '12:04')}`),
      [
        'warning: billing has been inactive since 12:04 UTC, and gets no events.',
        'unknown: Whether stock can be read is unknown: no agent has reported it for 30 s.',
      ],
    );
    assert.is(told[0]!.fix, `Open billing: ${url}/endpoints/${endpointId}`);
    for (const [kv, why] of [
      [{ host: '127.0.0.1', port: await freePort() }, 'Redis does not answer'],
      [{ type: 'in-memory' }, 'kv.type is in-memory, which only the gateway itself can read'],
    ] as const)
      assert.equal(
        (await examined({ ...fine, kv })).findings
          .filter(({ state }) => state === 'unknown')
          .map(({ check, sentence }) => [check, sentence]),
        [['projects', `circuit breakers and sources: ${why}`]],
      );
  } finally {
    await deregisterAgent(db.pool, agentId);
    await db.rows('delete from sources');
    await db.rows('delete from endpoints');
    await db.rows('update projects set deleted_at = now()');
  }
});

doctor(
  'each source is asked of its broker: one that works, one with a wrong queue, one sealed with another key, and one that is disabled',
  async () => {
    const queues = await sqs();
    try {
      const { seal } = sealer(key);
      const connection = (name: string, by = seal) => {
        const id = newId();
        const open = queues.connection(name);
        return { id, ...open, secret_key: by(open.secret_key, ['sources', id, 'secret_key']) };
      };
      const good = queues.queue().name;
      await addSource('good', connection(good));
      await addSource('wrong', connection('no-such-queue'));
      await addSource(
        'foreign',
        connection(good, sealer(crypto.randomBytes(32).toString('base64')).seal),
      );
      await addSource('off', connection(good), { is_disabled: true });
      const { found, states, code } = await examined(fine);
      assert.is(code, 1);
      assert.equal(
        ['good', 'wrong', 'foreign', 'off'].map((name) => states[`source ${name}`]),
        ['ok', 'failed', 'failed', 'skipped'],
      );
      assert.match(
        found('source wrong').sentence + found('source wrong').fix,
        /no-such-queue.*queue_name/is,
      );
      assert.match(
        found('source foreign').sentence,
        /cannot be decrypted with this encryption key/,
      );
    } finally {
      await queues.close();
      await db.rows('delete from sources');
    }
  },
);

doctor(
  'a source that is paused is a warning with its reason and what resumes it, also when its broker has a trouble of its own',
  async () => {
    const queues = await sqs();
    try {
      const { seal } = sealer(key);
      const connection = (name: string) => {
        const id = newId();
        const open = queues.connection(name);
        return { id, ...open, secret_key: seal(open.secret_key, ['sources', id, 'secret_key']) };
      };
      await addSource('paused', connection(queues.queue().name));
      await addSource('lost', connection('no-such-queue'));
      await addSource('off', connection(queues.queue().name), { is_disabled: true });
      await db.rows(
        `update sources set paused_at = '2026-11-21T09:00:00Z', resumes_at = '2026-11-21T09:01:00Z', pause_reason = 'Its function ran out of time.', paused_by = 'agent-1', pauses = 1`,
      );
      const { found, states } = await examined(fine);
      assert.equal(
        ['paused', 'lost', 'off'].map((name) => states[`source ${name}`]),
        ['warning', 'failed', 'skipped'],
      );
      const pause =
        'paused since 2026-11-21T09:00:00.000Z until 2026-11-21T09:01:00.000Z: Its function ran out of time';
      assert.match(found('source paused').sentence, `its broker answers; it is ${pause}`);
      const [{ id } = { id: '' }] = await db.rows<{ id: string }>(
        `select id from sources where name = 'paused'`,
      );
      assert.match(found('source paused').fix ?? '', `\`gateway utils sources resume ${id}\``);
      assert.match(found('source lost').sentence, `it is also ${pause}`);
    } finally {
      await queues.close();
      await db.rows('delete from sources');
    }
  },
);

doctor(
  'a source that asks for more workers than its topic has partitions is a warning with both numbers',
  async () => {
    const broker = await kafka();
    try {
      const of = {
        brokers: [broker.listeners.plaintext],
        topic_name: await broker.topic({ partitions: 2 }),
      };
      for (const workers of [1, 2, 5])
        await addSource(`of ${workers}`, {}, { pub_sub: { type: 'kafka', workers, kafka: of } });
      const { found, states, code } = await examined(fine);
      assert.equal(
        [code, states['source of 1'], states['source of 2'], states['source of 5']],
        [0, 'ok', 'ok', 'warning'],
      );
      const { sentence, fix } = found('source of 5');
      assert.match(
        sentence,
        `its broker answers. The source asks for 5 workers, but the topic "${of.topic_name}" has 2 partitions: 3 of them are idle.`,
      );
      assert.is(fix, 'Lower workers to 2, or give the topic 5 partitions.');
    } finally {
      await broker.close();
      await db.rows('delete from sources');
    }
  },
);

doctor('a running agent is seen', async () => {
  const agent = gateway(['agent'], { config: fine });
  try {
    await agent.healthy(ports.agent_port);
    const { found, states, code } = await examined(fine);
    assert.equal([code, states['agents']], [0, 'ok']);
    assert.match(found('agents').sentence, new RegExp(`1 running: .*:${agent.pid}`));
  } finally {
    await agent.terminate();
  }
});

doctor('wrong settings are listed, and nothing else is looked at', async () => {
  const { code, found, states } = await examined({
    ...fine,
    instance_ingest_rate: 'fast',
    servr: {},
  });
  assert.is(code, 1);
  assert.match(found('settings').sentence, /instance_ingest_rate must be an integer/);
  assert.match(found('settings').sentence, /servr is not a setting/);
  assert.equal(
    [states['database'], states['kv'], states['smtp']],
    ['skipped', 'skipped', 'skipped'],
  );
});

doctor(
  'a setting that has a line of its own and keeps the others from being read fails as well',
  async () => {
    const { code, found } = await examined({ ...fine, encryption_key: 5 });
    assert.equal(
      [code, found('settings').state, found('database').state],
      [1, 'failed', 'skipped'],
    );
    assert.match(found('settings').sentence, /encryption_key must be a string/);
  },
);

doctor('an encryption key that does not open a stored secret fails, with the setting', async () => {
  const { id: projectId } = await makeProject(db);
  const { id } = await makeEndpoint(db, projectId);
  await db.rows(
    `update endpoints set secrets = jsonb_set(secrets, '{0,value}', to_jsonb($2::text)) where id = $1`,
    [id, sealer(key).seal('whsec_1', ['endpoints', id, 'secrets'])],
  );
  const keys = async (encryption_key: string) =>
    (await examined({ ...fine, encryption_key })).found('encryption key');
  assert.is((await keys(key)).sentence, '32 bytes; decrypts a stored secret');
  const { state, sentence, fix } = await keys(crypto.randomBytes(32).toString('base64'));
  assert.equal(
    [state, sentence],
    ['failed', 'a stored secret cannot be decrypted with this encryption key'],
  );
  assert.match(fix ?? '', 'set encryption_key / GATEWAY_ENCRYPTION_KEY to the key');
  await db.rows('delete from endpoints where id = $1', [id]);
});

doctor('a missing encryption key fails, and the sources are not asked', async () => {
  const { code, found } = await examined({ ...fine, encryption_key: undefined });
  assert.is(code, 1);
  assert.match(found('encryption key').fix ?? '', /openssl rand -base64 32/);
  assert.match(found('sources').sentence, /because of the encryption key/);
});

doctor(
  'SMTP is logged in to, a test mail is sent when asked for, and a proxy that is away fails without its password',
  async () => {
    const mails = await smtp({ tls: 'none', login: { user: 'ops', password: 'right' } });
    const proxyPort = await freePort();
    try {
      const settings = {
        url: `smtp://127.0.0.1:${mails.port}`,
        from: 'gateway@example.com',
        username: 'ops',
      };
      const proxied = {
        ...fine,
        delivery: { proxy: `http://user:hunter2@127.0.0.1:${proxyPort}` },
      };
      const wrong = await examined({ ...proxied, smtp: { ...settings, password: 'wrong' } });
      assert.equal([wrong.states['smtp'], wrong.states['proxy']], ['failed', 'failed']);
      assert.match(
        wrong.found('proxy').sentence,
        new RegExp(`127\\.0\\.0\\.1:${proxyPort} cannot be reached: nothing listens there`),
      );
      assert.not.match(JSON.stringify(wrong.findings), /hunter2/);
      const right = await examined({ ...fine, smtp: { ...settings, password: 'right' } }, [
        '--smtp-to',
        'ada@example.com',
      ]);
      assert.is(right.states['smtp'], 'ok', right.found('smtp').sentence);
      assert.equal((await mails.received(1))[0]?.to, ['ada@example.com']);
    } finally {
      await mails.close();
    }
  },
);

doctor(
  'the provider that people sign in with has to answer, and to be where the setting allows',
  async () => {
    const provider = await oidcProvider({
      redirectUri: 'https://gateway.example.com/sign-in/callback',
    });
    const of = (fields: object) =>
      examined({
        ...fine,
        host: 'gateway.example.com',
        oidc: { issuer: provider.issuer, client_id: 'x', ...fields },
      });
    try {
      const refused = await of({});
      assert.is(refused.states['sign-in'], 'failed');
      assert.match(refused.found('sign-in').sentence, 'oidc.allowed_networks');
      const right = await of({ allowed_networks: ['127.0.0.0/8'] });
      assert.equal(
        [right.states['sign-in'], right.found('sign-in').sentence],
        ['ok', `${provider.issuer} answers`],
      );
      provider.discovery = (document) => {
        document['issuer'] = `${provider.issuer}/realms/a/`;
      };
      const slash = await of({
        allowed_networks: ['127.0.0.0/8'],
        issuer: `${provider.issuer}/`,
      });
      assert.match(
        slash.found('sign-in').sentence,
        `it names itself "${provider.issuer}/realms/a/", and oidc.issuer is "${provider.issuer}/"`,
      );
      provider.discovery = (document) => {
        document['id_token_signing_alg_values_supported'] = ['HS256'];
      };
      const symmetric = await of({ allowed_networks: ['127.0.0.0/8'] });
      assert.is(symmetric.states['sign-in'], 'failed');
      assert.match(
        symmetric.found('sign-in').sentence,
        'it signs ID tokens with "HS256"; select an algorithm with a public key',
      );
      provider.discovery = undefined;
      const wrong = await of({
        allowed_networks: ['127.0.0.0/8'],
        issuer: `${provider.issuer}/other`,
      });
      assert.match(wrong.found('sign-in').sentence, 'unexpected HTTP response status code');
    } finally {
      await provider.close();
    }
  },
);

doctor('more than ten sources cause no warning of Node', async () => {
  const { id: projectId } = await makeProject(db);
  for (let n = 0; n < 12; n++)
    await insertSource(db.knex, projectId, {
      id: newId(),
      name: `many ${n}`,
      type: 'pub_sub',
      pub_sub: {
        type: 'kafka',
        workers: 1,
        kafka: { brokers: [`127.0.0.1:${n + 1}`], topic: 't' },
      },
      body_function: null,
      is_disabled: false,
    });
  const warned: string[] = [];
  const warn = ({ name }: Error) => void warned.push(name);
  process.on('warning', warn);
  try {
    const { findings } = await examined(fine);
    assert.ok(findings.filter(({ check }) => check.startsWith('source many')).length === 12);
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(warned, []);
  } finally {
    process.off('warning', warn);
  }
});

doctor.run();
