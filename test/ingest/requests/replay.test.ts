import { setTimeout as delay } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { eventId, messageDigest, newId } from '#core/events/ids';
import { silentLog } from '#core/logging/log';
import { eventTypeCatalogue } from '#ingest/requests/event-type-catalogue';
import { importEventTypes } from '#store/config/event-types';
import { acceptEvents } from '#store/events/events';
import { quarantineMessages } from '#store/quarantine/messages';
import { readReplayable, type ReplayableMessage } from '#store/quarantine/replay';
import { openFunctions } from '#ingest/requests/functions';
import type { DryRun, Replayed } from '#ingest/requests/replay';
import { idleSandbox, sandboxLimits } from '#ingest/transform/sandboxes';
import { batch, newEvent, pendingEvent, quarantinedMessage, sorted } from '../../store/batches.js';
import { makeProject } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';

const replay = suite('ingest/requests/replay');

const db = await migratedDatabase();
const { config } = resolveConfig({ env: {}, file: {} });
const sandbox = idleSandbox(sandboxLimits(config));
const functions = openFunctions({
  config,
  database: db,
  catalogue: eventTypeCatalogue(db.pool),
  log: silentLog,
  sandbox,
});
async function run(message: ReplayableMessage, isDry: boolean): Promise<DryRun | Replayed> {
  const [result] = await functions.replay([message], { planes: db.planes, dryRun: isDry });
  if (result?.status !== 'fulfilled') throw result?.reason;
  return result.value;
}
const replayer = {
  replay: (message: ReplayableMessage) => run(message, false) as Promise<Replayed>,
  dryRun: (message: ReplayableMessage) => run(message, true) as Promise<DryRun>,
};
replay.after(async () => {
  await sandbox.close();
  await db.close();
});

const GOOD = '{"event_type":"order.paid","data":{"n":1.10}}';

/** A quarantined message, as read for a replay. */
async function waiting(
  raw: string | Buffer,
  fields: { bodyFunction?: string; headers?: string } = {},
): Promise<ReplayableMessage> {
  const { id: projectId } = await makeProject(db);
  const message = quarantinedMessage({
    projectId,
    sourceId: newId(),
    raw: typeof raw === 'string' ? Buffer.from(raw) : raw,
    headers: fields.headers ?? '{}',
  });
  await quarantineMessages(db.pool, [message]);
  const [read] = await readReplayable(db.planes, [message]);
  return { ...read!, bodyFunction: fields.bodyFunction ?? null };
}

const row = async ({ id }: ReplayableMessage) => {
  const rows = await db.rows<{ status: string; code: string; reason: string }>(
    'select status, code, reason from quarantined_messages where id = $1',
    [id],
  );
  return rows[0]!;
};
const eventsOf = ({ projectId }: ReplayableMessage) =>
  db.rows<{
    id: string;
    status: string;
    coordinates: string;
    data: string;
    headers: string;
    ms: number;
  }>(
    `select id, status, coordinates, data, headers, (extract(epoch from occurred_at) * 1000)::float8 as ms from events where project_id = $1 order by coordinates, id`,
    [projectId],
  );

replay(
  'the event has the coordinates, the time, the headers and the bytes of the message, and is pending',
  async () => {
    const message = await waiting(GOOD, { headers: '{"X-Trace":"t","Connection":"close"}' });
    assert.equal(await replayer.replay(message), { kind: 'replayed', ids: [message.id] });
    assert.equal(await eventsOf(message), [
      {
        id: eventId(message.sourceId, message.coordinates, message.occurredAtMs),
        status: 'pending',
        coordinates: message.coordinates,
        data: '{"n":1.10}',
        headers: '{"x-trace":"t"}',
        ms: message.occurredAtMs,
      },
    ]);
    assert.is((await row(message)).status, 'replayed');
  },
);

