import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { timeOfId } from '#core/events/ids';
import type { CreatedEvent } from '#ingest/commit/event-creator';
import { findEvent, listEvents, type EventFilter, type EventRow } from '#store/events/event-log';
import type { PageRequest, PageResult } from '#store/pagination/page';
import { readVerdicts } from '#store/events/verdicts';
import { newEvent } from '../batches.js';
import { createEvent, makeEvents, makeProject, makeSource } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const log = suite('store/events/event-log');

const db = await migratedDatabase();
log.after(() => db.close());

const first: PageRequest = { perPage: 20, direction: 'next', sort: 'DESC' };
const DAY_MS = 86_400_000;
const ids = ({ content }: PageResult<EventRow>) => content.map(({ id }) => id);
const created = (projectId: string, more: Partial<CreatedEvent> = {}): CreatedEvent => ({
  projectId,
  eventType: 'order.paid',
  messageType: 'single',
  endpointId: null,
  ownerId: null,
  idempotencyKey: null,
  headers: { 'x-a': 'b' },
  data: '{ "price" : 1.10, "id" : 9007199254740993 }',
  ...more,
});

log('a created event is pending and keeps its bytes', async () => {
  const { id: projectId } = await makeProject(db);
  const { id, duplicate } = await createEvent(db.pool, created(projectId), 60);
  assert.is(duplicate, false);
  const event = (await findEvent(db.pool, projectId, id))!;
  assert.is(event.status, 'pending');
  assert.is(event.outcome, null);
  assert.is(event.data, '{ "price" : 1.10, "id" : 9007199254740993 }');
  assert.is(event.headers, '{"x-a":"b"}');
  assert.is(event.occurred_at.getTime(), timeOfId(id));
});

log(
  'a known idempotency key answers with the first event, within its project and window only',
  async () => {
    const { id: projectId } = await makeProject(db);
    const { id: otherId } = await makeProject(db);
    const keyed = { idempotencyKey: 'k1' };
    const one = await createEvent(db.pool, created(projectId, keyed), 60);
    assert.equal(await createEvent(db.pool, created(projectId, keyed), 60), {
      id: one.id,
      duplicate: true,
    });
    assert.is((await createEvent(db.pool, created(otherId, keyed), 60)).duplicate, false);
    const another = newEvent({ projectId, idempotencyKey: 'k1' });
    const verdict = async () => [...(await readVerdicts(db.pool, [another])).values()];
    assert.equal(await verdict(), [{ is: 'duplicate', id: one.id }]);
    await db.rows(`update idempotency_keys set expires_at = now() where project_id = $1`, [
      projectId,
    ]);
    assert.equal(await verdict(), [{ is: 'free' }]);
    const again = await createEvent(db.pool, created(projectId, keyed), 60);
    assert.is(again.duplicate, false);
    assert.is.not(again.id, one.id);
  },
);

log('ten at once with one idempotency key make one event', async () => {
  const { id: projectId } = await makeProject(db);
  const made = await Promise.all(
    Array.from({ length: 10 }, () =>
      createEvent(db.pool, created(projectId, { idempotencyKey: 'k' }), 60),
    ),
  );
  assert.is(new Set(made.map(({ id }) => id)).size, 1);
  assert.is(made.filter(({ duplicate }) => !duplicate).length, 1);
  assert.is((await listEvents(db.planes, projectId, {}, first)).content.length, 1);
});

log(
  'events are listed newest first across partitions, whatever the order they came in',
  async () => {
    const { id: projectId } = await makeProject(db);
    const now = Date.now();
    const made = await makeEvents(
      db,
      projectId,
      [now, now - 3 * DAY_MS, now + DAY_MS, now - 400 * DAY_MS, 0].map((atMs) => ({ atMs })),
    );
    const [today, before, tomorrow, longAgo, epoch] = made;
    assert.equal(ids(await listEvents(db.planes, projectId, {}, first)), [
      tomorrow,
      today,
      before,
      longAgo,
      epoch,
    ]);
    const one = await listEvents(db.planes, projectId, {}, { ...first, perPage: 2 });
    assert.equal(ids(one), [tomorrow, today]);
    const two = await listEvents(
      db.planes,
      projectId,
      {},
      { ...first, perPage: 2, cursor: one.nextPageCursor ?? undefined },
    );
    assert.equal(ids(two), [before, longAgo]);
    const back = await listEvents(
      db.planes,
      projectId,
      {},
      { ...first, perPage: 2, direction: 'prev', cursor: two.prevPageCursor ?? undefined },
    );
    assert.equal(ids(back), [tomorrow, today]);
    assert.equal(
      ids(await listEvents(db.planes, projectId, {}, { ...first, sort: 'ASC', perPage: 2 })),
      [epoch, longAgo],
    );
  },
);

log('a list holds the events of its project alone', async () => {
  const { id: projectId } = await makeProject(db);
  const { id: otherId } = await makeProject(db);
  await makeEvents(db, otherId, [{ atMs: Date.now() }]);
  assert.equal(ids(await listEvents(db.planes, projectId, {}, first)), []);
});

log('filters narrow a list: time, source, type, status and key', async () => {
  const { id: projectId } = await makeProject(db);
  const now = Date.now();
  const sourceId = await makeSource(db, projectId);
  const [a, b, c] = await makeEvents(db, projectId, [
    { atMs: now - 2 * DAY_MS, status: 'failed', eventType: 'order.lost', key: 'k' },
    { atMs: now - DAY_MS, sourceId },
    { atMs: now, status: 'pending' },
  ]);
  const listed = async (filter: EventFilter, page: Partial<PageRequest> = {}) =>
    ids(await listEvents(db.planes, projectId, filter, { ...first, ...page }));
  assert.equal(await listed({ status: 'failed' }), [a]);
  assert.equal(await listed({ status: 'pending' }), [c]);
  assert.equal(await listed({ eventType: 'order.lost' }), [a]);
  assert.equal(await listed({ sourceId }), [b]);
  assert.equal(await listed({ idempotencyKey: 'k' }), [a]);
  assert.equal(await listed({ sourceId, status: 'failed' }), []);
  assert.equal(await listed({ from: new Date(now - DAY_MS) }), [c, b]);
  assert.equal(await listed({ to: new Date(now - DAY_MS) }), [b, a]);
  assert.equal(await listed({ from: new Date(now - DAY_MS), to: new Date(now - DAY_MS) }), [b]);
  assert.equal(
    await listed({ from: new Date(now - DAY_MS), eventType: 'order.paid' }, { sort: 'ASC' }),
    [b, c],
  );
});

log(
  'a large body is left out of lists, its size is told, and the event itself shows it',
  async () => {
    const { id: projectId } = await makeProject(db);
    const data = JSON.stringify({ text: 'x'.repeat(20_000) });
    const [id] = await makeEvents(db, projectId, [{ atMs: Date.now(), data }]);
    const [listed] = (await listEvents(db.planes, projectId, {}, first)).content;
    assert.equal([listed?.data, listed?.data_bytes], [null, data.length]);
    assert.is((await findEvent(db.pool, projectId, id!))?.data, data);
  },
);

log.run();
