import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId, timeOfId } from '#core/events/ids';
import { readStalePending, readPending, recordRoutes, type NewEvent } from '#store/events/events';
import { replayEvents } from '#store/events/replay-events';
import { within } from '../../support/until.js';
import {
  accepted,
  batch,
  empty,
  ENDPOINT,
  genericPlan,
  lockAwaited,
  newDelivery,
  newEvent,
  newEvents,
  noting,
  onPostgres,
  pendingEvent,
  PROJECT,
  readWhole,
  sorted,
  SOURCE,
} from '../batches.js';
import { migratedDatabase } from '../migrated.js';

const events = suite('store/events/events');

const db = await migratedDatabase();
events.after(() => db.close());
events.before.each(() => empty(db));

const YEAR_2200 = Date.UTC(2200, 0, 1);

async function stored(): Promise<string[]> {
  return (await db.rows<{ id: string }>('select id from events order by id')).map(({ id }) => id);
}

const idsOf = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id).sort();

events('everything that is new is accepted, with its deliveries, in one statement', async () => {
  const many = newEvents(500);
  assert.is(
    await accepted(db.pool, batch(many, { deliveries: many.map((event) => newDelivery(event)) })),
    'all',
  );
  assert.equal(await stored(), idsOf(many));
  assert.equal(await db.rows('select count(*)::int as n from event_deliveries'), [{ n: 500 }]);
});

events('an event is stored as it came, every field', async () => {
  const event = newEvent({
    coordinates: 'orders.v1/3/9007199254740993',
    digest: '00ff00ff00ff00ff',
    eventType: `it's "ordered"\\ 😀`,
    messageType: 'fanout',
    endpointId: 'not a uuid',
    ownerId: 'Łódź, {7}',
    idempotencyKey: 'null',
    status: 'failed',
    outcome: 'unknown_owner',
    headers: '{"x-a":"\\u0000\\u001e","é":"\\n"}',
    notes: '["a \\"note\\""]',
    message: '{"key":"k \\u0000"}',
    data: '{ "id":9007199254740993,\n"price":1.10, "z":"\\u0000\\ud800 😀", "a":"" }',
  });
  assert.is(await accepted(db.pool, batch([event])), 'all');
  const [row] = await db.rows('select * from events');
  const { accepted_at: acceptedAt, ...rest } = row!;
  assert.ok(Math.abs((acceptedAt as Date).getTime() - Date.now()) < 60_000);
  assert.equal(rest, {
    project_id: event.projectId,
    id: event.id,
    occurred_at: new Date(event.occurredAtMs),
    source_id: SOURCE,
    coordinates: event.coordinates,
    digest: Buffer.from('00ff00ff00ff00ff', 'hex'),
    event_type: event.eventType,
    message_type: 'fanout',
    endpoint_id: 'not a uuid',
    owner_id: 'Łódź, {7}',
    idempotency_key: 'null',
    status: 'failed',
    outcome: 'unknown_owner',
    headers: event.headers,
    notes: event.notes,
    message: event.message,
    replayed: null,
    data: event.data,
  });
});

events(
  'a message that comes again makes no second event and no second delivery, and its new neighbours are accepted',
  async () => {
    const first = newEvents(10);
    await accepted(db.pool, batch(first, { deliveries: first.map((event) => newDelivery(event)) }));
    const second = newEvents(10);
    const both = sorted([...first, ...second]);
    const created = await accepted(
      db.pool,
      batch(both, { deliveries: both.map((event) => newDelivery(event, { status: 'scheduled' })) }),
    );
    assert.equal([...(created as ReadonlySet<string>)].sort(), idsOf(second));
    assert.equal(
      await db.rows(
        'select status, count(*)::int as n from event_deliveries group by status order by status',
      ),
      [
        { status: 'scheduled', n: 10 },
        { status: 'processing', n: 10 },
      ],
    );
    assert.equal(await accepted(db.pool, batch(both)), new Set());
  },
);