replay(
  'a message at the coordinates and time of another event becomes an event of its own, and the same when it comes again',
  async () => {
    const message = await waiting(GOOD);
    const { projectId, sourceId, coordinates, occurredAtMs } = message;
    const other = {
      projectId,
      sourceId,
      coordinates,
      occurredAtMs,
      id: message.id,
      data: '{"n":2}',
      digest: '0123456789abcdef',
    };
    await acceptEvents(db.pool, batch([newEvent(other)]));
    const id = eventId(sourceId, coordinates, occurredAtMs, 0, messageDigest(Buffer.from(GOOD)));
    assert.equal(await replayer.replay(message), { kind: 'replayed', ids: [id] });
    assert.equal((await eventsOf(message)).map(({ data }) => data).sort(), [
      '{"n":1.10}',
      '{"n":2}',
    ]);
  },
);

replay('of two replays at once one makes the event and the other leaves it alone', async () => {
  const message = await waiting(GOOD);
  const kinds = (await Promise.all([1, 2, 3].map(() => replayer.replay(message)))).map(
    ({ kind }) => kind,
  );
  assert.equal(kinds.sort(), ['changed', 'changed', 'replayed']);
  assert.is((await eventsOf(message)).length, 1);
});

replay(
  'agents that read the same message again while it is replayed, and refuse or accept it, change nothing and are not blocked',
  async () => {
    const messages = await Promise.all(
      [1, 2, 3, 4, 5, 6].map((n) =>
        waiting(`{"event_type":"a","data":{"n":${n}},"idempotency_key":"${n}"}`),
      ),
    );
    const again = messages.map(({ id, projectId, sourceId, occurredAtMs, coordinates }) =>
      quarantinedMessage({ id, projectId, sourceId, occurredAtMs, coordinates }),
    );
    const accepted = messages.map(({ body, ...message }, n) =>
      pendingEvent({
        ...message,
        headers: '{}',
        idempotencyKey: String(n + 1),
        data: body.toString(),
      }),
    );
    const [replayed] = await Promise.all([
      Promise.all(messages.map((message) => replayer.replay(message))),
      quarantineMessages(db.pool, again),
      acceptEvents(db.pool, batch(sorted(accepted))),
      quarantineMessages(db.pool, again.toReversed()),
    ]);
    for (const [n, message] of messages.entries()) {
      const { kind } = replayed[n]!;
      assert.ok(kind === 'replayed' || kind === 'duplicate', kind);
      assert.equal(
        [(await row(message)).status, (await eventsOf(message)).map(({ id }) => id)],
        ['replayed', [message.id]],
      );
    }
  },
);

replay('a message whose event exists already is a duplicate and counts as replayed', async () => {
  const message = await waiting(GOOD);
  await acceptEvents(
    db.pool,
    batch([newEvent({ ...message, headers: '{}', status: 'processed' })]),
  );
  assert.equal(await replayer.replay(message), { kind: 'duplicate', ids: [message.id] });
  assert.is((await row(message)).status, 'replayed');
});

replay('an idempotency key that is taken names the event that has it', async () => {
  const message = await waiting('{"event_type":"a","data":{},"idempotency_key":"k"}');
  const holder = newEvent({ projectId: message.projectId, idempotencyKey: 'k' });
  await acceptEvents(db.pool, batch([holder]));
  assert.equal(await replayer.replay(message), { kind: 'duplicate', ids: [holder.id] });
});

replay('several events of one message are made all or none', async () => {
  const bodyFunction = `function transform(list) { return list.map((n) => ({ event_type: 'item.sold', data: n === 0 ? 'none' : { n }, idempotency_key: n === 9 ? 'nine' : undefined })) }`;
  const bad = await waiting('[1,0,2]', { bodyFunction });
  const refused = await replayer.replay(bad);
  assert.is(refused.kind, 'refused');
  assert.equal(await eventsOf(bad), []);
  assert.match((await row(bad)).reason, /^Result 2 of 3: .*data must be an object/);
  const good = await waiting('[1,2,9,9]', { bodyFunction });
  const replayed = await replayer.replay(good);
  assert.is(
    replayed.kind === 'replayed' && replayed.ids.length,
    3,
    'the second of two with one key is a duplicate',
  );
  assert.is((await eventsOf(good)).length, 3);
});

