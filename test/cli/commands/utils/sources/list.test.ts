import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { registerAgent } from '#store/deliveries/agents';
import { openKv } from '#store/kv/redis-kv';
import { writeSourceState } from '#store/kv/source-states';
import { migratedDatabase } from '../../../../store/migrated.js';
import { connectionOf } from '../../../../support/database.js';
import { runGateway } from '../../../../support/gateway.js';
import { freePort } from '../../../../support/ports.js';
import { redis } from '../../../../support/redis.js';
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
        [
          'a',
          'orders',
          read.id,
          'sqs',
          'unknown',
          '-',
          '-',
          'No agent that reads sources is running.',
        ],
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
        ['c', 'off\\x1b[2J', off.id, 'sqs', 'disabled', '-', '-', 'The source is disabled.'],
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
        reason: 'The function ran out of time.',
        since: row!.paused_at.toISOString(),
        paused_at: row!.paused_at.toISOString(),
        resumes_at: row!.resumes_at.toISOString(),
        pause_reason: 'The function ran out of time.',
        paused_by: 'agent-1',
        pauses: 1,
      },
    ]);
  },
);

list(
  'a source is active while an agent reports it, and unknown since its agents died',
  async () => {
    const kv = await redis();
    const store = openKv({ ...kv.connection, type: 'redis', scheme: 'redis' }, () => undefined);
    try {
      const { id: sourceId, project_id: projectId } = await makeSource(db, {
        project: 'd',
        name: 'stock',
      });
      const agentId = await registerAgent(db.pool, 'one', 60_000);
      const shown = async (settings: object) => {
        const { stdout } = await runHere('utils:sources:list', ['--json'], {
          ...config,
          ...settings,
        });
        const all = JSON.parse(stdout) as Record<string, string | null>[];
        const { state, reason, since } = all.find(({ source_id: id }) => id === sourceId)!;
        return [state, reason, since];
      };
      const unreported = 'No agent has reported the source for 30 seconds. It may be new.';
      assert.equal(await shown({ kv: kv.connection }), ['unknown', unreported, null]);
      await writeSourceState(
        store,
        { projectId, sourceId, agentId },
        { state: 'reading', reason: null, sinceMs: 0, messages: null },
      );
      assert.equal(await shown({ kv: kv.connection }), [
        'active',
        null,
        '1970-01-01T00:00:00.000Z',
      ]);
      const away = { type: 'redis', host: '127.0.0.1', port: await freePort() };
      assert.equal(await shown({ kv: away }), [
        'unknown',
        'KV, where agents report states, is unavailable.',
        null,
      ]);
      const [dead] = await db.rows<{ expires_at: Date }>(
        `update agents set expires_at = now() - interval '1 minute' returning expires_at`,
      );
      assert.equal(await shown({ kv: kv.connection }), [
        'unknown',
        'No agent that reads sources is running.',
        dead!.expires_at.toISOString(),
      ]);
    } finally {
      await store.close();
      await kv.close();
    }
  },
);

list.run();
