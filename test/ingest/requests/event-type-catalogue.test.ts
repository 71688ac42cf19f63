import { setTimeout as delay } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { eventTypeCatalogue } from '#ingest/requests/event-type-catalogue';
import { importEventTypes } from '#store/config/event-types';
import type { Database } from '#store/postgres/database';
import { makeProject } from '../../store/made.js';
import { migratedDatabase } from '../../store/migrated.js';

const catalogue = suite('ingest/requests/event-type-catalogue');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
catalogue.before(async () => {
  db = await migratedDatabase();
});
catalogue.after(() => db.close());

async function setUp(config = '{"unknown_event_types": "reject"}') {
  const { id } = await makeProject(db);
  await db.rows('update projects set config = $2 where id = $1', [id, config]);
  let queries = 0;
  const query = (...given: unknown[]) => {
    queries++;
    return (db.pool.query as (...given: unknown[]) => unknown)(...given);
  };
  const add = (name: string) =>
    importEventTypes(db.knex, id, [{ name, description: '', schema: null, deprecated: false }]);
  return {
    id,
    add,
    known: eventTypeCatalogue({ query } as unknown as Database['pool']),
    queries: () => queries,
  };
}

catalogue('a thousand events at once, known or unknown, cost a query or two', async () => {
  const { id, add, known, queries } = await setUp();
  await add('order.paid');
  const ask = (type: string) =>
    Promise.all(Array.from({ length: 1_000 }, () => known.firstUnknown(id, [type])));
  assert.equal([new Set(await ask('order.paid')), queries()], [new Set([undefined]), 1]);
  await delay(150);
  assert.equal([new Set(await ask('order.lost')), queries()], [new Set(['order.lost']), 2]);
});

catalogue('a new type is known after a moment, or at once to who is told', async () => {
  const { id, add, known } = await setUp();
  assert.is(await known.firstUnknown(id, ['a', 'b']), 'a');
  await add('a');
  await delay(150);
  assert.is(await known.firstUnknown(id, ['a', 'b']), 'b');
  await add('b');
  known.forget(id);
  assert.is(await known.firstUnknown(id, ['a', 'b']), undefined);
});

catalogue('a project that rejects nothing has no unknown types', async () => {
  const { id, known } = await setUp('{}');
  assert.is(await known.firstUnknown(id, ['a']), undefined);
});

catalogue.run();
