import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigCache } from '#ingest/routing/config-cache';
import { FilterBudget } from '#core/events/filter';
import { newId } from '#core/events/ids';
import { SLICE_MS } from '#core/process/slices';
import { route } from '#core/routing/route';
import { deleteEndpoint, setEndpointStatus, updateEndpoint } from '#store/config/endpoints';
import { deleteProject, DEFAULT_SIGNATURE, DEFAULT_STRATEGY } from '#store/config/projects';
import { deleteSource, pauseSource, updateSource } from '#store/config/sources';
import { deleteSubscription, updateSubscription } from '#store/config/subscriptions';
import { importEventTypes } from '#store/config/event-types';
import { type Database, openDatabase } from '#store/postgres/database';
import { changeUntold } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';
import { proxy, type Proxy } from '../../support/proxy.js';
import { until, within } from '../../support/until.js';
import { makeEndpoint, makeProject, makeSource, makeSubscription } from '../../agent/records.js';
import { agentConfig, keptLog, type Migrated } from '../../agent/running.js';

const memory = suite('ingest/routing/config-cache');

interface Scene {
  readonly db: Migrated;
  readonly configCache: ConfigCache;
  readonly postgres: Proxy;
  readonly database: Database;
  readonly lines: ReturnType<typeof keptLog>['lines'];
}

/** Runs a test with a config cache on a private database behind a proxy. */
async function scene(
  test: (scene: Scene) => Promise<void>,
  { pooled = false, ...options }: { intervalMs?: number; verifyMs?: number; pooled?: boolean } = {},
): Promise<void> {
  const db = await migratedDatabase();
  const postgres = await proxy({ port: Number(new URL(db.url).port) });
  const database = openDatabase(
    { ...agentConfig(db.url, {}, postgres.port).database, pooled },
    {
      poolSize: 2,
      name: 'gateway-agent',
    },
  );
  const { log, lines } = keptLog();
  const configCache = new ConfigCache(database, {
    intervalMs: 60_000,
    eventLoopMs: 40,
    log,
    ...options,
  });
  try {
    await within(test({ db, configCache, postgres, database, lines }), 70_000, 'the test');
  } finally {
    postgres.restore();
    await configCache.close();
    await database.close();
    try {
      // Fails if the config cache leaks a connection. The proxy is closed afterwards: it would end
      // open ones.
      await db.close();
    } finally {
      await postgres.close();
    }
  }
}

const URL_OF_ENDPOINT = 'https://example.com/hooks';

memory('a project that rejects unknown event types accepts a new one as soon as it has it', () =>
  scene(async ({ db, configCache }) => {
    const strict = await makeProject(db, { config: { unknown_event_types: 'reject' } });
    const open = await makeProject(db);
    await importEventTypes(db.knex, strict, [
      { name: 'order.paid', description: '', schema: null, deprecated: true },
    ]);
    await configCache.start();
    const accepted = (type: string) => [strict, open].map((id) => configCache.accepts(id, type));
    assert.equal(
      [accepted('order.paid'), accepted('order.lost')],
      [
        [true, true],
        [false, true],
      ],
    );
    await importEventTypes(db.knex, strict, [
      { name: 'order.lost', description: '', schema: null, deprecated: false },
    ]);
    await until('the new event type', () => configCache.accepts(strict, 'order.lost'));
  }),
);

memory('where Postgres cannot notify, a change is read within a second', () =>
  scene(
    async ({ db, configCache }) => {
      await configCache.start();
      const project = await makeProject(db);
      await until('the new project', () => configCache.projects.has(project), {
        withinMs: 1_000,
        everyMs: 5,
      });
    },
    { pooled: true },
  ),
);

memory('a rate limit is a rate per second, of the endpoint or else of the project', () =>
  scene(async ({ db, configCache }) => {
    const project = await makeProject(db, { config: { ratelimit: { count: 30, duration: 10 } } });
    const own = await makeEndpoint(db, project, {
      url: URL_OF_ENDPOINT,
      rate_limit: 100,
      rate_limit_duration: 50,
    });
    const none = await makeEndpoint(db, project, { url: URL_OF_ENDPOINT, rate_limit: 0 });
    const inherited = await makeEndpoint(db, project, { url: URL_OF_ENDPOINT });
    await configCache.start();
    const rateOf = ({ id }: { id: string }) => configCache.endpoint(project, id)?.limit?.perSecond;
    assert.equal([rateOf(own), rateOf(none), rateOf(inherited)], [2, undefined, 3]);
  }),
);

