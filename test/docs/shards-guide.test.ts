// deadline: 240 s
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { database, isOnCitus } from '../support/database.js';
import { endpoint } from '../support/endpoint.js';
import { freePort } from '../support/ports.js';
import { keepPosting, postNumber, receivedOnce, type Posting } from '../support/posting.js';
import { managementApi, production, subscribed, type Created } from '../support/production.js';
import { requirePasswords } from '../support/passwords.js';
import { own, services } from '../support/services.js';
import { installed } from '../support/start/packages.js';
import { until } from '../support/until.js';
import { blocksOf, runBlocks } from './page.js';

const guide = suite('docs/shards-guide');

const ON_CITUS = 'Add a schema on Citus';
const blocks = blocksOf('docs/guides/shards.md');
for (const program of ['curl', 'psql'])
  installed(program, [program === 'psql' ? 'postgresql-client' : program], 'for the guides');

async function addsPostgres() {
  const [postgres, inbox] = await Promise.all([own.postgres(), endpoint()]);
  const gateway = await production({ postgres: await services.postgres() });
  let posting: Posting | undefined;
  try {
    await requirePasswords(postgres, 'gateway');
    const { projectId, serverPort, apiKey } = gateway;
    await subscribed(gateway, inbox.url);
    const api = managementApi(serverPort, apiKey);
    const created = (name: string) =>
      api<Created>('POST', '/projects', { name, shard: 'default' }).then(({ uid }) => uid);
    const other = await created('other');
    posting = keepPosting(gateway);

    const agentPort = await freePort();
    const run = async (...sections: string[]) => {
      done.push(...sections);
      const ofSections = blocks.filter(({ section }) => sections.includes(section));
      await runBlocks(ofSections, {
        cwd: gateway.run.folder,
        env: {
          ADMIN_URL: postgres.url,
          PASSWORD: 'correct horse',
          NEW_PASSWORD: 'battery staple',
          PROJECT_ID: projectId,
          AGENT_PORT: String(agentPort),
        },
        replaced: {
          '--host db2.internal': `--host 127.0.0.1 --port ${postgres.port}`,
          'db2.internal:5432': `127.0.0.1:${postgres.port}`,
          'db.internal:5432/gateway': gateway.database.url.split('@')[1]!,
          '127.0.0.1:5008': `127.0.0.1:${agentPort}`,
          // An agent takes a minute to start on a busy machine.
          '--retry 30': '--retry 120',
        },
      });
    };
    const done: string[] = [ON_CITUS];
    await run('See that it is full', 'Add a Postgres', 'Choose the shard of a project');
    await posting.more();
    await posting.stop();
    const posts = posting.accepted;
    await receivedOnce(inbox, posts);
    const edge = (sort: string) =>
      gateway
        .api<{ content: { data: unknown }[] }>('GET', `/events?sort=${sort}&perPage=1`)
        .then(({ content }) => content[0]?.data);
    const isFirst = (data: unknown) => (data as { n: number } | undefined)?.n === 0;
    await until('the history to be copied', async () => isFirst(await edge('ASC')));
    assert.equal(await edge('DESC'), { n: posts - 1 });

    await postgres.stop();
    await run('When a shard is away');
    const refused = await postNumber(gateway, projectId, posts);
    assert.is(((await refused.json()) as { code: string }).code, 'shard_away');
    assert.is((await postNumber(gateway, other, 0)).status, 201);
    await postgres.start();
    await run(
      'Change the password or the address',
      'Agents of one shard',
      'Upgrade',
      'Remove a shard',
    );
    await until(
      'posts to be accepted',
      async () => (await postNumber(gateway, projectId, posts)).ok,
    );
    await inbox.received(posts + 1);
    assert.equal(new Set(done), new Set(blocks.map(({ section }) => section)));
  } finally {
    await posting?.stop().catch(() => undefined);
    await gateway.close();
    await Promise.all([inbox.close(), postgres.close()]);
  }
}

async function addsCitus() {
  const [coordinator, postgres] = await Promise.all([database(), services.postgres()]);
  const gateway = await production({ agents: 0, postgres, migratedByBin: true });
  try {
    const { host, port, username, database: name } = coordinator.connection;
    await runBlocks(
      blocks.filter(({ section }) => section === ON_CITUS),
      {
        cwd: gateway.run.folder,
        env: { PASSWORD: 'unused' },
        replaced: {
          '--host citus.internal --username gateway --database gateway': `--host ${host} --port ${port} --username ${username} --database ${name}`,
          'citus.internal:5432/gateway': `${host}:${port}/${name}`,
          'db.internal:5432/gateway': gateway.database.url.split('@')[1]!,
        },
      },
    );
  } finally {
    await gateway.close();
    await coordinator.close();
  }
}

if (isOnCitus) guide('docs/guides/shards.md adds two schemas on Citus', addsCitus);
else guide('docs/guides/shards.md leads to two Postgres servers, and loses no event', addsPostgres);

guide.run();
