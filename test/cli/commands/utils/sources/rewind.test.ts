import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migratedDatabase } from '../../../../store/migrated.js';
import { connectionOf } from '../../../../support/database.js';
import { runHere } from '../../../run-here.js';
import { makeSource } from './paused.js';

const rewind = suite('cli/commands/utils/sources/rewind');

const db = await migratedDatabase();
rewind.after(() => db.close());

const config = { database: connectionOf(db.url) };

rewind(
  'a place is given once, as a time or as offsets, of a source that can be moved',
  async () => {
    const { id } = await makeSource(db, { project: 'shop', name: 'orders' });
    const run = (...args: string[]) => runHere('utils:sources:rewind', [id, ...args], config);
    for (const args of [[], ['--to', 'latest', '--offset', '0:1'], ['--offset', '12']])
      assert.is((await run(...args)).code, 2, args.join(' '));
    const refused = await run('--to', 'earliest', '--dry-run');
    assert.is(refused.code, 1);
    assert.match(refused.stderr, 'type sqs, which cannot be moved');
  },
);

rewind.run();
