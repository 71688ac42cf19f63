import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { RoutedSubscription } from '#core/routing/routed-project';
import type { ReadyMessage } from '#ingest/message/ready-message';
import { newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { SLICE_MS } from '#core/process/slices';
import { releaseOrphanedClaims } from '#agent/liveness/heartbeat';
import { setEndpointStatus } from '#store/config/endpoints';
import { findEventMessage, KEPT_BYTES_MAX, keptParts } from '#store/events/kept-messages';
import { endpoint as receiver } from '../../support/endpoint.js';
import { proxy, type Proxy } from '../../support/proxy.js';
import { redis } from '../../support/redis.js';
import { together } from '../../support/together.js';
import { until, within } from '../../support/until.js';
import { lockAwaited } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { openRedisKv } from '../../store/redis-kv.js';
import { delivered, hold, states } from '../../agent/hold.js';
import { Messages } from '../../agent/ready.js';
import { makeEndpoint, makeSubscription } from '../../agent/records.js';
import type { RunningAgent } from '../../agent/running.js';
import { withAgent, type Scene } from '../../agent/scene.js';

const accept = suite('ingest/commit/event-writer');
/** Tests that wait for timeouts and reconnects, each `alone`. */
const beside = together(accept);

const db = await migratedDatabase();
accept.after(() => db.close());

/** Runs a test with a new agent, and messages for it. */
function scene(
  test: (scene: Scene & { messages: Messages }) => Promise<void>,
  options?: Parameters<typeof withAgent>[2],
): Promise<void> {
  return withAgent(
    db,
    (given) => test({ ...given, messages: new Messages(given.running.projectId) }),
    options,
  );
}

/** Returns the number of events of each commit, the smallest first. */
async function commitSizes(projectId: string): Promise<number[]> {
  const commits = await db.rows<{ n: number }>(
    'select count(*)::int as n from events where project_id = $1 group by xmin::text order by n',
    [projectId],
  );
  return commits.map(({ n }) => n);
}

/** `scene` on a private database. */
async function alone(
  test: (scene: Scene & { messages: Messages }) => Promise<void>,
  options?: Parameters<typeof withAgent>[2],
): Promise<void> {
  const own = await migratedDatabase();
  try {
    await withAgent(
      own,
      (given) => test({ ...given, messages: new Messages(given.running.projectId) }),
      options,
    );
  } finally {
    await own.close();
  }
}

const eventsOf = async ({ db, projectId }: RunningAgent) =>
  db.rows<{ coordinates: string; status: string; outcome: string | null }>(
    'select coordinates, status, outcome from events where project_id = $1 order by id',
    [projectId],
  );

const count = async ({ db, projectId }: RunningAgent, table = 'events') =>
  (
    await db.rows<{ n: number }>(`select count(*)::int as n from ${table} where project_id = $1`, [
      projectId,
    ])
  )[0]!.n;

/** Runs the heartbeat's periodic check now. */
function lookForUnheld({ wiring, database }: RunningAgent, olderThanMs = 0): Promise<number> {
  const { inFlight, dueTimes, lease } = wiring;
  return releaseOrphanedClaims(
    { database, inFlight, dueTimes, log: silentLog, lease },
    olderThanMs,
  );
}

accept('a message is settled when it is committed, not before', () =>
  scene(async ({ running, messages }) => {
    const other = await db.connect();
    try {
      await other.query('begin');
      await other.query('lock table events in share row exclusive mode');
      for (const message of messages.many(3)) running.wiring.eventWriter.push(message);
      await lockAwaited(db, 'the commit to wait');
      assert.equal(messages.outcomes, []);
      await other.query('commit');
    } finally {
      await other.end();
    }
    await until('three outcomes', () => messages.settled.length === 3);
    assert.equal(messages.counts, { accepted: 3 });
    assert.is(await count(running), 3);
  }),
);

accept('an accepted event is delivered, and its outcome is stored with it', () =>
  scene(async ({ running, messages, at, endpointId }) => {
    running.wiring.eventWriter.push(
      messages.ready({ data: '{ "id":9007199254740993 }', headers: { 'x-shop': '7' } }),
    );
    const [request] = await at.received(1);
    assert.is(request!.body.toString(), '{ "id":9007199254740993 }');
    assert.is(request!.headers['x-shop'], '7');
    await delivered(running, endpointId, 1, 'the record');
    assert.equal(
      (await eventsOf(running)).map(({ status, outcome }) => [status, outcome]),
      [['processed', 'routed']],
    );
  }),
);

accept(
  'no event is routed by a configuration older than the bound: it waits for the change of its project',
  () =>
    scene(async ({ running, messages, endpointId }) => {
      const { database, configCache, projectId, wiring } = running;
      let go = (): void => {};
      const slow = new Promise<void>((resolve) => (go = resolve));
      const query = database.pool.query.bind(database.pool) as (
        config: unknown,
      ) => Promise<unknown>;
      database.pool.query = ((config: { name?: string }) =>
        config.name === 'read-projects'
          ? slow.then(() => query(config))
          : query(config)) as typeof database.pool.query;
      try {
        await makeSubscription(db, projectId, { endpointId });
        await until(
          'the change of this project, and no other, to be older than the bound',
          () => !configCache.isCurrent(projectId) && configCache.isCurrent(),
        );
        assert.equal(configCache.outdated, [projectId]);
        wiring.eventWriter.push(messages.ready({}));
        await until('the commit', () => messages.settled.length === 1);
        assert.equal(
          (await eventsOf(running)).map(({ status }) => status),
          ['pending'],
        );
      } finally {
        go();
      }
      await until('the change to be loaded', () => configCache.isCurrent(projectId));
      wiring.start();
      await delivered(running, endpointId, 2, 'the delivery of the new subscription, too');
    }),
);

accept(
  'an event that uses up the budget of filters fails with the reason, and the next one is delivered',
  () =>
    scene(async ({ running, messages, at, endpointId }) => {
      const filter = { body: { a: { $in: Array.from({ length: 190 }, () => ({})) } } };
      await makeSubscription(db, running.projectId, { endpointId, eventTypes: ['costly'], filter });
      await running.configCache.refresh();
      const { subscriptions } = running.configCache.projects.get(running.projectId)!;
      // More than the limit of a project.
      for (let n = 0; n < 6_000; n++)
        (subscriptions as RoutedSubscription[]).push(subscriptions.find(({ body }) => body)!);
      running.wiring.eventWriter.push(
        messages.ready({ eventType: 'costly', data: '{"a":{"b":1}}' }),
      );
      running.wiring.eventWriter.push(messages.ready({ data: '{"n":1}' }));
      const [request] = await at.received(1);
      assert.is(request!.body.toString(), '{"n":1}');
      await until('both outcomes', () => messages.settled.length === 2);
      assert.equal(messages.counts, { accepted: 2 });
      assert.equal(
        (await eventsOf(running)).map(({ status, outcome }) => [status, outcome]).sort(),
        [
          ['failed', 'filter_budget'],
          ['processed', 'routed'],
        ],
      );
    }),
);

accept(
  'an event whose large body is to be filtered is left to the queues: its commit does not wait for that',
  () =>
    scene(async ({ running, messages, at, endpointId }) => {
      await makeSubscription(db, running.projectId, {
        endpointId,
        eventTypes: ['large'],
        filter: { body: { a: 1 } },
      });
      await running.configCache.refresh();
      const text = 'x'.repeat(100_000);
      for (const fields of [{ eventType: 'large' }, { eventType: 'other' }])
        running.wiring.eventWriter.push(
          messages.ready({ ...fields, data: JSON.stringify({ a: 1, text }) }),
        );
      await until('both outcomes', () => messages.settled.length === 2);
      assert.equal((await eventsOf(running)).map(({ status }) => status).sort(), [
        'pending',
        'processed',
      ]);
      running.wiring.start();
      await at.received(3);
    }),
);

accept('the event loop turns while a commit routes', () =>
  scene(async ({ running, messages }) => {
    const COUNT = 300;
    let [turns, routed] = [0, 0];
    const turn = (): void => void (turns++, (next = setImmediate(turn)));
    const { planner, eventWriter } = running.wiring;
    const route = planner.route.bind(planner);
    const turnsAt: number[] = [];
    planner.route = (...given) => {
      // Each route takes as long as a slice.
      const untilMs = performance.now() + SLICE_MS;
      while (performance.now() < untilMs);
      routed++;
      turnsAt.push(turns);
      return route(...given);
    };
    let next = setImmediate(turn);
    for (const message of messages.many(COUNT)) eventWriter.push(message);
    await until('all outcomes', () => messages.settled.length === COUNT);
    clearImmediate(next);
    assert.is(routed, COUNT);
    assert.is(new Set(turnsAt).size, COUNT, 'two events were routed in one turn');
  }),
);

accept(
  'what comes again is a duplicate: in the same batch, in the next one, by its coordinates or by its key',
  () =>
    scene(async ({ running, messages, at, endpointId }) => {
      const first = messages.ready({ coordinates: 'a', occurredAtMs: 1000 });
      const again = messages.ready({ coordinates: 'a', occurredAtMs: 1000 });
      const keyed = messages.ready({ coordinates: 'b', idempotencyKey: 'k' });
      const sameKey = messages.ready({ coordinates: 'c', idempotencyKey: 'k' });
      for (const message of [first, again, keyed, sameKey])
        running.wiring.eventWriter.push(message);
      await until('four outcomes', () => messages.settled.length === 4);
      assert.equal(messages.settled, [
        ['a', 'accepted'],
        ['a', 'duplicate'],
        ['b', 'accepted'],
        ['c', 'duplicate'],
      ]);
      for (const message of [first, sameKey, messages.ready({ coordinates: 'd' })])
        running.wiring.eventWriter.push(message);
      await until('seven outcomes', () => messages.settled.length === 7);
      assert.equal(messages.settled.slice(4), [
        ['a', 'duplicate'],
        ['c', 'duplicate'],
        ['d', 'accepted'],
      ]);
      await delivered(running, endpointId, 3, 'the records');
      assert.is(at.requests.length, 3);
      assert.is(await count(running), 3);
    }),
);

accept('a message with several events is one decision', () =>
  scene(async ({ running, messages, at }) => {
    const events = [0, 1, 2].map((ordinal) =>
      messages.event('many', { occurredAtMs: 5_000, data: `{"n":${ordinal}}` }, ordinal),
    );
    for (let n = 0; n < 2; n++) running.wiring.eventWriter.push(messages.ready({}, events));
    await until('two outcomes', () => messages.settled.length === 2);
    assert.equal(messages.outcomes, ['accepted', 'duplicate']);
    assert.is((await at.received(3)).length, 3);
    assert.is(await count(running), 3);
  }),
);

accept('a project with a backlog takes turns with others', () =>
  scene(
    async ({ running, messages }) => {
      const order: string[] = [];
      const push = (message: ReadyMessage, whose: string) =>
        running.wiring.eventWriter.push(
          Object.assign(message, { settled: () => void order.push(whose) }),
        );
      for (const message of messages.many(200)) push(message, 'backlog');
      for (const message of new Messages(newId()).many(3)) push(message, 'other');
      await until('all outcomes', () => order.length === 203);
      // Commits of ten, three at a time, of which any can end first.
      assert.ok(
        order.lastIndexOf('other') < 100,
        `after ${order.lastIndexOf('other')} of the backlog`,
      );
    },
    { settings: { ingest: { batch_size: 10 } } },
  ),
);

accept(
  'a commit has as many events as messages at most, so that a message of many does not make it long; one alone may have more',
  () =>
    scene(
      async ({ running, messages }) => {
        for (let n = 0; n < 4; n++) {
          const events = Array.from({ length: n === 3 ? 11 : 6 }, (_, ordinal) =>
            messages.event(`many/${n}`, { occurredAtMs: 5_000 }, ordinal),
          );
          running.wiring.eventWriter.push(messages.ready({}, events));
        }
        await until('four outcomes', () => messages.settled.length === 4);
        assert.equal(await commitSizes(running.projectId), [6, 6, 6, 11]);
      },
      { settings: { ingest: { batch_size: 10 } } },
    ),
);

accept('hopeless messages go to quarantine beside accepted ones', () =>
  scene(async ({ running, messages }) => {
    const list = messages.many(20).flatMap((good) => [good, messages.hopeless()]);
    for (const message of list) running.wiring.eventWriter.push(message);
    await until('forty outcomes', () => messages.settled.length === 40);
    assert.equal(messages.counts, { accepted: 20, quarantined: 20 });
    assert.is(await count(running), 20);
    assert.is(await count(running, 'quarantined_messages'), 20);
  }),
);

accept(
  'a message that Postgres itself refuses is quarantined alone, its neighbours are accepted',
  () =>
    scene(async ({ running, messages }) => {
      const list = messages.many(50);
      list.splice(17, 0, messages.ready({ coordinates: 'bad one', eventType: 'bad\0type' }));
      for (const message of list) running.wiring.eventWriter.push(message);
      await until('all outcomes', () => messages.settled.length === 51);
      assert.equal(messages.counts, { accepted: 50, quarantined: 1 });
      assert.equal(
        messages.settled.find(([, outcome]) => outcome === 'quarantined')?.[0],
        'bad one',
      );
      const [row] = await db.rows(
        'select code, reason from quarantined_messages where project_id = $1',
        [running.projectId],
      );
      assert.is(row!['code'], 'database_refused');
      assert.match(
        String(row!['reason']),
        /^Postgres refused the event as it is: invalid byte sequence/,
      );
    }),
);

accept('coordinates of a plugin that hold control characters do no harm to their neighbours', () =>
  scene(async ({ running, messages }) => {
    const odd = ['a\x1eb', '\x1f', 'c\0d', '\x1e\x1e'];
    const list = [
      ...messages.many(3),
      ...odd.map((coordinates) => messages.ready({ coordinates })),
      ...messages.many(3),
    ];
    for (const message of list) running.wiring.eventWriter.push(message);
    await until('all outcomes', () => messages.settled.length === list.length);
    assert.equal(messages.counts, { accepted: list.length });
    const stored = (await eventsOf(running)).map(({ coordinates }) => coordinates);
    assert.equal(stored.filter((coordinates) => coordinates.includes('\ufffd')).sort(), [
      'a\ufffdb',
      'c\ufffdd',
      '\ufffd',
      '\ufffd\ufffd',
    ]);
    assert.is(stored.filter((coordinates) => /^orders\/0\/\d+$/.test(coordinates)).length, 6);
  }),
);

accept('a commit takes a megabyte of messages, or one that is larger, headers counted too', () =>
  scene(async ({ running, messages, postgres }) => {
    // Nothing is committed meanwhile, so that everything waits for one batch.
    postgres.cut();
    const headers = { 'x-large': 'x'.repeat(1_000_000) };
    for (const message of messages.many(40, { headers })) running.wiring.eventWriter.push(message);
    postgres.restore();
    await until('all outcomes', () => messages.settled.length === 40);
    const sizes = await db.rows<{ n: number }>(
      'select count(*)::int as n from events where project_id = $1 group by accepted_at order by n desc',
      [running.projectId],
    );
    assert.equal([sizes.length, sizes[0]!.n], [40, 1]);
  }),
);

accept(
  'while Postgres is away nothing is settled, and everything is when it is back, each event once',
  () =>
    scene(async ({ running, messages, postgres, at }) => {
      postgres.cut();
      for (const message of messages.many(300)) running.wiring.eventWriter.push(message);
      await until(
        'the failure to be known',
        () => running.wiring.eventWriter.failing !== undefined,
      );
      assert.equal(messages.outcomes, []);
      await until(
        'what is not committed to hold no room',
        () => running.wiring.inFlight.size === 0,
      );
      postgres.restore();
      await until('all outcomes', () => messages.settled.length === 300);
      assert.equal(messages.counts, { accepted: 300 });
      assert.is(running.wiring.eventWriter.failing, undefined);
      assert.is(await count(running), 300);
      await at.received(300);
      assert.is(new Set(at.requests.map(({ headers }) => headers['webhook-id'])).size, 300);
    }),
);

beside(
  'connections that die without a word are replaced, and everything goes on over new ones',
  () =>
    alone(
      async ({ running, messages, postgres, endpointId }) => {
        // Events are left to the queues while the configuration may be stale.
        running.wiring.start();
        for (const message of messages.many(100)) running.wiring.eventWriter.push(message);
        await delivered(running, endpointId, 100, 'the first deliveries');
        postgres.freezeOpen();
        for (const message of messages.many(100)) running.wiring.eventWriter.push(message);
        await until('all outcomes', () => messages.settled.length === 200);
        assert.equal(messages.counts, { accepted: 200 });
        await delivered(running, endpointId, 200);
        await until(
          'the heartbeat to succeed',
          () =>
            running.wiring.heartbeat.failing === null &&
            running.wiring.eventWriter.failing === undefined,
        );
      },
      { answerMs: 1_500 },
    ),
);

beside(
  'connections that are ended in the middle of the work lose nothing and make nothing twice',
  () =>
    alone(async ({ running, messages, at }) => {
      const { projectId, configCache } = running;
      running.wiring.start();
      // At most a hundred deliveries per endpoint: on a busy machine endpoints are slow, and more
      // would wait in Postgres.
      const endpoints = await Promise.all(
        Array.from({ length: 20 }, () => makeEndpoint(running.db, projectId, { url: at.url })),
      );
      await configCache.refresh();
      let pushed = 0;
      const push = setInterval(() => {
        for (const { id } of endpoints)
          for (const message of messages.many(2, { endpointId: id }))
            running.wiring.eventWriter.push(message);
        if ((pushed += 40) >= 2000) clearInterval(push);
      }, 10);
      for (let n = 0; n < 12; n++) {
        await new Promise((resolve) => setTimeout(resolve, 40));
        await running.db.rows(
          `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'gateway-agent'`,
        );
      }
      await until('all outcomes', () => pushed >= 2000 && messages.settled.length === pushed);
      assert.equal(
        Object.keys(messages.counts).filter(
          (outcome) => outcome !== 'accepted' && outcome !== 'duplicate',
        ),
        [],
      );
      assert.is(await count(running), pushed);
      await until('all deliveries', async () => {
        await lookForUnheld(running, 5_000);
        const [row] = await running.db.rows<{ n: number }>(
          `select count(*)::int as n from event_deliveries where status = 'success'`,
        );
        return row!.n === pushed;
      });
      assert.is(await count(running, 'event_deliveries'), pushed);
    }),
);

accept('deliveries whose commit was answered to nobody are found and sent, once', () =>
  scene(async ({ running, messages, postgres, at, endpointId }) => {
    const lost = postgres.loseAnswer('accept-events');
    for (const message of messages.many(10)) running.wiring.eventWriter.push(message);
    await within(lost, 20_000, 'the answer to be lost');
    await until('all outcomes', () => messages.settled.length === 10);
    assert.equal(messages.counts, { duplicate: 10 });
    assert.equal(await states(running, endpointId), { processing: 10 });
    assert.is(await lookForUnheld(running), 10);
    await delivered(running, endpointId, 10);
    assert.is(at.requests.length, 10);
    assert.is(await lookForUnheld(running), 0);
  }),
);

accept('a message whose commit was answered to nobody is kept once, with its events', () =>
  scene(async ({ running, messages, postgres }) => {
    const lost = postgres.loseAnswer('accept-events-messages');
    const sent = messages.many(10).map((message) => keeping(message));
    for (const message of sent) running.wiring.eventWriter.push(message);
    await within(lost, 20_000, 'the answer to be lost');
    await until('all outcomes', () => messages.settled.length === 10);
    assert.equal(messages.counts, { duplicate: 10 });
    assert.is(await count(running, 'event_messages'), 10);
  }),
);

accept('of two messages with one event in a batch only that of the event is kept', () =>
  scene(async ({ running, messages }) => {
    const [first, second] = [1, 2].map((n) =>
      keeping(messages.ready({ coordinates: 'same', occurredAtMs: 1000 }), `{"n":${n}}`),
    );
    for (const message of [first!, second!]) running.wiring.eventWriter.push(message);
    await until('both outcomes', () => messages.settled.length === 2);
    const [event] = await running.db.rows<{ id: string }>(
      'select id from events where project_id = $1',
      [running.projectId],
    );
    assert.is(
      (await findEventMessage(db.pool, running.projectId, event!.id))?.raw?.toString(),
      '{"n":1}',
    );
  }),
);

accept('a commit takes no more kept messages than a statement can carry', () =>
  scene(async ({ running, messages, postgres }) => {
    postgres.cut();
    for (const message of messages.many(200))
      running.wiring.eventWriter.push(keeping(message, 'x'.repeat(KEPT_BYTES_MAX - 100)));
    postgres.restore();
    await until('all outcomes', () => messages.settled.length === 200);
    const sizes = await db.rows<{ n: number }>(
      'select count(*)::int as n from event_messages where project_id = $1 group by xmin::text',
      [running.projectId],
    );
    assert.ok(sizes.length >= 3 && sizes.every(({ n }) => n <= 65), JSON.stringify(sizes));
  }),
);

/** The message, with its bytes to be stored. */
function keeping(message: ReadyMessage, body = '{"n":1}'): ReadyMessage {
  const { projectId, id, occurredAtMs, digest } = message.events[0]!;
  return Object.assign(message, {
    kept: {
      projectId,
      id,
      occurredAtMs,
      digest: digest!,
      ...keptParts({ body: Buffer.from(body), headers: {} }),
    },
  });
}

accept('deliveries whose claim was answered to nobody are found and sent', () =>
  scene(async ({ running, postgres, at, endpointId }) => {
    const { wiring } = running;
    const held = await hold(running, endpointId, 10);
    await db.rows(
      `update event_deliveries set status = 'scheduled', claimed_by = null, next_attempt_at = now() where endpoint_id = $1`,
      [endpointId],
    );
    const lost = postgres.loseAnswer('claim-due');
    wiring.dueTimes.add(running.projectId, 0);
    await within(lost, 20_000, 'the answer to be lost');
    await until(
      'the claim to be void',
      async () => (await states(running, endpointId))['processing'] === 10,
    );
    assert.is(await lookForUnheld(running), 10);
    await delivered(running, endpointId, 10);
    assert.is(at.requests.length, held.length);
  }),
);

accept('what the agent has in hand is not given back', () =>
  scene(async ({ running, endpointId, at }) => {
    at.answer({ hang: true });
    running.wiring.inFlight.add(await hold(running, endpointId, 60));
    await at.received(50);
    assert.is(await lookForUnheld(running), 0);
    assert.equal(await states(running, endpointId), { processing: 60 });
    await at.close();
  }),
);

accept('attempts whose record was answered to nobody are recorded once', () =>
  scene(async ({ running, messages, postgres, at, endpointId }) => {
    const lost = postgres.loseAnswer('record-attempts');
    for (const message of messages.many(5)) running.wiring.eventWriter.push(message);
    await within(lost, 20_000, 'the answer to be lost');
    await delivered(running, endpointId, 5);
    await until('the room to be free', () => running.wiring.inFlight.size === 0);
    assert.is(await count(running, 'delivery_attempts'), 5);
    assert.is(at.requests.length, 5);
  }),
);

accept('a commit takes no more than a statement can carry, however large the messages', () =>
  scene(async ({ running, messages }) => {
    const raw = Buffer.alloc(2_000_000, 'x');
    const data = JSON.stringify({ a: 'x'.repeat(1_000_000) });
    for (let n = 0; n < 40; n++) running.wiring.eventWriter.push(messages.hopeless({ raw }));
    for (let n = 0; n < 40; n++)
      running.wiring.eventWriter.push(messages.ready({ data, eventType: 'large' }));
    await until('all outcomes', () => messages.settled.length === 80);
    assert.equal(messages.counts, { quarantined: 40, accepted: 40 });
    const commits = async (table: string) =>
      (
        await db.rows<{ n: number }>(
          `select count(distinct xmin::text)::int as n from ${table} where project_id = $1`,
          [running.projectId],
        )
      )[0]!.n;
    assert.ok((await commits('quarantined_messages')) >= 5);
    assert.ok((await commits('events')) >= 3);
  }),
);

accept(
  'what no endpoint seems to be meant for is committed and left to the queues, which decide with a fresh configuration',
  () =>
    scene(async ({ running, messages }) => {
      const list = [
        messages.ready({ coordinates: 'endpoint', endpointId: newId() }),
        messages.ready({ coordinates: 'owner', ownerId: 'nobody', messageType: 'fanout' }),
        messages.ready({ coordinates: 'project', projectId: newId() }),
      ];
      for (const message of list) running.wiring.eventWriter.push(message);
      await until('all outcomes', () => messages.settled.length === 3);
      assert.equal(messages.counts, { accepted: 3 });
      const rows = await db.rows(
        `select coordinates, status, outcome from events order by coordinates`,
      );
      assert.equal(rows, [
        { coordinates: 'endpoint', status: 'pending', outcome: null },
        { coordinates: 'owner', status: 'pending', outcome: null },
        { coordinates: 'project', status: 'pending', outcome: null },
      ]);
    }),
);

accept('deliveries to a paused endpoint wait, those to an inactive one are discarded', () =>
  scene(async ({ running, messages, at, endpointId }) => {
    const { projectId, configCache } = running;
    const inactive = await makeEndpoint(db, projectId, { url: at.url });
    await setEndpointStatus(db.knex, projectId, endpointId, {
      status: 'paused',
      reason: 'By hand.',
    });
    await setEndpointStatus(db.knex, projectId, inactive.id, {
      status: 'inactive',
      reason: 'By hand.',
    });
    await until(
      'the agent to know',
      () =>
        configCache.endpoint(projectId, endpointId)?.status === 'paused' &&
        configCache.endpoint(projectId, inactive.id)?.status === 'inactive',
    );
    running.wiring.eventWriter.push(messages.ready({ messageType: 'broadcast' }));
    await until('the outcome', () => messages.settled.length === 1);
    assert.equal(await states(running, endpointId), { 'scheduled held': 1 });
    assert.equal(await states(running, inactive.id), { discarded: 1 });
    assert.is(at.requests.length, 0);
  }),
);

accept('an agent for retries leaves first attempts to others', () =>
  scene(
    async ({ running, messages, at, endpointId }) => {
      running.wiring.eventWriter.push(messages.ready());
      await until('the outcome', () => messages.settled.length === 1);
      assert.equal(await states(running, endpointId), { 'scheduled due': 1 });
      assert.is(at.requests.length, 0);
    },
    { settings: { agent: { mode: 'retry' } } },
  ),
);

accept(
  'when there is no room events go on through the queues, and are routed by their consumers',
  () =>
    scene(
      async ({ running, messages, at, endpointId }) => {
        at.answer({ hang: true });
        running.wiring.inFlight.add(await hold(running, endpointId, 4));
        await at.received(4);
        assert.is(running.wiring.inFlight.room, 0);
        const other = await receiver();
        try {
          const free = await makeEndpoint(db, running.projectId, { url: other.url, owner_id: 'o' });
          await running.configCache.refresh();
          for (const message of [
            ...messages.many(5, { ownerId: 'o' }),
            ...messages.many(5, { endpointId: free.id }),
          ])
            running.wiring.eventWriter.push(message);
          await until('all outcomes', () => messages.settled.length === 10);
          assert.equal(
            (await eventsOf(running)).filter(({ status }) => status === 'pending').length,
            10,
          );
          assert.is(await running.kv.queue('create-event').depth(), 10);
          running.wiring.start();
          await at.close();
          await other.received(10);
          await until(
            'the queue to be empty',
            async () => (await running.kv.queue('create-event').depth()) === 0,
          );
        } finally {
          await other.close();
        }
      },
      { settings: { delivery: { allowed_networks: ['127.0.0.0/8'], max_outstanding: 4 } } },
    ),
);

const small = {
  delivery: { allowed_networks: ['127.0.0.0/8'], max_outstanding: 40 },
  ingest: { batch_size: 5 },
};

accept('a project whose endpoints answer commits no more than they are sent', () =>
  scene(
    async ({ running, messages, at, endpointId }) => {
      at.answer({ delayMs: 50 });
      running.wiring.eventWriter.push(messages.ready());
      await delivered(running, endpointId, 1);
      for (const message of messages.many(200)) running.wiring.eventWriter.push(message);
      await until('all outcomes', () => messages.settled.length === 201);
      const { 'scheduled due': unclaimed = 0 } = await states(running, endpointId);
      assert.ok(unclaimed < 80, `${unclaimed} were committed without room`);
      await delivered(running, endpointId, 201);
    },
    { settings: small },
  ),
);

accept('it holds up no other project, and goes on when they answer no longer', () =>
  scene(
    async ({ running, messages, at, endpointId }) => {
      running.wiring.eventWriter.push(messages.ready());
      await delivered(running, endpointId, 1);
      at.answer({ hang: true });
      for (const message of messages.many(100)) running.wiring.eventWriter.push(message);
      const neighbour = Object.assign(
        messages.ready({ coordinates: 'neighbour', projectId: newId() }),
        { projectId: newId() },
      );
      await until('the project to be busy', () =>
        running.wiring.inFlight.isBusy(running.projectId),
      );
      const busySinceMs = performance.now();
      running.wiring.eventWriter.push(neighbour);
      await until('all outcomes', () => messages.settled.length === 102);
      const took = performance.now() - busySinceMs;
      assert.ok(took > 1_500, `commits without room did not wait for each other: ${took} ms`);
      const place = messages.settled.findIndex(([coordinates]) => coordinates === 'neighbour');
      assert.ok(place < 60, `the neighbour's message was number ${place}`);
      await at.close();
    },
    { settings: small },
  ),
);

accept(
  'limits.events_per_second: a project commits so many, large ones count more, and others do not wait for it',
  () =>
    scene(
      async ({ running, messages }) => {
        const { eventWriter } = running.wiring;
        const of = (projectId: string, coordinates: string, fields: object = {}) =>
          Object.assign(messages.ready({ coordinates, projectId, ...fields }), { projectId });
        const [many, large, other] = [newId(), newId(), newId()];
        const startedAtMs = performance.now();
        for (let n = 0; n < 60; n++) eventWriter.push(of(many, `many ${n}`));
        for (let n = 0; n < 3; n++)
          eventWriter.push(
            of(large, `large ${n}`, { data: JSON.stringify('x'.repeat(40 * 16 * 1024)) }),
          );
        await until('the first', () => messages.settled.length > 0);
        eventWriter.push(of(other, 'other'));
        await until('the other', () =>
          messages.settled.some(([coordinates]) => coordinates === 'other'),
        );
        assert.ok(messages.settled.length < 50, `${messages.settled.length} were committed before`);
        await until('all outcomes', () => messages.settled.length === 64);
        // The large ones count 123; the last 41 are paid for later, and 10 are free.
        const took = performance.now() - startedAtMs;
        assert.ok(took > 600, `${took} ms`);
        assert.equal(messages.counts, { accepted: 64 });
      },
      { settings: { limits: { events_per_second: 100 } } },
    ),
);

accept(
  'a function that makes many events of a message is committed at the pace of its project',
  () =>
    scene(
      async ({ running, messages }) => {
        const events = Array.from({ length: 50 }, (_, ordinal) =>
          messages.event('many', {}, ordinal),
        );
        const startedAtMs = performance.now();
        running.wiring.eventWriter.push(messages.ready({}, events));
        running.wiring.eventWriter.push(messages.ready());
        await until('both outcomes', () => messages.settled.length === 2);
        const took = performance.now() - startedAtMs;
        assert.ok(took > 350, `${took} ms`);
      },
      { settings: { limits: { events_per_second: 100 } } },
    ),
);

accept(
  'messages of others do not wait for the commits of large ones, which leave a committer free',
  () =>
    scene(async ({ running, messages }) => {
      const other = await db.connect();
      const large = (n: number) =>
        messages.ready({
          coordinates: `large ${n}`,
          data: JSON.stringify('x'.repeat(150_000)),
          idempotencyKey: 'same',
        });
      try {
        await other.query('begin');
        await other.query(
          "insert into idempotency_keys (project_id, key, event_id, expires_at) values ($1, 'same', gen_random_uuid(), now() + interval '1 hour')",
          [running.projectId],
        );
        for (let n = 0; n < 130; n++) running.wiring.eventWriter.push(large(n));
        await lockAwaited(db, 'the large commits to wait');
        const neighbour = newId();
        for (const message of messages.many(20, { projectId: neighbour }))
          running.wiring.eventWriter.push(Object.assign(message, { projectId: neighbour }));
        await until('theirs', () => messages.settled.length === 20);
        assert.not(messages.settled.some(([coordinates]) => coordinates.startsWith('large')));
        await other.query('rollback');
      } finally {
        await other.end();
      }
      await until('all outcomes', () => messages.settled.length === 150);
    }),
);

accept(
  'without routing in the accepting agent every event takes both queues, or the first one when it names its endpoints',
  () =>
    scene(
      async ({ running, messages, at, endpointId }) => {
        const named = await makeEndpoint(db, running.projectId, { url: at.url });
        await running.configCache.refresh();
        for (const message of [
          ...messages.many(20),
          ...messages.many(20, { endpointId: named.id }),
        ])
          running.wiring.eventWriter.push(message);
        await until('all outcomes', () => messages.settled.length === 40);
        assert.is(await running.kv.queue('create-event').depth(), 40);
        assert.is(at.requests.length, 0);
        running.wiring.start();
        await until(
          'all deliveries',
          async () =>
            (await states(running, endpointId))['success'] === 20 &&
            (await states(running, named.id))['success'] === 20,
        );
        for (const queue of ['create-event', 'match-subscriptions'] as const)
          await until(
            `the queue ${queue} to be empty`,
            async () => (await running.kv.queue(queue).depth()) === 0,
          );
        assert.is(at.requests.length, 40);
        assert.ok((await eventsOf(running)).every(({ outcome }) => outcome === 'routed'));
      },
      { settings: { ingest: { inline_routing: false } } },
    ),
);

/** Runs a test with a real Redis behind a proxy as KV. */
async function onRedis(
  test: (
    scene: Scene & { messages: Messages; redis: Proxy; flush: () => Promise<unknown> },
  ) => Promise<void>,
): Promise<void> {
  const own = await redis();
  const link = await proxy({ port: own.connection.port });
  const kv = await openRedisKv(own.connection, { port: link.port });
  try {
    await alone((given) => test({ ...given, redis: link, flush: () => own.client.flushdb() }), {
      settings: { ingest: { inline_routing: false } },
      kv,
    });
  } finally {
    await kv.close();
    await link.close();
    await own.close();
  }
}

beside('events whose signal was lost with KV are routed by the reconciler', () =>
  onRedis(async ({ running, messages, at, endpointId, flush }) => {
    for (const message of messages.many(30)) running.wiring.eventWriter.push(message);
    await until('all outcomes', () => messages.settled.length === 30);
    await until('all signals', async () => (await running.kv.queue('create-event').depth()) === 30);
    await flush();
    assert.ok((await eventsOf(running)).every(({ status }) => status === 'pending'));
    await delivered(running, endpointId, 30);
    assert.is(at.requests.length, 30);
    assert.ok(running.lines.some(({ sentence }) => sentence.includes('whose signal was lost')));
  }),
);

beside('a KV that is away delays events and loses none', () =>
  onRedis(async ({ running, messages, endpointId, redis: link }) => {
    running.wiring.start();
    link.cut();
    for (const message of messages.many(10)) running.wiring.eventWriter.push(message);
    await until('all outcomes', () => messages.settled.length === 10);
    assert.equal(messages.counts, { accepted: 10 });
    await delivered(running, endpointId, 10);
    link.restore();
    running.wiring.eventWriter.push(messages.ready());
    await delivered(running, endpointId, 11, 'the delivery of what came later');
  }),
);

accept('an acceptor that is stopped leaves what is not committed to the broker', () =>
  scene(async ({ running, messages, postgres }) => {
    postgres.cut();
    for (const message of messages.many(20)) running.wiring.eventWriter.push(message);
    await until('the failure to be known', () => running.wiring.eventWriter.failing !== undefined);
    running.wiring.eventWriter.stop();
    running.wiring.eventWriter.push(messages.ready());
    await until('all outcomes', () => messages.settled.length === 21);
    assert.equal(messages.counts, { later: 21 });
  }),
);

accept.run();
