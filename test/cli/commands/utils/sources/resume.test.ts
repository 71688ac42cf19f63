import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { migratedDatabase } from '../../../../store/migrated.js';
import { connectionOf } from '../../../../support/database.js';
import { runGateway } from '../../../../support/gateway.js';
import { runHere } from '../../../run-here.js';
import { makeSource } from './paused.js';

const resume = suite('cli/commands/utils/sources/resume');

const db = await migratedDatabase();
resume.after(() => db.close());

const config = { database: connectionOf(db.url) };
const run = (id: string) => runHere('utils:sources:resume', [id], config);

resume('a source that is paused is read again, and its pauses are forgotten', async () => {
  const { id } = await makeSource(db, {
    project: 'shop',
    name: 'orders',
    pausedFor: 'The function ran out of time.',
  });
  const other = await makeSource(db, {
    project: 'other',
    name: 'orders',
    pausedFor: 'The function ran out of time.',
  });
  const { code, stdout, stderr } = await runGateway(
    ['utils', 'sources', 'resume', id.toUpperCase()],
    { config },
  );
  assert.equal([code, stdout, stderr], [0, 'resumed the source orders of the project shop\n', '']);
  const rows = await db.rows<{ id: string }>(
    'select id from sources where paused_at is not null or pauses > 0',
  );
  assert.equal(rows, [{ id: other.id }]);
});

resume('one that is not paused is left alone, and one that is not there is a mistake', async () => {
  const { id } = await makeSource(db, { project: 'shop', name: 'orders' });
  const left = await run(id);
  assert.equal(
    [left.code, left.stdout, left.stderr],
    [0, '', 'the source orders of the project shop is not paused; nothing was changed\n'],
  );
  const unknown = newId();
  const missing = await run(unknown);
  assert.is(missing.code, 1);
  assert.match(missing.stderr, `source ${unknown} not found`);
  assert.is((await run('nonsense')).code, 2);
});

resume.run();
