import type { Message, Outcome } from '@gateway/plugin';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ReadyMessage } from '#ingest/message/ready-message';
import { Throttle } from '#agent/flow-control/throttle';
import { Pipeline } from '#ingest/pipeline';
import { Transformer } from '#ingest/transform/transformer';
import type { IngestSource } from '#ingest/message/ingest-source';
import type { TransformResult } from '@gateway/sandbox';
import { clampTime, eventId, newId, timeOfId } from '#core/events/ids';
import { TokenBuckets } from '#core/process/token-buckets';
import { LoopShares } from '#core/process/loop-shares';
import { silentLog } from '#core/logging/log';
import { bucketsOn } from '../support/buckets.js';
import { empty } from '../store/batches.js';
import { migratedDatabase } from '../store/migrated.js';
import { type Endpoint, endpoint as receiver } from '../support/endpoint.js';
import { until, within } from '../support/until.js';
import { makeEndpoint, makeSubscription } from '../agent/records.js';
import { runAgent, type RunningAgent } from '../agent/running.js';

const pipeline = suite('ingest/pipeline');

const db = await migratedDatabase();
pipeline.after(() => db.close());

interface Scene {
  readonly running: RunningAgent;
  readonly at: Endpoint;
  readonly pipeline: Pipeline;
  /** Passes a message to the pipeline, like a source with this function. */
  hand(
    body: string | Uint8Array,
    options?: { bodyFunction?: string } & Partial<Message>,
  ): Promise<Outcome>;
  /** The counted outcomes, in order. */
  readonly counted: Outcome[];
}

let last = 0;

async function scene(
  test: (scene: Scene) => Promise<void>,
  { ratePerSecond = 0 } = {},
): Promise<void> {
  const running = await runAgent({
    db,
    settings: { transform: { deadline_ms: 500, processes: 1 } },
  });
  const at = await receiver();
  const counted: Outcome[] = [];
  const { eventWriter, sandbox } = running.wiring;
  const it = new Pipeline({
    pace: new TokenBuckets(0),
    loopShares: new LoopShares(0),
    throttle: new Throttle(bucketsOn(running.kv), ratePerSecond),
    transformer: new Transformer({ sandbox, log: silentLog }),
    eventWriter,
    maxMessageBytes: 10_000,
    accepts: (_project, eventType) => eventType !== 'unknown',
    measure: {
      settled: (_: unknown, outcome: Outcome) => counted.push(outcome),
      step: () => undefined,
    },
  });
  const sources = new Map<string, IngestSource>();
  const sourceOf = (bodyFunction: string | null): IngestSource => {
    const key = String(bodyFunction);
    const known = sources.get(key) ?? { projectId: running.projectId, id: newId(), bodyFunction };
    sources.set(key, known);
    return known;
  };
  try {
    const { id: endpointId } = await makeEndpoint(db, running.projectId, { url: at.url });
    await makeSubscription(db, running.projectId, { endpointId });
    await running.configCache.refresh();
    const hand: Scene['hand'] = (body, { bodyFunction, ...fields } = {}) => {
      const message = {
        coordinates: `orders/0/${last++}`,
        timestamp: Date.now(),
        body: typeof body === 'string' ? Buffer.from(body) : body,
        headers: {},
        ...fields,
      };
      return within(it.handle(() => sourceOf(bodyFunction ?? null))(message), 30_000, 'an outcome');
    };
    await within(test({ running, at, hand, pipeline: it, counted }), 60_000, 'the test');
  } finally {
    await at.close();
    await running.close();
    await empty(db);
  }
}

pipeline(
  'an event type that the project rejects quarantines the message, with all that its function made of it',
  () =>
    scene(async ({ hand, counted, running }) => {
      await hand('{"event_type":"unknown","data":{}}');
      const bodyFunction = `function transform(p) { return [{ event_type: 'known', data: p }, { event_type: 'unknown', data: p }]; }`;
      await hand('{}', { bodyFunction });
      assert.equal(counted, ['quarantined', 'quarantined']);
      const rows = await db.rows<{ code: string; reason: string }>(
        'select code, reason from quarantined_messages where project_id = $1 order by id',
        [running.projectId],
      );
      assert.equal(
        rows.map(({ code }) => code),
        ['unknown_event_type', 'unknown_event_type'],
      );
      assert.match(
        rows.map(({ reason }) => reason).join(),
        'Result 2 of 2: The project has no event type "unknown"',
      );
      assert.equal(
        await db.rows('select id from events where project_id = $1', [running.projectId]),
        [],
      );
    }),
);

