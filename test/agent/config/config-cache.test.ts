import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ConfigCache } from '#agent/config/config-cache';
import { route } from '#agent/routing/plan-deliveries';
import { newId } from '#core/events/ids';
import { setEndpointStatus, updateEndpoint } from '#store/config/endpoints';
import { DEFAULT_SIGNATURE, DEFAULT_STRATEGY } from '#store/config/snapshot';
import { updateSource } from '#store/config/sources';
import { type Database, openDatabase } from '#store/postgres/database';
import { migratedDatabase } from '../../store/migrated.js';
import { proxy, type Proxy } from '../../support/proxy.js';
import { until, within } from '../../support/until.js';
import { makeEndpoint, makeProject, makeSource, makeSubscription } from '../records.js';
import { agentConfig, keptLog, type Migrated } from '../running.js';

const memory = suite('agent/config/config-cache');

interface Scene {
  readonly db: Migrated;
  readonly configCache: ConfigCache;
  readonly postgres: Proxy;
  readonly database: Database;
  readonly lines: ReturnType<typeof keptLog>['lines'];
}

/** Runs a test with a config cache that reaches a database of its own through a proxy. */
async function scene(test: (scene: Scene) => Promise<void>, { intervalMs = 60_000 } = {}): Promise<void> {
  const db = await migratedDatabase();
  const postgres = await proxy({ port: Number(new URL(db.url).port) });
  const database = openDatabase(agentConfig(db.url, {}, postgres.port).database, { poolSize: 2, name: 'gateway-agent' });
  const { log, lines } = keptLog();
  const configCache = new ConfigCache(database, { intervalMs, log });
  try {
    await within(test({ db, configCache, postgres, database, lines }), 60_000, 'the test');
  } finally {
    postgres.restore();
    await configCache.close();
    await database.close();
    try {
      // Fails when the config cache has left a connection behind. The proxy stays until then: it ends what is still open.
      await db.close();
    } finally {
      await postgres.close();
    }
  }
}

const URL_OF_ENDPOINT = 'https://example.com/hooks';

memory('a rate limit is a rate per second, of the endpoint or else of the project', () =>
  scene(async ({ db, configCache }) => {
    const project = await makeProject(db, { config: { ratelimit: { count: 30, duration: 10 } } });
    const own = await makeEndpoint(db, project, { url: URL_OF_ENDPOINT, rate_limit: 100, rate_limit_duration: 50 });
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
    const second = await makeEndpoint(db, plain, { url: URL_OF_ENDPOINT, owner_id: 'o', concurrency: 7, timeout_ms: 500 });
    const third = await makeEndpoint(db, own, { url: URL_OF_ENDPOINT, owner_id: 'o' });
    const fourth = await makeEndpoint(db, own, { url: URL_OF_ENDPOINT, strategy: { ...strategy, duration: 9 } });
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
    assert.equal([configCache.endpoint(own, third.id)?.strategy, configCache.endpoint(own, third.id)?.signature], [strategy, signature]);
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
    configCache.onChange(() => changes++);
    await configCache.start();
    const before = changes;
    await setEndpointStatus(db.knex, projectId, id, { status: 'paused', reason: 'By hand.' });
    await until('the change', () => configCache.endpoint(projectId, id)?.status === 'paused');
    assert.is(changes, before + 1);
    const source = await makeSource(db, projectId, { queue: 'q' });
    await updateSource(db.knex, projectId, source.id, { is_disabled: true });
    await until('the source', () => configCache.sources[0]?.is_disabled === true);
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
      await db.rows('update config_version set version = version + 1');
      await until('the endpoint', () => configCache.endpoint(projectId, id));
    },
    { intervalMs: 200 },
  ),
);

memory('while Postgres is away the config cache stays as it was, and catches up when it is back', () =>
  scene(async ({ db, configCache, postgres, lines }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    await configCache.start();
    postgres.cut();
    await configCache.refresh();
    assert.ok(configCache.failing);
    assert.ok(configCache.endpoint(projectId, id));
    assert.ok(lines.some(({ level, sentence }) => level === 'warn' && sentence.includes('could not be read')));
    const later = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    postgres.restore();
    // Nobody refreshes here: the lost connection is opened again, and what was missed meanwhile is read.
    await until('the endpoint that was made meanwhile', () => configCache.endpoint(projectId, later.id));
    assert.is(configCache.failing, null);
    const afterwards = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    await until('the endpoint that was made afterwards', () => configCache.endpoint(projectId, afterwards.id));
    assert.is(postgres.connections <= 3, true);
  }),
);

memory('notifications of other kinds reach who asked for them, also after the connection was lost', () =>
  scene(async ({ db, configCache, postgres }) => {
    let due = 0;
    configCache.on('gateway_due', () => due++);
    await configCache.start();
    await db.rows(`select pg_notify('gateway_due', '')`);
    await until('the notification', () => due === 1);
    postgres.cut();
    postgres.restore();
    // It cannot know what it missed, so it tells once more.
    await until('the connection to be back', () => due === 2);
    await db.rows(`select pg_notify('gateway_due', '')`);
    await until('the next notification', () => due === 3);
  }),
);

memory('a start without Postgres fails, and leaves nothing behind', () =>
  scene(async ({ configCache, postgres }) => {
    postgres.cut();
    let failed = false;
    await within(configCache.start(), 30_000, 'the start').catch(() => (failed = true));
    assert.ok(failed);
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

memory('a subscription with a filter that cannot be used matches nothing, and the log says which', () =>
  scene(async ({ db, configCache, lines }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    const broken = await makeSubscription(db, projectId, { endpointId: id, filter: { body: { a: { $regex: '.*' } } } });
    const good = await makeSubscription(db, projectId, { endpointId: id, filter: { body: {}, headers: {} } });
    await configCache.start();
    assert.equal(
      configCache.projects.get(projectId)?.subscriptions.map((one) => one.id),
      [good],
    );
    assert.ok(lines.some(({ level, fields }) => level === 'error' && (fields as { subscription_id?: string }).subscription_id === broken));
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
    assert.is(outcome({ 'x-tenant': 'a', 'x-region': 'eu', ...gold, 'x-tier': 'iron' }), 'no_subscription');
    assert.is(outcome({ 'x-tenant': 'a', 'x-region': 'eu', ...gold, 'x-plan': 'c' }), 'no_subscription');
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
    // Putting the rows in their places is a step for each row, not for each row of each project. What others do on the machine is not counted.
    const cpuMs = () => (process.cpuUsage().user + process.cpuUsage().system) / 1000;
    let longest = 0;
    let last = cpuMs();
    const ticking = setInterval(() => {
      longest = Math.max(longest, cpuMs() - last);
      last = cpuMs();
    }, 5);
    await db.rows('update config_version set version = version + 1');
    await configCache.refresh();
    // What stood still last is seen by the tick that comes after it.
    await new Promise((resolve) => setTimeout(resolve, 20));
    clearInterval(ticking);
    assert.ok(longest < 2_000, `the process stood still for ${Math.round(longest)} ms of work`);
  }),
);

memory.run();
