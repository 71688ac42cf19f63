import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { migratedDatabase } from '../../../../store/migrated.js';
import { connectionOf } from '../../../../support/database.js';
import { runGateway } from '../../../../support/gateway.js';
import { runHere } from '../../../run-here.js';
import { makeSource } from './paused.js';

const list = suite('cli/commands/utils/sources/list');

const db = await migratedDatabase();
list.after(() => db.close());

const config = { database: connectionOf(db.url) };
const run = (...args: string[]) => runHere('utils:sources:list', args, config);

list(
  'the sources of all projects are listed, and those that are paused say since when, until when and why',
  async () => {
    const none = await run('--json');
    assert.equal([none.code, none.stdout, none.stderr], [0, '[]\n', 'There are no sources.\n']);

    const read = await makeSource(db, { project: 'a', name: 'orders' });
    const paused = await makeSource(db, {
      project: 'b',
      name: 'invoices',
      pausedFor: 'The function ran out of time.',
    });
    const off = await makeSource(db, { project: 'c', name: 'off\u001b[2J', is_disabled: true });
    const { code, stdout, stderr } = await runGateway(['utils', 'sources', 'list'], { config });
    assert.equal([code, stderr], [0, '']);
    const [row] = await db.rows<{ paused_at: Date; resumes_at: Date }>(
      'select paused_at, resumes_at from sources where id = $1',
      [paused.id],
    );
    assert.equal(
      stdout
        .trim()
        .split('\n')
        .map((line) => line.split(/\s{2,}/)),
      [
        ['PROJECT', 'SOURCE', 'ID', 'TYPE', 'STATE', 'SINCE', 'UNTIL', 'REASON'],
        ['a', 'orders', read.id, 'sqs', 'read', '-', '-', '-'],
        [
          'b',
          'invoices',
          paused.id,
          'sqs',
          'paused',
          row!.paused_at.toISOString(),
          row!.resumes_at.toISOString(),
          'The function ran out of time.',
        ],
        ['c', 'off\\x1b[2J', off.id, 'sqs', 'disabled', '-', '-', '-'],
      ],
    );

    const only = JSON.parse((await run('--paused', '--json')).stdout) as unknown[];
    assert.equal(only, [
      {
        source_id: paused.id,
        source_name: 'invoices',
        project_id: paused.project_id,
        project_name: 'b',
        type: 'sqs',
        state: 'paused',
        paused_at: row!.paused_at.toISOString(),
        resumes_at: row!.resumes_at.toISOString(),
        pause_reason: 'The function ran out of time.',
        paused_by: 'agent-1',
        pauses: 1,
      },
    ]);
  },
);

list.run();
