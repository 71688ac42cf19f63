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
  readonly store: ConfigCache;
  readonly postgres: Proxy;
  readonly database: Database;
  readonly lines: ReturnType<typeof keptLog>['lines'];
}

/** Runs a test with a store that reaches a database of its own through a proxy. */
async function scene(test: (scene: Scene) => Promise<void>, { intervalMs = 60_000 } = {}): Promise<void> {
  const db = await migratedDatabase();
  const postgres = await proxy({ port: Number(new URL(db.url).port) });
  const database = openDatabase(agentConfig(db.url, {}, postgres.port).database, { poolSize: 2, name: 'gateway-agent' });
  const { log, lines } = keptLog();
  const store = new ConfigCache(database, { intervalMs, log });
  try {
    await within(test({ db, store, postgres, database, lines }), 60_000, 'the test');
  } finally {
    postgres.restore();
    await store.close();
    await database.close();
    try {
      // Fails when the store has left a connection behind. The proxy stays until then: it ends what is still open.
      await db.close();
    } finally {
      await postgres.close();
    }
  }
}

const URL_OF_ENDPOINT = 'https://example.com/hooks';

memory('everything is read, with the defaults of the project and of the gateway', () =>
  scene(async ({ db, store }) => {
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
    await store.start();

    assert.equal(
      store.projects
        .get(plain)
        ?.endpointsOfOwner.get('o')
        ?.map(({ id }) => id)
        .sort(),
      [first.id, second.id].sort(),
    );
    assert.equal(
      store.projects
        .get(own)
        ?.endpointsOfOwner.get('o')
        ?.map(({ id }) => id),
      [third.id],
    );
    const endpoint = store.endpoint(plain, second.id)!;
    assert.equal(
      [endpoint.concurrency, endpoint.timeoutMs, endpoint.strategy, endpoint.signature],
      [7, 500, DEFAULT_STRATEGY, DEFAULT_SIGNATURE],
    );
    assert.equal([store.endpoint(own, third.id)?.strategy, store.endpoint(own, third.id)?.signature], [strategy, signature]);
    assert.is(store.endpoint(own, fourth.id)?.strategy.duration, 9);
    assert.is(store.endpoint(own, first.id), undefined);
    assert.is(store.endpoint(newId(), first.id), undefined);
    assert.equal(
      store.projects.get(plain)?.subscriptions.map(({ endpointId }) => endpointId),
      [first.id],
    );
    assert.equal(store.projects.get(own)?.subscriptions, []);
    assert.equal(
      store.sources.map(({ id }) => id),
      [source.id],
    );
  }),
);

memory('a change is followed at once, and told', () =>
  scene(async ({ db, store }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    let changes = 0;
    store.onChange(() => changes++);
    await store.start();
    const before = changes;
    await setEndpointStatus(db.knex, projectId, id, { status: 'paused', reason: 'By hand.' });
    await until('the change', () => store.endpoint(projectId, id)?.status === 'paused');
    assert.is(changes, before + 1);
    const source = await makeSource(db, projectId, { queue: 'q' });
    await updateSource(db.knex, projectId, source.id, { is_disabled: true });
    await until('the source', () => store.sources[0]?.is_disabled === true);
  }),
);

memory('a refresh that finds nothing new replaces nothing', () =>
  scene(async ({ db, store }) => {
    const projectId = await makeProject(db);
    await store.start();
    const before = store.projects.get(projectId);
    await store.refresh();
    assert.is(store.projects.get(projectId), before);
  }),
);

memory('who asks while a read is under way shares the one that follows it', () =>
  scene(async ({ store }) => {
    await store.start();
    const underWay = store.refresh();
    await Promise.resolve();
    await Promise.resolve();
    const [one, other] = [store.refresh(), store.refresh()];
    assert.is(one, other);
    assert.is.not(one, underWay);
    await one;
  }),
);

memory('a refresh that follows a change has it, however many are under way', () =>
  scene(async ({ db, store }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    await store.start();
    for (let n = 1; n <= 20; n++) {
      void store.refresh();
      await updateEndpoint(db.knex, projectId, id, { timeout_ms: 1000 + n });
      await store.refresh();
      assert.is(store.endpoint(projectId, id)?.timeoutMs, 1000 + n);
    }
  }),
);

memory('a change whose notification was lost is found at the next interval', () =>
  scene(
    async ({ db, store }) => {
      const projectId = await makeProject(db);
      await store.start();
      await db.rows(`alter table endpoints disable trigger all`);
      const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
      await db.rows('update config_version set version = version + 1');
      await until('the endpoint', () => store.endpoint(projectId, id));
    },
    { intervalMs: 200 },
  ),
);

