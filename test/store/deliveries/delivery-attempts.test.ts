import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { recordAttempts, type AttemptRecord } from '#store/deliveries/delivery-attempts';
import { claimDue, releaseDeliveries } from '#store/deliveries/claims';
import { acceptEvents, type NewEvent, type NewEventDelivery } from '#store/events/events';
import type { Database } from '#store/postgres/database';
import {
  attempt,
  batch,
  empty,
  genericPlan,
  newDelivery,
  newEvents,
  noting,
  onPostgres,
  readWhole,
} from '../batches.js';
import { migratedDatabase } from '../migrated.js';

const attempts = suite('store/deliveries/delivery-attempts');

const db = await migratedDatabase();
attempts.after(() => db.close());
attempts.before.each(() => empty(db));

async function held(
  count: number,
  agentId = 1,
  event: Partial<NewEvent> = {},
): Promise<NewEventDelivery[]> {
  const events = newEvents(count, event);
  const made = events.map((one) => newDelivery(one));
  await acceptEvents(db.pool, batch(events, { deliveries: made, agentId }));
  return made;
}

async function stateOf({ id }: { id: string }): Promise<unknown> {
  const [row] = await db.rows(
    `select status, attempts, claimed_by, reason,
            case when next_attempt_at = 'infinity' then 'held' when next_attempt_at > now() + interval '50 s' then 'later' when next_attempt_at is not null then 'due' end as due
     from event_deliveries where id = $1`,
    [id],
  );
  return row;
}

attempts('an attempt is stored as it was, and its delivery has the new status', async () => {
  const [delivery] = await held(1);
  const made = attempt(delivery!, {
    number: 3,
    requestedAtMs: 1_763_700_000_123,
    durationMs: 4567,
    target: `https://example.com/hooks?q="it's"`,
    code: 503,
    errorClass: 'status',
    detail: `The endpoint answered 503: it's "down" \\ 😀.`,
    responseHeaders: '{"x-a":"\\u0000\\u001e"}',
    responseBody: 'line\nbreak\t{"a":1} é',
    status: 'failure',
    reason: 'No retry is left.',
  });
  await recordAttempts(db.pool, [made]);
  assert.equal(await db.rows('select * from delivery_attempts'), [
    {
      project_id: delivery!.projectId,
      event_delivery_id: delivery!.id,
      id: made.attemptId,
      occurred_at: new Date(delivery!.occurredAtMs),
      requested_at: new Date(1_763_700_000_123),
      endpoint_id: delivery!.endpointId,
      duration_ms: 4567,
      number: 3,
      http_status: 503,
      error_class: 'status',
      error: made.detail,
      url: made.target,
      response_headers: made.responseHeaders,
      response_body: made.responseBody,
    },
  ]);
  assert.equal(await stateOf(delivery!), {
    status: 'failure',
    attempts: 3,
    claimed_by: null,
    reason: 'No retry is left.',
    due: null,
  });
});

attempts('each of a batch has its own end', async () => {
  const [good, later, soon, waiting, failed, unanswered] = await held(6);
  await recordAttempts(db.pool, [
    attempt(good!),
    attempt(later!, {
      status: 'retry',
      dueInMs: 60_000,
      code: 500,
      errorClass: 'status',
      detail: 'x',
    }),
    attempt(soon!, { status: 'retry', dueInMs: 0, number: 2 }),
    attempt(waiting!, { status: 'retry', dueInMs: Infinity }),
    attempt(failed!, { status: 'failure', reason: 'No retry is left.' }),
    attempt(unanswered!, {
      status: 'discarded',
      reason: 'gone',
      code: null,
      errorClass: 'timeout',
      detail: 'slow',
      responseHeaders: null,
      responseBody: null,
    }),
  ]);
  const state = { attempts: 1, claimed_by: null, reason: null, due: null };
  assert.equal(await stateOf(good!), { ...state, status: 'success' });
  assert.equal(await stateOf(later!), { ...state, status: 'retry', due: 'later' });
  assert.equal(await stateOf(soon!), { ...state, status: 'retry', attempts: 2, due: 'due' });
  assert.equal(await stateOf(waiting!), { ...state, status: 'retry', due: 'held' });
  assert.equal(await stateOf(failed!), {
    ...state,
    status: 'failure',
    reason: 'No retry is left.',
  });
  assert.equal(await stateOf(unanswered!), { ...state, status: 'discarded', reason: 'gone' });
  assert.equal(
    await db.rows(
      'select http_status, response_headers, response_body from delivery_attempts where event_delivery_id = $1',
      [unanswered!.id],
    ),
    [{ http_status: null, response_headers: null, response_body: null }],
  );
});