const GOOD = '{"event_type":"order.paid","data":{"id":9007199254740993}}';

const quarantined = () =>
  db.rows<{ code: string; reason: string; raw: Buffer; coordinates: string; headers: string }>(
    'select code, reason, raw, coordinates, headers from quarantined_messages order by coordinates',
  );

pipeline('a message is accepted with its bytes, and its headers travel', () =>
  scene(async ({ at, hand, counted }) => {
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const body =
      '{"event_type":"order.paid","data":{ "id":9007199254740993 },"custom_headers":{"X-Shop":"7"}}';
    assert.is(
      await hand(body, { headers: { traceparent, Tenant: 'a', 'bad name': 'x' } }),
      'accepted',
    );
    const [request] = await at.received(1);
    assert.is(request!.body.toString(), '{ "id":9007199254740993 }');
    assert.equal(
      [request!.headers['x-shop'], request!.headers['tenant'], request!.headers['traceparent']],
      ['7', 'a', traceparent],
    );
    assert.equal(counted, ['accepted']);
    const [event] = await db.rows('select event_type, message_type from events');
    assert.equal(event, { event_type: 'order.paid', message_type: 'single' });
  }),
);

pipeline(
  'a redelivered message is a duplicate; the same coordinates with another stamp are another message',
  () =>
    scene(async ({ hand, counted }) => {
      const once = { coordinates: 'orders/0/0', timestamp: 1_763_700_000_000 };
      assert.is(await hand(GOOD, once), 'accepted');
      assert.is(await hand(GOOD, once), 'duplicate');
      assert.is(await hand(GOOD, { ...once, timestamp: once.timestamp + 1 }), 'accepted');
      const broken = { ...once, coordinates: 'orders/0/1' };
      assert.equal(await Promise.all(Array.from({ length: 3 }, () => hand('no json', broken))), [
        'quarantined',
        'duplicate',
        'duplicate',
      ]);
      assert.is(await hand('no json', broken), 'duplicate');
      assert.is((await quarantined()).length, 1);
      assert.is(counted.filter((outcome) => outcome === 'quarantined').length, 1);
    }),
);

pipeline(
  'a time that cannot be is replaced by the arrival and stays visible, and what comes again is a duplicate',
  () =>
    scene(async ({ hand, running }) => {
      const since = Date.now() - 60_000;
      const seconds = Math.floor(Date.now() / 1000);
      const times = [
        -1,
        0,
        NaN,
        seconds,
        seconds * 1e6,
        seconds * 1e9,
        1e18,
        Date.now() + 25 * 3_600_000,
      ];
      const bodyFunction =
        'function transform(p) { return [{ event_type: "a", data: p }, { event_type: "b", data: p }]; }';
      const messages = times.map((timestamp, n) => ({ timestamp, coordinates: `orders/1/${n}` }));
      for (const body of ['{}', 'no json']) {
        const all = () =>
          Promise.all(
            messages.map((message) =>
              hand(body, {
                ...message,
                coordinates: `${body}${message.coordinates}`,
                ...(body === '{}' ? { bodyFunction } : {}),
              }),
            ),
          );
        assert.equal(new Set(await all()), new Set([body === '{}' ? 'accepted' : 'quarantined']));
        assert.equal(new Set([...(await all()), ...(await all())]), new Set(['duplicate']));
      }
      const rows = await db.rows<{ at: Date; id: string; notes: string }>(
        'select occurred_at as at, id, notes from events where project_id = $1',
        [running.projectId],
      );
      const stored = await db.rows<{ at: Date; id: string; notes: string }>(
        'select occurred_at as at, id, reason as notes from quarantined_messages where project_id = $1',
        [running.projectId],
      );
      assert.equal([rows.length, stored.length], [times.length * 2, times.length]);
      for (const { at, id, notes } of [...rows, ...stored]) {
        assert.ok(at.getTime() > since && at.getTime() <= Date.now() + 1_000, at.toISOString());
        assert.is(timeOfId(id), at.getTime());
        assert.match(notes, 'the time of its arrival is used');
      }
      assert.is(
        rows.filter(({ notes }) =>
          notes.includes(`impossible time of ${seconds * 1e6} ms after 1970`),
        ).length,
        2,
      );
      assert.equal(await db.rows('select id from events_default'), []);
    }),
);

