import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { editQuarantinedMessage } from '#store/quarantine/replay';
import { migratedDatabase } from '../../../../store/migrated.js';
import { quarantine, quarantined, quarantineHere } from '../../../quarantined.js';

const show = suite('cli/commands/utils/quarantine/show');

const db = await migratedDatabase();
show.after(() => db.close());

show(
  'an id alone finds the message: where it is from, what its code means, its bytes without tricks, and what to do',
  async () => {
    const { ids } = await quarantined(db, ['{"a": \x1b]0;owned\x07\u202e\nnext: rm -rf']);
    const { code, stdout } = await quarantine(db, ['show', ids[0]!]);
    assert.is(code, 0);
    assert.match(stdout, /^project +orders \(/m);
    assert.match(stdout, /^code +not_json: The message is not JSON\.$/m);
    assert.match(stdout, /^header +x-a: b$/m);
    assert.match(stdout, /^ {2}\| \{"a": \\x1b\]0;owned\\x07\\u202e$/m);
    assert.match(stdout, /^ {2}\| next: rm -rf$/m);
    assert.match(stdout, new RegExp(`^ +gateway utils quarantine replay ${ids[0]}`, 'm'));
    assert.not.ok(['\x1b', '\x07', '\u202e'].some((obeyed) => stdout.includes(obeyed)));
  },
);

show(
  'bytes that are no text are shown in hex, in base64 as JSON, and as they are with --raw',
  async () => {
    const { ids } = await quarantined(db, [Buffer.from([0xff, 0x00, 0x41])]);
    assert.match(
      (await quarantineHere(db, ['show', ids[0]!])).stdout,
      /^ {2}\| 000000 {2}ff 00 41 +\.\.A$/m,
    );
    const record = JSON.parse((await quarantineHere(db, ['show', ids[0]!, '--json'])).stdout);
    assert.equal([record.id, record.raw, record.raw_encoding], [ids[0], '/wBB', 'base64']);
  },
);

show('an edited message shows the edited bytes, and with --original those that came', async () => {
  const { ids, projectId } = await quarantined(db, ['came\n']);
  await editQuarantinedMessage(
    db.pool,
    { projectId, id: ids[0]!, editedAt: null },
    Buffer.from('edited'),
  );
  assert.is((await quarantine(db, ['show', ids[0]!, '--raw'])).stdout, 'edited');
  assert.is((await quarantine(db, ['show', ids[0]!, '--raw', '--original'])).stdout, 'came\n');
  const record = JSON.parse((await quarantineHere(db, ['show', ids[0]!, '--json'])).stdout);
  assert.equal([record.raw, record.original_raw, record.raw_bytes], ['edited', 'came\n', 6]);
});

show('an id that is not there is told', async () => {
  const id = newId();
  const { code, stderr } = await quarantineHere(db, ['show', id]);
  assert.is(code, 1);
  assert.match(stderr, new RegExp(`no quarantined message ${id}`));
});

show.run();
