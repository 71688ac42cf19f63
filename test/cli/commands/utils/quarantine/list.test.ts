import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { discardQuarantinedMessages } from '#store/quarantine/replay';
import { migratedDatabase } from '../../../../store/migrated.js';
import { quarantine, quarantined, quarantineHere } from '../../../quarantined.js';

const list = suite('cli/commands/utils/quarantine/list');

const db = await migratedDatabase();
list.after(() => db.close());

list(
  'messages of all projects are listed newest first, without what a terminal would obey',
  async () => {
    await db.rows('delete from quarantined_messages');
    const a = await quarantined(db, ['a'], {
      reason: 'It threw: \x1b[2Jgone\nfor good.',
      code: 'transform_threw',
    });
    const b = await quarantined(db, ['bb']);
    const { code, stdout } = await quarantine(db, ['list']);
    assert.is(code, 0);
    const [head, first, second] = stdout.split('\n');
    assert.match(head ?? '', /^ID +PROJECT +SOURCE +TIME +CODE +BYTES +STATUS +REASON/);
    assert.match(
      first ?? '',
      new RegExp(
        `^${b.ids[0]} +orders +shop +\\S+Z +not_json +2 +quarantined +The message is not JSON\\.`,
      ),
    );
    assert.match(second ?? '', new RegExp(`^${a.ids[0]} .*It threw: \\\\x1b\\[2Jgone for good\\.`));
    assert.not.ok(stdout.includes('\x1b'));
  },
);

list(
  'filters narrow the list, a limit says when there is more, and JSON has everything but the bytes',
  async () => {
    await db.rows('delete from quarantined_messages');
    const { projectId, sourceId, ids } = await quarantined(db, ['1', '2', '3']);
    await quarantined(db, ['other']);
    await discardQuarantinedMessages(db.pool, [{ projectId, id: ids[0]! }]);
    const filters = [
      '--project-id',
      projectId,
      '--source-id',
      sourceId,
      '--status',
      'quarantined',
      '--code',
      'not_json',
      '--time',
      '1h',
    ];
    const { stdout, stderr } = await quarantineHere(db, [
      'list',
      ...filters,
      '--limit',
      '1',
      '--json',
    ]);
    const [record, ...others] = JSON.parse(stdout);
    assert.equal(others, []);
    assert.equal(
      [record.id, record.project_id, record.raw_bytes, record.headers],
      [ids[2], projectId, 1, { 'x-a': 'b' }],
    );
    assert.match(stderr, /There are more messages: raise --limit/);
    const whole = await quarantineHere(db, ['list', ...filters]);
    assert.equal(
      [whole.stdout.includes(ids[1]!), whole.stdout.includes(ids[0]!), whole.stderr],
      [true, false, ''],
    );
  },
);

list(
  'wrong use names what is allowed, and a project that is not there is no empty quarantine',
  async () => {
    const wrong = async (...args: string[]) => {
      const { code, stderr } = await quarantineHere(db, ['list', ...args]);
      return [code, stderr] as const;
    };
    const [status, told] = await wrong('--code', 'not_jason');
    assert.is(status, 2);
    assert.match(told, /--code must be one of empty, .*did you mean not_json\?/s);
    assert.match((await wrong('--status', 'open'))[1], /quarantined, replayed, discarded/);
    assert.match((await wrong('--time', 'yesterday'))[1], /--time must be a duration/);
    assert.match((await wrong('--limit', '0'))[1], /--limit must be an integer from 1/);
    assert.match((await wrong('--project-id', 'orders'))[1], /--project-id must be an id/);
    assert.equal((await wrong('--project-id', newId()))[0], 1);
  },
);

list.run();
