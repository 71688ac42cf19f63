import pg from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { database, type Database } from '../support/database.js';
import { endpoint } from '../support/endpoint.js';
import { gateway as start } from '../support/gateway.js';
import { keepPosting, postNumber, receivedOnce } from '../support/posting.js';
import { production, subscribed, succeed } from '../support/production.js';
import { until } from '../support/until.js';

const moves = suite('reliability/shard-moves');

type Name = 'default' | 'other';

moves(
  'a move that is killed at each of its steps loses nothing and sends nothing twice',
  async () => {
    const [gateway, other, inbox] = await Promise.all([
      production({ agents: 0 }),
      database(),
      endpoint(),
    ]);
    const posting = keepPosting(gateway);
    const { projectId, run } = gateway;
    const shards: Readonly<Record<Name, Database>> = { default: gateway.database, other };
    const move = ['shards', 'move', projectId];
    const state = async () =>
      (
        await gateway.database.rows<{ shard: string; phase: string | null }>(
          'select p.shard, m.phase from projects p left join project_moves m on m.project_id = p.id where p.id = $1',
          [projectId],
        )
      )[0];
    /** Kills a process when it waits for a lock of the test. */
    const killWaiting = async (
      at: Database,
      lock: string,
      { kill, name = 'gateway' }: { kill: () => Promise<unknown>; name?: string },
    ) => {
      const holder = await connected(at);
      await holder.query(`begin; ${lock}`);
      const waiting = `from pg_stat_activity where datname = current_database() and application_name = '${name}' and wait_event_type = 'Lock'`;
      try {
        await until('the process to wait', async () => (await at.rows(`select ${waiting}`))[0]);
        await kill();
        // Postgres would still run the statement that waits: it does not notice yet that the client is gone.
        await at.rows(`select pg_terminate_backend(pid) ${waiting}`);
      } finally {
        await holder.end();
      }
    };
    const killCommand = async (to: Name, at: Database, lock: string) => {
      const command = start([...move, to], run);
      await killWaiting(at, lock, {
        kill: async () => assert.is((await command.kill()).signal, 'SIGKILL'),
      });
    };
    try {
      await subscribed(gateway, inbox.url);
      const { host, port, username, database: name } = other.connection;
      const address = ['--host', host, '--port', String(port), '--username', username];
      await succeed(['shards', 'add', 'other', ...address, '--database', name], run);
      await posting.more();

      const fences = 'lock table project_fences in share mode';
      await killCommand('other', shards.default, fences);
      assert.equal(await state(), { shard: 'default', phase: 'stopping' });
      await posting.more();
      await succeed([...move, 'default'], run);
      assert.equal(await state(), { shard: 'default', phase: 'done' });
      await killCommand('other', shards.other, fences);
      const ofProject = `select from projects where id = '${projectId}' for no key update`;
      await killCommand('other', shards.default, ofProject);
      assert.equal(await state(), { shard: 'default', phase: 'stopping' });
      const refused = await postNumber(gateway, projectId, posting.accepted);
      assert.equal([refused.status, refused.headers.get('retry-after')], [503, '1']);

      await gateway.startAgent();
      await until('an agent to go on', async () => (await state())?.shard === 'other');
      await posting.more();
      // Its connection is ended while rows are on both shards.
      await killWaiting(shards.default, 'lock table event_messages in share mode', {
        name: 'gateway-agent',
        kill: () => Promise.resolve(),
      });
      await until('the history to be moved', async () => (await state())?.phase === 'done', {
        withinMs: 60_000,
      });
      await posting.more();
      await succeed([...move, 'default'], run);
      await posting.more();
      await posting.stop();
      await receivedOnce(inbox, posting.accepted);
      await until('the project to be back', async () => (await state())?.phase === 'done', {
        withinMs: 60_000,
      });
      const stored = (shard: Name) =>
        shards[shard].rows<{ n: number }>(
          `select (data::json ->> 'n')::int as n from events order by 1`,
        );
      assert.equal(await stored('other'), []);
      assert.equal(
        (await stored('default')).map(({ n }) => n),
        Array.from({ length: posting.accepted }, (_, n) => n),
      );
    } finally {
      await posting.stop().catch(() => undefined);
      await gateway.close();
      await Promise.all([other.close(), inbox.close()]);
    }
  },
);

moves.run();

async function connected({ url }: Database): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'test' });
  await client.connect();
  return client;
}