events('an idempotency key makes one event within its window, whatever the message', async () => {
  const first = newEvent({ idempotencyKey: 'k' });
  assert.is(await accepted(db.pool, batch([first])), 'all');
  const second = newEvent({ idempotencyKey: 'k' });
  const other = newEvent({ idempotencyKey: 'K' });
  const created = await accepted(
    db.pool,
    batch(sorted([second, other]), { deliveries: [newDelivery(second), newDelivery(other)] }),
  );
  assert.equal(created, new Set([other.id]));
  assert.equal(await stored(), idsOf([first, other]));
  assert.equal(await db.rows('select event_id from event_deliveries'), [{ event_id: other.id }]);
});

events(
  'a key can be used again when its window has passed, and the window of the new event begins',
  async () => {
    await accepted(
      db.pool,
      batch([newEvent({ idempotencyKey: 'k' })], { idempotencyWindowSeconds: 0 }),
    );
    const second = newEvent({ idempotencyKey: 'k' });
    assert.is(await accepted(db.pool, batch([second])), 'all');
    assert.equal(await accepted(db.pool, batch([newEvent({ idempotencyKey: 'k' })])), new Set());
    assert.equal(await db.rows('select event_id from idempotency_keys'), [{ event_id: second.id }]);
  },
);

events(
  'the redelivery of an event whose window has passed makes no second event either',
  async () => {
    const event = newEvent({ idempotencyKey: 'k' });
    await accepted(db.pool, batch([event], { idempotencyWindowSeconds: 0 }));
    assert.equal(await accepted(db.pool, batch([event])), new Set());
    assert.equal(await stored(), [event.id]);
  },
);

events('the same key in two projects is two keys', async () => {
  const both = sorted([
    newEvent({ idempotencyKey: 'k' }),
    newEvent({ idempotencyKey: 'k', projectId: newId() }),
  ]);
  assert.is(await accepted(db.pool, batch(both)), 'all');
});

onPostgres(events)(
  'stamps of the year 1970 and of the year 2200 go to the default partition and are found there',
  async () => {
    const odd = sorted(
      [0, 1, YEAR_2200].map((occurredAtMs) =>
        pendingEvent({ occurredAtMs, coordinates: `odd/${occurredAtMs}` }),
      ),
    );
    assert.is(
      await accepted(db.pool, batch(odd, { deliveries: odd.map((event) => newDelivery(event)) })),
      'all',
    );
    assert.equal(await accepted(db.pool, batch(odd)), new Set());
    assert.equal(
      await db.rows(
        `select tableoid::regclass::text as partition, count(*)::int as n from events group by 1`,
      ),
      [{ partition: 'events_default', n: 3 }],
    );
    const found = await readPending(
      db.pool,
      odd.map(({ projectId, id }) => ({ projectId, id, occurredAtMs: timeOfId(id) })),
    );
    assert.equal(found.map(({ occurredAtMs }) => occurredAtMs).sort(), [0, 1, YEAR_2200].sort());
  },
);

onPostgres(events)('the stamp of a message of today goes to the partition of the day', async () => {
  await accepted(db.pool, batch([newEvent()]));
  const [row] = await db.rows<{ partition: string }>(
    'select tableoid::regclass::text as partition from events',
  );
  assert.is(row?.partition, `events_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`);
});

events('two agents that accept the same messages at once make each event once', async () => {
  const many = newEvents(400, (n) => ({ idempotencyKey: n % 2 === 0 ? `key ${n}` : null }));
  const results = await within(
    Promise.all(
      Array.from({ length: 4 }, (_, agent) =>
        accepted(
          db.pool,
          batch(many, { agentId: agent + 1, deliveries: many.map((event) => newDelivery(event)) }),
        ),
      ),
    ),
    60_000,
    'four agents',
  );
  const claimed = results.flatMap((accepted) => (accepted === 'all' ? idsOf(many) : [...accepted]));
  assert.equal(claimed.sort(), idsOf(many));
  const counts = await db.rows(
    `select (select count(*)::int from events) as events, (select count(*)::int from event_deliveries) as deliveries`,
  );
  assert.equal(counts, [{ events: 400, deliveries: 400 }]);
});

