import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { setEndpointStatus } from '#store/config/endpoints';
import { type Answer, endpoint as receiver } from '../../support/endpoint.js';
import { keptMetrics } from '../../support/kept-metrics.js';
import { until } from '../../support/until.js';
import { migratedDatabase } from '../../store/migrated.js';
import { changeUntold } from '../../store/made.js';
import { delivered, hold, states } from '../hold.js';
import { makeEndpoint, makeProject } from '../records.js';
import { pluginsOf } from '../running.js';
import { withAgent, type Scene } from '../scene.js';

const claim = suite('agent/delivery/claimer');

const db = await migratedDatabase();
claim.after(() => db.close());

/** Inserts deliveries due after `dueInMs`; deliveries with attempts are retries. */
type Put = (
  count: number,
  options?: {
    dueInMs?: number;
    attempts?: number;
    endpointId?: string;
    event?: { readonly data: string };
  },
) => Promise<void>;

function scene(
  test: (scene: Scene & { put: Put }) => Promise<void>,
  settings: Readonly<Record<string, unknown>> = {},
  plugins = pluginsOf(),
): Promise<void> {
  return withAgent(
    db,
    (given) => {
      const put: Put = async (
        count,
        { dueInMs = 0, attempts = 0, endpointId = given.endpointId, event = undefined } = {},
      ) => {
        const ids = (await hold(given.running, endpointId, count, event)).map(({ id }) => id);
        await db.rows(
          `update event_deliveries set claimed_by = null, attempts = $2::int, status = case when $2::int = 0 then 'scheduled' else 'retry' end::event_delivery_status,
             next_attempt_at = now() + $3::int * interval '1 ms' where id = any ($1)`,
          [ids, attempts, dueInMs],
        );
      };
      return test({ ...given, put });
    },
    { settings, plugins },
  );
}

claim('what is due is claimed and sent when it is told, all of it', () =>
  scene(async ({ running, at, endpointId, put }) => {
    await put(700);
    running.wiring.dueTimes.add(running.projectId, 0);
    await delivered(running, endpointId, 700);
    assert.is(at.requests.length, 700);
  }),
);

claim(
  'deliveries of events that are named are claimed, and what may not be sent now waits for its turn',
  () =>
    scene(async ({ running, at, endpointId, put }) => {
      await running.wiring.heartbeat.stop();
      await put(20);
      const { rows } = await db.pool.query<{ id: string; at: Date }>(
        'select event_id as id, occurred_at as at from event_deliveries',
      );
      const refs = rows.map((row) => ({
        projectId: running.projectId,
        id: row.id,
        occurredAtMs: row.at.getTime(),
      }));
      await running.wiring.claimer.claimEvents(refs.slice(0, 15));
      await delivered(running, endpointId, 15);
      assert.is(at.requests.length, 15, 'those alone');
      await put(1, { dueInMs: 300_000 });
      await running.wiring.claimer.claimEvents(refs);
      await delivered(running, endpointId, 20);
      assert.is(at.requests.length, 20, 'each once');
    }),
);

claim(
  'a delivery to an endpoint that is newer than the configuration of the agent is sent, not discarded',
  () =>
    scene(async ({ running, at, put }) => {
      await running.wiring.heartbeat.stop();
      // No agent is notified without triggers.
      const { id: endpointId } = await db.knex.transaction(async (knex) => {
        await knex.raw(`set local session_replication_role = 'replica'`);
        return makeEndpoint({ ...db, knex }, running.projectId, { url: at.url });
      });
      await changeUntold(db);
      assert.is(running.configCache.endpoint(running.projectId, endpointId), undefined);
      await put(3, { endpointId });
      running.wiring.dueTimes.add(running.projectId, 0);
      await delivered(running, endpointId, 3);
      assert.is(at.requests.length, 3);
    }),
);

claim('a delivery that is due later is sent then, and not before', () =>
  scene(async ({ running, at, put }) => {
    await running.wiring.heartbeat.stop();
    await put(1, { dueInMs: 1_500 });
    const toldAt = Date.now();
    running.wiring.dueTimes.add(running.projectId, 60_000);
    running.wiring.dueTimes.add(running.projectId, 1_500);
    const [request] = await at.received(1);
    assert.ok(request!.receivedAt - toldAt >= 1_400, `after ${request!.receivedAt - toldAt} ms`);
  }),
);

claim('the heartbeat finds due deliveries that no notification named', () =>
  scene(async ({ at, put }) => {
    await put(3);
    await at.received(3);
  }),
);

claim(
  'what was due for long and nobody claimed is found by the heartbeat, and counted',
  async () => {
    const kept = keptMetrics();
    await scene(
      async ({ at, put }) => {
        let sent = 0;
        // A heartbeat delayed by a busy machine counts nothing: it may have missed the notifications
        // itself.
        await until('a heartbeat to count them', async () => {
          await put(3, { dueInMs: -60_000 });
          await at.received((sent += 3));
          return kept.value('gateway_deliveries_recovered_total') !== undefined;
        });
        assert.is(kept.value('gateway_deliveries_recovered_total'), 3);
      },
      {},
      { ...pluginsOf(), ...kept },
    );
  },
);

claim('a notification makes every project looked at', () =>
  scene(async ({ running, at, put }) => {
    await running.wiring.heartbeat.stop();
    await put(2);
    await db.rows(`select pg_notify('gateway_due', '')`);
    await at.received(2);
  }),
);