pipeline(
  'a message that an earlier version dated as its broker did is a duplicate when it comes again',
  () =>
    scene(async ({ hand, running }) => {
      const message = { timestamp: 1e18, coordinates: 'orders/2/0' };
      await hand(GOOD, message);
      const [event] = await db.rows<{ source: string }>(
        'select source_id as source from events where project_id = $1',
        [running.projectId],
      );
      const old = clampTime(message.timestamp);
      await db.rows('delete from message_arrivals');
      await db.rows(
        `update events set id = $1, occurred_at = timestamptz 'epoch' + $2::bigint * interval '1 ms'`,
        [eventId(event!.source, message.coordinates, old), old],
      );
      assert.is(await hand(GOOD, message), 'duplicate');
    }),
);

pipeline(
  'a message that was too far ahead when it came is a duplicate when it comes again as its time is possible',
  () =>
    scene(async ({ hand, running }) => {
      const bodyFunction =
        'function transform(p) { return [{ event_type: "a", data: p }, { event_type: "b", data: p }]; }';
      const dateNow = Date.now;
      const timestamp = Date.now() + 25 * 3_600_000;
      for (const body of ['{}', 'no json']) {
        const again = () =>
          hand(body, {
            timestamp,
            coordinates: `orders/3/${body}`,
            ...(body === '{}' ? { bodyFunction } : {}),
          });
        assert.is(await again(), body === '{}' ? 'accepted' : 'quarantined');
        Date.now = () => dateNow() + 2 * 3_600_000;
        try {
          assert.is(await again(), 'duplicate');
        } finally {
          Date.now = dateNow;
        }
      }
      assert.is(
        (await db.rows('select from events where project_id = $1', [running.projectId])).length,
        2,
      );
      assert.is((await quarantined()).length, 1);
    }),
);

pipeline('old messages keep their time, and so do those that are less than a day ahead', () =>
  scene(async ({ hand }) => {
    const times = [1e12, Date.now() - 86_400_000 * 400, Date.now() + 23 * 3_600_000 + 0.5];
    for (const timestamp of times) assert.is(await hand(GOOD, { timestamp }), 'accepted');
    const rows = await db.rows<{ at: Date }>('select occurred_at as at from events order by 1');
    assert.equal(
      rows.map(({ at }) => at.getTime()),
      times.map(Math.trunc),
    );
    assert.equal(await db.rows('select from message_arrivals'), []);
  }),
);

pipeline('hopeless messages are quarantined as they came, and those beside them are accepted', () =>
  scene(async ({ hand }) => {
    const bad: [string | Uint8Array, string][] = [
      ['', 'empty'],
      ['x'.repeat(10_001), 'too_large'],
      [Buffer.from([0xff, 0x00, 0x1e]), 'not_utf8'],
      ['not json', 'not_json'],
      ['[]', 'invalid_message'],
      [`{"event_type":"a","data":${'{"a":'.repeat(300)}1${'}'.repeat(301)}`, 'too_deep'],
    ];
    const outcomes = await Promise.all(
      bad.flatMap(([body], n) => [
        hand(body, { coordinates: `bad/${n}`, headers: { a: 'b\0' } }),
        hand(GOOD),
      ]),
    );
    assert.equal(
      outcomes,
      bad.flatMap(() => ['quarantined', 'accepted']),
    );
    const rows = await quarantined();
    assert.equal(
      rows.map(({ code }) => code),
      bad.map(([, code]) => code),
    );
    for (const [n, [body]] of bad.entries()) {
      assert.ok(rows[n]!.raw.equals(Buffer.from(body as string)));
      assert.equal(JSON.parse(rows[n]!.headers), { a: 'b\0' });
    }
  }),
);

