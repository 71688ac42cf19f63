import type { QueryConfig } from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { newId, timeOfId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { TokenBuckets } from '#core/process/token-buckets';
import { type CreatedEvent, EventCreator } from '#ingest/commit/event-creator';
import { ReadyMessage } from '#ingest/message/ready-message';
import { EventWriter } from '#ingest/commit/event-writer';
import { ConfigCache } from '#ingest/routing/config-cache';
import { Matcher } from '#ingest/routing/matcher';
import { unclaimedRouter } from '#ingest/routing/unclaimed-router';
import { deleteEndpoint } from '#store/config/endpoints';
import { insertSubscription } from '#store/config/subscriptions';
import { MemoryKv } from '#store/kv/memory-kv';
import { DEFAULT_SHARD } from '#store/shards/shards';
import { configOf } from '../../server/api.js';
import { makeEndpoint, makeProject } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';
import { until, within } from '../../support/until.js';

const creation = suite('ingest/commit/event-creator');

const db = await migratedDatabase();
const { id: projectId } = await makeProject(db);
const { id: otherId } = await makeProject(db);
const subscribed = await makeEndpoint(db, projectId);
await insertSubscription(db.knex, projectId, {
  name: 'paid',
  endpoint_id: subscribed.id,
  event_types: ['order.paid'],
  filter: null,
});
const configCache = new ConfigCache(db, {
  intervalMs: 60_000,
  eventLoopMs: 0,
  verifyMs: 500,
  log: silentLog,
});
await configCache.start();
creation.after(async () => {
  await configCache.close();
  await db.close();
});

const event = (fields: Partial<CreatedEvent> = {}): CreatedEvent => ({
  ...{
    projectId,
    eventType: 'order.paid',
    messageType: 'single',
    endpointId: null,
    ownerId: null,
    idempotencyKey: null,
  },
  ...{ data: '{ "a": 1.10 }', headers: { 'x-own': 'é' } },
  ...fields,
});

function scene({
  windowSeconds = 60,
  before,
}: { windowSeconds?: number; before?: (name: string) => Promise<void> | void } = {}) {
  const statements: string[] = [];
  const pool = new Proxy(db.pool, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (property !== 'query')
        return typeof value === 'function' ? (value.bind(target) as unknown) : value;
      return async (query: QueryConfig) => {
        statements.push(query.name ?? '');
        await before?.(query.name ?? '');
        return target.query(query);
      };
    },
  });
  const database = { ...db, pool };
  const config = configOf(db, { ingest: { idempotency_window_seconds: windowSeconds } });
  const due: string[] = [];
  const kv = new MemoryKv();
  const router = unclaimedRouter({
    configCache,
    matcher: new Matcher(new TokenBuckets(0)),
    due: (events) => due.push(...events.map(({ eventId }) => eventId)),
  });
  const usage = { event: () => undefined };
  const pace = new TokenBuckets(0);
  const writer = new EventWriter({
    config,
    shard: DEFAULT_SHARD,
    database,
    kv,
    log: silentLog,
    router,
    pace,
    usage,
    committers: 2,
  });
  return {
    creator: new EventCreator({
      writer,
      configCache,
      database,
    }),
    writer,
    statements,
    due,
    kv,
  };
}

/** Pushes a broker's message; resolves with its outcome. */
function pushFromBroker(writer: EventWriter, offset: number): Promise<unknown> {
  const id = newId();
  const place = {
    id,
    occurredAtMs: timeOfId(id),
    sourceId: null,
    coordinates: `topic/0/${offset}`,
    digest: null,
    notes: null,
    status: 'pending' as const,
    outcome: null,
  };
  return new Promise((resolve) =>
    writer.push(new ReadyMessage(projectId, [{ ...place, ...event() }], resolve)),
  );
}

const idOf = (it: object) => (it as { id: string }).id;
const deliveriesOf = (id: string) =>
  db.rows<{ status: string; isDue: boolean }>(
    `select status::text, next_attempt_at <= now() as "isDue" from event_deliveries where event_id = $1`,
    [id],
  );

