import pg from 'pg';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { database, type Database } from '../support/database.js';
import { endpoint } from '../support/endpoint.js';
import { gateway as start } from '../support/gateway.js';
import { keepPosting, receivedOnce } from '../support/posting.js';
import { production, subscribed, succeed } from '../support/production.js';
import { until } from '../support/until.js';

const moves = suite('reliability/shard-moves');

type Name = 'default' | 'other';

moves(
  '`gateway shards move` is killed at each of its commits, and a repeated command or an agent ends the move',
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
    const place = async () =>
      (
        await gateway.database.rows<{ shard: string; former: string[] }>(
          'select shard, former_shards as former from projects where id = $1',
          [projectId],
        )
      )[0];
    const refusing = async (shard: Name) =>
      (await shards[shard].rows<{ to_shard: string }>('select to_shard from moved_projects')).map(
        ({ to_shard: to }) => to,
      );
    /** Moves the project to a shard, and kills the command when it waits for a lock of the test. */
    const killWaiting = async (to: Name, at: Database, lock: string) => {
      const holder = await connected(at);
      await holder.query(`begin; ${lock}`);
      const command = start([...move, to], run);
      const waiting = `from pg_stat_activity where datname = current_database() and application_name = 'gateway' and wait_event_type = 'Lock'`;
      await until('the command to wait', async () => (await at.rows(`select ${waiting}`))[0]);
      assert.is((await command.kill()).signal, 'SIGKILL');
      // Postgres would still run the statement that waits: it does not notice yet that the client is gone.
      await at.rows(`select pg_terminate_backend(pid) ${waiting}`);
      await holder.query('rollback');
      await holder.end();
    };
    const atFirstCommit = (from: Name, to: Name) =>
      killWaiting(to, shards[from], 'lock table moved_projects in share mode');
    const atSecondCommit = (to: Name) =>
      killWaiting(to, shards[to], 'lock table moved_projects in share mode');
    const atThirdCommit = (to: Name) =>
      killWaiting(
        to,
        gateway.database,
        `select from projects where id = '${projectId}' for no key update`,
      );
    try {
      await subscribed(gateway, inbox.url);
      const { host, port, username, database: name } = other.connection;
      const address = ['--host', host, '--port', String(port), '--username', username];
      await succeed(['shards', 'add', 'other', ...address, '--database', name], run);
      await posting.more();

      await atFirstCommit('default', 'other');
      assert.equal([await place(), await refusing('default')], [onlyOn('default'), []]);
      await posting.more();
      for (const stop of [atSecondCommit, atThirdCommit]) {
        await stop('other');
        assert.equal([await place(), await refusing('default')], [onlyOn('default'), ['other']]);
      }
      assert.match(await succeed([...move, 'other'], run), 'the project is on the shard other now');
      assert.equal(await place(), { shard: 'other', former: ['default'] });
      await posting.more();

      await gateway.startAgent();
      for (const [stop, from, to] of [
        [atSecondCommit, 'other', 'default'],
        [atThirdCommit, 'default', 'other'],
      ] as const) {
        await stop(to);
        await until('an agent to end the move', async () => (await place())?.shard === to);
        assert.equal([await place(), await refusing(to)], [{ shard: to, former: [from] }, []]);
        await posting.more();
      }

      await posting.stop();
      await receivedOnce(inbox, posting.accepted);
      const stored = Object.values(shards).map((it) =>
        it.rows<{ n: number }>(`select (data::json ->> 'n')::int as n from events`),
      );
      assert.equal(
        (await Promise.all(stored))
          .flat()
          .map(({ n }) => n)
          .sort((a, b) => a - b),
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

const onlyOn = (shard: Name) => ({ shard, former: [] });

async function connected({ url }: Database): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: 'test' });
  await client.connect();
  return client;
}