pipeline('a transform makes the ingest message of an arbitrary one', () =>
  scene(async ({ at, hand }) => {
    const bodyFunction = `function transform(payload) { return { event_type: payload.kind, data: { n: payload.n + 1 }, custom_headers: { 'x-kind': payload.kind } } }`;
    assert.is(await hand('{"kind":"order.paid","n":1}', { bodyFunction }), 'accepted');
    const [request] = await at.received(1);
    assert.equal([request!.body.toString(), request!.headers['x-kind']], ['{"n":2}', 'order.paid']);
  }),
);

pipeline(
  'the content type of a message decides how it is decoded, before its function; the message is kept as it came',
  () =>
    scene(async ({ at, hand }) => {
      const form = new FormData();
      form.append('kind', 'order.paid');
      form.append('n', '1');
      const parts = new Request('http://localhost', { method: 'POST', body: form });
      const bodyFunction = `function transform({ kind, n }) { return { event_type: kind, data: { n } } }`;
      for (const [body, contentType] of [
        ['kind=order.paid&n=1', 'application/x-www-form-urlencoded'],
        [new Uint8Array(await parts.arrayBuffer()), parts.headers.get('content-type')!],
      ] as const)
        assert.is(await hand(body, { bodyFunction, contentType }), 'accepted');
      const requests = await at.received(2);
      assert.ok(requests.every(({ body }) => body.toString() === '{"n":"1"}'));
      assert.is(
        await hand('kind=a', { contentType: 'application/x-www-form-urlencoded' }),
        'quarantined',
      );
      assert.is(await hand('<a/>', { contentType: 'text/xml; charset=utf-8' }), 'quarantined');
      assert.equal(
        (await quarantined()).map(({ code, raw }) => [code, raw.toString()]),
        [
          ['invalid_message', 'kind=a'],
          ['not_json', '<a/>'],
        ],
      );
    }),
);

pipeline('a transform gets what is no JSON as text', () =>
  scene(async ({ at, hand }) => {
    const bodyFunction = `function transform(payload) { const [kind, n] = payload.split(';'); return { event_type: kind, data: { n } } }`;
    assert.is(await hand('order.paid;"7"', { bodyFunction }), 'accepted');
    assert.is((await at.received(1))[0]!.body.toString(), '{"n":"\\"7\\""}');
  }),
);

pipeline(
  'a header that a message may not set is left out, the event is delivered and says so, also when a function returned it',
  () =>
    scene(async ({ at, hand }) => {
      const body =
        '{"event_type":"order.paid","data":{},"custom_headers":{"Host":"evil.example","X-Shop":"7"}}';
      assert.is(await hand(body), 'accepted');
      assert.is(
        await hand(body, { bodyFunction: 'function transform(payload) { return payload }' }),
        'accepted',
      );
      assert.is(await hand(GOOD), 'accepted');
      const requests = await at.received(3);
      assert.ok(requests.every(({ headers }) => headers['host'] === new URL(at.url).host));
      assert.is(requests.filter(({ headers }) => headers['x-shop'] === '7').length, 2);
      const notes = '["the header \\"Host\\" was omitted: the connection sets it"]';
      assert.equal(await db.rows('select notes from events order by notes'), [
        { notes },
        { notes },
        { notes: null },
      ]);
    }),
);

pipeline(
  'a transform gets bytes that are not UTF-8, exactly, and as text with U+FFFD; they may be too many all the same',
  () =>
    scene(async ({ at, hand }) => {
      const bodyFunction = `function transform(payload, message) { return { event_type: 'a', data: { payload, bytes: Array.from(message.bytes) } } }`;
      const bytes = Buffer.from([0xef, 0xbb, 0xbf, 0x7b, 0x00, 0x1e, 0xe9, 0x7d]);
      assert.is(await hand(bytes, { bodyFunction }), 'accepted');
      assert.is(await hand('\ufeff{"a":"é"}', { bodyFunction }), 'accepted');
      const bodies = (await at.received(2)).map(
        ({ body }) => JSON.parse(body.toString()) as object,
      );
      assert.equal(bodies, [
        { payload: '{\0\x1e\ufffd}', bytes: [...bytes] },
        { payload: { a: 'é' }, bytes: [...Buffer.from('\ufeff{"a":"é"}')] },
      ]);
      assert.is(await hand(Buffer.alloc(10_001, 0xe9), { bodyFunction }), 'quarantined');
      assert.equal(
        (await quarantined()).map(({ code }) => code),
        ['too_large'],
      );
    }),
);

