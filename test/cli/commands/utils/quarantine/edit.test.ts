import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { discardQuarantinedMessages } from '#store/quarantine/replay';
import { migratedDatabase } from '../../../../store/migrated.js';
import { discard, tempFolder } from '../../../../support/start/keep.js';
import { until } from '../../../../support/until.js';
import { GOOD, quarantine, quarantined, quarantineHere } from '../../../quarantined.js';

const edit = suite('cli/commands/utils/quarantine/edit');

const db = await migratedDatabase();
const folder = tempFolder('edit');
edit.after(async () => {
  discard(folder);
  await db.close();
});

const bytesOf = async (id: string) => {
  const [row] = await db.rows<{ raw: Buffer; edited_raw: Buffer | null; status: string }>(
    'select raw, edited_raw, status from quarantined_messages where id = $1',
    [id],
  );
  return [row?.raw.toString(), row?.edited_raw?.toString(), row?.status];
};

const file = (name: string, content: string) => {
  const place = path.join(folder, name);
  fs.writeFileSync(place, content);
  return place;
};
const editor = (name: string, script: string) => `sh ${file(name, script)} --wait`;

edit(
  'new bytes from a file are stored beside those that came, and it says whether they would be accepted',
  async () => {
    const { ids } = await quarantined(db, ['{"half": ']);
    const [id] = ids as [string];
    const { code, stdout } = await quarantineHere(db, [
      'edit',
      id,
      '--file',
      file('good.json', GOOD),
    ]);
    assert.is(code, 0);
    assert.match(stdout, `would be accepted → event ${id}`);
    assert.equal(await bytesOf(id), ['{"half": ', GOOD, 'quarantined']);
    const again = await quarantineHere(db, [
      'edit',
      id,
      '--file',
      file('bad.json', '{"event_type": 7}'),
    ]);
    assert.match(again.stdout, /would be refused: invalid_message .*event_type must be a string/);
    assert.equal(await bytesOf(id), ['{"half": ', '{"event_type": 7}', 'quarantined']);
  },
);

edit(
  'an editor gets the bytes in a file of nobody else, which is gone afterwards; what the function makes of them is told',
  async () => {
    const { ids } = await quarantined(db, ['paid;7'], {
      bodyFunction: `function transform(text) { return { event_type: text.split(';')[0], data: { n: Number(text.split(';')[1]) } } }`,
    });
    const [id] = ids as [string];
    const seen = path.join(folder, 'seen');
    const script = `[ "$1" = --wait ] || exit 9\nls -l "$2" > ${seen}\necho "$2" >> ${seen}\ncat "$2" >> ${seen}\nprintf 'refunded;8\\n' > "$2"`;
    const { stdout, stderr } = await quarantine(db, ['edit', id], {
      env: { EDITOR: 'false', VISUAL: editor('change', script) },
    });
    assert.is(stderr, '');
    assert.match(stdout, `would be accepted → event ${id}`);
    assert.equal(
      await bytesOf(id),
      ['paid;7', 'refunded;8', 'quarantined'],
      'the line feed that an editor adds is no change',
    );
    const [mode = '', place = '', content] = fs.readFileSync(seen, 'utf8').split('\n');
    assert.match(mode, /^-rw------- /);
    assert.equal(
      [fs.existsSync(place), fs.existsSync(path.dirname(place)), content],
      [false, false, 'paid;7'],
    );
  },
);

edit(
  'bytes that are the same are not stored, and an editor that fails changes nothing',
  async () => {
    const { ids } = await quarantined(db, ['same']);
    const [id] = ids as [string];
    const same = await quarantine(db, ['edit', id], {
      env: { EDITOR: editor('same', 'echo >> "$2"') },
    });
    assert.equal([same.code, same.stdout], [0, 'unchanged; nothing was stored\n']);
    const failed = await quarantine(db, ['edit', id], {
      env: { EDITOR: editor('failing', 'echo no > "$2"; exit 3') },
    });
    assert.is(failed.code, 1);
    assert.match(failed.stderr, /ended with status 3; the message is unchanged/);
    const missing = await quarantine(db, ['edit', id], { env: { EDITOR: 'no-such-editor' } });
    assert.match(missing.stderr, /`no-such-editor` is not there/);
    assert.equal(await bytesOf(id), ['same', undefined, 'quarantined']);
  },
);

edit(
  'what somebody discards while it is edited is not stored, and the work is not lost',
  async () => {
    const { ids, projectId } = await quarantined(db, ['before']);
    const [id] = ids as [string];
    const gate = path.join(folder, 'gate');
    const script = `echo after > "$2"; touch ${gate}; while [ -e ${gate} ]; do sleep 0.05; done`;
    const running = quarantine(db, ['edit', id], { env: { EDITOR: editor('slow', script) } });
    await until('the editor to be open', () => fs.existsSync(gate));
    await discardQuarantinedMessages(db.pool, [{ projectId, id }]);
    fs.rmSync(gate);
    const { code, stderr } = await running;
    assert.is(code, 1);
    assert.match(stderr, /someone replayed, discarded or edited the message/);
    const kept = /content is in (\S+)\.$/m.exec(stderr)?.[1] ?? '';
    assert.is(fs.readFileSync(kept, 'utf8'), 'after\n');
    fs.rmSync(path.dirname(kept), { recursive: true });
    assert.equal(await bytesOf(id), ['before', undefined, 'discarded']);
    assert.match(
      (await quarantineHere(db, ['edit', id, '--file', '-'])).stderr,
      /is already discarded/,
    );
  },
);

edit.run();
