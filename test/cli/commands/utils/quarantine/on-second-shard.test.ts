import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openedOnShard } from '../../../../server/on-shard.js';
import { migratedDatabase } from '../../../../store/migrated.js';
import { quarantined, quarantineHere } from '../../../quarantined.js';

const onShard = suite('cli/commands/utils/quarantine/on-second-shard');

const db = await openedOnShard(await migratedDatabase());
onShard.after(() => db.close());

onShard('messages on a second shard are listed, shown and discarded there', async () => {
  const { ids } = await quarantined(db, ['a', 'bb']);
  const listed = await quarantineHere(db, ['list', '--json']);
  assert.is(listed.code, 0, listed.stderr);
  const found = JSON.parse(listed.stdout) as { id: string }[];
  assert.equal(
    found.map(({ id }) => id),
    [...ids].sort().reverse(),
  );
  const shown = await quarantineHere(db, ['show', ids[0]!, '--json']);
  assert.is((JSON.parse(shown.stdout) as { raw: string }).raw, 'a');
  const discarded = await quarantineHere(db, ['discard', ids[0]!]);
  assert.match(discarded.stdout, 'discarded 1 message');
  const all = await quarantineHere(db, ['discard', '--all', '--yes']);
  assert.match(all.stdout, 'discarded 1 message');
  const { rows } = await db.pool.query<{ status: string }>(
    'select status from quarantined_messages',
  );
  assert.equal(
    rows.map(({ status }) => status),
    ['discarded', 'discarded'],
  );
});

onShard.run();