pipeline('a transform may drop a message, or make several events of it', () =>
  scene(async ({ at, hand }) => {
    const bodyFunction = `function transform(payload) { return payload.map((n) => ({ event_type: 'a', data: { n } })) }`;
    assert.is(await hand('[]', { bodyFunction }), 'dropped');
    assert.is(
      await hand('[1]', { bodyFunction: 'function transform() { return null }' }),
      'dropped',
    );
    const once = { coordinates: 'orders/0/several', timestamp: 1 };
    assert.is(await hand('[1,2,3]', { bodyFunction, ...once }), 'accepted');
    assert.equal((await at.received(3)).map(({ body }) => body.toString()).sort(), [
      '{"n":1}',
      '{"n":2}',
      '{"n":3}',
    ]);
    assert.is(await hand('[1,2,3]', { bodyFunction, ...once }), 'duplicate');
    assert.equal(await db.rows('select count(*)::int as n from events'), [{ n: 3 }]);
  }),
);

pipeline('one bad event among several refuses the message, and the reason says which', () =>
  scene(async ({ hand }) => {
    const bodyFunction = `function transform() { return [{ event_type: 'a', data: {} }, { event_type: '', data: {} }] }`;
    assert.is(await hand('{}', { bodyFunction }), 'quarantined');
    const [row] = await quarantined();
    assert.equal(
      [row!.code, row!.reason],
      [
        'invalid_transform_output',
        'Result 2 of 2: The result of the transform function is not an ingest message: event_type is empty.',
      ],
    );
    assert.equal(await db.rows('select from events'), []);
  }),
);

pipeline(
  'a transform that misbehaves quarantines its message, each way with its own code, and the next one is delivered',
  () =>
    scene(async ({ hand }) => {
      const functions: [string, string][] = [
        ['transform_threw', 'function transform() { throw new Error("no") }'],
        ['transform_timeout', 'function transform() { for (;;); }'],
        ['transform_promise', 'async function transform() { return {} }'],
        ['transform_not_an_object', 'function transform() { return 7 }'],
        ['transform_no_transform', 'function other() {}'],
        ['transform_not_compiled', 'function transform( {'],
        ['invalid_transform_output', 'function transform() { return { data: {} } }'],
      ];
      for (const [n, [code, bodyFunction]] of functions.entries()) {
        assert.is(
          await hand('{"secret":"hunter2"}', { bodyFunction, coordinates: `bad/${n}` }),
          'quarantined',
          code,
        );
        assert.is(await hand(GOOD), 'accepted', `after ${code}`);
      }
      const rows = await quarantined();
      assert.equal(
        rows.map(({ code }) => code),
        functions.map(([code]) => code),
      );
      assert.ok(rows.every(({ reason }) => reason.length > 10 && !reason.includes('hunter2')));
      assert.ok(rows.every(({ raw }) => raw.toString() === '{"secret":"hunter2"}'));
    }),
);

pipeline('a message with too many brackets is refused before a transform reads it', () =>
  scene(async ({ hand }) => {
    assert.is(
      await hand('['.repeat(5_000), {
        bodyFunction: 'function transform() { return { event_type: "a", data: {} } }',
      }),
      'quarantined',
    );
    assert.equal(
      (await quarantined()).map(({ code }) => code),
      ['too_deep'],
    );
  }),
);

pipeline('thousands of messages that come at once are each settled', () =>
  scene(async ({ hand, counted, at }) => {
    const outcomes = await Promise.all(
      Array.from({ length: 3000 }, (_, n) =>
        hand(n % 100 === 0 ? 'poison' : `{"event_type":"a","data":{"n":${n}}}`),
      ),
    );
    assert.is(outcomes.filter((outcome) => outcome === 'accepted').length, 2970);
    assert.is(outcomes.filter((outcome) => outcome === 'quarantined').length, 30);
    assert.is(counted.length, 3000);
    await at.received(2970);
    assert.is((await quarantined()).length, 30);
  }),
);