memory('while Postgres is away the store stays as it was, and catches up when it is back', () =>
  scene(async ({ db, store, postgres, lines }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    await store.start();
    postgres.cut();
    await store.refresh();
    assert.ok(store.failingSince);
    assert.ok(store.endpoint(projectId, id));
    assert.ok(lines.some(({ level, sentence }) => level === 'warn' && sentence.includes('could not be read')));
    const later = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    postgres.restore();
    // Nobody refreshes here: the lost connection is opened again, and what was missed meanwhile is read.
    await until('the endpoint that was made meanwhile', () => store.endpoint(projectId, later.id));
    assert.is(store.failingSince, null);
    const afterwards = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    await until('the endpoint that was made afterwards', () => store.endpoint(projectId, afterwards.id));
    assert.is(postgres.connections <= 3, true);
  }),
);

memory('notifications of other kinds reach who asked for them, also after the connection was lost', () =>
  scene(async ({ db, store, postgres }) => {
    let due = 0;
    store.on('gateway_due', () => due++);
    await store.start();
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
  scene(async ({ store, postgres }) => {
    postgres.cut();
    let failed = false;
    await within(store.start(), 30_000, 'the start').catch(() => (failed = true));
    assert.ok(failed);
  }),
);

memory('closing while the connection is being opened again leaves no connection behind', () =>
  scene(async ({ store, postgres }) => {
    await store.start();
    for (let n = 0; n < 3; n++) {
      postgres.cut();
      postgres.restore();
    }
    await store.close();
  }),
);

memory('a subscription with a filter that cannot be used matches nothing, and the log says which', () =>
  scene(async ({ db, store, lines }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    const broken = await makeSubscription(db, projectId, { endpointId: id, filter: { body: { a: { $regex: '.*' } } } });
    const good = await makeSubscription(db, projectId, { endpointId: id, filter: { body: {}, headers: {} } });
    await store.start();
    assert.equal(
      store.projects.get(projectId)?.subscriptions.map((one) => one.id),
      [good],
    );
    assert.ok(lines.some(({ level, fields }) => level === 'error' && (fields as { subscription_id?: string }).subscription_id === broken));
  }),
);

memory('filters on headers do not mind the case of names, as HTTP does not', () =>
  scene(async ({ db, store }) => {
    const projectId = await makeProject(db);
    const { id } = await makeEndpoint(db, projectId, { url: URL_OF_ENDPOINT });
    await makeSubscription(db, projectId, {
      endpointId: id,
      filter: { headers: { 'X-Tenant': 'a', $or: [{ 'X-Region': 'eu' }, { 'X-REGION': { $in: ['us'] } }] } },
    });
    await store.start();
    const outcome = (headers: Record<string, string>) =>
      route(store.projects.get(projectId), {
        eventType: 'a',
        messageType: 'single',
        endpointId: null,
        ownerId: null,
        headers,
        data: '{}',
      }).outcome;
    assert.is(outcome({ 'x-tenant': 'a', 'x-region': 'us' }), 'routed');
    assert.is(outcome({ 'x-tenant': 'a', 'x-region': 'eu' }), 'routed');
    assert.is(outcome({ 'x-tenant': 'A', 'x-region': 'eu' }), 'no_subscription');
    assert.is(outcome({ 'x-tenant': 'a' }), 'no_subscription');
  }),
);

memory('thousands of projects with thousands of endpoints are taken up in moments', () =>
  scene(async ({ db, store }) => {
    await makeProject(db);
    await db.rows(
      `with p as (insert into projects (id, organisation_id, name, type) select gen_random_uuid(), (select id from organisations limit 1), 'p' || n, 'outgoing' from generate_series(1, 20000) n returning id),
            e as (insert into endpoints (project_id, id, name, url, secrets) select id, gen_random_uuid(), 'e' || n, 'https://example.com', '[]' from p, generate_series(1, 1) n returning project_id, id)
       insert into subscriptions (project_id, id, name, endpoint_id) select project_id, gen_random_uuid(), 's', id from e`,
    );
    await store.start();
    assert.is(store.projects.size, 20_001);
    // Putting the rows in their places is a step for each row, not for each row of each project. What others do on the machine is not counted.
    const cpuMs = () => (process.cpuUsage().user + process.cpuUsage().system) / 1000;
    let longest = 0;
    let last = cpuMs();
    const ticking = setInterval(() => {
      longest = Math.max(longest, cpuMs() - last);
      last = cpuMs();
    }, 5);
    await db.rows('update config_version set version = version + 1');
    await store.refresh();
    // What stood still last is seen by the tick that comes after it.
    await new Promise((resolve) => setTimeout(resolve, 20));
    clearInterval(ticking);
    assert.ok(longest < 2_000, `the process stood still for ${Math.round(longest)} ms of work`);
  }),
);

memory.run();