claim('a retry has the number of its attempt', () =>
  scene(async ({ running, endpointId, put }) => {
    await put(1, { attempts: 4 });
    running.wiring.dueTimes.add(running.projectId, 0);
    await delivered(running, endpointId, 1, 'the delivery');
    assert.equal(await db.rows('select number from delivery_attempts'), [{ number: 5 }]);
  }),
);

for (const [mode, sent] of [
  ['events', { success: 3, 'retry due': 2 }],
  ['retry', { 'scheduled due': 3, success: 2 }],
  ['default', { success: 5 }],
] as const) {
  claim(`in the mode ${mode} an agent claims what is its business`, () =>
    scene(
      async ({ running, endpointId, put }) => {
        await put(3);
        await put(2, { attempts: 1 });
        running.wiring.dueTimes.add(running.projectId, 0);
        await until(`${JSON.stringify(sent)}`, async () => {
          const found = await states(running, endpointId);
          return Object.entries(sent).every(([state, n]) => found[state] === n);
        });
      },
      { agent: { mode } },
    ),
  );
}

claim('a slow endpoint that has enough does not keep the claimer from others', () =>
  scene(async ({ running, at, endpointId, put }) => {
    const other = await receiver();
    try {
      const { id } = await makeEndpoint(db, running.projectId, { url: other.url });
      await running.configCache.refresh();
      at.answer({ hang: true });
      await put(400);
      running.wiring.dueTimes.add(running.projectId, 0);
      await until('the slow one to have enough', () =>
        running.wiring.gates.saturatedQueues().some((it) => it.endpointId === endpointId),
      );
      await put(50, { endpointId: id });
      running.wiring.dueTimes.add(running.projectId, 0);
      await other.received(50);
      await at.close();
    } finally {
      await other.close();
    }
  }),
);

claim('no more is claimed than its project has room for, of endpoints that do not answer', () =>
  scene(
    async ({ running, at, endpointId, put }) => {
      at.answer({ hang: true });
      await put(50);
      running.wiring.dueTimes.add(running.projectId, 0);
      await at.received(7);
      assert.is((await states(running, endpointId))['processing'], 7);
      at.answer({});
      await at.close();
    },
    { delivery: { allowed_networks: ['127.0.0.0/8'], max_outstanding: 10 } },
  ),
);

claim(
  'large bodies are claimed as there is room, and all of them arrive, also one that is larger than the room',
  () =>
    scene(
      async ({ running, at, endpointId, put }) => {
        let answer: (of: Answer) => void = () => undefined;
        const first = new Promise<Answer>((resolve) => (answer = resolve));
        at.answer(() => first);
        // Earlier deliveries are small, and so is the first.
        await put(1);
        await put(40, { event: { data: JSON.stringify('x'.repeat(300_000)) } });
        await put(1, { event: { data: JSON.stringify('x'.repeat(3_000_000)) } });
        running.wiring.dueTimes.add(running.projectId, 0);
        await at.received(4);
        const { inFlight } = running.wiring;
        assert.ok(inFlight.size <= 6, `${inFlight.size} held, of 0.3 MB in 2 MB`);
        answer({});
        await delivered(running, endpointId, 42);
        await until('all room to be free', () => inFlight.size === 0);
      },
      { delivery: { allowed_networks: ['127.0.0.0/8'], max_outstanding_bytes: 2_000_000 } },
    ),
);

claim('while Postgres is away it tries again, and goes on when it is back', () =>
  scene(async ({ running, postgres, at, put }) => {
    await running.wiring.heartbeat.stop();
    // A reconnected config cache reports every project; here the claimer must retry without it.
    running.configCache.on('gateway_due', () => undefined);
    await put(2);
    postgres.cut();
    running.wiring.dueTimes.add(running.projectId, 0);
    await until('a failure', () =>
      running.lines.some(({ sentence }) => sentence.includes('Could not claim')),
    );
    postgres.restore();
    await at.received(2);
  }),
);

claim('one project does not wait for another', () =>
  scene(async ({ running, at, put }) => {
    await running.wiring.heartbeat.stop();
    const projects = await Promise.all(Array.from({ length: 5 }, () => makeProject(db)));
    await running.configCache.refresh();
    for (const projectId of projects) running.wiring.dueTimes.add(projectId, 0);
    await put(2);
    running.wiring.dueTimes.add(running.projectId, 0);
    await at.received(2);
  }),
);

claim('a delivery whose endpoint was paused since it was scheduled is held, not sent', () =>
  scene(async ({ running, at, endpointId, put }) => {
    const { projectId, configCache } = running;
    await put(3);
    await setEndpointStatus(db.knex, projectId, endpointId, {
      status: 'paused',
      reason: 'By hand.',
    });
    await until(
      'the agent to know',
      () => configCache.endpoint(projectId, endpointId)?.status === 'paused',
    );
    running.wiring.dueTimes.add(projectId, 0);
    await until(
      'the deliveries to be held',
      async () => (await states(running, endpointId))['scheduled held'] === 3,
    );
    assert.is(at.requests.length, 0);
  }),
);

claim('an agent that has stopped claims nothing more', () =>
  scene(async ({ running, at, endpointId, put }) => {
    await running.wiring.claimer.stop();
    await put(3);
    running.wiring.dueTimes.add(running.projectId, 0);
    // Two heartbeats would have reported it.
    await new Promise((resolve) => setTimeout(resolve, 4_500));
    assert.equal(await states(running, endpointId), { 'scheduled due': 3 });
    assert.is(at.requests.length, 0);
  }),
);

claim.run();