creation(
  'events that arrive together are one statement, routed in it, and each has its own result',
  async () => {
    const { creator, statements, due } = scene();
    const made = await Promise.all(
      Array.from({ length: 100 }, (_, n) => creator.create(event({ data: `{"n":${n}}` }))),
    );
    assert.equal(statements, ['accept-events']);
    const rows = await db.rows<{
      id: string;
      data: string;
      headers: string;
      status: string;
      outcome: string;
    }>(
      `select id::text, data, headers, status::text, outcome from events where id = any ($1::uuid[])`,
      [made.map(idOf)],
    );
    made.forEach((it, n) => assert.is(rows.find(({ id }) => id === idOf(it))!.data, `{"n":${n}}`));
    assert.equal(
      [rows[0]!.headers, rows[0]!.status, rows[0]!.outcome],
      ['{"x-own":"é"}', 'processed', 'routed'],
    );
    assert.equal(await deliveriesOf(idOf(made[0]!)), [{ status: 'scheduled', isDue: true }]);
    assert.equal([...due].sort(), made.map(idOf).sort(), 'agents are told of each');
  },
);

creation(
  'an event that nobody seems to want stays pending, and is routed by the latest configuration',
  async () => {
    const { creator, kv, due } = scene();
    const made = await creator.create(event({ eventType: 'order.new' }));
    const [row] = await db.rows<{ status: string }>(
      'select status::text from events where id = $1',
      [idOf(made)],
    );
    assert.equal([row!.status, due, await kv.queue('create-event').depth()], ['pending', [], 1]);
  },
);

creation(
  'after a change by this process events of the project stay pending until the change is read',
  async () => {
    const { creator, due } = scene();
    const reading = configCache.invalidate(projectId);
    await creator.create(event());
    assert.equal(due, []);
    await reading;
    await creator.create(event());
    assert.is(due.length, 1);
  },
);

creation(
  'of events with one key the first is created, also within a commit and beside another project',
  async () => {
    const { creator } = scene();
    const keyed = (fields: Partial<CreatedEvent> = {}) =>
      creator.create(event({ idempotencyKey: 'k1', ...fields }));
    const [first, second, foreign, free] = await Promise.all([
      keyed(),
      keyed(),
      keyed({ projectId: otherId }),
      creator.create(event()),
    ]);
    assert.equal(first, { id: idOf(first), duplicate: false });
    assert.equal(second, { id: idOf(first), duplicate: true });
    assert.equal(
      [foreign, free].map((it) => (it as { duplicate: boolean }).duplicate),
      [false, false],
    );
    const [third, another] = await Promise.all([keyed(), keyed({ idempotencyKey: 'k2' })]);
    assert.equal(
      [third, (another as { duplicate: boolean }).duplicate],
      [{ id: idOf(first), duplicate: true }, false],
    );
  },
);

creation('a key that expires between two statements is free again', async () => {
  const first = await scene().creator.create(event({ idempotencyKey: 'expiring' }));
  let isExpired = false;
  const { creator, statements } = scene({
    before: async (name) => {
      if (name !== 'read-verdicts' || isExpired) return;
      isExpired = true;
      await db.rows(
        `update idempotency_keys set expires_at = now() - interval '1 second' where key = 'expiring'`,
      );
    },
  });
  const second = await creator.create(event({ idempotencyKey: 'expiring' }));
  assert.equal(
    [(second as { duplicate: boolean }).duplicate, idOf(second) === idOf(first)],
    [false, false],
  );
  assert.is(statements.filter((name) => name === 'accept-events').length, 2);
});

