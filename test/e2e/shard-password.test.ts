// deadline: 300 s
import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { database } from '../support/database.js';
import { endpoint } from '../support/endpoint.js';
import { runGateway } from '../support/gateway.js';
import { requirePasswords } from '../support/passwords.js';
import { keepPosting } from '../support/posting.js';
import { production, subscribed, succeed } from '../support/production.js';
import { proxy } from '../support/proxy.js';
import { own } from '../support/services.js';
import { until } from '../support/until.js';

const passwords = suite('e2e/shard-password');

const [FIRST, SECOND] = ['first-secret-1', 'second-secret-2'];

passwords(
  'a shard gets another password and address while server and agent run, and they follow',
  async () => {
    const [postgres, inbox, gateway] = await Promise.all([
      own.postgres(),
      endpoint(),
      production(),
    ]);
    await requirePasswords(postgres, 'keeper');
    const admin = await database({ postgres });
    const line = await proxy({ port: postgres.port });
    let posting: ReturnType<typeof keepPosting> | undefined;
    try {
      const { run, projectId } = gateway;
      const file = path.join(run.folder, 'password');
      const set = (password: string, ...args: string[]) => {
        fs.writeFileSync(file, password);
        return runGateway(['shards', 'set', 'big', '--password-file', file, ...args], run);
      };
      const done = async (result: ReturnType<typeof set>) => {
        const { code, stdout, stderr } = await result;
        assert.equal(
          [code, stdout],
          [0, 'changed the shard big; agents and servers follow within seconds\n'],
          stderr,
        );
      };
      const refused = async (sentence: string | RegExp, result: ReturnType<typeof set>) => {
        const { code, stderr } = await result;
        assert.is(code, 1);
        assert.match(stderr.replaceAll(/\s+/g, ' '), sentence);
        assert.not.match(stderr, /-secret-/);
      };
      await admin.rows(`create role keeper login password '${FIRST}'`);
      await admin.rows('create database big owner keeper');
      fs.writeFileSync(file, FIRST);
      const address = ['--host', '127.0.0.1', '--port', String(postgres.port)];
      const role = ['--username', 'keeper', '--database', 'big', '--password-file', file];
      await succeed(['shards', 'add', 'big', ...address, ...role], run);
      await succeed(['shards', 'move', projectId, 'big'], run);
      await subscribed(gateway, inbox.url);
      posting = keepPosting(gateway);
      await posting.more();

      const backends = "from pg_stat_activity where usename = 'keeper'";
      const first = await admin.rows<{ pid: number }>(
        `select pid ${backends} order by pid limit 1`,
      );
      await admin.rows(`alter role keeper password '${SECOND}'`);
      await posting.more();
      assert.equal(
        await admin.rows(`select pid ${backends} and pid = ${first[0]!.pid}`),
        first,
        'open connections stay',
      );
      await admin.rows(`select pg_terminate_backend(pid) ${backends}`);
      await refused('refused the user keeper', set('wrong-secret-3'));
      await done(set(SECOND));
      await posting.more();

      await refused(
        'does not have the tables of the shard big',
        set(SECOND, '--database', 'postgres'),
      );
      await done(set(SECOND, '--port', String(line.port)));
      await until('both processes to connect through the other address', async () => {
        const { stdout } = await runGateway(['shards', 'list', '--json'], run);
        return stdout.includes(`"port": ${line.port}`);
      });
      await posting.more();

      await posting.stop();
      const count = posting.accepted;
      const received = () =>
        new Set(inbox.requests.map(({ body }) => (JSON.parse(body.toString()) as { n: number }).n));
      await until('all events to be delivered', () => received().size === count, {
        withinMs: 60_000,
      });
      for (const { process } of [...gateway.agents, { process: gateway.server }])
        assert.not.match(process.stdout + process.stderr, /-secret-/);
    } finally {
      await posting?.stop().catch(() => undefined);
      await gateway.close();
      await Promise.all([inbox.close(), line.close(), admin.close()]);
      await postgres.close();
    }
  },
);

passwords.run();
