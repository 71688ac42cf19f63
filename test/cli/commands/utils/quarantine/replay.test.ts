import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { updateSource } from '#store/config/sources';
import { migratedDatabase } from '../../../../store/migrated.js';
import { freePort } from '../../../../support/ports.js';
import { runGateway } from '../../../../support/gateway.js';
import { connectionOf } from '../../../../support/database.js';
import { GOOD, quarantine, quarantined, quarantineHere } from '../../../quarantined.js';

const replay = suite('cli/commands/utils/quarantine/replay');

const db = await migratedDatabase();
replay.after(() => db.close());

const statuses = async (ids: readonly string[]) => {
  const rows = await db.rows<{ id: string; status: string }>(
    'select id, status from quarantined_messages where id = any($1)',
    [ids],
  );
  return ids.map((id) => rows.find((row) => row.id === id)?.status);
};
const events = (projectId: string) =>
  db.rows<{ id: string; status: string; data: string }>(
    'select id, status, data from events where project_id = $1 order by id',
    [projectId],
  );

replay(
  'each message tells what became of it, twice makes no second event, and what is still refused fails the command',
  async () => {
    const { ids, projectId } = await quarantined(db, [GOOD, '{"half": ', '{"event_type":"a"}']);
    const [good, half, invalid] = ids as [string, string, string];
    const first = await quarantine(db, ['replay', ...ids]);
    assert.is(first.code, 1);
    const lines = first.stdout.split('\n');
    assert.is(lines[0], `${good}  replayed → event ${good}`);
    assert.match(
      lines[1] ?? '',
      new RegExp(`^${half} {2}still refused: not_json The message is not JSON: `),
    );
    assert.match(
      lines[2] ?? '',
      new RegExp(`^${invalid} {2}still refused: invalid_message .*data is missing`),
    );
    assert.is(first.stderr, '1 replayed, 2 still refused\n');
    const again = await quarantineHere(db, ['replay', good]);
    assert.equal([again.code, again.stdout], [0, `${good}  was already replayed\n`]);
    assert.equal(await statuses(ids), ['replayed', 'quarantined', 'quarantined']);
    assert.equal(await events(projectId), [{ id: good, status: 'pending', data: '{"n":1}' }]);
  },
);

replay(
  'all that fit the filters are replayed with the function as it is now, and a dry run changes nothing',
  async () => {
    const fits = Array.from({ length: 60 }, (_, n) => (n === 7 ? 'drop' : `paid;${n}`));
    const { ids, projectId, sourceId } = await quarantined(db, fits, { code: 'transform_threw' });
    const other = await quarantined(db, [GOOD], { code: 'transform_threw' });
    await updateSource(db.knex, projectId, sourceId, {
      body_function: `function transform(text) { return text === 'drop' ? null : { event_type: 'order.paid', data: { n: Number(text.split(';')[1]) } } }`,
    });
    const filters = ['--all', '--source-id', sourceId, '--code', 'transform_threw', '--time', '1h'];
    const dry = await quarantineHere(db, ['replay', ...filters, '--dry-run']);
    assert.is(dry.stderr, 'nothing was changed: 59 would be accepted, 1 dropped by the function\n');
    const one = await quarantineHere(db, ['replay', ids[0]!, '--dry-run']);
    assert.is(one.stdout, `${ids[0]}  would be accepted → event ${ids[0]}\n`);
    assert.equal(await events(projectId), []);
    const done = await quarantineHere(db, ['replay', ...filters]);
    assert.equal([done.code, done.stderr], [0, '59 replayed, 1 dropped by the function\n']);
    assert.is((await events(projectId)).length, 59);
    assert.equal(await statuses([ids[7]!, ids[59]!, other.ids[0]!]), [
      'discarded',
      'replayed',
      'quarantined',
    ]);
    const empty = await quarantineHere(db, ['replay', ...filters]);
    assert.equal(
      [empty.code, empty.stdout, empty.stderr],
      [0, '', 'no quarantined message matches\n'],
    );
  },
);

replay(
  'a clock here that is behind that of Postgres hides nothing that is quarantined',
  async () => {
    const { ids, projectId } = await quarantined(db, [GOOD]);
    const RealDate = Date;
    globalThis.Date = class extends RealDate {
      constructor(...given: [] | [number]) {
        super(given[0] ?? RealDate.now() - 60_000);
      }
    } as DateConstructor;
    try {
      const { stderr } = await quarantineHere(db, ['replay', '--all', '--project-id', projectId]);
      assert.is(stderr, '1 replayed\n');
      assert.equal(await statuses(ids), ['replayed']);
    } finally {
      globalThis.Date = RealDate;
    }
  },
);

replay(
  'a message that was a duplicate of another event is said to be replayed, and no event is named for it',
  async () => {
    const keyed = JSON.stringify({ event_type: 'order.paid', data: {}, idempotency_key: 'k' });
    const { ids } = await quarantined(db, [keyed, keyed]);
    await quarantineHere(db, ['replay', ids[0]!]);
    assert.is(
      (await quarantineHere(db, ['replay', ids[1]!])).stdout,
      `${ids[1]}  duplicate: the event ${ids[0]} exists already\n`,
    );
    assert.is(
      (await quarantineHere(db, ['replay', ids[1]!])).stdout,
      `${ids[1]}  was already replayed\n`,
    );
  },
);

replay(
  'without KV the event is pending all the same, and it says that agents find it later',
  async () => {
    const { ids, projectId } = await quarantined(db, [GOOD]);
    const config = {
      database: connectionOf(db.url),
      kv: { host: '127.0.0.1', port: await freePort() },
    };
    const { code, stderr } = await runGateway(['utils', 'quarantine', 'replay', ids[0]!], {
      config,
    });
    assert.is(code, 0);
    assert.match(
      stderr,
      /KV is unavailable: agents will find pending events in Postgres within seconds/,
    );
    assert.is((await events(projectId))[0]?.status, 'pending');
  },
);

replay('one id that is not there stops it before anything is done', async () => {
  const { ids } = await quarantined(db, [GOOD]);
  const { code, stderr } = await quarantineHere(db, [
    'replay',
    ids[0]!,
    '019ab3c4-5d6e-8f70-9123-456789abcdef',
  ]);
  assert.is(code, 1);
  assert.match(
    stderr,
    /no quarantined message 019ab3c4-5d6e-8f70-9123-456789abcdef; nothing was changed/,
  );
  assert.equal(await statuses(ids), ['quarantined']);
});

replay.run();