memory('everything is read, with the defaults of the project and of the gateway', () =>
  scene(async ({ db, configCache }) => {
    const strategy = { type: 'linear', duration: 5, retry_count: 1 } as const;
    const signature = { header: 'X-Hmac', hash: 'SHA512', encoding: 'base64' } as const;
    const plain = await makeProject(db);
    const own = await makeProject(db, { config: { strategy, signature } });
    const first = await makeEndpoint(db, plain, { url: URL_OF_ENDPOINT, owner_id: 'o' });
    const second = await makeEndpoint(db, plain, {
      url: URL_OF_ENDPOINT,
      owner_id: 'o',
      concurrency: 7,
      timeout_ms: 500,
    });
    const third = await makeEndpoint(db, own, { url: URL_OF_ENDPOINT, owner_id: 'o' });
    const fourth = await makeEndpoint(db, own, {
      url: URL_OF_ENDPOINT,
      strategy: { ...strategy, duration: 9 },
    });
    await makeSubscription(db, plain, { endpointId: first.id, eventTypes: ['order.*'] });
    const source = await makeSource(db, plain, { queue: 'q' });
    await configCache.start();

    assert.equal(
      configCache.projects
        .get(plain)
        ?.endpointsOfOwner.get('o')
        ?.map(({ id }) => id)
        .sort(),
      [first.id, second.id].sort(),
    );
    assert.equal(
      configCache.projects
        .get(own)
        ?.endpointsOfOwner.get('o')
        ?.map(({ id }) => id),
      [third.id],
    );
    const endpoint = configCache.endpoint(plain, second.id)!;
    assert.equal(
      [endpoint.concurrency, endpoint.timeoutMs, endpoint.strategy, endpoint.signature],
      [7, 500, DEFAULT_STRATEGY, DEFAULT_SIGNATURE],
    );
    assert.equal(
      [
        configCache.endpoint(own, third.id)?.strategy,
        configCache.endpoint(own, third.id)?.signature,
      ],
      [strategy, signature],
    );
    assert.is(configCache.endpoint(own, fourth.id)?.strategy.duration, 9);
    assert.is(configCache.endpoint(own, first.id), undefined);
    assert.is(configCache.endpoint(newId(), first.id), undefined);
    assert.equal(
      configCache.projects.get(plain)?.subscriptions.map(({ endpointId }) => endpointId),
      [first.id],
    );
    assert.equal(configCache.projects.get(own)?.subscriptions, []);
    assert.equal(
      configCache.sources.map(({ id }) => id),
      [source.id],
    );
  }),
);

memory('a change is followed at once, and told', () =>
  scene(async ({ db, configCache }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    let changes = 0;
    const ignore = configCache.onChange(() => changes++);
    await configCache.start();
    const before = changes;
    await setEndpointStatus(db.knex, projectId, id, { status: 'paused', reason: 'By hand.' });
    await until('the change', () => configCache.endpoint(projectId, id)?.status === 'paused');
    await until('it to be told', () => changes > before);
    assert.is(changes, before + 1);
    const source = await makeSource(db, projectId, { queue: 'q' });
    await updateSource(db.knex, projectId, source.id, { is_disabled: true });
    await until('the source', () => configCache.sources[0]?.is_disabled === true);
    const all = changes;
    ignore();
    await updateSource(db.knex, projectId, source.id, { is_disabled: false });
    await until('the source again', () => configCache.sources[0]?.is_disabled === false);
    assert.is(changes, all);
  }),
);

memory('a refresh that finds nothing new replaces nothing', () =>
  scene(async ({ db, configCache }) => {
    const projectId = await makeProject(db);
    await configCache.start();
    const before = configCache.projects.get(projectId);
    await configCache.refresh();
    assert.is(configCache.projects.get(projectId), before);
  }),
);

memory('who asks while a read is under way shares the one that follows it', () =>
  scene(async ({ configCache }) => {
    await configCache.start();
    const underWay = configCache.refresh();
    await Promise.resolve();
    await Promise.resolve();
    const [one, other] = [configCache.refresh(), configCache.refresh()];
    assert.is(one, other);
    assert.is.not(one, underWay);
    await one;
  }),
);