events(
  'agents whose batches overlap do not block each other for good, with keys on some of the messages',
  async () => {
    // After a rebalance two agents read the same messages, in batches with different boundaries.
    const failures: unknown[] = [];
    for (let round = 0; round < 40; round++) {
      const many = newEvents(60, (n) => ({
        idempotencyKey: (n + round) % 3 === 0 ? `key ${round} ${n}` : null,
      }));
      const cuts = [0, 7, 20, 33, 46].map((from) => many.slice(from, from + 30));
      const results = await within(
        Promise.allSettled(cuts.map((cut) => accepted(db.pool, batch(cut)))),
        60_000,
        'the batches',
      );
      failures.push(
        ...results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : [])),
      );
    }
    assert.equal(failures.map(String), []);
    assert.equal(await db.rows('select count(*)::int as n from events'), [{ n: 40 * 60 }]);
  },
);

events(
  'the keys of a batch are locked before any of its events, so that overlapping batches wait in one direction',
  async () => {
    const [first, second] = newEvents(2) as [NewEvent, NewEvent];
    const keyed = { ...second, idempotencyKey: 'k' };
    // Another session holds the key; a batch that starts with an event without a key must not hold
    // that event meanwhile.
    const holder = await db.connect();
    const other = await db.connect();
    try {
      await holder.query('begin');
      await accepted(holder, batch([newEvent({ idempotencyKey: 'k' })]));
      const waiting = accepted(db.pool, batch([first, keyed]));
      await lockAwaited(db, 'the batch to wait for the key');
      await other.query(`set statement_timeout = '20s'`);
      assert.is(await accepted(other, batch([first])), 'all');
      await holder.query('commit');
      assert.equal(await within(waiting, 30_000, 'the batch'), new Set());
    } finally {
      await holder.end();
      await other.end();
    }
  },
);

events('deliveries are born held, waiting, waiting for their endpoint, or discarded', async () => {
  const event = newEvent();
  const born = [
    newDelivery(event, { endpointId: newId(), status: 'processing' }),
    newDelivery(event, { endpointId: newId(), status: 'scheduled', dueInMs: 60_000 }),
    newDelivery(event, { endpointId: newId(), status: 'scheduled', dueInMs: Infinity }),
    newDelivery(event, {
      endpointId: newId(),
      subscriptionId: newId(),
      status: 'discarded',
      reason: `The endpoint is "inactive": it's 😀.`,
    }),
  ];
  await accepted(db.pool, batch([event], { deliveries: born, agentId: 42 }));
  const rows = await db.rows(
    `select endpoint_id, subscription_id, event_id, occurred_at, status, claimed_by, attempts, reason,
            case when next_attempt_at = 'infinity' then 'held' when next_attempt_at > now() + interval '50 s' then 'later' when next_attempt_at is not null then 'due' end as due
     from event_deliveries`,
  );
  const row = (k: number) => rows.find(({ endpoint_id: id }) => id === born[k]!.endpointId)!;
  const shared = { event_id: event.id, occurred_at: new Date(event.occurredAtMs), attempts: 0 };
  const expected = [
    { subscription_id: null, status: 'processing', claimed_by: 42, reason: null, due: null },
    { subscription_id: null, status: 'scheduled', claimed_by: null, reason: null, due: 'later' },
    { subscription_id: null, status: 'scheduled', claimed_by: null, reason: null, due: 'held' },
    {
      subscription_id: born[3]!.subscriptionId,
      status: 'discarded',
      claimed_by: null,
      reason: born[3]!.reason,
      due: null,
    },
  ];
  for (const [k, fields] of expected.entries())
    assert.equal(row(k), { endpoint_id: born[k]!.endpointId, ...shared, ...fields });
});

