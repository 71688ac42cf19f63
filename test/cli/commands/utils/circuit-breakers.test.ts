import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { newId } from '#core/events/ids';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';
import type { BreakerRecord } from '#store/kv/circuit-breakers';
import { makeDelivery, makeEndpoint, makeEvents, makeProject } from '../../../store/made.js';
import { migratedDatabase } from '../../../store/migrated.js';
import { openRedisKv } from '../../../store/redis-kv.js';
import { connectionOf } from '../../../support/database.js';
import { runGateway } from '../../../support/gateway.js';
import { freePort } from '../../../support/ports.js';
import { redis, type RedisDatabase } from '../../../support/redis.js';

const breakers = suite('cli/commands/utils/circuit-breakers');

let db: Awaited<ReturnType<typeof migratedDatabase>>;
let shared: RedisDatabase;
breakers.before(async () => {
  db = await migratedDatabase();
  shared = await redis();
});
breakers.after(async () => {
  await shared.close();
  await db.close();
});

const run = (args: readonly string[] = [], kv: object = shared.connection) =>
  runGateway(['utils', 'circuit-breakers', ...args], {
    config: { database: connectionOf(db.url), kv },
  });

async function open(projectId: string, endpointId: string): Promise<void> {
  const kv = await openRedisKv(shared.connection);
  const record: BreakerRecord = {
    project_id: projectId,
    state: 'open',
    since_ms: Date.UTC(2026, 10, 21),
    until_ms: Date.UTC(2026, 10, 21, 0, 1),
    requests: 20,
    failures: 15,
    trips: 1,
    forget_ms: Date.UTC(2026, 10, 21, 0, 3),
  };
  await kv
    .map('breakers')
    .change([{ field: endpointId, from: undefined, to: JSON.stringify(record) }]);
  await kv.close();
}

breakers(
  'breakers that are open are listed with their endpoints; one is closed on request, and what waits is due',
  async () => {
    const none = await run(['--json']);
    assert.equal(
      [none.code, none.stdout, none.stderr],
      [0, '[]\n', 'The breakers of all endpoints are closed.\n'],
    );
    const { id: projectId } = await makeProject(db, 'orders');
    const { id: endpointId } = await makeEndpoint(db, projectId);
    await open(projectId, endpointId);
    await open(newId(), newId()); // the breaker of a deleted endpoint
    const [eventId] = await makeEvents(db, projectId, [{ atMs: Date.now() }]);
    const delivery = await makeDelivery(db, { projectId, eventId: eventId!, endpointId });
    await db.rows(
      `update event_deliveries set next_attempt_at = now() + interval '1 hour', reason = $2 where id = $1`,
      [delivery, WAIT_REASONS.breaker],
    );

    const { code, stdout, stderr } = await run();
    assert.equal([code, stderr], [0, '']);
    const rows = stdout.trim().split('\n');
    assert.equal(
      rows.map((line) => line.split(/\s{2,}/)),
      [
        ['PROJECT', 'ENDPOINT', 'ID', 'STATE', 'SINCE', 'UNTIL', 'FAILED'],
        [
          'orders',
          'shop',
          endpointId,
          'open',
          '2026-11-21T00:00:00.000Z',
          '2026-11-21T00:01:00.000Z',
          '15 of 20',
        ],
      ],
    );
    const reset = await run(['--endpoint-id', endpointId, '--reset', '--json']);
    assert.is(reset.code, 0, reset.stderr);
    assert.match(reset.stderr, 'The breaker is closed.');
    const [shown] = JSON.parse(reset.stdout) as [Record<string, unknown>];
    assert.equal(
      [shown['endpoint_id'], shown['state'], shown['since']],
      [endpointId, 'closed', null],
    );
    const [row] = await db.rows<{ isSoon: boolean }>(
      `select next_attempt_at < now() + interval '1 minute' as "isSoon" from event_deliveries where id = $1`,
      [delivery],
    );
    assert.ok(row!.isSoon);
  },
);

breakers(
  'mistakes are told in words: nobody to close, nobody of that id, no KV that is shared, KV that is away',
  async () => {
    const cases: [args: string[], kv: object | undefined, code: number, sentence: string][] = [
      [['--reset'], undefined, 2, '--reset needs an endpoint'],
      [['--endpoint-id', newId()], undefined, 1, ' not found'],
      [['--endpoint-id', 'nonsense'], undefined, 2, '--endpoint-id must be an id'],
      [[], { type: 'in-memory' }, 2, 'kv.type is in-memory'],
      [[], { host: '127.0.0.1', port: await freePort() }, 1, 'Redis at 127.0.0.1:'],
    ];
    for (const [args, kv, code, sentence] of cases) {
      const found = await run(args, kv);
      assert.is(found.code, code, found.stderr);
      assert.match(found.stderr, sentence);
      assert.is(found.stdout, '');
    }
  },
);

breakers.run();
