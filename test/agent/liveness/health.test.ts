import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import pg from 'pg';
import { Health } from '#core/process/health';
import { reportProcessHealth, reportShardHealth } from '#agent/liveness/health';
import { endpoint as receiver } from '../../support/endpoint.js';
import { together } from '../../support/together.js';
import { until } from '../../support/until.js';
import { migratedDatabase } from '../../store/migrated.js';
import { Messages } from '../ready.js';
import { makeEndpoint, makeSubscription } from '../records.js';
import { agentConfig, keptLog, runAgent, type Migrated, type RunningAgent } from '../running.js';

const health = suite('agent/liveness/health');
const beside = together(health);

interface Scene {
  readonly running: RunningAgent;
  readonly messages: Messages;
  /** The database role of the agent, with only the granted privileges. */
  readonly role: string;
  /** Health's reason for Postgres; undefined while healthy. */
  reason(): string | undefined;
  projects(): string | undefined;
}

/**
 * An agent with a role that does not own the tables, an endpoint subscribed to everything, and the
 * agent's health.
 */
async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const db: Migrated = await migratedDatabase();
  const role = new URL(db.url).pathname.slice(1);
  await db.rows(`create role ${role} login`);
  await db.rows(`grant all on all tables in schema public to ${role}`);
  const url = new URL(db.url);
  url.username = role;
  const running = await runAgent({ db: { ...db, url: url.href }, answerMs: 1_000 });
  const at = await receiver();
  const states = new Health();
  const { configCache, kv, wiring } = running;
  const { log } = keptLog();
  const { shard, destination, successStreak } = wiring;
  const watched = { configCache, health: states, log };
  const config = agentConfig(url.href);
  const stops = [
    reportShardHealth(wiring, { ...watched, shard }),
    reportProcessHealth({ ...watched, config, kv, destination, successStreak }),
  ];
  try {
    const { id } = await makeEndpoint(db, running.projectId, { url: at.url });
    await makeSubscription(db, running.projectId, { endpointId: id });
    await configCache.refresh();
    const reasonOf = (component: string) => () => states.of(component)?.reason;
    await test({
      running,
      messages: new Messages(running.projectId),
      role,
      reason: reasonOf('postgres'),
      projects: reasonOf('projects'),
    });
  } finally {
    await db.rows(`alter role ${role} connection limit -1`);
    await db.rows(`grant all on all tables in schema public to ${role}`);
    for (const stop of stops) stop();
    await running.close();
    await at.close();
    await db.rows(`drop owned by ${role}`);
    await db.rows(`drop role ${role}`);
    await db.close();
  }
}

/** Waits for the reason, ends the fault, and waits until the agent is healthy again. */
async function told(
  { reason }: Scene,
  expected: RegExp,
  end: () => Promise<unknown>,
): Promise<void> {
  try {
    await until('the reason', () => expected.test(reason() ?? ''), { withinMs: 30_000 });
  } catch {
    assert.match(reason() ?? '', expected);
  } finally {
    await end();
  }
  await until('Postgres to be well', () => reason() === undefined);
}

beside('a project that cannot be loaded is named with the reason, until it can be', () =>
  scene(async ({ running, projects }) => {
    await running.db.rows(`update projects set config = 'null' where id = $1`, [running.projectId]);
    await until('the reason', () => projects()?.includes(running.projectId));
    assert.match(
      projects()!,
      /^Cannot be loaded: .+ \(Cannot read properties of null.+\)\. Each is tried again when it is changed/,
    );
    await running.db.rows(`update projects set config = '{}' where id = $1`, [running.projectId]);
    await until('health to be well', () => projects() === undefined);
  }),
);

beside('a right that is missing is named, whichever statement fails, until it is granted', () =>
  scene(async (it) => {
    const { running, messages, role } = it;
    for (const table of ['events', 'delivery_attempts']) {
      await running.db.rows(`revoke insert on ${table} from ${role}`);
      running.wiring.eventWriter.push(messages.ready());
      const sentence = new RegExp(
        `denies the user ${role} a permission that the gateway needs: permission denied for table ${table}`,
      );
      await told(it, sentence, () => running.db.rows(`grant insert on ${table} to ${role}`));
    }
    assert.equal(messages.counts, { accepted: 2 });
  }),
);

beside(
  'a statement that Postgres cancels for its time is not taken for a Postgres that cannot be reached',
  () =>
    scene(async (it) => {
      const { running, messages } = it;
      const blocker = new pg.Client({
        connectionString: running.db.url.replace(/\/\/[^@]*@/, '//postgres@'),
      });
      await blocker.connect();
      await blocker.query('begin; lock table events in access exclusive mode');
      running.wiring.eventWriter.push(messages.ready());
      await told(it, /cancelled a statement: it took longer than statement_timeout/, () =>
        blocker.end(),
      );
      await until('its outcome', () => messages.outcomes.length === 1);
    }),
);

beside('the limit that leaves no connection is named', () =>
  scene(async (it) => {
    const { running, role } = it;
    await running.db.rows(`alter role ${role} connection limit 0`);
    await running.db.rows(
      'select pg_terminate_backend(pid) from pg_stat_activity where usename = $1',
      [role],
    );
    await told(it, /no free connections: the connection limit of the role is used up/, () =>
      running.db.rows(`alter role ${role} connection limit -1`),
    );
  }),
);

beside(
  'a pool whose connections are all in use is not taken for a Postgres that cannot be reached',
  () =>
    scene(async (it) => {
      const clients = await Promise.all(
        Array.from({ length: 8 }, () => it.running.database.pool.connect()),
      );
      await told(
        it,
        /no connection to Postgres .* became free in time: all connections of this process are in use/,
        () => Promise.resolve(clients.forEach((client) => client.release())),
      );
    }),
);

health.run();
