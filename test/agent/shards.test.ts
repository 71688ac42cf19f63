import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startAgent } from '@gateway/agent';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { raiseNotifications } from '#store/config/notifications';
import { beginMove, continueMove } from '#store/moves/moves';
import { migrateUp } from '#store/postgres/migrate';
import type { Shards } from '#store/shards/open-shards';
import { insertShard } from '#store/shards/shards';
import { connectionOf, database } from '../support/database.js';
import { endpoint as receiver } from '../support/endpoint.js';
import { proxy } from '../support/proxy.js';
import { until, within } from '../support/until.js';
import { migratedDatabase, openUrl } from '../store/migrated.js';
import { Broker } from './memory-source.js';
import { makeEndpoint, makeProject, makeSource, makeSubscription, sealed } from './records.js';
import { agentConfig, keptLog, pluginsOf } from './running.js';

const shards = suite('agent/shards');

type Rows = Awaited<ReturnType<typeof database>>['rows'];

/** A control database with the default shard, and another database, reached through a proxy. */
async function twoDatabases() {
  const [control, other] = [await migratedDatabase(), await database()];
  const { port, ...address } = connectionOf(other.url);
  const line = await proxy({ port });
  const migrate = async () => {
    const opened = openUrl(other.url);
    await migrateUp(opened, { shard: 'second' });
    await opened.close();
  };
  const add = () =>
    insertShard(control.pool, {
      name: 'second',
      address: {
        ...{ ...address, port: line.port, options: null },
        password: sealed('unused', ['shards', 'second', 'password']),
      },
      schema: null,
      isCitus: false,
    });
  const at = await receiver();
  const broker = new Broker();
  const closers: (() => Promise<void>)[] = [];
  return {
    control,
    other,
    line,
    at,
    broker,
    migrate,
    add,
    /** Creates a project with a source, an endpoint and a subscription, on a shard. */
    async project(shard: string) {
      const id = await makeProject(control);
      await control.rows('update projects set shard = $2 where id = $1', [id, shard]);
      const { id: endpointId } = await makeEndpoint(control, id, { url: at.url });
      await makeSubscription(control, id, { endpointId });
      await makeSource(control, id, { queue: shard });
      return id;
    },
    /** Creates an endpoint with operational events of a project. */
    async listener(projectId: string) {
      const { id: endpointId } = await makeEndpoint(control, projectId, {
        url: `${at.url}/ops`,
        format: 'slack',
      });
      await makeSubscription(control, projectId, { endpointId, eventTypes: ['gateway.*'] });
    },
    async start(settings: Readonly<Record<string, unknown>> = {}) {
      const { log, lines } = keptLog();
      const config = agentConfig(control.url, settings);
      const agent = await within(
        startAgent({ config, plugins: pluginsOf(broker.plugins()), log }),
        30_000,
        'the agent to start',
      );
      closers.push(() => agent.close());
      return { ...agent, lines };
    },
    async close() {
      line.restore();
      await Promise.all(closers.map((close) => within(close(), 40_000, 'an agent to close')));
      await Promise.all([at.close(), line.close(), control.close()]);
      await other.close();
    },
  };
}

type Scene = Awaited<ReturnType<typeof twoDatabases>>;

function scene(test: (scene: Scene) => Promise<void>) {
  return async () => {
    const it = await twoDatabases();
    try {
      await within(test(it), 90_000, 'the test');
    } finally {
      await it.close();
    }
  };
}

const message = (n: number) => JSON.stringify({ event_type: 'order.paid', data: { n } });

/** The numbers of rows that a database has of each project. */
async function counts(rows: Rows): Promise<Record<string, string>> {
  const found = await rows<{ project_id: string; counts: string }>(
    `select project_id, count(distinct e.id) || ' ' || count(distinct d.id) filter (where d.status = 'success') as counts
     from events e left join event_deliveries d using (project_id) group by 1`,
  );
  return Object.fromEntries(found.map(({ project_id, counts: n }) => [project_id, n]));
}

async function health(port: number) {
  const response = await fetch(`http://127.0.0.1:${port}/healthz`);
  const { data } = (await response.json()) as {
    data: {
      ready: boolean;
      components: { name: string; state: string; reason?: string }[];
    };
  };
  const of = (name: string) => data.components.find((it) => it.name === name);
  return { ready: data.ready, of };
}

