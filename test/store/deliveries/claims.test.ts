import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import {
  claimDue,
  claimEvents,
  recoverDeliveries,
  releaseDeliveries,
} from '#store/deliveries/claims';
import { acceptEvents, type StorableEvent, type NewEventDelivery } from '#store/events/events';
import { registerAgent, deregisterAgent } from '#store/deliveries/agents';
import { within } from '../../support/until.js';
import {
  batch,
  empty,
  ENDPOINT,
  genericPlan,
  newDelivery,
  newEvents,
  noting,
  onPostgres,
  PROJECT,
  readWhole,
  SOURCE,
} from '../batches.js';
import { migratedDatabase } from '../migrated.js';

const deliveries = suite('store/deliveries/claims');

const db = await migratedDatabase();
deliveries.after(() => db.close());
deliveries.before.each(() => empty(db));

async function make(
  count: number,
  fields: Partial<NewEventDelivery> = {},
  event: Partial<StorableEvent> = {},
  agentId = 1,
): Promise<NewEventDelivery[]> {
  const events = newEvents(count, event);
  const made = events.map((one) => newDelivery(one, fields));
  await acceptEvents(db.pool, batch(events, { deliveries: made, agentId }));
  return made;
}

const scheduled = { status: 'scheduled' } as const;

async function claim(
  agentId: number,
  limit: number,
  options: { statuses?: ('scheduled' | 'retry')[]; except?: string[]; projectId?: string } = {},
) {
  const { statuses = ['scheduled', 'retry'], except = [], projectId = PROJECT } = options;
  return (await claimDue(db.pool, agentId, { projectId, statuses, exceptEndpoints: except, limit }))
    .claimed;
}

const idsOf = (list: readonly { readonly id: string }[]) => list.map(({ id }) => id).sort();

/** Counts deliveries by `status` or `status/agent`. */
async function states(): Promise<Record<string, number>> {
  const rows = await db.rows<{ state: string; n: number }>(
    `select status || coalesce('/' || claimed_by, '') || case when next_attempt_at = 'infinity' then ' held' when next_attempt_at > now() then ' later' when next_attempt_at is not null then ' due' else '' end as state,
            count(*)::int as n
     from event_deliveries group by 1`,
  );
  return Object.fromEntries(rows.map(({ state, n }) => [state, n]));
}

deliveries(
  'a claim takes the oldest whose bodies fit, at least one, and says whether there is more',
  async () => {
    const data = JSON.stringify('x'.repeat(998));
    const made: NewEventDelivery[] = [];
    for (const secondsAgo of [50, 40, 30, 20]) {
      const [one] = await make(1, scheduled, { data });
      await db.rows(
        `update event_deliveries set next_attempt_at = now() - $2::int * interval '1 s' where id = $1`,
        [one!.id, secondsAgo],
      );
      made.push(one!);
    }
    const claimBytes = async (bytes: number, from?: string) => {
      const options = {
        projectId: PROJECT,
        statuses: ['scheduled' as const],
        exceptEndpoints: [],
        limit: 10,
        bytes,
      };
      const { claimed, isMore, scannedTo } = await claimDue(db.pool, 1, {
        ...options,
        ...(from ? { from } : {}),
      });
      return { ids: idsOf(claimed), isMore, scannedTo };
    };
    const first = await claimBytes(1_500);
    assert.equal([first.ids, first.isMore], [idsOf(made.slice(0, 2)), true]);
    const second = await claimBytes(1, first.scannedTo);
    assert.equal(
      [second.ids, second.isMore],
      [idsOf(made.slice(2, 3)), true],
      'the next one is not skipped',
    );
    const third = await claimBytes(1_000, second.scannedTo);
    assert.equal([third.ids, third.isMore], [idsOf(made.slice(3)), false]);
  },
);