memory('a refresh that follows a change has it, however many are under way', () =>
  scene(async ({ db, configCache }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    await configCache.start();
    for (let n = 1; n <= 20; n++) {
      void configCache.refresh();
      await updateEndpoint(db.knex, projectId, id, { timeout_ms: 1000 + n });
      await configCache.refresh();
      assert.is(configCache.endpoint(projectId, id)?.timeoutMs, 1000 + n);
    }
  }),
);

memory('a change whose notification was lost is found at the next interval', () =>
  scene(
    async ({ db, configCache }) => {
      const projectId = await makeProject(db);
      await configCache.start();
      await db.rows(`alter table endpoints disable trigger all`);
      const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
      await changeUntold(db);
      await until('the endpoint', () => configCache.endpoint(projectId, id));
    },
    { intervalMs: 200 },
  ),
);

memory(
  'while Postgres is away the config cache stays as it was, and catches up when it is back',
  () =>
    scene(async ({ db, configCache, postgres, lines }) => {
      const projectId = await makeProject(db);
      const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
      await configCache.start();
      postgres.cut();
      await configCache.refresh();
      assert.ok(configCache.failing);
      assert.ok(configCache.endpoint(projectId, id));
      assert.ok(
        lines.some(
          ({ level, sentence }) =>
            level === 'warn' && sentence.startsWith('Could not read the configuration'),
        ),
      );
      const later = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
      postgres.restore();
      // The lost connection is reopened, and missed changes are read without a refresh.
      await until('the endpoint that was made meanwhile', () =>
        configCache.endpoint(projectId, later.id),
      );
      await until('the end of the read', () => configCache.failing === null);
      const afterwards = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
      await until('the endpoint that was made afterwards', () =>
        configCache.endpoint(projectId, afterwards.id),
      );
      assert.is(postgres.connections <= 3, true);
    }),
);

memory(
  'notifications of other kinds reach who asked for them, also after the connection was lost',
  () =>
    scene(async ({ db, configCache, postgres }) => {
      let due = 0;
      configCache.on('gateway_due', () => due++);
      await configCache.start();
      await db.rows(`select pg_notify('gateway_due', '')`);
      await until('the notification', () => due === 1);
      postgres.cut();
      postgres.restore();
      // It cannot know what it missed, so it notifies once more.
      await until('the connection to be back', () => due === 2);
      await db.rows(`select pg_notify('gateway_due', '')`);
      await until('the next notification', () => due === 3);
    }),
);

memory('a start without Postgres fails, and leaves nothing behind', () =>
  scene(async ({ configCache, postgres }) => {
    postgres.cut();
    const failed = configCache.start().then(
      () => false,
      () => true,
    );
    assert.ok(await within(failed, 30_000, 'the start'));
  }),
);

memory('closing while the connection is being opened again leaves no connection behind', () =>
  scene(async ({ configCache, postgres }) => {
    await configCache.start();
    for (let n = 0; n < 3; n++) {
      postgres.cut();
      postgres.restore();
    }
    await configCache.close();
  }),
);

memory(
  'a subscription with a filter that cannot be used matches nothing, and the log says which',
  () =>
    scene(async ({ db, configCache, lines }) => {
      const projectId = await makeProject(db);
      const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
      const broken = await makeSubscription(db, projectId, {
        endpointId: id,
        filter: { body: { a: { $regex: '.*' } } },
      });
      const good = await makeSubscription(db, projectId, {
        endpointId: id,
        filter: { body: {}, headers: {} },
      });
      await configCache.start();
      assert.equal(
        configCache.projects.get(projectId)?.subscriptions.map((one) => one.id),
        [good],
      );
      assert.ok(
        lines.some(
          ({ level, fields }) =>
            level === 'error' &&
            (fields as { subscription_id?: string }).subscription_id === broken,
        ),
      );
    }),
);

/** Records the projects of each reading statement; statements that read one of `broken` fail. */
function watchReads({ pool }: Database, broken: readonly string[] = []): string[][] {
  const reads: string[][] = [];
  const query = pool.query.bind(pool) as (config: unknown) => Promise<unknown>;
  pool.query = ((config: { name?: string; values?: [string[]] }) => {
    const ids = config.name === 'read-projects' ? config.values![0] : [];
    if (ids.length > 0) reads.push(ids);
    return ids.some((id) => broken.includes(id))
      ? Promise.reject(new Error('invalid page in block 7'))
      : query(config);
  }) as typeof pool.query;
  return reads;
}

