import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { deleteProject } from '#store/config/projects';
import { bothPlanes } from '#store/postgres/planes';
import { databaseTime } from '#store/postgres/server-facts';
import {
  findQuarantine,
  listQuarantine,
  type QuarantinePart,
  type QuarantineSelection,
} from '#store/quarantine/selection';
import { quarantineMessages } from '#store/quarantine/messages';
import { genericPlan, noting, onPostgres, quarantinedMessage, readWhole } from '../batches.js';
import { makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const listing = suite('store/quarantine/selection');

const db = await migratedDatabase();
listing.after(() => db.close());
listing.before.each(async () => void (await db.rows('delete from quarantined_messages')));

const now = Date.now();

/** Messages of two projects in alternation, one second apart. */
async function setUp() {
  const [a, b] = [await makeProject(db, 'a'), await makeProject(db, 'b')];
  const messages = [0, 1, 2, 3].map((n) =>
    quarantinedMessage({
      projectId: (n % 2 ? b : a).id,
      occurredAtMs: now - 10_000 + n * 1000,
      code: n < 2 ? 'empty' : 'not_json',
    }),
  );
  await quarantineMessages(db.pool, messages);
  return { a, b, ids: messages.map(({ id }) => id) };
}

const listed = async (
  selection: QuarantineSelection,
  part: QuarantinePart = { order: 'desc', limit: 10 },
) => (await listQuarantine(db.planes, selection, part)).map(({ id }) => id);

listing(
  'messages of all projects come by their time, in parts that meet without gap or overlap',
  async () => {
    const { ids } = await setUp();
    assert.equal(await listed({}), [...ids].reverse());
    assert.equal(await listed({}, { order: 'asc', limit: 3 }), ids.slice(0, 3));
    assert.equal(await listed({}, { order: 'asc', limit: 3, after: ids[2] }), ids.slice(3));
    assert.equal(await listed({}, { order: 'desc', limit: 2, after: ids[2] }), [ids[1], ids[0]]);
  },
);

listing(
  'a selection keeps to project, code, status, time of the message and time of quarantine',
  async () => {
    const { a, ids } = await setUp();
    assert.equal(await listed({ projectId: a.id }), [ids[2], ids[0]]);
    assert.equal(await listed({ code: 'empty', status: 'quarantined' }), [ids[1], ids[0]]);
    assert.equal(await listed({ status: 'discarded' }), []);
    assert.equal(await listed({ sourceId: newId() }), []);
    assert.equal(await listed({ from: new Date(now - 8000) }), [ids[3], ids[2]]);
    assert.equal(await listed({ quarantinedUntil: new Date(now - 3_600_000).toISOString() }), []);
    assert.is((await listed({ quarantinedUntil: await databaseTime(db.pool) })).length, 4);
  },
);

listing('ids alone find messages in their order; those of a deleted project are gone', async () => {
  const { a, ids } = await setUp();
  const wanted = [ids[3]!, newId(), ids[0]!];
  const found = await findQuarantine(db.planes, wanted);
  assert.equal(
    found.map(({ id, project_name: name, source_name: source }) => [id, name, source]),
    [
      [ids[3], 'b', null],
      [ids[0], 'a', null],
    ],
  );
  await deleteProject(db.knex, a.id);
  assert.equal(
    (await findQuarantine(db.planes, wanted)).map(({ id }) => id),
    [ids[3]],
  );
  assert.equal(await listed({}), [ids[3], ids[1]]);
});

onPostgres(listing)('no statement reads the table whole', async () => {
  const { pool, texts } = noting(db);
  const planes = bothPlanes({ pool });
  await listQuarantine(planes, { status: 'quarantined' }, { order: 'asc', limit: 10 });
  await findQuarantine(planes, [newId()]);
  assert.is(texts.size, 3);
  for (const text of texts) assert.equal(readWhole(await genericPlan(db, text)), []);
});

listing.run();
