import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import type { StorableEvent } from '#store/events/events';
import { listUsage } from '#store/counts/usage';
import { quarantineMessages } from '#store/quarantine/messages';
import {
  discardQuarantinedMessages,
  editQuarantinedMessage,
  readReplayable,
  replayQuarantinedMessage,
} from '#store/quarantine/replay';
import { empty, PROJECT, pendingEvent, quarantinedMessage, sorted } from '../batches.js';
import { makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const replay = suite('store/quarantine/replay');

const db = await migratedDatabase();
replay.after(() => db.close());
replay.before.each(() => empty(db));

async function waiting(raw = 'bytes') {
  const message = quarantinedMessage({ raw: Buffer.from(raw), headers: '{"a":"b"}' });
  await quarantineMessages(db.pool, [message]);
  return (await readReplayable(db.planes, [message]))[0]!;
}

const statusOf = async (id: string) =>
  (
    await db.rows<{ status: string }>('select status from quarantined_messages where id = $1', [id])
  )[0]?.status;
const count = async () =>
  (await db.rows<{ n: number }>('select count(*)::int as n from events'))[0]!.n;
const commit = (message: Awaited<ReturnType<typeof waiting>>, events: readonly StorableEvent[]) =>
  replayQuarantinedMessage(db.planes, message, {
    events: sorted(events),
    idempotencyWindowSeconds: 60,
  });

replay(
  'a message is read in the order asked for, with its time to the millisecond and its edited bytes',
  async () => {
    const [a, b] = [await waiting('a'), await waiting('b')];
    const editedAt = await editQuarantinedMessage(db.pool, a, Buffer.from('edited'));
    const read = await readReplayable(db.planes, [b, a, { projectId: PROJECT, id: newId() }]);
    assert.equal(
      read.map(({ id, body, editedAt: at, headers, occurredAtMs }) => [
        id,
        body.toString(),
        at,
        headers,
        occurredAtMs,
      ]),
      [
        [b.id, 'b', null, { a: 'b' }, b.occurredAtMs],
        [a.id, 'edited', editedAt, { a: 'b' }, a.occurredAtMs],
      ],
    );
  },
);

replay('events and status are committed together, and only once', async () => {
  const message = await waiting();
  const event = pendingEvent({ id: message.id, occurredAtMs: message.occurredAtMs });
  assert.is(await commit(message, [event]), 'all');
  assert.equal([await statusOf(message.id), await count()], ['replayed', 1]);
  assert.is(await commit(message, [pendingEvent()]), undefined);
  assert.is(await count(), 1);
});

replay('events that are new count as usage of today, duplicates do not', async () => {
  const { id: projectId } = await makeProject(db);
  for (const id of [newId(), newId()]) {
    const message = quarantinedMessage({ projectId, id });
    await quarantineMessages(db.pool, [message]);
    const [read] = await readReplayable(db.planes, [message]);
    const events = ['same', id].map((idempotencyKey) =>
      pendingEvent({ projectId, idempotencyKey, data: '{"ä":1}' }),
    );
    assert.ok(await commit(read!, events));
  }
  const usage = await listUsage(db.pool, { days: 1 });
  assert.equal(
    usage.map(({ events, bytes, deliveries }) => [events, bytes, deliveries]),
    [[3, 24, 0]],
  );
});

replay('when an event is refused the message stays quarantined', async () => {
  const message = await waiting();
  const bad = pendingEvent({ headers: 'x', outcome: 'routed' });
  const refusal = await commit(message, [pendingEvent(), bad]).then(
    () => 'nothing',
    (error: Error) => error.message,
  );
  assert.match(refusal, /violates check constraint/);
  assert.equal([await statusOf(message.id), await count()], ['quarantined', 0]);
});

replay('what was edited meanwhile is neither replayed nor edited over', async () => {
  const message = await waiting();
  assert.ok(await editQuarantinedMessage(db.pool, message, Buffer.from('1')));
  assert.is(await editQuarantinedMessage(db.pool, message, Buffer.from('2')), undefined);
  assert.is(await commit(message, [pendingEvent()]), undefined);
  const [now] = await readReplayable(db.planes, [message]);
  assert.is(now?.body.toString(), '1');
  assert.is(await commit(now!, [pendingEvent()]), 'all');
});

replay('only what is quarantined is discarded', async () => {
  const [a, b, c] = [await waiting(), await waiting(), await waiting()];
  await commit(a, [pendingEvent()]);
  assert.equal((await discardQuarantinedMessages(db.pool, [a, b])).sort(), [b.id]);
  assert.equal(
    [await statusOf(a.id), await statusOf(b.id), await statusOf(c.id)],
    ['replayed', 'discarded', 'quarantined'],
  );
});

replay.run();
