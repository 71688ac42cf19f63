import { createHmac, createSecretKey, randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { serialize } from 'node:v8';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { startServer } from '@gateway/server';
import type { Project } from '#ingest/routing/project';
import { recordCache, type RecordCache } from '#server/auth/record-cache';
import { kvFallback, type KvFallback } from '#store/kv/kv-fallback';
import { findApiKey } from '#store/config/api-keys';
import { deleteProject, findProject, insertProject, updateProject } from '#store/config/projects';
import { bootstrapUser } from '#store/people/users';
import type { Kv } from '#store/kv/kv';
import { MemoryKv } from '#store/kv/memory-kv';
import { KV_VERSIONS } from '#store/kv/versions';
import { migratedDatabase } from '../../store/migrated.js';
import { openRedisKv } from '../../store/redis-kv.js';
import { proxy } from '../../support/proxy.js';
import { redis, type RedisDatabase } from '../../support/redis.js';
import { until } from '../../support/until.js';
import { activated, configOf, makeProject, startApi } from '../api.js';

const lookups = suite('server/auth/record-cache');

const key = createSecretKey(randomBytes(32));
let db: Awaited<ReturnType<typeof migratedDatabase>>;
let own: RedisDatabase;
let owner: Awaited<ReturnType<typeof bootstrapUser>>;
let statements = 0;
lookups.before(async () => {
  db = await migratedDatabase();
  own = await redis();
  owner = await bootstrapUser(db.knex, {
    email: 'owner@example.com',
    firstName: 'o',
    lastName: 'w',
  });
  db.knex.on('query', () => statements++);
});
lookups.after(async () => {
  await own.close();
  await db.close();
});
lookups.before.each(async () => {
  await own.client.flushdb();
  statements = 0;
});

const patient = (kv: Kv) =>
  kvFallback(kv, { place: own.connection, log: silentLog, meanwhile: '' });
/** A cache without memory, in KV only. */
const on = (kv: KvFallback, signedWith = key): RecordCache =>
  recordCache(db, { kv, key: signedWith, memoryMs: 0 });
/** Keeps records in memory for the whole test. */
const keeping = (kv: KvFallback | undefined): RecordCache =>
  recordCache(db, { kv, key, memoryMs: 3_600_000 });
const project = () =>
  insertProject(db.knex, owner.organisation.id, { name: 'before', type: 'outgoing', config: {} });

function maskOfOwner(): string {
  return owner.api_key.key.slice(3, 19);
}

async function withRedis(test: (kv: Kv) => Promise<void>, port?: number): Promise<void> {
  const kv = await openRedisKv(own.connection, port === undefined ? {} : { port });
  try {
    await test(kv);
  } finally {
    await kv.close();
  }
}

lookups('the record of a project is read once for each of its configurations', async () => {
  const { id } = await project();
  const other = await project();
  const projects = new Map<string, Project>([[id, {} as Project]]);
  let isCurrent = true;
  const configCache = { isCurrent: () => isCurrent, projects };
  const it = recordCache(db, { kv: undefined, key, configCache, memoryMs: 0 });
  statements = 0;
  const looked = await Promise.all([it.project(id), it.project(id)]);
  assert.equal(looked[0], await it.project(id));
  assert.is(statements, 1);
  await it.project(other.id);
  await it.project(other.id);
  assert.is(statements, 3, 'a project that is not loaded is looked up each time');
  await updateProject(db.knex, id, { name: 'after' });
  await it.forget({ project: id });
  assert.is((await it.project(id))?.name, 'after', 'a change of this server');
  await updateProject(db.knex, id, { name: 'elsewhere' });
  assert.is((await it.project(id))?.name, 'after');
  projects.set(id, {} as Project);
  assert.is((await it.project(id))?.name, 'elsewhere', 'a change of another server');
  await updateProject(db.knex, id, { name: 'late' });
  isCurrent = false;
  assert.is((await it.project(id))?.name, 'late', 'the configuration is too old');
});

for (const where of ['in Redis', 'in memory']) {
  const withKv = (test: (kv: Kv) => Promise<void>) =>
    where === 'in memory' ? test(new MemoryKv()) : withRedis(test);

  lookups(
    `${where}: what was looked up is there for the next request as Postgres had it, and Postgres is not asked`,
    () =>
      withKv(async (kv) => {
        const it = on(patient(kv));
        const { id } = await project();
        const look = () =>
          Promise.all([it.apiKey(maskOfOwner()), it.organisations(owner.user.id), it.project(id)]);
        const first = await look();
        await until('the answers to be in the cache', async () => {
          statements = 0;
          await look();
          return statements === 0;
        });
        assert.equal(await look(), first);
        assert.equal(first, [
          await findApiKey(db.knex, maskOfOwner()),
          first[1],
          await findProject(db.knex, id),
        ]);
        assert.is(first[1].length, 1);
      }),
  );

  lookups(`${where}: what does not exist is looked for each time`, () =>
    withKv(async (kv) => {
      const it = on(patient(kv));
      const id = newId();
      assert.is(await it.project(id), undefined);
      await db.rows(
        `insert into projects (id, organisation_id, name, type, config) values ($1, $2, 'late', 'outgoing', '{}')`,
        [id, owner.organisation.id],
      );
      assert.is((await it.project(id))?.name, 'late');
    }),
  );

  lookups(
    `${where}: a change is seen at once where it was made, and by those that share the cache`,
    () =>
      withKv(async (kv) => {
        const [here, there] = [on(patient(kv)), on(patient(kv))];
        const { id } = await project();
        await cachedBy(there, id);
        await updateProject(db.knex, id, { name: 'after' });
        assert.is((await there.project(id))?.name, 'before', 'it was cached');
        await here.forget({ project: id });
        assert.equal(
          [(await here.project(id))?.name, (await there.project(id))?.name],
          ['after', 'after'],
        );
      }),
  );
}

lookups(
  'a key that does not exist is looked up once in a while, and of such keys a bounded number is kept',
  async () => {
    const it = keeping(undefined);
    const unknown = (n: number) => it.apiKey(n.toString(16).padStart(16, '0'));
    for (let n = 0; n < 5; n++) assert.is(await unknown(0), undefined);
    assert.is(statements, 1);
    for (let n = 1; n <= 10_000; n += 500)
      await Promise.all(Array.from({ length: 500 }, (_, at) => unknown(n + at)));
    statements = 0;
    await unknown(10_000);
    assert.is(statements, 0);
    await unknown(0);
    assert.is(statements, 1, 'the oldest was dropped');
  },
);

for (const where of ['in front of KV', 'without KV']) {
  const scene = (test: (it: RecordCache, asked: () => number) => Promise<void>) =>
    withRedis(async (kv) => {
      let questions = 0;
      const counting: KvFallback = { ask: (question) => (questions++, patient(kv).ask(question)) };
      await test(
        keeping(where === 'without KV' ? undefined : counting),
        () => questions + statements,
      );
    });

  lookups(
    `${where}: what was found is kept in memory; requests that come together look it up once`,
    () =>
      scene(async (it, asked) => {
        const { id } = await project();
        const look = () =>
          Promise.all([it.apiKey(maskOfOwner()), it.organisations(owner.user.id), it.project(id)]);
        statements = 0;
        const [first, ...others] = await Promise.all([look(), look(), look()]);
        const once = asked();
        for (const other of others) assert.equal(other, first);
        assert.equal(await look(), first);
        // KV requests: a read and a write for each of the three.
        assert.equal([statements, once, asked()], [3, where === 'without KV' ? 3 : 9, once]);
      }),
  );

  lookups(`${where}: what does not exist is not kept, and neither is a failure`, () =>
    scene(async (it) => {
      const id = newId();
      assert.is(await it.project(id), undefined);
      await db.rows(
        `insert into projects (id, organisation_id, name, type, config) values ($1, $2, 'late', 'outgoing', '{}')`,
        [id, owner.organisation.id],
      );
      assert.is((await it.project(id))?.name, 'late');
      const failed = await it.project('no id').catch((error: unknown) => error);
      assert.ok(failed instanceof Error);
      assert.is.not(await it.project('no id').catch((error: unknown) => error), failed);
    }),
  );

  lookups(
    `${where}: a change is seen at once where it was made, and not undone by a read that began before it`,
    () =>
      scene(async (it) => {
        const { id } = await project();
        await it.project(id);
        await updateProject(db.knex, id, { name: 'after' });
        await it.forget({ project: id });
        assert.is((await it.project(id))?.name, 'after');
        const { id: other } = await project();
        const early = it.project(other);
        await it.forget({ project: other });
        await early;
        await updateProject(db.knex, other, { name: 'after' });
        assert.is((await it.project(other))?.name, 'after');
      }),
  );
}

lookups('what is kept in memory has an end, after which a change of another server is seen', () =>
  withRedis(async (kv) => {
    const [here, there] = [on(patient(kv)), recordCache(db, { kv: patient(kv), key })];
    const { id } = await project();
    await there.project(id);
    await updateProject(db.knex, id, { name: 'after' });
    await here.forget({ project: id });
    await until('the change to be seen', async () => (await there.project(id))?.name === 'after');
  }),
);

/** Reads a project until it comes from the cache. */
async function cachedBy(it: RecordCache, id: string): Promise<void> {
  await until('the project to be in the cache', async () => {
    statements = 0;
    await it.project(id);
    return statements === 0;
  });
}

lookups('a read that began before a change does not put the old state back after it', () =>
  withRedis(async (kv) => {
    const { id } = await project();
    let go: (() => void) | undefined;
    const held = new Promise<void>((resolve) => (go = resolve));
    let late: Promise<unknown> | undefined;
    const slow: KvFallback = {
      ask: (question) => {
        if (!question.toString().includes('ifAbsent')) return patient(kv).ask(question);
        const writing = held.then(() => patient(kv).ask(question));
        late = writing;
        return writing;
      },
    };
    const [reader, writer] = [on(slow), on(patient(kv))];
    await reader.project(id);
    assert.ok(late, 'the entry is about to be written');
    await updateProject(db.knex, id, { name: 'after' });
    await writer.forget({ project: id });
    go?.();
    await late;
    assert.is((await on(patient(kv)).project(id))?.name, 'after');
  }),
);

lookups('who may write KV makes no key and hands no project to another', () =>
  withRedis(async (kv) => {
    const it = on(patient(kv));
    const [mine, theirs] = [await project(), await project()];
    await cachedBy(it, mine.id);
    const entry = (await own.client.get(`gateway:cache:project:${mine.id}`)) ?? '';
    await own.client.set(`gateway:cache:project:${theirs.id}`, entry);
    assert.is((await it.project(theirs.id))?.id, theirs.id, 'an entry under another name');
    await cachedBy(on(patient(kv), createSecretKey(randomBytes(32))), (await project()).id);
    const forged = await project();
    await cachedBy(on(patient(kv), createSecretKey(randomBytes(32))), forged.id);
    await deleteProject(db.knex, forged.id);
    assert.is(await it.project(forged.id), undefined, 'an entry that was signed with another key');
    for (const text of ['', 'x', entry.slice(0, 50), entry.replace(/.$/, '!')]) {
      await own.client.set(`gateway:cache:project:${mine.id}`, text);
      assert.is((await it.project(mine.id))?.id, mine.id, 'an entry that is none');
    }
  }),
);

/** An entry in the format of releases without versions. */
const before = {
  entry: (name: string, value: unknown) => {
    const bytes = serialize({ name, untilMs: Date.now() + 30_000, value });
    return Buffer.concat([createHmac('sha256', key).update(bytes).digest(), bytes]).toString(
      'base64',
    );
  },
  isValid: (text: string) => {
    const all = Buffer.from(text, 'base64');
    return createHmac('sha256', key).update(all.subarray(32)).digest().equals(all.subarray(0, 32));
  },
};

lookups(
  'an entry of another release is no answer, either way, and each release forgets what the other changes',
  () =>
    withRedis(async (kv) => {
      const it = on(patient(kv));
      const name = `cache:key:${maskOfOwner()}`;
      const stored = (await findApiKey(db.knex, maskOfOwner()))!;
      // Scopes are newer than keys: a record without them is refused everything.
      const { scopes: _, ...row } = stored.row;
      await kv.set(name, before.entry(name, { ...stored, row }), { ttlMs: 30_000 });
      assert.equal(await it.apiKey(maskOfOwner()), stored);
      await kv.set(name, before.entry(name, { ...stored, revoked_at: new Date() }), {
        ttlMs: 30_000,
      });
      assert.equal(await it.apiKey(maskOfOwner()), stored);
      assert.ok(before.isValid((await kv.get(name))!), 'it stays for those that can read it');

      await own.client.flushdb();
      await it.apiKey(maskOfOwner());
      await until('the entry of this release', () => kv.get(name));
      assert.not.ok(before.isValid((await kv.get(name))!), 'the other release asks Postgres');
      await kv.set(name, before.entry(name, stored), { ttlMs: 30_000 });
      await it.forget({ masks: [maskOfOwner()] });
      assert.not.ok(
        before.isValid((await kv.get(name))!),
        'a key that was revoked here is forgotten by the other release',
      );
    }),
);

lookups('the shape of records is that of their version', async () => {
  const { id } = await project();
  const fields = (value: object) => Object.keys(value).sort().join(' ');
  const found = (await findApiKey(db.knex, maskOfOwner()))!;
  const [membership] = await on(patient(new MemoryKv())).organisations(owner.user.id);
  // A changed field requires a new version: raise KV_VERSIONS.record, and list the new fields here.
  assert.equal(
    [
      KV_VERSIONS.record,
      fields(found),
      fields(found.row),
      fields(membership!),
      fields((await findProject(db.knex, id))!),
    ],
    [
      3,
      'hash revoked_at row',
      'created_at expires_at id last_used_at mask name owner_id project_id role scopes type user_id',
      'created_at id name role updated_at',
      'config created_at id name organisation_id shard type updated_at',
    ],
  );
});

lookups(
  'while KV is away Postgres is asked, and a change of that time is not undone when KV is back',
  async () => {
    const away = await proxy({ port: own.connection.port });
    const lines: string[] = [];
    const log = {
      ...silentLog,
      warn: (_: object, sentence: string) => lines.push(sentence),
      info: (_: object, sentence: string) => lines.push(sentence),
    };
    try {
      await withRedis(async (kv) => {
        const it = on(
          kvFallback(kv, { place: own.connection, log, meanwhile: 'Postgres is asked' }),
        );
        const { id } = await project();
        await cachedBy(it, id);
        away.cut();
        await until('KV to be away', () =>
          kv.ping().then(
            () => false,
            () => true,
          ),
        );
        await updateProject(db.knex, id, { name: 'after' });
        await it.forget({ project: id });
        assert.is((await it.project(id))?.name, 'after');
        assert.equal(lines, ['KV is unavailable: Postgres is asked.']);
        away.restore();
        const other = await project();
        await until('KV to be used again', async () => {
          await it.project(other.id);
          return lines.includes('KV is available again.');
        });
        assert.is((await it.project(id))?.name, 'after');
      }, away.port);
    } finally {
      await away.close();
    }
  },
);

lookups('KV that has stopped answering delays one request and not the next', async () => {
  const away = await proxy({ port: own.connection.port });
  try {
    await withRedis(async (kv) => {
      let asked = 0;
      const patience = patient(kv);
      const it = on({ ask: (question) => patience.ask((to) => (asked++, question(to))) });
      const { id } = await project();
      await it.project(id);
      away.freeze();
      asked = 0;
      for (let n = 0; n < 5; n++) assert.is((await it.project(id))?.id, id);
      assert.is(asked, 1);
    }, away.port);
  } finally {
    await away.close();
  }
});

lookups(
  'the keys of a deleted project are refused at once by the server that deleted it, and soon by every one on the same KV',
  async () => {
    const api = await startApi();
    const config = configOf(api.db, { kv: own.connection });
    const servers = await Promise.all(
      [0, 1].map(async () => startServer({ config, plugins: await activated(), log: silentLog })),
    );
    const call = async (at: number, method: string, path: string, token: string) => {
      const response = await fetch(`http://127.0.0.1:${servers[at]!.port}/api/v1${path}`, {
        method,
        headers: { authorization: `Bearer ${token}` },
      });
      return { status: response.status, text: await response.text() };
    };
    try {
      const made = await makeProject(api);
      for (const at of [0, 1, 1])
        assert.is((await call(at, 'GET', `${made.path}/endpoints`, made.key)).status, 200);
      await until(
        'the key to be cached',
        async () => (await own.client.keys('gateway:cache:key:*')).length > 0,
      );
      assert.is((await call(0, 'DELETE', made.path, api.owner.api_key.key)).status, 200);
      const seen = async (at: number) => {
        const { status, text } = await call(at, 'GET', `${made.path}/endpoints`, made.key);
        const byOwner = await call(at, 'GET', `${made.path}/endpoints`, api.owner.api_key.key);
        return [status, text.includes('was revoked'), byOwner.status];
      };
      const gone = [401, true, 404];
      assert.equal(await seen(0), gone);
      await until('the other server to see it', async () => isDeepStrictEqual(await seen(1), gone));
    } finally {
      await Promise.all(servers.map((server) => server.close()));
      await api.close();
    }
  },
);

lookups.run();
