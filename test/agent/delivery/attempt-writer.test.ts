import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { AttemptWriter } from '#agent/delivery/attempt-writer';
import type { AttemptRecord } from '#store/deliveries/delivery-attempts';
import { acceptEvents, type NewEventDelivery } from '#store/events/events';
import { openDatabase, type Database } from '#store/postgres/database';
import { proxy, type Proxy } from '../../support/proxy.js';
import { until, within } from '../../support/until.js';
import { attempt, batch, empty, newDelivery, newEvents } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { agentConfig, keptLog } from '../running.js';

const record = suite('agent/delivery/attempt-writer');

const db = await migratedDatabase();
record.after(() => db.close());

interface Scene {
  readonly attemptWriter: AttemptWriter;
  readonly postgres: Proxy;
  readonly database: Database;
  /** Attempts reported as recorded, by batch. */
  readonly recorded: (readonly AttemptRecord[])[];
  readonly lines: ReturnType<typeof keptLog>['lines'];
  held(count: number): Promise<NewEventDelivery[]>;
}

async function scene(test: (scene: Scene) => Promise<void>): Promise<void> {
  const postgres = await proxy({ port: Number(new URL(db.url).port) });
  const database = openDatabase(agentConfig(db.url, {}, postgres.port).database, {
    poolSize: 2,
    name: 'gateway-agent',
  });
  const { log, lines } = keptLog();
  const recorded: (readonly AttemptRecord[])[] = [];
  const attemptWriter = new AttemptWriter({
    database,
    log,
    writers: 2,
    lease: { agentId: 1 },
    inFlight: { recorded: () => undefined },
    dueTimes: { add: () => undefined },
    observers: [{ recorded: (attempts) => recorded.push(attempts) }],
  });
  const held: Scene['held'] = async (count) => {
    const events = newEvents(count);
    const deliveries = events.map((event) => newDelivery(event));
    await acceptEvents(db.pool, batch(events, { deliveries }));
    return deliveries;
  };
  try {
    await within(
      test({ attemptWriter, postgres, database, recorded, lines, held }),
      60_000,
      'the test',
    );
  } finally {
    postgres.restore();
    attemptWriter.stop();
    await database.close();
    await postgres.close();
    await empty(db);
  }
}

const stored = async () =>
  (await db.rows<{ n: number }>('select count(*)::int as n from delivery_attempts'))[0]!.n;

record('attempts are written in batches of what has piled up, each told once', () =>
  scene(async ({ attemptWriter, recorded, held }) => {
    const attempts = (await held(1200)).map((delivery) => attempt(delivery));
    for (const one of attempts) attemptWriter.push(one);
    await within(attemptWriter.settled(), 20_000, 'the records');
    assert.is(await stored(), 1200);
    assert.is(new Set(recorded.flat()).size, 1200);
    assert.is(recorded.flat().length, 1200);
    assert.ok(recorded.length <= 10, `${recorded.length} batches`);
    assert.ok(recorded.every((list) => list.length <= 500));
  }),
);

record('a batch holds few attempts whose response bodies are large', () =>
  scene(async ({ attemptWriter, recorded, held }) => {
    const responseBody = 'x'.repeat(900_000);
    for (const delivery of await held(7))
      attemptWriter.push({ ...attempt(delivery), responseBody });
    await within(attemptWriter.settled(), 20_000, 'the records');
    assert.is(await stored(), 7);
    assert.equal(recorded.map((list) => list.length).sort(), [1, 2, 2, 2]);
  }),
);

record('an attempt is written without waiting for others', () =>
  scene(async ({ attemptWriter, held }) => {
    const [delivery] = await held(1);
    const { setTimeout } = globalThis;
    const lingers: unknown[] = [];
    globalThis.setTimeout = ((...given: Parameters<typeof setTimeout>) => (
      lingers.push(given[1]),
      setTimeout(...given)
    )) as never;
    try {
      attemptWriter.push(attempt(delivery!));
    } finally {
      globalThis.setTimeout = setTimeout;
    }
    assert.equal(lingers, [32]);
    await until('the record', async () => (await stored()) === 1);
  }),
);

record('while Postgres is away attempts wait, and are written when it is back', () =>
  scene(async ({ attemptWriter, recorded, postgres, held }) => {
    const deliveries = await held(100);
    postgres.cut();
    for (const delivery of deliveries) attemptWriter.push(attempt(delivery));
    await until('the failure to be known', () => attemptWriter.failing !== undefined);
    assert.equal(recorded, []);
    postgres.restore();
    await within(attemptWriter.settled(), 30_000, 'the records');
    assert.is(attemptWriter.failing, undefined);
    assert.is(await stored(), 100);
  }),
);

record(
  'an attempt that Postgres refuses is recorded without its details, the others as they are',
  () =>
    scene(async ({ attemptWriter, recorded, lines, held }) => {
      const deliveries = await held(40);
      const attempts = deliveries.map((delivery, n) =>
        attempt(
          delivery,
          n % 13 === 5 ? { status: 'retry', dueInMs: NaN, responseBody: 'secret' } : {},
        ),
      );
      for (const one of attempts) attemptWriter.push(one);
      await within(attemptWriter.settled(), 20_000, 'the records');
      assert.is(await stored(), 40);
      assert.is(recorded.flat().length, 40);
      const rows = await db.rows<{ status: string; reason: string | null; n: number }>(
        'select status, reason, count(*)::int as n from event_deliveries group by 1, 2 order by 1',
      );
      assert.equal(
        rows.map(({ status, n }) => [status, n]),
        [
          ['success', 37],
          ['failure', 3],
        ],
      );
      assert.match(rows[1]!.reason ?? '', /could not be recorded as it was/);
      assert.is(lines.filter(({ level }) => level === 'error').length, 3);
      assert.equal(
        await db.rows(`select from delivery_attempts where response_body = 'secret'`),
        [],
      );
    }),
);

record('an attempt that succeeded stays a success, whatever is wrong with its details', () =>
  scene(async ({ attemptWriter, held }) => {
    const [delivery] = await held(1);
    attemptWriter.push(attempt(delivery!, { number: 1_000_000, durationMs: 3 }));
    await within(attemptWriter.settled(), 20_000, 'the record');
    assert.equal(await db.rows('select status, attempts from event_deliveries'), [
      { status: 'success', attempts: 32_767 },
    ]);
  }),
);

record('a recorder that is stopped gives up what it cannot write', () =>
  scene(async ({ attemptWriter, postgres, held }) => {
    const deliveries = await held(5);
    postgres.cut();
    for (const delivery of deliveries) attemptWriter.push(attempt(delivery));
    await until('the failure to be known', () => attemptWriter.failing !== undefined);
    attemptWriter.stop();
    await within(attemptWriter.settled(), 20_000, 'the end');
    assert.is(await stored(), 0);
  }),
);

record.run();