replay('a message that is still refused stays quarantined with the reason of today', async () => {
  const message = await waiting('{}', {
    bodyFunction: 'function transform() { throw new Error("today") }',
  });
  assert.is((await replayer.replay(message)).kind, 'refused');
  const { status, code, reason } = await row(message);
  assert.equal([status, code], ['quarantined', 'transform_threw']);
  assert.match(reason, /today/);
});

replay('a header of the gateway is left out, and the event says so', async () => {
  const message = await waiting(
    '{"event_type":"a","data":{},"custom_headers":{"Webhook-Signature":"v1,x"}}',
  );
  assert.is((await replayer.replay(message)).kind, 'replayed');
  assert.equal(
    await db.rows('select headers, notes from events where project_id = $1', [message.projectId]),
    [
      {
        headers: '{}',
        notes: '["the header \\"Webhook-Signature\\" was omitted: the gateway sets it"]',
      },
    ],
  );
});

replay('a message that is not UTF-8 waits for a function that reads its bytes', async () => {
  const bytes = Buffer.from([0x00, 0xff, 0x1e]);
  const message = await waiting(bytes);
  assert.is((await replayer.replay(message)).kind, 'refused');
  const reading =
    'function transform(payload, message) { return { event_type: "a", data: { bytes: Array.from(message.bytes) } }; }';
  const [again] = await readReplayable(db.planes, [message]);
  assert.is((await replayer.replay({ ...again!, bodyFunction: reading })).kind, 'replayed');
  assert.is((await eventsOf(message))[0]?.data, '{"bytes":[0,255,30]}');
});

replay('what Postgres refuses is refused, and neither event nor status is changed', async () => {
  // Coordinates of the broker are not validated before the row is inserted.
  const message = await waiting(GOOD);
  await db.rows(
    `alter table events add constraint no_one check (coordinates <> '${message.coordinates}')`,
  );
  try {
    const refused = await replayer.replay(message);
    assert.is(refused.kind === 'refused' && refused.refusal.code, 'database_refused');
    assert.equal([(await row(message)).status, await eventsOf(message)], ['quarantined', []]);
  } finally {
    await db.rows('alter table events drop constraint no_one');
  }
});

replay('a message that the function drops is discarded, and says so', async () => {
  const message = await waiting('{}', { bodyFunction: 'function transform() { return null }' });
  assert.equal(await replayer.replay(message), { kind: 'dropped' });
  const { status, reason } = await row(message);
  assert.equal(
    [status, reason],
    ['discarded', 'The transform function dropped the message when it was replayed.'],
  );
});

replay('a dry run changes nothing', async () => {
  const message = await waiting(GOOD);
  const result = await replayer.dryRun(message);
  assert.is(result.kind === 'accepted' && result.events[0]?.eventType, 'order.paid');
  const bad = await waiting('{"event_type":1}');
  assert.is((await replayer.dryRun(bad)).kind, 'refused');
  assert.equal(
    [(await row(message)).status, (await row(bad)).code, await eventsOf(message)],
    ['quarantined', 'not_json', []],
  );
});

replay(
  'an event type that the project rejects stays in quarantine until the project has it',
  async () => {
    const message = await waiting(GOOD);
    await db.rows(
      `update projects set config = '{"unknown_event_types": "reject"}' where id = $1`,
      [message.projectId],
    );
    assert.is((await replayer.dryRun(message)).kind, 'refused');
    assert.is((await replayer.replay(message)).kind, 'refused');
    assert.equal(
      [(await row(message)).status, (await row(message)).code],
      ['quarantined', 'unknown_event_type'],
    );
    await importEventTypes(db.knex, message.projectId, [
      { name: 'order.paid', description: '', schema: null, deprecated: false },
    ]);
    await delay(150);
    assert.is((await replayer.replay(message)).kind, 'replayed');
  },
);

replay.run();