shards(
  'an agent works on every shard, and the rows of a project are on its own',
  scene(async ({ control, other, at, broker, migrate, add, project, start }) => {
    await migrate();
    await add();
    const [first, second] = [await project('default'), await project('second')];
    await start();
    await broker.queue('default').send(message(1));
    await broker.queue('second').send(message(2));
    await broker.queue('second').send(message(3));
    await at.received(3);
    await until('the records', async () => (await counts(other.rows))[second] === '2 2');
    await until('the records', async () => (await counts(control.rows))[first] === '1 1');
    assert.equal(Object.keys(await counts(other.rows)), [second]);
    assert.equal(Object.keys(await counts(control.rows)), [first]);
  }),
);

shards(
  'an agent is ready once it works on all shards, or one of them does not answer for a while',
  scene(async ({ line, migrate, add, start }) => {
    await migrate();
    await add();
    const ready = async ({ port }: Awaited<ReturnType<typeof start>>) => {
      const found = await until('the agent to be ready', async () => {
        const now = await health(port);
        return now.ready && now;
      });
      return found.of('postgres (shard second)')?.state;
    };
    assert.is(await ready(await start()), 'ok');
    line.freeze();
    assert.is(await ready(await start()), undefined);
  }),
);

shards(
  'a shard that is away stops its projects alone, and loses nothing',
  scene(async ({ other, at, broker, line, migrate, add, project, start }) => {
    await migrate();
    await add();
    await project('default');
    const second = await project('second');
    line.cut();
    const { port } = await start();
    const waiting = broker.queue('second').send(message(1));
    await broker.queue('default').send(message(2));
    await at.received(1);
    await until('health to name it', async () => {
      const { ready, of } = await health(port);
      return ready && of('shard second')?.state === 'down';
    });
    line.restore();
    assert.is(await within(waiting, 60_000, 'the shard to be back'), 'accepted');
    await until('its delivery', async () => (await counts(other.rows))[second] === '1 1');
    assert.is((await health(port)).of('shard second')?.state, 'ok');

    line.cut();
    const again = broker.queue('second').send(message(3));
    await broker.queue('default').send(message(4));
    await at.received(3);
    await until('health to name it again', async () => {
      const { ready, of } = await health(port);
      return ready && of('postgres (shard second)')?.state === 'down';
    });
    line.restore();
    assert.is(await within(again, 60_000, 'the shard to be back again'), 'accepted');
    await until('its delivery', async () => (await counts(other.rows))[second] === '2 2');
  }),
);

shards(
  'an agent works only on the shards that it names',
  scene(async ({ at, broker, migrate, add, project, start }) => {
    await migrate();
    await add();
    await project('default');
    await project('second');
    await start({ agent: { shards: ['second'] } });
    const unread = broker.queue('default').send(message(1));
    await broker.queue('second').send(message(2));
    await at.received(1);
    assert.is(
      await Promise.race([unread, new Promise((resolve) => setTimeout(resolve, 3_000, 'unread'))]),
      'unread',
    );
    await start({ agent: { shards: ['default'] } });
    assert.is(await unread, 'accepted');
  }),
);

shards(
  'a shard that is added or migrated later is worked on without a restart',
  scene(async ({ broker, migrate, add, project, start }) => {
    await project('default');
    const { port } = await start();
    await add();
    await until(
      'health to name the migration',
      async () =>
        /^the database of the shard second lacks \d+ migrations: 0051_data_plane, .+\. Its projects wait\. To fix it: run `gateway migrate up`, then start again\.$/.test(
          (await health(port)).of('shard second')?.reason ?? '',
        ),
      { withinMs: 20_000 },
    );
    await project('second');
    await migrate();
    assert.is(
      await within(broker.queue('second').send(message(1)), 60_000, 'its message'),
      'accepted',
    );
  }),
);

