import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { eventId, messageDigest } from '#core/events/ids';
import type { NewEvent } from '#store/events/events';
import {
  eventMessageBytes,
  findEventMessage,
  KEPT_BYTES_MAX,
  keptParts,
  type MessageOfEvents,
} from '#store/events/kept-messages';
import { quarantineMessages } from '#store/quarantine/messages';
import { editQuarantinedMessage, replayQuarantinedMessage } from '#store/quarantine/replay';
import {
  accepted,
  batch,
  empty,
  genericPlan,
  newEvent,
  noting,
  onPostgres,
  pendingEvent,
  PROJECT,
  quarantinedMessage,
  readWhole,
  sorted,
  SOURCE,
} from '../batches.js';
import { migratedDatabase } from '../migrated.js';

const kept = suite('store/events/kept-messages');

const db = await migratedDatabase();
kept.after(() => db.close());
kept.before.each(() => empty(db));

const NOW = Date.now();
let last = 0;

interface Sent {
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly events?: number;
  readonly coordinates?: string;
  /** Its ids include its digest: another message has the same coordinates. */
  readonly isDistinguished?: boolean;
  readonly fields?: Partial<NewEvent>;
}

function sent({
  body = Buffer.from('{"n":1}'),
  headers = {},
  events = 1,
  isDistinguished,
  fields,
  ...given
}: Sent = {}) {
  const { coordinates = `kept/0/${last++}` } = given;
  const digest = messageDigest(body);
  const idOf = (ordinal: number) =>
    eventId(SOURCE, coordinates, NOW, ordinal, isDistinguished ? digest : undefined);
  const made = Array.from({ length: events }, (_, n) =>
    newEvent({ coordinates, digest, occurredAtMs: NOW, id: idOf(n), ...fields }),
  );
  const message = {
    projectId: PROJECT,
    id: idOf(0),
    occurredAtMs: NOW,
    digest,
    ...keptParts({ body, headers }),
  };
  return {
    events: made,
    message: { message, eventIds: made.map(({ id }) => id) } satisfies MessageOfEvents,
  };
}

function accept(...all: readonly ReturnType<typeof sent>[]) {
  const events = sorted(all.flatMap((it) => it.events));
  return accepted(db.pool, batch(events, { messages: all.map(({ message }) => message) }));
}

const stored = async () =>
  (await db.rows<{ n: number }>('select count(*)::int as n from event_messages'))[0]!.n;
const read = (event: Pick<NewEvent, 'id'>) => findEventMessage(db.pool, PROJECT, event.id);

kept(
  'a message is stored once with all of its events, as it came, and each of them finds it',
  async () => {
    const body = Buffer.from([0, 1, 0x1e, 0x1f, 0xff, 0x27]);
    const one = sent({ body, headers: { 'x-tenant': 'a\u001f\u0000"b', other: 'ä' }, events: 3 });
    const other = sent({ body: Buffer.from('<script>') });
    assert.is(await accept(one, other), 'all');
    assert.is(await stored(), 2);
    for (const event of one.events) {
      const { raw, headers, ...found } = (await read(event))!;
      assert.equal([...raw!], [...body]);
      assert.equal(JSON.parse(headers), { 'x-tenant': 'a\u001f\u0000"b', other: 'ä' });
      assert.equal(found, { id: one.events[0]!.id, source_id: SOURCE, raw_bytes: 6 });
    }
    assert.is((await read(other.events[0]!))!.raw!.toString(), '<script>');
    assert.is(await eventMessageBytes(db.pool, PROJECT, one.events[2]!.id), 6);
  },
);

kept('without messages to be kept the statement is that of before', async () => {
  const { pool, texts } = noting(db);
  const { events } = sent();
  await accepted(pool, batch(events));
  await accepted(pool, batch(sent().events, { messages: [] }));
  assert.not.match([...texts].join('\n'), 'event_messages');
  assert.equal(
    [
      await stored(),
      await read(events[0]!),
      await eventMessageBytes(db.pool, PROJECT, events[0]!.id),
    ],
    [0, undefined, null],
  );
});