events(
  'a reason with characters that no column can carry does not reach into the next row',
  async () => {
    const event = newEvent();
    const born = [
      newDelivery(event, { endpointId: newId(), status: 'discarded', reason: 'a\x1eb\0c' }),
      newDelivery(event, { endpointId: newId(), status: 'discarded', reason: 'second' }),
    ];
    await accepted(db.pool, batch([event], { deliveries: born }));
    const rows = await db.rows('select endpoint_id, reason from event_deliveries');
    assert.equal(
      rows.find(({ endpoint_id: id }) => id === born[1]!.endpointId)?.['reason'],
      'second',
    );
  },
);

events('a batch that Postgres refuses stores nothing of itself', async () => {
  const good = newEvents(5);
  const bad = newEvent({ status: 'nonsense' as never });
  await within(
    accepted(db.pool, batch(sorted([...good, bad]))).then(
      () => assert.unreachable('it was accepted'),
      (error: { code?: string }) => assert.match(error.code ?? '', /^22/),
    ),
    10_000,
    'the refusal',
  );
  assert.equal(await stored(), []);
});

events('pending events are read by their refs; routed and unknown ones are left out', async () => {
  const pending = pendingEvent({
    endpointId: 'e',
    ownerId: 'o',
    messageType: 'broadcast',
    headers: '{"a":"b"}',
    message: '{"key":"k"}',
    data: '{"big":9007199254740993}',
  });
  const routed = newEvent();
  await accepted(db.pool, batch(sorted([pending, routed])));
  const refs = [pending, routed, newEvent(), { ...pending, projectId: newId() }].map(
    ({ projectId, id, occurredAtMs }) => ({
      projectId,
      id,
      occurredAtMs,
    }),
  );
  assert.equal(await readPending(db.pool, refs), [
    {
      projectId: PROJECT,
      id: pending.id,
      occurredAtMs: pending.occurredAtMs,
      sourceId: SOURCE,
      eventType: 'order.paid',
      messageType: 'broadcast',
      endpointId: 'e',
      ownerId: 'o',
      coordinates: pending.coordinates,
      headers: '{"a":"b"}',
      message: '{"key":"k"}',
      data: '{"big":9007199254740993}',
    },
  ]);
  assert.equal(await readPending(db.pool, []), []);
});

events(
  'forgotten events are the pending ones of some age, oldest first, no more than asked for',
  async () => {
    const pending = Array.from({ length: 5 }, () => pendingEvent());
    const routed = newEvent();
    await accepted(db.pool, batch(sorted([...pending, routed])));
    for (const [age, event] of [...pending, routed].entries())
      await db.rows(
        `update events set accepted_at = now() - $1::int * interval '10 s' where id = $2`,
        [age, event.id],
      );
    const ids = async (olderThanMs: number, limit: number) =>
      (await readStalePending(db.pool, olderThanMs, limit)).map(({ id }) => id);
    assert.equal(await ids(15_000, 10), [pending[4]!.id, pending[3]!.id, pending[2]!.id]);
    assert.equal(await ids(15_000, 2), [pending[4]!.id, pending[3]!.id]);
    assert.equal(await ids(1e9, 10), []);
  },
);

events(
  'routes are recorded once: a second router adds nothing and learns that nothing is its own',
  async () => {
    const pending = sorted([pendingEvent(), pendingEvent(), pendingEvent()]);
    await accepted(db.pool, batch(pending));
    const routes = {
      events: pending.map(({ projectId, id, occurredAtMs }, n) => ({
        projectId,
        id,
        occurredAtMs,
        status: n === 2 ? ('failed' as const) : ('processed' as const),
        outcome: n === 2 ? 'unknown_owner' : 'routed',
      })),
      deliveries: pending.slice(0, 2).map((event) => newDelivery(event)),
      agentId: 7,
    };
    const ids = new Set(routes.deliveries.map(({ id }) => id));
    assert.equal((await recordRoutes(db.pool, routes)).added, ids);
    assert.is((await recordRoutes(db.pool, { ...routes, agentId: 8 })).added.size, 0);
    assert.equal(await db.rows('select status, outcome from events order by id'), [
      { status: 'processed', outcome: 'routed' },
      { status: 'processed', outcome: 'routed' },
      { status: 'failed', outcome: 'unknown_owner' },
    ]);
    assert.equal(await db.rows('select distinct claimed_by from event_deliveries'), [
      { claimed_by: 7 },
    ]);
  },
);

