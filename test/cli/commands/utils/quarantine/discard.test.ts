import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migratedDatabase } from '../../../../store/migrated.js';
import { quarantine, quarantined, quarantineHere } from '../../../quarantined.js';

const discard = suite('cli/commands/utils/quarantine/discard');

const db = await migratedDatabase();
discard.after(() => db.close());

const statuses = async (ids: readonly string[]) => {
  const rows = await db.rows<{ id: string; status: string }>(
    'select id, status from quarantined_messages where id = any($1)',
    [ids],
  );
  return ids.map((id) => rows.find((row) => row.id === id)?.status);
};

discard('named messages are discarded once, and it says how many', async () => {
  const { ids } = await quarantined(db, ['1', '2', '3']);
  const [a, b, c] = ids as [string, string, string];
  const first = await quarantine(db, ['discard', a, b]);
  assert.equal([first.code, first.stdout], [0, 'discarded 2 messages\n']);
  assert.equal(await statuses([a, b, c]), ['discarded', 'discarded', 'quarantined']);
  const again = await quarantineHere(db, ['discard', a, c]);
  assert.equal(
    [again.stdout, again.stderr],
    ['discarded 1 message\n', '1 message skipped: already replayed or discarded\n'],
  );
});

discard(
  'filters choose from all, a dry run changes nothing, and all without a filter wants a yes',
  async () => {
    const { ids, sourceId } = await quarantined(db, ['1', '2']);
    const other = await quarantined(db, ['3']);
    const dry = await quarantineHere(db, [
      'discard',
      '--all',
      '--source-id',
      sourceId,
      '--dry-run',
    ]);
    assert.is(dry.stdout, 'would discard 2 messages\n');
    assert.equal(await statuses(ids), ['quarantined', 'quarantined']);
    const bare = await quarantineHere(db, ['discard', '--all']);
    assert.is(bare.code, 2);
    assert.match(bare.stderr, /--yes/);
    assert.is(
      (await quarantineHere(db, ['discard', '--all', '--source-id', sourceId])).stdout,
      'discarded 2 messages\n',
    );
    assert.equal(await statuses([...ids, ...other.ids]), ['discarded', 'discarded', 'quarantined']);
    assert.is((await quarantineHere(db, ['discard', '--all', '--yes'])).code, 0);
    assert.equal(await statuses(other.ids), ['discarded']);
  },
);

discard('ids with --all, filters without it, and nothing at all are wrong use', async () => {
  for (const args of [
    [],
    ['--code', 'empty'],
    ['--all', '019ab3c4-5d6e-8f70-9123-456789abcdef'],
    ['nonsense'],
  ])
    assert.is((await quarantineHere(db, ['discard', ...args])).code, 2, args.join(' '));
});

discard.run();