memory('a write of one project reads that project alone', () =>
  scene(async ({ db, configCache, database }) => {
    const ids: string[] = [];
    for (let n = 0; n < 5; n++) ids.push(await makeProject(db));
    const reads = watchReads(database);
    await configCache.start();
    assert.equal(reads.flat().sort(), [...ids].sort());
    reads.length = 0;
    const others = ids.map((id) => configCache.projects.get(id));
    const { id } = await makeEndpoint(db, ids[2]!, { url: URL_OF_ENDPOINT });
    await until('the endpoint', () => configCache.endpoint(ids[2]!, id));
    await configCache.refresh();
    assert.equal(reads, [[ids[2]]]);
    for (const n of [0, 1, 3, 4]) assert.is(configCache.projects.get(ids[n]!), others[n]);
  }),
);

memory('a failed read ends when all its statements have ended', () =>
  scene(async ({ db, configCache, database }) => {
    await makeProject(db);
    await configCache.start();
    let go = (): void => {};
    const held = new Promise<void>((resolve) => (go = resolve));
    const { pool } = database;
    const query = pool.query.bind(pool) as (config: unknown) => Promise<unknown>;
    let reads = 0;
    pool.query = (async (config: { name?: string }) => {
      if (config.name !== 'read-projects') return query(config);
      if (++reads === 2) await held;
      else throw new Error('Postgres is away');
      return query(config);
    }) as typeof pool.query;
    await db.rows(
      `insert into projects (id, organisation_id, name, type) select gen_random_uuid(), (select id from organisations limit 1), 'p' || n, 'outgoing' from generate_series(1, 200) n`,
    );
    let hasEnded = false;
    const reading = configCache.refresh().then(() => (hasEnded = true));
    try {
      await until('both statements', () => reads >= 3);
      await sleep(50);
      assert.not(hasEnded);
    } finally {
      go();
    }
    await reading;
    assert.is((configCache.failing?.error as Error).message, 'Postgres is away');
    pool.query = query as typeof pool.query;
    await configCache.refresh();
    assert.equal([configCache.failing, configCache.projects.size], [null, 201]);
  }),
);

memory('a large project is read a record at a time, and replaced as a whole', () =>
  scene(async ({ db, configCache }) => {
    const COUNT = 300;
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    // Without `start`, no notification starts a read before the one that is observed.
    await configCache.refresh();
    await db.rows(
      `insert into subscriptions (project_id, id, name, endpoint_id, filter)
       select $1, gen_random_uuid(), 's', $2, jsonb_build_object('body', jsonb_build_object('a', n)) from generate_series(1, $3) n`,
      [projectId, id, COUNT],
    );
    const seen = new Map<number | undefined, number>();
    const look = (): void => {
      const count = configCache.projects.get(projectId)?.subscriptions.length;
      seen.set(count, (seen.get(count) ?? 0) + 1);
      next = setImmediate(look);
    };
    let next = setImmediate(look);
    // Makes each step as long as a slice, on any machine.
    const { now } = performance;
    let passedMs = 0;
    performance.now = () => now.call(performance) + (passedMs += SLICE_MS);
    try {
      await configCache.refresh();
    } finally {
      performance.now = now;
      clearImmediate(next);
    }
    assert.is(configCache.projects.get(projectId)?.subscriptions.length, COUNT);
    assert.equal(
      [...seen.keys()].filter((count) => count !== 0 && count !== COUNT),
      [],
    );
    assert.ok(seen.get(0)! >= COUNT, `the event loop turned ${seen.get(0)} times`);
  }),
);

memory('a change of a large project compiles no filters but its own', () =>
  scene(async ({ db, configCache }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    const make = () =>
      makeSubscription(db, projectId, { endpointId: id, filter: { body: { a: 1 } } });
    const [kept = '', changed = ''] = await Promise.all(Array.from({ length: 100 }, make));
    await configCache.start();
    const find = (of: string) =>
      configCache.projects.get(projectId)!.subscriptions.find((one) => one.id === of)!;
    const before = [find(kept), find(changed)];
    await updateSubscription(db.knex, projectId, changed, { filter: { body: { a: 2 } } });
    await configCache.refresh();
    assert.is(find(kept), before[0]);
    assert.is.not(find(changed), before[1]);
    assert.ok(find(changed).body!({ a: 2 }, new FilterBudget()));
  }),
);