creation(
  'an endpoint or an owner that the project does not have is told, and its neighbours are created',
  async () => {
    const endpoint = await makeEndpoint(db, projectId, { owner_id: 'ada' });
    const deleted = await makeEndpoint(db, projectId, { owner_id: 'bob' });
    await deleteEndpoint(db.knex, projectId, deleted.id);
    const cases: Partial<CreatedEvent>[] = [
      { endpointId: endpoint.id },
      { messageType: 'fanout', ownerId: 'ada' },
      { endpointId: newId() },
      { endpointId: deleted.id },
      { endpointId: endpoint.id, projectId: otherId },
      { messageType: 'fanout', ownerId: 'bob' },
      { messageType: 'fanout', ownerId: 'ada', projectId: otherId },
      {},
    ];
    for (const isCached of [false, true]) {
      // Not awaited: until the change is read, Postgres decides.
      const reading = configCache.invalidate(projectId);
      if (isCached) await reading;
      const { creator, statements } = scene();
      const made = await Promise.all(cases.map((fields) => creator.create(event(fields))));
      assert.equal(
        made.map((it) => ('unknown' in it ? it.unknown : it.duplicate)),
        [false, false, 'endpoint', 'endpoint', 'endpoint', 'owner', 'owner', false],
      );
      if (isCached)
        assert.is(
          statements.filter((name) => name.startsWith('has-target')).length,
          5,
          'what is in memory is not asked for',
        );
    }
  },
);

creation('an event that Postgres rejects fails alone, with the reason', async () => {
  const { creator } = scene();
  const bad = event({ data: '{"a":"\x00"}' });
  const results = await Promise.allSettled([event(), bad, event()].map((it) => creator.create(it)));
  assert.equal(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  const { reason } = results[1] as PromiseRejectedResult;
  assert.ok(
    isGatewayError(reason, 'invalid_request') &&
      /Postgres refused/.test(reason.details.problems[0]!.sentence),
  );
});

creation(
  'when Postgres is away every caller of the commit is told at once, nothing is repeated, and later events are created',
  async () => {
    let isAway = true;
    const away = () => {
      if (isAway) throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
    };
    const { creator, statements } = scene({ before: away });
    const results = await Promise.allSettled([creator.create(event()), creator.create(event())]);
    assert.ok(
      results.every((it) => it.status === 'rejected' && (it.reason as Error).message === 'away'),
    );
    assert.is(statements.length, 1);
    isAway = false;
    assert.is(((await creator.create(event())) as { duplicate: boolean }).duplicate, false);
  },
);

creation('while all commits are being repeated, a caller is told at once', async () => {
  let isAway = true;
  const { creator, writer, statements } = scene({
    before: () => {
      if (isAway) throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
    },
  });
  const settled = [pushFromBroker(writer, 1)];
  await until('the first commit to fail', () => statements.length > 0);
  settled.push(pushFromBroker(writer, 2));
  await until('no committer to be left', () => statements.length > 3);
  const error = await within(
    creator.create(event()).catch((given: unknown) => given as Error),
    1_000,
    'an answer',
  );
  assert.is((error as Error).message, 'away');
  isAway = false;
  assert.equal(await Promise.all(settled), ['accepted', 'accepted']);
});

creation(
  'a message of a broker in the same commit is tried again, and what a caller was told has failed is not',
  async () => {
    let isAway = true;
    const { creator, writer } = scene({
      before: () => {
        if (isAway) throw Object.assign(new Error('away'), { code: 'ECONNREFUSED' });
      },
    });
    const settled = pushFromBroker(writer, 1);
    await creator.create(event({ data: '{"told":"failed"}' })).then(
      () => assert.unreachable('it was not told'),
      (error: Error) => assert.is(error.message, 'away'),
    );
    isAway = false;
    assert.is(await settled, 'accepted');
    assert.equal(await db.rows(`select id from events where data = '{"told":"failed"}'`), []);
  },
);

creation('what waits for its commit when the process closes is told so', async () => {
  const { creator, writer } = scene();
  const waiting = creator.create(event());
  // The push follows in a later turn, after the target is looked up.
  await Promise.resolve();
  writer.stop();
  const error = await waiting.catch((given: unknown) => given);
  assert.ok(isGatewayError(error, 'closing'), String(error));
});

creation.run();