deliveries(
  'the deliveries of some events are claimed, as far as they are due, may be claimed, and fit',
  async () => {
    const events = newEvents(4);
    const made = events.map((event) => newDelivery(event, scheduled));
    await acceptEvents(db.pool, batch(events, { deliveries: made, agentId: 1 }));
    const [due, later, other, unasked] = made as [
      NewEventDelivery,
      NewEventDelivery,
      NewEventDelivery,
      NewEventDelivery,
    ];
    await db.rows(
      `update event_deliveries set next_attempt_at = now() + interval '1 hour' where id = $1`,
      [later.id],
    );
    await db.rows(`update event_deliveries set endpoint_id = $2 where id = $1`, [
      other.id,
      newId(),
    ]);
    const refs = events.slice(0, 3);
    const of = { refs, exceptEndpoints: [] as string[], limit: 10, bytes: 1e6 };
    const first = await claimEvents(db.pool, 1, { ...of, exceptEndpoints: [ENDPOINT] });
    assert.equal([idsOf(first.claimed), first.isMore], [[other.id], false]);
    const second = await claimEvents(db.pool, 1, { ...of, limit: 1 });
    assert.equal(
      [idsOf(second.claimed), second.isMore, String(second.claimed[0]!.body)],
      [[due.id], false, events[0]!.data],
    );
    assert.equal((await claimEvents(db.pool, 2, of)).claimed, [], 'nothing is claimed twice');
    assert.equal(idsOf(await claim(2, 10)), [unasked.id]);

    const two = newEvents(2);
    const theirs = two.map((event) => newDelivery(event, scheduled));
    await acceptEvents(db.pool, batch(two, { deliveries: theirs, agentId: 1 }));
    const next = () => claimEvents(db.pool, 1, { ...of, refs: two, limit: 1 });
    assert.equal([(await next()).isMore, (await next()).isMore], [true, false]);
  },
);

deliveries(
  'a claim skips rows that another agent is claiming, and does not wait for them',
  async () => {
    const made = await make(2, scheduled);
    const [locked] = idsOf(made);
    const other = await db.pool.connect();
    try {
      await other.query('begin');
      await other.query('select from event_deliveries where id = $1 for update', [locked]);
      const claimed = await within(claim(1, 10), 5_000, 'the claim');
      assert.equal(
        claimed.map(({ id }) => id),
        idsOf(made).filter((id) => id !== locked),
      );
    } finally {
      await other.query('rollback');
      other.release();
    }
  },
);