kept('a message is stored if one of its events is new, and not if none is', async () => {
  const key = 'order-1';
  await accept(sent({ fields: { idempotencyKey: key } }));
  const repeated = sent({ fields: { idempotencyKey: key } });
  await accept(repeated);
  assert.is(await stored(), 1);
  const partly = sent({ events: 2 });
  const [first, second] = [{ ...partly.events[0]!, idempotencyKey: key }, partly.events[1]!];
  await accept({ ...partly, events: [first, second] });
  assert.equal([await stored(), (await read(second))?.raw_bytes], [2, 7]);
});

kept(
  'what comes again, also under the coordinates of another message, leaves the stored message as it is',
  async () => {
    const one = sent({ coordinates: 'again/0/1' });
    await accept(one);
    const other = { body: Buffer.from('{"other":true}'), coordinates: 'again/0/1' };
    await accept(sent(other));
    assert.is((await read(one.events[0]!))!.raw!.toString(), '{"n":1}');
    const own = sent({ ...other, isDistinguished: true });
    await accept(own);
    assert.is((await read(own.events[0]!))!.raw!.toString(), '{"other":true}');
    assert.is((await read(one.events[0]!))!.raw!.toString(), '{"n":1}');
  },
);

kept(
  'an event whose message is not kept does not show another one with its coordinates',
  async () => {
    await accept(sent({ coordinates: 'reused/0/1' }));
    const own = sent({
      body: Buffer.from('{"other":true}'),
      coordinates: 'reused/0/1',
      isDistinguished: true,
    });
    await accepted(db.pool, batch(own.events));
    assert.is(await read(own.events[0]!), undefined);
  },
);

kept('of a message that is too large only the size is stored', async () => {
  const largest = sent({ body: Buffer.alloc(KEPT_BYTES_MAX - 2, 'a') });
  const larger = sent({ body: Buffer.alloc(KEPT_BYTES_MAX - 1, 'a') });
  const headers = sent({ headers: { large: 'a'.repeat(KEPT_BYTES_MAX) } });
  await accept(largest, larger, headers);
  assert.is((await read(largest.events[0]!))!.raw!.byteLength, KEPT_BYTES_MAX - 2);
  const { raw, raw_bytes } = (await read(larger.events[0]!))!;
  assert.equal([raw, raw_bytes], [null, KEPT_BYTES_MAX - 1]);
  const found = (await read(headers.events[0]!))!;
  assert.equal([found.raw, found.headers, found.raw_bytes], [null, '{}', 7]);
});

kept('events that Postgres refuses leave no message', async () => {
  const refused = sent({ fields: { status: 'nonsense' as never } });
  await accept(sent(), refused).then(
    () => assert.unreachable(),
    () => undefined,
  );
  assert.is(await stored(), 0);
});

kept(
  'an event whose message was replayed from quarantine shows those bytes, as they were edited',
  async () => {
    const message = quarantinedMessage({ occurredAtMs: NOW, headers: '{"a":"b"}' });
    await quarantineMessages(db.pool, [message]);
    const editedAt = await editQuarantinedMessage(
      db.pool,
      { ...message, editedAt: null },
      Buffer.from('mended'),
    );
    const { id, coordinates, raw } = message;
    const event = pendingEvent({ id, coordinates, occurredAtMs: NOW, digest: messageDigest(raw) });
    assert.is(await read(event), undefined);
    await replayQuarantinedMessage(
      db.planes,
      { ...message, editedAt: editedAt! },
      { events: [event], idempotencyWindowSeconds: 60 },
    );
    const found = (await read(event))!;
    assert.equal(
      [found.raw!.toString(), found.raw_bytes, found.headers],
      ['mended', 6, '{"a":"b"}'],
    );
  },
);

kept('of an event over the API, and of one that is not there, there is no message', async () => {
  const event = newEvent({ sourceId: null, coordinates: 'api', occurredAtMs: NOW });
  await accepted(db.pool, batch([event]));
  assert.is(await read(event), undefined);
  assert.is(await read(newEvent()), undefined);
});

onPostgres(kept)(
  'a message is found by primary keys, and the commit of one reads no table whole',
  async () => {
    const { pool, texts } = noting(db);
    const { events, message } = sent();
    await accepted(pool, batch(events, { messages: [message] }));
    await findEventMessage(pool, PROJECT, events[0]!.id);
    await eventMessageBytes(pool, PROJECT, events[0]!.id);
    assert.is(texts.size, 4);
    for (const text of texts) {
      const plan = await genericPlan(db, text);
      assert.equal(readWhole(plan), [], plan);
    }
  },
);

kept.run();