attempts(
  'what a function made is stored with the attempt that sends it, and is what later claims get',
  async () => {
    const [made, plain] = await held(2);
    const retried = { status: 'retry', dueInMs: 0, code: 503, errorClass: 'status' } as const;
    const data = '{"text":"\\u001e é","n":1.50}';
    await recordAttempts(db.pool, [
      attempt(made!, { ...retried, transformedData: data }),
      attempt(plain!, retried),
    ]);
    const claim = async () => {
      const options = {
        projectId: made!.projectId,
        statuses: ['retry'],
        exceptEndpoints: [],
        limit: 5,
        bytes: 1_000,
      } as const;
      const { claimed } = await claimDue(db.pool, 2, options);
      return new Map(claimed.map((one) => [one.id, [String(one.body), one.isTransformed]]));
    };
    const claimed = await claim();
    assert.equal(claimed.get(made!.id), [data, true]);
    assert.equal(claimed.get(plain!.id), ['{"n":1}', false]);
    // Neither an attempt without data nor a batch with data for another delivery removes it.
    await recordAttempts(db.pool, [
      attempt(made!, { ...retried, number: 2, agentId: 2 }),
      attempt(plain!, { ...retried, number: 2, agentId: 2, transformedData: '{"late":true}' }),
    ]);
    const again = await claim();
    assert.equal(
      [again.get(made!.id), again.get(plain!.id)],
      [
        [data, true],
        ['{"late":true}', true],
      ],
    );
  },
);

attempts(
  'the trace of an attempt stays with its delivery until the next attempt is on record',
  async () => {
    const [again, over] = await held(2);
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const retried = {
      status: 'retry',
      dueInMs: 0,
      code: 503,
      errorClass: 'status',
      traceparent,
    } as const;
    await recordAttempts(db.pool, [attempt(again!, retried), attempt(over!)]);
    const traces = async () =>
      (
        await db.rows<{ traceparent: string | null }>(
          'select traceparent from event_deliveries order by status',
        )
      ).map((row) => row.traceparent);
    assert.equal(await traces(), [traceparent, null]);
    const claim = {
      projectId: again!.projectId,
      statuses: ['retry'],
      exceptEndpoints: [],
      limit: 5,
    } as const;
    const [claimed] = (await claimDue(db.pool, 2, claim)).claimed;
    assert.is(claimed?.traceparent, traceparent);
    assert.is(claimed?.sourceId, again!.sourceId);
    await recordAttempts(db.pool, [attempt(again!, { number: 2, agentId: 2 })]);
    assert.equal(await traces(), [null, null]);
  },
);

attempts('a batch may be recorded again, as after an answer that was lost', async () => {
  const made = await held(50);
  const records = made.map((delivery) => attempt(delivery));
  await recordAttempts(db.pool, records);
  await recordAttempts(db.pool, records);
  assert.equal(await db.rows('select count(*)::int as n from delivery_attempts'), [{ n: 50 }]);
  assert.equal(
    await db.rows(
      `select count(*)::int as n from event_deliveries where status = 'success' and attempts = 1`,
    ),
    [{ n: 50 }],
  );
});

attempts(
  'recording again does not undo what happened since, also at the agent that has claimed it again',
  async () => {
    for (const agentId of [2, 1]) {
      const [delivery] = await held(1, 1);
      const first = attempt(delivery!, { agentId: 1, status: 'retry', dueInMs: 0 });
      await recordAttempts(db.pool, [first]);
      await db.rows(
        `update event_deliveries set status = 'processing', claimed_by = $2, next_attempt_at = null where id = $1`,
        [delivery!.id, agentId],
      );
      await recordAttempts(db.pool, [first]);
      assert.equal(await stateOf(delivery!), {
        status: 'processing',
        attempts: 1,
        claimed_by: agentId,
        reason: null,
        due: null,
      });
      await recordAttempts(db.pool, [attempt(delivery!, { agentId, number: 2 })]);
      await recordAttempts(db.pool, [first]);
      assert.equal(await stateOf(delivery!), {
        status: 'success',
        attempts: 2,
        claimed_by: null,
        reason: null,
        due: null,
      });
    }
  },
);

attempts(
  'an agent that lost its delivery to another changes nothing of it, and its attempt is on record',
  async () => {
    const [delivery] = await held(1, 9);
    await recordAttempts(db.pool, [
      attempt(delivery!, { agentId: 1, status: 'failure', reason: 'late' }),
    ]);
    assert.equal(await stateOf(delivery!), {
      status: 'processing',
      attempts: 0,
      claimed_by: 9,
      reason: null,
      due: null,
    });
    assert.equal(await db.rows('select count(*)::int as n from delivery_attempts'), [{ n: 1 }]);
  },
);