pipeline('the rate holds messages back and loses none', () =>
  scene(
    async ({ hand }) => {
      const startedAtMs = performance.now();
      const outcomes = await Promise.all(Array.from({ length: 250 }, () => hand(GOOD)));
      assert.ok(outcomes.every((outcome) => outcome === 'accepted'));
      assert.ok(
        performance.now() - startedAtMs >= 1_400,
        `after ${performance.now() - startedAtMs} ms`,
      );
    },
    { ratePerSecond: 100 },
  ),
);

pipeline('a project with a backlog takes turns at the rate with others', async () => {
  const passed: string[] = [];
  const it = new Pipeline({
    pace: new TokenBuckets(0),
    loopShares: new LoopShares(0),
    throttle: { unlimited: false, take: () => Promise.resolve(2) },
    transformer: {} as Transformer,
    eventWriter: { push: ({ projectId }) => void passed.push(projectId) },
    maxMessageBytes: 10_000,
  });
  const hand = (projectId: string, n: number) =>
    void it.handle(() => ({ projectId, id: newId(), bodyFunction: null }))({
      coordinates: `${projectId}/0/${n}`,
      timestamp: 1,
      body: Buffer.from(GOOD),
      headers: {},
    });
  for (let n = 0; n < 10; n++) hand('backlog', n);
  hand('other', 0);
  await until('all to pass', () => passed.length === 11);
  assert.is(passed.indexOf('other'), 1);
});

/** A pipeline without a sandbox, and a function that passes messages of projects to it. */
function bare({
  perSecond = 0,
  result = { kind: 'dropped', logs: [], durationMs: 1 },
  keyOf,
  eventWriter,
}: {
  perSecond?: number;
  result?: TransformResult;
  keyOf?: (ordinal: number) => string | null;
  eventWriter: { push(message: ReadyMessage): void };
}) {
  const pace = new TokenBuckets(perSecond);
  const it = new Pipeline({
    pace,
    loopShares: new LoopShares(0),
    throttle: { unlimited: true, take: (wanted) => Promise.resolve(wanted) },
    transformer: new Transformer({
      sandbox: { run: (_fn, payloads) => Promise.resolve(payloads.map(() => result)) },
      log: silentLog,
    }),
    eventWriter,
    maxMessageBytes: 10_000,
  });
  const hand = (projectId: string, n: number, bodyFunction: string | null = null) => {
    let ordinal = 0;
    return it.handle(() => ({ projectId, id: newId(), bodyFunction }))({
      coordinates: `${projectId}/0/${n}`,
      timestamp: Date.now(),
      body: Buffer.from(GOOD),
      headers: {},
      get idempotencyKey() {
        return keyOf?.(ordinal++);
      },
    });
  };
  return { pace, hand };
}

for (const [what, count] of [
  ['a message', 0],
  ['the result of a function', 1],
  ['results that are parsed in steps', 100],
] as const)
  pipeline(`a defect in reading ${what} quarantines the message, and others pass`, async () => {
    const passed: ReadyMessage[] = [];
    let isDefective = true;
    const { hand } = bare({
      keyOf: (ordinal) => {
        if (isDefective && ordinal === Math.max(0, count - 1)) throw new TypeError('a defect');
        return null;
      },
      result: {
        kind: 'array',
        items: Array.from({ length: count }, () => GOOD),
        logs: [],
        durationMs: 1,
      },
      eventWriter: { push: (message) => void passed.push(message) },
    });
    const bodyFunction = count === 0 ? null : 'function transform() {}';
    void hand('defective', 0, bodyFunction);
    await until('the message', () => passed.length === 1);
    isDefective = false;
    void hand('defective', 1, bodyFunction);
    await until('the next message', () => passed.length === 2);
    const [first, next] = passed;
    assert.equal([first!.events.length, first!.quarantined?.code], [0, 'gateway_defect']);
    assert.match(first!.quarantined!.reason, /a defect \(pipeline\.test\.ts:\d+\)/);
    assert.equal([next!.events.length, next!.quarantined], [Math.max(1, count), null]);
  });