deliveries(
  'ten agents that claim a thousand deliveries at once take each once, and all of them',
  async () => {
    const made = await make(1000, scheduled);
    const taken: string[] = [];
    const agent = async (id: number): Promise<void> => {
      // Rows that another agent is claiming are skipped, so an empty result can precede the end: the
      // count decides.
      while (taken.length < made.length) {
        const claimed = await claim(id, 37);
        taken.push(...claimed.map((delivery) => delivery.id));
        if (claimed.length === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    };
    await within(
      Promise.all(Array.from({ length: 10 }, (_, k) => agent(k + 1))),
      60_000,
      'ten agents',
    );
    assert.is(taken.length, 1000);
    assert.is(new Set(taken).size, 1000);
    const rows = await states();
    assert.is(
      Object.values(rows).reduce((sum, n) => sum + n),
      1000,
    );
    assert.ok(
      Object.keys(rows).every((state) => /^processing\/\d+$/.test(state)),
      JSON.stringify(rows),
    );
  },
);

deliveries('a claim brings what is needed to send', async () => {
  const [made] = await make(1, scheduled, {
    headers: '{"x-a":"\\u0000é"}',
    data: '{ "id":9007199254740993, "z":"it\'s \\\\ 😀" }',
    eventType: 'order.paid',
  });
  assert.equal(await claim(5, 10), [
    {
      projectId: PROJECT,
      id: made!.id,
      occurredAtMs: made!.occurredAtMs,
      eventId: made!.eventId,
      endpointId: ENDPOINT,
      subscriptionId: null,
      attempts: 0,
      traceparent: null,
      eventType: 'order.paid',
      sourceId: SOURCE,
      headers: { 'x-a': '\u0000é' },
      body: Buffer.from('{ "id":9007199254740993, "z":"it\'s \\\\ 😀" }'),
      isTransformed: false,
      orderKey: null,
      agentId: 5,
    },
  ]);
  assert.equal(await states(), { 'processing/5': 1 });
});

deliveries(
  'what is not due yet is not claimed, nor what waits for its endpoint, nor what another agent holds, nor what is over',
  async () => {
    await make(3, { ...scheduled, dueInMs: 60_000 });
    await make(3, { ...scheduled, dueInMs: Infinity });
    await make(3, {}, {}, 9);
    await make(3, { status: 'discarded', reason: 'x' });
    assert.equal(await claim(1, 100), []);
  },
);

deliveries('what is due longest is claimed first, up to the limit', async () => {
  const made = await make(5, scheduled);
  for (const [age, { id }] of made.entries())
    await db.rows(
      `update event_deliveries set next_attempt_at = now() - $1::int * interval '1 min' where id = $2`,
      [age, id],
    );
  assert.equal(idsOf(await claim(1, 2)), idsOf([made[4]!, made[3]!]));
  assert.equal(idsOf(await claim(1, 2)), idsOf([made[2]!, made[1]!]));
  assert.equal(await claim(1, 0), []);
});

deliveries('first attempts and later ones are claimed apart', async () => {
  const [first, later] = [await make(2, scheduled), await make(3, scheduled)];
  await db.rows(`update event_deliveries set status = 'retry', attempts = 1 where id = any ($1)`, [
    idsOf(later),
  ]);
  assert.equal(idsOf(await claim(1, 10, { statuses: ['retry'] })), idsOf(later));
  assert.equal(await claim(1, 10, { statuses: ['retry'] }), []);
  assert.equal(idsOf(await claim(2, 10, { statuses: ['scheduled'] })), idsOf(first));
});

deliveries('other projects and endpoints that are named are left alone', async () => {
  const busy = newId();
  await make(2, { ...scheduled, endpointId: busy });
  const mine = await make(2, scheduled);
  await make(2, scheduled, { projectId: newId() });
  assert.equal(idsOf(await claim(1, 10, { except: [busy, newId()] })), idsOf(mine));
  assert.equal(await claim(1, 10, { projectId: newId() }), []);
});

deliveries('a claim tells how far it has walked, and another begins there', async () => {
  const busy = newId();
  await make(20, { ...scheduled, endpointId: busy, dueInMs: -60_000 });
  const [early] = await make(1, { ...scheduled, dueInMs: -40_000 });
  const [late] = await make(1, { ...scheduled, dueInMs: -20_000 });
  const claimOne = (from?: string) =>
    claimDue(db.pool, 1, {
      projectId: PROJECT,
      statuses: ['scheduled'],
      exceptEndpoints: [busy],
      limit: 1,
      from,
    });
  const secondsSince = async (time: string) =>
    (
      await db.rows<{ s: number }>(
        'select extract(epoch from now() - $1::timestamptz)::float8 as s',
        [time],
      )
    )[0]!.s;
  const first = await claimOne();
  assert.equal(idsOf(first.claimed), idsOf([early!]));
  const toEarly = await secondsSince(first.scannedTo);
  assert.ok(toEarly > 40 && toEarly < 60, `${toEarly}: as far as what it got, a second less`);
  await db.rows(
    `update event_deliveries set status = 'scheduled', claimed_by = null, next_attempt_at = now() - interval '50 seconds' where id = $1`,
    [early!.id],
  );
  const second = await claimOne(first.scannedTo);
  assert.equal(idsOf(second.claimed), idsOf([late!]), 'what is due before is not looked at');
  const third = await claimOne(second.scannedTo);
  assert.equal(third.claimed, []);
  const toNow = await secondsSince(third.scannedTo);
  assert.ok(toNow >= 1 && toNow < 15, `${toNow}: it has come to now`);
  assert.equal(idsOf((await claimOne()).claimed), idsOf([early!]));
});

deliveries('deliveries of the years 1970 and 2200 are claimed like others', async () => {
  const times = [0, Date.UTC(2200, 0, 1)];
  for (const occurredAtMs of times)
    await make(1, scheduled, { occurredAtMs, coordinates: `odd/${occurredAtMs}` });
  assert.equal((await claim(1, 10)).map(({ occurredAtMs }) => occurredAtMs).sort(), times.sort());
});

deliveries(
  'given back, a delivery is due after a while as what it was, attempts untouched',
  async () => {
    const fresh = await make(2);
    const tried = await make(2);
    await db.rows('update event_deliveries set attempts = 3 where id = any ($1)', [idsOf(tried)]);
    await releaseDeliveries(db.pool, 1, [...fresh, ...tried], { to: 'due', dueInMs: 0 });
    assert.equal(await states(), { 'scheduled due': 2, 'retry due': 2 });
    assert.equal(
      (await claim(2, 10, { statuses: ['retry'] })).map(({ attempts }) => attempts),
      [3, 3],
    );
  },
);

deliveries(
  'given back for later, until its endpoint is active again, or discarded with the reason',
  async () => {
    await releaseDeliveries(db.pool, 1, await make(1), { to: 'due', dueInMs: 60_000 });
    await releaseDeliveries(db.pool, 1, await make(1), { to: 'due', dueInMs: Infinity });
    await releaseDeliveries(db.pool, 1, await make(1), {
      to: 'discarded',
      reason: `It's "gone". 😀`,
    });
    assert.equal(await states(), { 'scheduled later': 1, 'scheduled held': 1, discarded: 1 });
    assert.equal(await db.rows('select reason from event_deliveries where reason is not null'), [
      { reason: `It's "gone". 😀` },
    ]);
  },
);

deliveries('nobody releases what another agent holds, or what is over', async () => {
  const other = await make(2, {}, {}, 9);
  const over = await make(1, { status: 'discarded', reason: 'x' });
  await releaseDeliveries(db.pool, 1, [...other, ...over], { to: 'due', dueInMs: 0 });
  assert.equal(await states(), { 'processing/9': 2, discarded: 1 });
  await releaseDeliveries(db.pool, 1, [], { to: 'due', dueInMs: 0 });
});

deliveries(
  'what a dead agent held is due at once and marked, what a living one holds stays',
  async () => {
    const living = await registerAgent(db.pool, 'living', 60_000);
    const dead = await registerAgent(db.pool, 'dead', 60_000);
    const mine = await make(2, {}, {}, living);
    const lost = await make(3, {}, {}, dead);
    await db.rows('update event_deliveries set attempts = 2 where id = $1', [lost[0]!.id]);
    assert.is(await recoverDeliveries(db.pool, { orphans: false }), 0);
    await db.rows(`update agents set expires_at = now() - interval '1 ms' where id = $1`, [dead]);
    assert.is(await recoverDeliveries(db.pool, { orphans: false }), 3);
    assert.equal(await states(), {
      [`processing/${living}`]: 2,
      'scheduled due': 2,
      'retry due': 1,
    });
    assert.equal(await db.rows('select id from agents'), [{ id: living }]);
    const marked = await db.rows<{ id: string }>(
      'select id from event_deliveries where recovered = 1',
    );
    assert.equal(idsOf(marked), idsOf(lost));
    assert.equal(idsOf(await claim(living, 10)), idsOf(lost));
    assert.is(mine.length, 2);
  },
);

deliveries('what an agent without a row holds is found when orphans are asked for', async () => {
  const gone = await registerAgent(db.pool, 'gone', 60_000);
  await deregisterAgent(db.pool, gone);
  await make(4, {}, {}, gone);
  assert.is(await recoverDeliveries(db.pool, { orphans: false }), 0);
  assert.is(await recoverDeliveries(db.pool, { orphans: true }), 4);
  assert.equal(await states(), { 'scheduled due': 4 });
});

deliveries('orphans and the dead are found together', async () => {
  const dead = await registerAgent(db.pool, 'dead', -1);
  const living = await registerAgent(db.pool, 'living', 60_000);
  for (const agent of [dead, living, 99_999]) await make(1, {}, {}, agent);
  assert.is(await recoverDeliveries(db.pool, { orphans: true }), 2);
  assert.equal(await states(), { [`processing/${living}`]: 1, 'scheduled due': 2 });
});

deliveries('agents that recover at once count each delivery once', async () => {
  const dead = await registerAgent(db.pool, 'dead', -1);
  await make(200, {}, {}, dead);
  const counts = await within(
    Promise.all(
      Array.from({ length: 6 }, (_, k) => recoverDeliveries(db.pool, { orphans: k % 2 === 0 })),
    ),
    60_000,
    'the recoveries',
  );
  assert.is(
    counts.reduce((sum, n) => sum + n),
    200,
  );
  assert.equal(await db.rows('select distinct recovered from event_deliveries'), [
    { recovered: 1 },
  ]);
});

deliveries(
  'the table refuses what cannot be: held by nobody, or waiting without a time',
  async () => {
    await make(1);
    for (const wrong of [
      `claimed_by = null`,
      `status = 'scheduled', claimed_by = null`,
      `next_attempt_at = now()`,
      `status = 'success'`,
    ]) {
      let code = '';
      await db
        .rows(`update event_deliveries set ${wrong}`)
        .catch((error: { code: string }) => (code = error.code));
      assert.is(code, '23514', wrong);
    }
  },
);

onPostgres(deliveries)(
  'no statement about deliveries reads a table whole, with plans made on empty tables',
  async () => {
    const { pool, texts } = noting(db);
    await claimDue(pool, 1, {
      projectId: PROJECT,
      statuses: ['scheduled'],
      exceptEndpoints: [],
      limit: 1,
    });
    await releaseDeliveries(pool, 1, [], { to: 'due', dueInMs: 0 });
    await recoverDeliveries(pool, { orphans: false });
    await recoverDeliveries(pool, { orphans: true });
    await claimEvents(pool, 1, { refs: [], exceptEndpoints: [], limit: 1, bytes: 1 });
    assert.is(texts.size, 5);
    for (const text of texts) {
      const plan = await genericPlan(db, text);
      assert.equal(readWhole(plan), [], plan);
    }
  },
);

deliveries.run();