memory(
  'a slow read of one project makes no other outdated, also if it changed during the read',
  () =>
    scene(
      async ({ db, configCache, database }) => {
        const projectId = await makeProject(db);
        await configCache.start();
        let go = (): void => {};
        const held = new Promise<void>((resolve) => (go = resolve));
        let change: Promise<unknown> | undefined;
        const query = database.pool.query.bind(database.pool) as (
          config: unknown,
        ) => Promise<unknown>;
        database.pool.query = (async (config: { name?: string }) => {
          if (config.name === 'read-changes')
            await (change ??= makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT }));
          if (config.name === 'read-projects') await held;
          return query(config);
        }) as typeof database.pool.query;
        try {
          void configCache.refresh();
          await until('the change to be outdated', () => configCache.outdated.length > 0);
          assert.equal([configCache.outdated, configCache.isCurrent()], [[projectId], true]);
        } finally {
          go();
        }
        await until('the change', () => configCache.projects.get(projectId)?.endpoints.size === 1);
      },
      { verifyMs: 100 },
    ),
);

memory(
  'a project that changes all the time is read in its share of the time, and its last change in the end',
  () =>
    scene(async ({ db, configCache, database }) => {
      const [busy, other] = [await makeProject(db), await makeProject(db)];
      const { id } = await makeEndpoint(db, busy, { url: URL_OF_ENDPOINT });
      const filter = {
        body: {
          $or: Array.from({ length: 60 }, (_, n) => ({ [`member ${n} ${'x'.repeat(100)}`]: n })),
        },
      };
      for (let n = 0; n < 150; n++) await makeSubscription(db, busy, { endpointId: id, filter });
      await configCache.start();
      const reads = watchReads(database);
      const timeoutMs = () => configCache.endpoint(busy, id)?.timeoutMs;
      let n = 0;
      let before = timeoutMs();
      let after = before;
      for (; reads.length === n; n++) {
        before = timeoutMs();
        await updateEndpoint(db.knex, busy, id, { timeout_ms: 1_000 + n });
        await configCache.refresh();
        after = timeoutMs();
        assert.ok(n < 2_000, 'each of 2,000 changes was read at once');
      }
      console.log(`${n} changes were read at once`);
      const { id: theirs } = await makeEndpoint(db, other, { url: URL_OF_ENDPOINT });
      await configCache.refresh();
      assert.ok(configCache.endpoint(other, theirs));
      assert.is(after, before);
      await until('its last change', () => timeoutMs() === 1_000 + n - 1);
    }),
);

memory('what is deleted goes: a subscription, an endpoint, a source, a project', () =>
  scene(async ({ db, configCache }) => {
    const [one, other] = [await makeProject(db), await makeProject(db)];
    const { id } = await makeEndpoint(db, one, { url: URL_OF_ENDPOINT });
    const subscription = await makeSubscription(db, one, { endpointId: id });
    const source = await makeSource(db, one, { queue: 'q' });
    await configCache.start();
    const seen = () => [
      configCache.endpoint(one, id) ? 1 : 0,
      configCache.projects.get(one)?.subscriptions.length,
      configCache.sources.length,
    ];
    assert.equal(seen(), [1, 1, 1]);
    await deleteSubscription(db.knex, one, subscription);
    await configCache.refresh();
    assert.equal(seen(), [1, 0, 1]);
    await deleteEndpoint(db.knex, one, id);
    await deleteSource(db.knex, one, source.id);
    await configCache.refresh();
    assert.equal(seen(), [0, 0, 0]);
    await makeSource(db, one, { queue: 'q' });
    await deleteProject(db.knex, one);
    await configCache.refresh();
    assert.equal([...configCache.projects.keys()], [other]);
    assert.equal(configCache.sources, []);
  }),
);

