import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DueTimes } from '#agent/delivery/due-times';
import { DeliveryReleaser } from '#agent/delivery/release-deliveries';
import { openDatabase } from '#store/postgres/database';
import { proxy, type Proxy } from '../../support/proxy.js';
import { until, within } from '../../support/until.js';
import { empty } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { hold, states } from '../hold.js';
import { makeEndpoint } from '../records.js';
import { agentConfig, keptLog, runAgent, type RunningAgent } from '../running.js';

const give = suite('agent/delivery/release-deliveries');

const db = await migratedDatabase();
give.after(() => db.close());

interface Scene {
  readonly running: RunningAgent;
  readonly postgres: Proxy;
  readonly releaser: DeliveryReleaser;
  readonly endpointId: string;
  readonly lines: ReturnType<typeof keptLog>['lines'];
}

/**
 * Runs a test with releasable deliveries and a Postgres behind a proxy. The agent that holds them
 * claims nothing.
 */
async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const running = await runAgent({ db });
  await running.wiring.claimer.stop();
  const postgres = await proxy({ port: Number(new URL(db.url).port) });
  const database = openDatabase(agentConfig(db.url, {}, postgres.port).database, {
    poolSize: 2,
    name: 'gateway-agent',
  });
  const { log, lines } = keptLog();
  const releaser = new DeliveryReleaser({ database, dueTimes: new DueTimes(), log });
  try {
    const { id: endpointId } = await makeEndpoint(db, running.projectId, {
      url: 'https://example.com',
    });
    await within(test({ running, postgres, releaser, endpointId, lines }), 60_000, 'the test');
  } finally {
    postgres.restore();
    releaser.stop();
    await running.close();
    await database.close();
    await postgres.close();
    await empty(db);
  }
}

give('what is given back is as it was asked: due, later, held or discarded', () =>
  scene(async ({ running, releaser, endpointId }) => {
    const held = await hold(running, endpointId, 8);
    releaser.release(held.slice(0, 2), 0);
    releaser.release(held.slice(2, 4), 60_000);
    releaser.release(held.slice(4, 6), Infinity);
    releaser.discard(held.slice(6), 'The endpoint was deleted.');
    await within(releaser.settled(), 20_000, 'the end');
    assert.equal(await states(running, endpointId), {
      'scheduled due': 2,
      'scheduled later': 2,
      'scheduled held': 2,
      discarded: 2,
    });
  }),
);

give(
  'what was claimed under several ids of the agent is given back under each, and other agents are told what is due',
  () =>
    scene(async ({ running, releaser, endpointId }) => {
      const held = await hold(running, endpointId, 4);
      const [mine, earlier] = [
        held.slice(0, 2),
        held.slice(2).map((delivery) => ({ ...delivery, agentId: 1_000_000 })),
      ];
      await db.rows('update event_deliveries set claimed_by = 1000000 where id = any ($1)', [
        earlier.map(({ id }) => id),
      ]);
      const client = await db.connect();
      const told: (string | undefined)[] = [];
      client.on('notification', ({ payload }) => told.push(payload));
      try {
        await client.query('listen gateway_due');
        releaser.release([...mine, ...earlier], 0);
        await within(releaser.settled(), 20_000, 'the end');
        await until('the word', () => told.includes(running.projectId));
        assert.equal(await states(running, endpointId), { 'scheduled due': 4 });
      } finally {
        await client.end();
      }
    }),
);

give('what comes while something is being written is written too', () =>
  scene(async ({ running, releaser, endpointId }) => {
    const held = await hold(running, endpointId, 300);
    for (const [n, delivery] of held.entries()) {
      releaser.release([delivery], 0);
      if (n % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    await within(releaser.settled(), 20_000, 'the end');
    assert.equal(await states(running, endpointId), { 'scheduled due': 300 });
  }),
);

give('while Postgres is away it waits, and says so', () =>
  scene(async ({ running, releaser, postgres, endpointId, lines }) => {
    const held = await hold(running, endpointId, 20);
    postgres.cut();
    releaser.release(held.slice(0, 10), 0);
    await until('the failure to be told', () => lines.some(({ level }) => level === 'warn'));
    releaser.release(held.slice(10), 0);
    postgres.restore();
    await within(releaser.settled(), 30_000, 'the end');
    assert.equal(await states(running, endpointId), { 'scheduled due': 20 });
  }),
);

give('what Postgres refuses is left to the heartbeat, and the others are given back', () =>
  scene(async ({ running, releaser, endpointId, lines }) => {
    const held = await hold(running, endpointId, 4);
    releaser.release(held.slice(0, 2), NaN);
    releaser.release(held.slice(2), 0);
    await within(releaser.settled(), 20_000, 'the end');
    assert.equal(await states(running, endpointId), { processing: 2, 'scheduled due': 2 });
    assert.equal(
      lines.map(({ level }) => level),
      ['error'],
    );
  }),
);

give(
  'a delivery that was claimed again is not returned by a repeat, if only the answer was lost',
  () =>
    scene(async ({ running, releaser, postgres, endpointId, lines }) => {
      const held = await hold(running, endpointId, 2);
      const lost = postgres.loseAnswer('return-deliveries');
      releaser.release(held, 0);
      await within(lost, 20_000, 'the answer to be lost');
      const { agentId } = running.wiring.lease;
      await db.rows(
        `update event_deliveries set status = 'processing', claimed_by = $2, next_attempt_at = null where id = $1`,
        [held[0]!.id, agentId],
      );
      releaser.claimedAgain([held[0]!]);
      await within(releaser.settled(), 20_000, 'the end');
      assert.ok(lines.some(({ level }) => level === 'warn'));
      assert.equal(await states(running, endpointId), { processing: 1, 'scheduled due': 1 });
    }),
);

give('once stopped it gives up', () =>
  scene(async ({ running, releaser, postgres, endpointId, lines }) => {
    const held = await hold(running, endpointId, 5);
    postgres.cut();
    releaser.release(held, 0);
    await until('the failure to be told', () => lines.some(({ level }) => level === 'warn'));
    releaser.stop();
    await within(releaser.settled(), 20_000, 'the end');
    assert.equal(await states(running, endpointId), { processing: 5 });
  }),
);

give.run();