shards(
  'a project moves while messages arrive: each is accepted and delivered once, on one shard',
  scene(async ({ control, other, at, broker, migrate, add, project, start }) => {
    await migrate();
    await add();
    const projectId = await project('default');
    await start();
    await start();
    const second = openUrl(other.url);
    const outcomes: Promise<string>[] = [];
    const total = 400;
    for (let n = 0; n < total; n++) {
      outcomes.push(broker.queue('default').send(message(n)));
      if (n === total / 2) {
        await outcomes[n / 4];
        const pools = { default: control.pool, second: second.pool };
        const move = await beginMove(control.pool, { projectId, from: 'default', to: 'second' });
        await continueMove(
          {
            control,
            of: (name: keyof typeof pools) => ({ database: { pool: pools[name] } }),
          } as unknown as Shards,
          move,
        );
      }
      if (n % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await second.close();
    assert.equal(new Set(await Promise.all(outcomes)), new Set(['accepted']));
    await at.received(total);
    await until('all events to be on the second shard', async () => {
      const [state] = await control.rows<{ phase: string }>('select phase from project_moves');
      return state?.phase === 'done';
    });
    assert.equal(await control.rows('select from events'), []);
    const numbers = "select (data::json ->> 'n')::int as n from events order by 1";
    assert.equal(
      (await other.rows(numbers)).map(({ n }) => n as number),
      Array.from({ length: total }, (_, n) => n),
    );
    await until(
      'its deliveries',
      async () => (await counts(other.rows))[projectId] === `${total} ${total}`,
    );
    assert.is(at.requests.length, total, 'delivered twice');
  }),
);

shards(
  'an agent starts on the other shards that it names while the first one hangs',
  scene(async ({ broker, line, migrate, add, project, start }) => {
    await migrate();
    await add();
    await project('default');
    await project('second');
    line.freeze();
    await start({ agent: { shards: ['second', 'default'] } });
    assert.is(await broker.queue('default').send(message(1)), 'accepted');
    const waiting = broker.queue('second').send(message(2));
    line.restore();
    assert.is(await within(waiting, 60_000, 'the shard to be back'), 'accepted');
  }),
);

shards(
  'health forgets a shard that is removed',
  scene(async ({ control, migrate, add, start }) => {
    await migrate();
    await add();
    const { port } = await start();
    await until('health to name it', async () =>
      (await health(port)).of('postgres (shard second)'),
    );
    await control.rows(`delete from shards where name = 'second'`);
    await until(
      'health to forget it',
      async () => {
        const { ready, of } = await health(port);
        return ready && of('postgres (shard second)') === undefined;
      },
      { withinMs: 20_000 },
    );
  }),
);

shards(
  'operational events are made once by the agent, also while the shard of others does not answer',
  scene(async ({ control, at, line, migrate, add, project, listener, start }) => {
    await migrate();
    await add();
    const [first, second] = [await project('default'), await project('second')];
    await listener(first);
    await listener(second);
    const raise = (projectId: string) =>
      raiseNotifications(
        control.pool,
        [{ kind: 'source_lost', projectId, subject: `${newId()} 0`, facts: { messages: 1 } }],
        { agentIdOf: () => 0, quietSeconds: 0, isMailed: false },
      );
    const { lines } = await start();
    await until(
      'both workers',
      () => lines.filter(({ sentence }) => sentence.includes('works on the shard')).length === 2,
    );
    line.freeze();
    await raise(second);
    await until('the event to be tried', async () => {
      const rows = await control.rows('select from notifications where event_due_at > now()');
      return rows.length === 1;
    });
    await raise(first);
    await at.received(1, { withinMs: 40_000 });
    line.restore();
    // Its lease may end before it is made again.
    await control.rows('update notifications set event_due_at = now() where event_id is null');
    await at.received(2, { withinMs: 60_000 });
    assert.ok(at.requests.every(({ url }) => url === '/ops'));
  }),
);

shards(
  'a notification names the agent of the shard of its project',
  scene(async ({ control, other, at, broker, migrate, add, project, listener, start }) => {
    await migrate();
    await add();
    await listener(await project('second'));
    // Its agents have other numbers than those of the default shard.
    await other.rows(`select setval(pg_get_serial_sequence('agents', 'id'), 1000)`);
    at.answer({ status: 500 });
    await start({ notifications: { endpoint_failures: 1 } });
    await broker.queue('second').send(message(1));
    const [row] = await until('the notification', async () => {
      const rows = await control.rows<{ raised_by: number }>(
        `select raised_by from notifications where kind = 'endpoint_failing'`,
      );
      return rows.length > 0 && rows;
    });
    assert.ok(row!.raised_by > 1000, String(row!.raised_by));
  }),
);

shards(
  'a shard that does not exist stops the start',
  scene(async ({ start }) => {
    try {
      await start({ agent: { shards: ['third'] } });
      assert.unreachable();
    } catch (error) {
      assert.ok(isGatewayError(error, 'shard_unknown'), String(error));
    }
  }),
);

shards.run();