memory(
  'a database that was restored beneath it is read again as a whole, and what is not in it goes',
  () =>
    scene(async ({ db, configCache }) => {
      const [kept, later] = [await makeProject(db), await makeProject(db)];
      const { id } = await makeEndpoint(db, kept, { url: URL_OF_ENDPOINT });
      await configCache.start();
      assert.ok(configCache.projects.has(later));
      // Simulates a restore: neither the project nor the later versions exist.
      await db.rows('delete from project_versions where project_id = $1', [later]);
      await db.rows(
        'with p as (update project_versions set version = 1) update config_version set version = 1',
      );
      await db.rows('alter table endpoints disable trigger user');
      await db.rows(`update endpoints set url = 'https://example.com/earlier' where id = $1`, [id]);
      await configCache.refresh();
      assert.equal([...configCache.projects.keys()], [kept]);
      assert.is(configCache.endpoint(kept, id)?.url, 'https://example.com/earlier');
    }),
);

memory('a pause goes on while other projects change', () =>
  scene(async ({ db, configCache }) => {
    const projectId = await makeProject(db);
    const source = await makeSource(db, projectId, { queue: 'q', bodyFunction: 'f' });
    const pause = { reason: 'x', by: 'a', seconds: 60, facts: null };
    await pauseSource(db.pool, projectId, source.id, pause);
    await configCache.start();
    const before = configCache.sources[0]!.resumes_in_ms!;
    await makeProject(db);
    await configCache.refresh();
    assert.ok(configCache.sources[0]!.resumes_in_ms! < before);
  }),
);

memory(
  'projects that cannot be loaded are skipped and told, the others go on, and each is loaded when it can be',
  () =>
    scene(async ({ db, configCache, database, lines }) => {
      const [unreadable, invalid, large, good] = [
        await makeProject(db),
        await makeProject(db),
        await makeProject(db),
        await makeProject(db),
      ];
      const endpoints = [];
      for (const id of [unreadable, invalid, large, good])
        endpoints.push((await makeEndpoint(db, id, { url: URL_OF_ENDPOINT })).id);
      await db.rows(`update projects set config = 'null' where id = $1`, [invalid]);
      await db.rows(
        `insert into subscriptions (project_id, id, name, endpoint_id, filter)
       select $1, gen_random_uuid(), 's', $2, jsonb_build_object('body', jsonb_build_object('a', repeat('x', 1000000))) from generate_series(1, 68)`,
        [large, endpoints[2]],
      );
      const broken = [unreadable];
      watchReads(database, broken);
      await configCache.start();
      assert.equal([...configCache.projects.keys()], [good]);
      assert.equal([...configCache.unloaded].sort(), [unreadable, invalid, large].sort());
      assert.is(configCache.skipped.get(unreadable), 'invalid page in block 7');
      assert.match(
        configCache.skipped.get(large)!,
        /^it has 68\d+ bytes of JSON, more than 67108864$/,
      );
      for (const id of [unreadable, invalid, large])
        assert.ok(
          lines.some(
            ({ level, fields }) =>
              level === 'error' && (fields as { project_id?: string }).project_id === id,
          ),
        );
      assert.is(configCache.failing, null);

      const { id: added } = await makeEndpoint(db, good, { url: URL_OF_ENDPOINT });
      await configCache.refresh();
      assert.ok(configCache.endpoint(good, added));
      broken.length = 0;
      await db.rows(`update projects set config = '{}' where id = any ($1)`, [
        [invalid, unreadable],
      ]);
      await db.rows('delete from subscriptions where project_id = $1', [large]);
      await configCache.refresh();
      assert.is(configCache.projects.size, 4);
      assert.is(configCache.skipped.size, 0);

      // Data loaded before the damage remains.
      await db.rows(`update projects set config = 'null' where id = $1`, [good]);
      await configCache.refresh();
      assert.ok(configCache.endpoint(good, added));
      assert.equal([[...configCache.skipped.keys()], configCache.unloaded], [[good], []]);
      await deleteProject(db.knex, good);
      await configCache.refresh();
      assert.equal([configCache.projects.has(good), configCache.skipped.size], [false, 0]);
    }),
);