attempts('attempts of several agents and of odd times go in one batch', async () => {
  const made = [
    ...(await held(1, 1)),
    ...(await held(1, 2, { occurredAtMs: 0, coordinates: 'odd/0' })),
    ...(await held(1, 3, { occurredAtMs: Date.UTC(2200, 0, 1), coordinates: 'odd/2200' })),
  ];
  await recordAttempts(
    db.pool,
    made.map((delivery, k) => attempt(delivery, { agentId: k + 1 })),
  );
  assert.equal(
    await db.rows('select status, count(*)::int as n from event_deliveries group by status'),
    [{ status: 'success', n: 3 }],
  );
  assert.equal(await db.rows('select count(*)::int as n from delivery_attempts'), [{ n: 3 }]);
});

attempts(
  'what an endpoint says cannot break a batch: characters that Postgres refuses are replaced',
  async () => {
    const [bad, good] = await held(2);
    const dirty = 'a\0b\x1ec\x1fd\ud800e';
    await recordAttempts(db.pool, [
      attempt(bad!, {
        responseBody: dirty,
        detail: dirty,
        target: `https://example.com/${dirty}`,
        status: 'failure',
        reason: dirty,
      }),
      attempt(good!, { responseBody: 'fine' }),
    ]);
    const cleaned = 'a\ufffdb\ufffdc\ufffdd\ufffde';
    const [row] = await db.rows(
      'select response_body, error, url from delivery_attempts where event_delivery_id = $1',
      [bad!.id],
    );
    assert.equal(row, {
      response_body: cleaned,
      error: cleaned,
      url: `https://example.com/${cleaned}`,
    });
    assert.is(((await stateOf(bad!)) as { reason: string }).reason, cleaned);
    assert.equal(
      await db.rows('select response_body from delivery_attempts where event_delivery_id = $1', [
        good!.id,
      ]),
      [{ response_body: 'fine' }],
    );
  },
);

attempts(
  'a wait that makes no sense is refused as content, so that its neighbours can be saved',
  async () => {
    const [delivery] = await held(1);
    const codes: string[] = [];
    for (const wrong of [
      { status: 'retry', dueInMs: NaN },
      { status: 'retry', dueInMs: 1e300 },
      { number: 40_000 },
    ] as Partial<AttemptRecord>[]) {
      await recordAttempts(db.pool, [attempt(delivery!, wrong)]).catch((error: { code: string }) =>
        codes.push(error.code),
      );
    }
    assert.is(codes.length, 3);
    assert.ok(
      codes.every((code) => code.startsWith('22')),
      codes.join(),
    );
  },
);

attempts('five hundred attempts are recorded in one statement', async () => {
  const made = await held(500);
  await recordAttempts(
    db.pool,
    made.map((delivery) => attempt(delivery, { attemptId: newId() })),
  );
  assert.equal(
    await db.rows(`select count(*)::int as n from event_deliveries where status = 'success'`),
    [{ n: 500 }],
  );
});

onPostgres(attempts)(
  'the statement reads no table whole, with plans made on empty tables',
  async () => {
    const { pool, texts } = noting(db);
    await recordAttempts(pool, []);
    assert.is(texts.size, 1);
    for (const text of texts) {
      const plan = await genericPlan(db, text);
      assert.equal(readWhole(plan), [], plan);
    }
  },
);

onPostgres(attempts)(
  'with plans made on the empty tables of a fresh database, a delivery among many is found without reading the others',
  async () => {
    const own = await migratedDatabase();
    const client = await own.pool.connect();
    try {
      // A single connection, which keeps the plans of its first use.
      const pool = client as unknown as Database['pool'];
      await recordAttempts(pool, []);
      await releaseDeliveries(pool, 1, [], { to: 'due', dueInMs: 0 });
      const events = newEvents(1000);
      const made = events.map((event) => newDelivery(event));
      await acceptEvents(pool, batch(events, { deliveries: made }));
      await client.query('begin');
      await recordAttempts(
        pool,
        made.slice(0, 5).map((delivery) => attempt(delivery)),
      );
      await releaseDeliveries(pool, 1, made.slice(5, 10), { to: 'due', dueInMs: 0 });
      const { rows } = await client.query<{ read: number }>(
        `select sum(idx_tup_fetch + seq_tup_read)::int as read from pg_stat_xact_user_tables where relname like 'event_deliveries%'`,
      );
      await client.query('commit');
      assert.is(rows[0]?.read, 10);
    } finally {
      client.release();
      await own.close();
    }
  },
);

attempts.run();
