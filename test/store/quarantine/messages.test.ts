import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import type { PageRequest } from '#store/pagination/page';
import {
  discardQuarantinedMessage,
  findQuarantinedMessage,
  listQuarantinedMessages,
  type QuarantineFilter,
} from '#store/quarantine/messages';
import { quarantineMessages } from '#store/quarantine/messages';
import { quarantinedMessage } from '../batches.js';
import { makeProject } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const quarantine = suite('store/quarantine/messages');

const db = await migratedDatabase();
quarantine.after(() => db.close());

const first: PageRequest = { perPage: 20, direction: 'next', sort: 'DESC' };

async function setUp() {
  const { id: projectId } = await makeProject(db);
  const sourceId = newId();
  const now = Date.now();
  const rows = ['not_json', 'empty', 'not_json'].map((code, n) =>
    quarantinedMessage({
      projectId,
      sourceId,
      occurredAtMs: now + n,
      code,
      reason: `Because of ${n}.`,
      raw: Buffer.from([0xff, 0x00, n]),
    }),
  );
  await quarantineMessages(db.pool, rows);
  return { projectId, sourceId, ids: rows.map(({ id }) => id) };
}

quarantine('messages are listed newest first and filtered by code, source and status', async () => {
  const { projectId, sourceId, ids } = await setUp();
  const [a, b, c] = ids as [string, string, string];
  const listed = async (filter: QuarantineFilter) =>
    (await listQuarantinedMessages(db.pool, projectId, filter, first)).content.map(({ id }) => id);
  assert.equal(await listed({}), [c, b, a]);
  assert.equal(await listed({ code: 'not_json' }), [c, a]);
  assert.equal(await listed({ sourceId }), [c, b, a]);
  assert.equal(await listed({ sourceId: newId() }), []);
  assert.equal(await listed({ status: 'discarded' }), []);
});

quarantine('a message keeps its bytes and is discarded once', async () => {
  const { projectId, ids } = await setUp();
  const [id] = ids as [string];
  const found = await findQuarantinedMessage(db.pool, projectId, id);
  assert.equal([found?.raw, found?.raw_bytes, found?.reason], [Buffer.from([0xff, 0x00, 0]), 3, 'Because of 0.']);
  assert.is(await discardQuarantinedMessage(db.pool, projectId, id), true);
  assert.is(await discardQuarantinedMessage(db.pool, projectId, id), false);
  assert.is((await findQuarantinedMessage(db.pool, projectId, id))?.status, 'discarded');
  assert.is(await findQuarantinedMessage(db.pool, newId(), id), undefined);
});

quarantine.run();