pipeline(
  'messages of a project over its pace wait before anything is done for them, and those of others pass',
  async () => {
    const passed: string[] = [];
    const { hand } = bare({
      perSecond: 100,
      eventWriter: { push: ({ projectId }) => void passed.push(projectId) },
    });
    for (let n = 0; n < 60; n++) void hand('backlog', n);
    await until('the first to pass', () => passed.length > 0);
    void hand('other', 0);
    await until('the other to pass', () => passed.includes('other'));
    assert.ok(passed.length < 40, `${passed.length} passed before`);
    await until('all to pass', () => passed.length === 61);
  },
);

pipeline('messages that a function drops do not count', async () => {
  const { pace, hand } = bare({ perSecond: 10, eventWriter: { push: () => assert.unreachable() } });
  for (let n = 0; n < 20; n++)
    assert.is(await hand('p', n, 'function transform() { return null; }'), 'dropped');
  assert.not(pace.isOver('p'));
});

pipeline('a thousand results of a message are parsed a few at a time', async () => {
  let turns = 0;
  const turn = (): void => void (turns++, (next = setImmediate(turn)));
  const parsedAt: number[] = [];
  const items = Array.from({ length: 1000 }, () => GOOD);
  const { hand } = bare({
    result: { kind: 'array', items, logs: [], durationMs: 1 },
    eventWriter: {
      push: (message) => {
        parsedAt.push(message.events.length, turns);
        message.settle('accepted');
      },
    },
  });
  let next = setImmediate(turn);
  await Promise.all(Array.from({ length: 10 }, (_, n) => hand('p', n, 'function transform() {}')));
  clearImmediate(next);
  assert.equal(
    parsedAt.filter((_, k) => k % 2 === 0),
    Array(10).fill(1000),
  );
  assert.ok(parsedAt.at(-1)! - parsedAt[1]! >= 9, `10,000 events were made in ${turns} turns`);
});

pipeline(
  'an intake that stops leaves what has not passed the throttle to the broker, and commits the rest',
  () =>
    scene(
      async ({ hand, pipeline: it }) => {
        const outcomes = Array.from({ length: 60 }, () => hand(GOOD));
        await until(
          'the first to be accepted',
          async () => (await db.rows('select from events')).length > 0,
        );
        it.stop();
        const settled = await Promise.all([...outcomes, hand(GOOD)]);
        const accepted = settled.filter((outcome) => outcome === 'accepted').length;
        assert.ok(accepted >= 10 && accepted < 60, `${accepted} were accepted`);
        assert.is(settled.filter((outcome) => outcome === 'later').length, 61 - accepted);
        assert.equal(await db.rows('select count(*)::int as n from events'), [{ n: accepted }]);
      },
      { ratePerSecond: 10 },
    ),
);

pipeline('a turn of the event loop parses a hundred messages, or one that is large', async () => {
  let turns = 0;
  const turn = (): void => void (turns++, (next = setImmediate(turn)));
  const turnsAt: number[] = [];
  const it = new Pipeline({
    pace: new TokenBuckets(0),
    loopShares: new LoopShares(0),
    throttle: { unlimited: true, take: (wanted) => Promise.resolve(wanted) },
    transformer: {} as Transformer,
    eventWriter: {
      push: (message) => {
        turnsAt.push(turns);
        message.settle('accepted');
      },
    },
    maxMessageBytes: 100_000,
  });
  const handle = it.handle(() => ({ projectId: newId(), id: newId(), bodyFunction: null }));
  let next = setImmediate(turn);
  const hand = (count: number, body: Buffer) =>
    Promise.all(
      Array.from({ length: count }, (_, n) =>
        handle({ coordinates: `orders/0/${n}`, timestamp: 1, body, headers: {} }),
      ),
    );
  await hand(20, Buffer.from(`{"event_type":"order.paid","data":"${'x'.repeat(64 * 1024)}"}`));
  await hand(450, Buffer.from(GOOD));
  clearImmediate(next);
  const turnsOf = (passed: number[]) => new Set(passed).size;
  assert.equal([turnsOf(turnsAt.slice(0, 20)), turnsOf(turnsAt.slice(20))], [20, 5]);
});

pipeline.run();
