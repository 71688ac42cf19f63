import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import type { PageRequest } from '#store/pagination/page';
import {
  findQuarantinedMessage,
  listQuarantinedMessages,
  quarantineMessages,
  type QuarantineFilter,
} from '#store/quarantine/messages';
import { discardQuarantinedMessages } from '#store/quarantine/replay';
import { within } from '../../support/until.js';
import { empty, PROJECT, quarantinedMessage, SOURCE } from '../batches.js';
import { makeProject, makeSource } from '../made.js';
import { migratedDatabase } from '../migrated.js';

const quarantine = suite('store/quarantine/messages');

const db = await migratedDatabase();
quarantine.after(() => db.close());
quarantine.before.each(() => empty(db));

const first: PageRequest = { perPage: 20, direction: 'next', sort: 'DESC' };

async function setUp() {
  const { id: projectId } = await makeProject(db);
  const sourceId = await makeSource(db, projectId);
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
    (await listQuarantinedMessages(db.planes, projectId, filter, first)).content.map(
      ({ id }) => id,
    );
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
  assert.equal(
    [found?.raw, found?.raw_bytes, found?.reason],
    [Buffer.from([0xff, 0x00, 0]), 3, 'Because of 0.'],
  );
  assert.equal(await discardQuarantinedMessages(db.pool, [{ projectId, id }]), [id]);
  assert.equal(await discardQuarantinedMessages(db.pool, [{ projectId, id }]), []);
  assert.is((await findQuarantinedMessage(db.pool, projectId, id))?.status, 'discarded');
  assert.is(await findQuarantinedMessage(db.pool, newId(), id), undefined);
});

const count = async () =>
  (await db.rows<{ n: number }>('select count(*)::int as n from quarantined_messages'))[0]!.n;

quarantine('a message is kept byte for byte, with its reason', async () => {
  const raw = Buffer.from(Array.from({ length: 1024 }, (_, n) => n % 256));
  const made = quarantinedMessage({
    raw,
    headers: '{"a\\u0000":"it\'s \\"é\\" \\\\"}',
    reason: `It's {"not"}, \\ a\nmessage 😀.`,
  });
  await quarantineMessages(db.pool, [made]);
  const [row] = await db.rows(
    'select *, created_at = updated_at as untouched from quarantined_messages',
  );
  const { created_at: createdAt, updated_at: _updatedAt, raw: stored, ...rest } = row!;
  assert.ok(createdAt instanceof Date);
  assert.ok(raw.equals(stored as Buffer));
  assert.equal(rest, {
    project_id: PROJECT,
    id: made.id,
    source_id: SOURCE,
    occurred_at: new Date(made.occurredAtMs),
    message: null,
    status: 'quarantined',
    coordinates: made.coordinates,
    code: 'not_json',
    reason: made.reason,
    headers: made.headers,
    edited_raw: null,
    edited_at: null,
    untouched: true,
  });
});

quarantine(
  'a message that comes again is not stored again, and what was decided of it stays',
  async () => {
    const made = quarantinedMessage();
    await quarantineMessages(db.pool, [made, quarantinedMessage()]);
    await db.rows(
      `update quarantined_messages set status = 'replayed', raw = 'edited' where id = $1`,
      [made.id],
    );
    const again = { ...made, raw: Buffer.from('edited'), reason: 'another' };
    const other = { ...made, raw: Buffer.from('other') };
    assert.equal(
      [...(await quarantineMessages(db.pool, [quarantinedMessage(), again, other]))],
      [
        [again, 'same'],
        [other, 'other'],
      ],
    );
    assert.is(await count(), 3);
    assert.equal(
      await db.rows(`select status, raw, reason from quarantined_messages where id = $1`, [
        made.id,
      ]),
      [{ status: 'replayed', raw: Buffer.from('edited'), reason: 'The message is not JSON.' }],
    );
  },
);

quarantine(
  'the same coordinates with another stamp are another message: the topic was made anew',
  async () => {
    await quarantineMessages(db.pool, [
      quarantinedMessage({ coordinates: 'orders/0/0' }),
      quarantinedMessage({ coordinates: 'orders/0/0', occurredAtMs: 1 }),
    ]);
    assert.is(await count(), 2);
  },
);

quarantine('the same message twice in one batch is one', async () => {
  const made = quarantinedMessage();
  const twice = { ...made };
  assert.equal([...(await quarantineMessages(db.pool, [made, twice]))], [[twice, 'same']]);
  assert.is(await count(), 1);
});

quarantine(
  'an empty message and one of two megabytes are kept, also as parts of larger buffers',
  async () => {
    const whole = Buffer.alloc(2_000_002, 7);
    const made = [
      quarantinedMessage({ raw: new Uint8Array(0) }),
      quarantinedMessage({ raw: whole.subarray(1, -1) }),
      quarantinedMessage({ raw: new Uint8Array(whole.buffer, whole.byteOffset + 1, 3) }),
    ];
    await quarantineMessages(db.pool, made);
    const rows = await db.rows<{ id: string; size: number }>(
      'select id, length(raw) as size from quarantined_messages',
    );
    assert.equal(
      made.map(({ id }) => rows.find((row) => row.id === id)?.size),
      [0, 2_000_000, 3],
    );
  },
);

quarantine(
  'text that Postgres cannot hold is cleaned: quarantine is the end of the way and refuses nothing',
  async () => {
    await quarantineMessages(db.pool, [
      quarantinedMessage({ coordinates: 'a\0b\x1ec', reason: 'a\0b\ud800' }),
    ]);
    assert.equal(await db.rows('select coordinates, reason from quarantined_messages'), [
      { coordinates: 'a\ufffdb\ufffdc', reason: 'a\ufffdb\ufffd' },
    ]);
  },
);

quarantine(
  'agents that quarantine the same messages at once, in whatever order, do not block each other',
  async () => {
    const made = Array.from({ length: 300 }, () => quarantinedMessage());
    await within(
      Promise.all(
        [made, made.toReversed(), made.slice(100), made.toReversed().slice(100)].map((list) =>
          quarantineMessages(db.pool, list),
        ),
      ),
      60_000,
      'the batches',
    );
    assert.is(await count(), 300);
  },
);

quarantine('stamps of every year are kept, in every project', async () => {
  await quarantineMessages(db.pool, [
    quarantinedMessage({ occurredAtMs: 0 }),
    quarantinedMessage({ occurredAtMs: Date.UTC(2200, 0, 1), projectId: newId() }),
  ]);
  assert.is(await count(), 2);
});

quarantine.run();