memory(
  'twenty of the largest filters take no memory to speak of, and larger ones of earlier are left out and told',
  () =>
    scene(async ({ db, configCache, lines }) => {
      setFlagsFromString('--expose-gc');
      const gc = runInNewContext('gc') as () => void;
      const heapMb = () => {
        gc();
        return process.memoryUsage().heapUsed / 1024 / 1024;
      };
      const projectId = await makeProject(db);
      const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
      await configCache.start();
      const before = heapMb();
      const largest = {
        $or: Array.from({ length: 66 }, (_, n) => ({ [`k${n}`]: 'x'.repeat(200), b: n })),
      };
      for (let n = 0; n < 20; n++)
        await makeSubscription(db, projectId, {
          endpointId: id,
          filter: { body: largest, headers: largest },
        });
      await configCache.refresh();
      assert.is(configCache.projects.get(projectId)?.subscriptions.length, 20);
      const grown = heapMb() - before;
      assert.ok(grown < 10, `it grew by ${grown} MB`);

      await db.rows(
        `insert into subscriptions (project_id, id, name, endpoint_id, filter)
       select $1, gen_random_uuid(), 's', $2, jsonb_build_object('body', jsonb_build_object('$or', (select jsonb_agg(jsonb_build_object('a', n)) from generate_series(1, 80000) n)))
       from generate_series(1, 10)`,
        [projectId, id],
      );
      await configCache.refresh();
      assert.is(configCache.projects.get(projectId)?.subscriptions.length, 20);
      assert.ok(
        lines.some(
          ({ level, sentence }) =>
            level === 'error' && sentence.includes('filter that this agent cannot read'),
        ),
      );
      // The driver retains the text of its last response.
      const grownMore = heapMb() - before;
      assert.ok(grownMore < 64, `it grew by ${grownMore} MB`);
    }),
);

memory('filters on headers do not mind the case of names, as HTTP does not', () =>
  scene(async ({ db, configCache }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    await makeSubscription(db, projectId, {
      endpointId: id,
      filter: {
        headers: {
          'X-Tenant': 'a',
          $or: [{ 'X-Region': 'eu' }, { 'X-REGION': { $in: ['us'] } }],
          $and: [{ 'X-Tier': 'gold' }, { $or: [{ 'X-Plan': 'a' }, { 'X-Plan': 'b' }] }],
        },
      },
    });
    await configCache.start();
    const outcome = (headers: Record<string, string>) =>
      route(configCache.projects.get(projectId), {
        eventType: 'a',
        messageType: 'single',
        endpointId: null,
        ownerId: null,
        headers,
        data: '{}',
      }).outcome;
    const gold = { 'x-tier': 'gold', 'x-plan': 'b' };
    assert.is(outcome({ 'x-tenant': 'a', 'x-region': 'us', ...gold }), 'routed');
    assert.is(outcome({ 'x-tenant': 'a', 'x-region': 'eu', ...gold }), 'routed');
    assert.is(outcome({ 'x-tenant': 'A', 'x-region': 'eu', ...gold }), 'no_subscription');
    assert.is(outcome({ 'x-tenant': 'a', ...gold }), 'no_subscription');
    assert.is(
      outcome({ 'x-tenant': 'a', 'x-region': 'eu', ...gold, 'x-tier': 'iron' }),
      'no_subscription',
    );
    assert.is(
      outcome({ 'x-tenant': 'a', 'x-region': 'eu', ...gold, 'x-plan': 'c' }),
      'no_subscription',
    );
  }),
);

memory('thousands of projects with thousands of endpoints are taken up in moments', () =>
  scene(async ({ db, configCache }) => {
    await makeProject(db);
    await db.rows(
      `with p as (insert into projects (id, organisation_id, name, type) select gen_random_uuid(), (select id from organisations limit 1), 'p' || n, 'outgoing' from generate_series(1, 20000) n returning id),
            e as (insert into endpoints (project_id, id, name, url, secrets) select id, gen_random_uuid(), 'e' || n, 'https://example.com', '[]' from p, generate_series(1, 1) n returning project_id, id)
       insert into subscriptions (project_id, id, name, endpoint_id) select project_id, gen_random_uuid(), 's', id from e`,
    );
    await configCache.start();
    assert.is(configCache.projects.size, 20_001);
    // Indexing takes a step per row, not per row and project. CPU time excludes the machine's other
    // load.
    const cpuMs = () => (process.cpuUsage().user + process.cpuUsage().system) / 1000;
    let longest = 0;
    let last = cpuMs();
    const ticking = setInterval(() => {
      longest = Math.max(longest, cpuMs() - last);
      last = cpuMs();
    }, 5);
    await changeUntold(db);
    await configCache.refresh();
    // The last block is seen by the following tick.
    await new Promise((resolve) => setTimeout(resolve, 20));
    clearInterval(ticking);
    assert.ok(longest < 2_000, `the process stood still for ${Math.round(longest)} ms of work`);
  }),
);

memory.run();