events(
  'an outcome that is there stays: a late router cannot fail an event that was routed',
  async () => {
    const event = newEvent();
    await accepted(db.pool, batch([event]));
    await recordRoutes(db.pool, {
      events: [{ ...event, status: 'failed', outcome: 'unknown_project' }],
      deliveries: [],
      agentId: 1,
    });
    assert.equal(await db.rows('select status, outcome from events'), [
      { status: 'processed', outcome: 'routed' },
    ]);
  },
);

events(
  'an event whose route was recorded gets no further deliveries from a router that knew other subscriptions',
  async () => {
    const event = pendingEvent();
    await accepted(db.pool, batch([event]));
    const routed = { ...event, status: 'processed' as const, outcome: 'routed' };
    await recordRoutes(db.pool, { events: [routed], deliveries: [newDelivery(event)], agentId: 1 });
    const again = await recordRoutes(db.pool, {
      events: [routed],
      deliveries: [newDelivery(event, { endpointId: newId() })],
      agentId: 2,
    });
    assert.is(again.added.size, 0);
    assert.equal(await db.rows('select endpoint_id from event_deliveries'), [
      { endpoint_id: ENDPOINT },
    ]);
  },
);

events(
  'a replayed event makes no delivery for an endpoint that has one, by whatever subscription, unless it is forced',
  async () => {
    const [before, after, second, other] = [newId(), newId(), newId(), newId()];
    const event = pendingEvent();
    await accepted(db.pool, batch([event]));
    const route = async (...of: [endpointId: string, subscriptionId: string][]) =>
      (
        await recordRoutes(db.pool, {
          events: [{ ...event, status: 'processed', outcome: 'routed' }],
          deliveries: of.map(([endpointId, subscriptionId]) =>
            newDelivery(event, { endpointId, subscriptionId }),
          ),
          agentId: 1,
        })
      ).added.size;
    assert.is(
      await route([ENDPOINT, before], [ENDPOINT, second]),
      2,
      'a delivery for each subscription',
    );
    await replayEvents(db.pool, event.projectId, [event.id]);
    assert.is(
      await route([ENDPOINT, after], [ENDPOINT, second], [other, after], [other, second]),
      2,
      'those of the endpoint that had none',
    );
    await replayEvents(db.pool, event.projectId, [event.id], { force: true });
    assert.is(
      await route([ENDPOINT, after], [ENDPOINT, second]),
      1,
      'that of the subscription that has made none',
    );
    await replayEvents(db.pool, event.projectId, [event.id]);
    assert.is(await route([ENDPOINT, newId()]), 0);
  },
);

onPostgres(events)(
  'no statement of the way reads a table whole, with plans made on empty tables',
  async () => {
    const { pool, texts } = noting(db);
    const event = pendingEvent({ idempotencyKey: 'k' });
    await accepted(pool, batch([event], { deliveries: [newDelivery(event)] }));
    await readPending(pool, [event]);
    await readStalePending(pool, 0, 10);
    await recordRoutes(pool, {
      events: [{ ...event, status: 'processed', outcome: 'routed' }],
      deliveries: [newDelivery(event)],
      agentId: 1,
    });
    assert.is(texts.size, 4);
    for (const text of texts) {
      const plan = await genericPlan(db, text);
      assert.equal(readWhole(plan), [], plan);
    }
  },
);

events.run();
