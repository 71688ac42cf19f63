import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { isGatewayError } from '#core/errors/errors';
import { newId } from '#core/events/ids';
import { FormerCheck } from '#ingest/commit/former-check';
import { FormerShards } from '#ingest/commit/former-shards';
import type { ReadyMessage } from '#ingest/message/ready-message';
import { acceptEvents } from '#store/events/events';
import { openDatabase } from '#store/postgres/database';
import { Messages } from '../../agent/ready.js';
import { agentConfig, keptLog } from '../../agent/running.js';
import { batch, newEvents } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { proxy } from '../../support/proxy.js';
import { until } from '../../support/until.js';

const check = suite('ingest/commit/former-check');

const db = await migratedDatabase();
check.after(() => db.close());

/** A check of projects whose former shard, if they have one, is behind a proxy. */
async function scene(
  test: (scene: {
    formerCheck: FormerCheck;
    former: FormerShards;
    postgres: Awaited<ReturnType<typeof proxy>>;
    checked: ReadyMessage[];
    lines: ReturnType<typeof keptLog>['lines'];
    projects: Map<string, { formerShards: string[]; movedAtMs: number }>;
    moved: () => Messages;
    stayed: () => Messages;
  }) => Promise<void>,
): Promise<void> {
  const postgres = await proxy({ port: Number(new URL(db.url).port) });
  const config = agentConfig(db.url, {}, postgres.port);
  const database = openDatabase(config.database, { poolSize: 2, name: 'test', answerMs: 300 });
  const projects = new Map<string, { formerShards: string[]; movedAtMs: number }>();
  const former = new FormerShards({
    shards: { of: () => ({ database }) },
    configCache: { projects },
    config,
  } as unknown as ConstructorParameters<typeof FormerShards>[0]);
  const { log, lines } = keptLog();
  const checked: ReadyMessage[] = [];
  const formerCheck = new FormerCheck({
    former,
    batchSize: 100,
    concurrency: 2,
    log,
    checked: (message) => void checked.push(message),
  });
  const project = (formerShards: string[]) => {
    const id = newId();
    projects.set(id, { formerShards, movedAtMs: Date.now() + 60_000 });
    return new Messages(id);
  };
  const [moved, stayed] = [() => project(['s2']), () => project([])];
  try {
    await test({ formerCheck, former, postgres, checked, lines, projects, moved, stayed });
  } finally {
    formerCheck.stop();
    postgres.restore();
    await database.close();
    await postgres.close();
  }
}

check(
  'a former shard that is away delays the messages of projects that left it, and no other',
  () =>
    scene(async ({ formerCheck, former, postgres, checked, lines, moved, stayed }) => {
      const [mine, theirs] = [moved(), stayed()];
      const [known] = newEvents(1, { projectId: mine.projectId });
      await acceptEvents(db.pool, batch([known!]));
      postgres.cut();
      const again = mine.ready({}, [mine.event(known!.coordinates, { ...known!, headers: {} })]);
      const late = mine.ready();
      for (const message of [again, late, theirs.ready()]) formerCheck.push(message);
      assert.equal(
        checked.map(({ projectId }) => projectId),
        [theirs.projectId],
      );
      await until('the warning', () => lines.some(({ level }) => level === 'warn'));
      assert.match(lines[0]!.sentence, 'a former shard does not answer');
      formerCheck.push(theirs.ready());
      assert.is(checked.length, 2);
      assert.is(former.knownOf(late), undefined);
      postgres.restore();
      await until('the others', () => checked.length === 4);
      assert.ok(former.knownOf(again)!.has(known!.id));
      assert.not(former.knownOf(late)!.has(late.events[0]!.id));
    }),
);

check('a message whose caller waits fails, and names the shard; the others wait', () =>
  scene(async ({ formerCheck, postgres, checked, moved }) => {
    const mine = moved();
    postgres.cut();
    const errors: unknown[] = [];
    const posted = { ...mine.ready(), failed: (error: unknown) => void errors.push(error) };
    formerCheck.push(posted);
    formerCheck.push(mine.ready());
    await until('the failure', () => errors.length === 1);
    assert.ok(isGatewayError(errors[0], 'shard_away'));
    assert.match((errors[0] as Error).message, 'the database of the shard s2 does not say');
    postgres.restore();
    await until('the message of the broker', () => checked.length === 1);
    assert.is(errors.length, 1);
  }),
);

check('only what a former shard can have is asked about, whatever the hour', () =>
  scene(async ({ former, projects, moved }) => {
    const mine = moved();
    const movedAtMs = Date.now() - 60_000;
    projects.set(mine.projectId, { formerShards: ['s2'], movedAtMs });
    const asks = (message: ReadyMessage) => former.mayHave(message).length > 0;
    assert.not(asks(mine.ready()), 'dated now');
    assert.not(asks(mine.ready({ occurredAtMs: movedAtMs + 1 })), 'dated after the move');
    assert.ok(asks(mine.ready({ occurredAtMs: movedAtMs })), 'dated at the move');
    assert.ok(asks(mine.ready({ idempotencyKey: 'a' })), 'has a key');
    assert.ok(asks({ ...mine.ready(), isUndated: true }), 'has no date');
    assert.not(asks({ ...mine.ready({ occurredAtMs: movedAtMs }), isNew: true }), 'is new');
    assert.ok(asks({ ...mine.ready({ idempotencyKey: 'a' }), isNew: true }), 'is new, with a key');
    projects.set(mine.projectId, { formerShards: ['s2'], movedAtMs: Date.now() - 7 * 86_400_000 });
    assert.not(asks(mine.ready({ idempotencyKey: 'a' })), 'its key would have expired');
  }),
);

check('an answer is asked for again after another move, and after a rejection', () =>
  scene(async ({ formerCheck, former, checked, projects, moved }) => {
    const mine = moved();
    const message = mine.ready();
    formerCheck.push(message);
    await until('the answer', () => checked.length === 1);
    assert.ok(former.knownOf(message));
    projects.set(mine.projectId, { formerShards: ['s2'], movedAtMs: Date.now() + 60_001 });
    assert.is(former.knownOf(message), undefined);
    formerCheck.push(message);
    await until('the answer', () => checked.length === 2);
    message.reject({ code: 'not_json', reason: 'It is not JSON.' });
    assert.is(former.knownOf(message), undefined);
  }),
);

check('a message that the former shard refuses is quarantined, or else left to the broker', () =>
  scene(async ({ formerCheck, checked, lines, moved }) => {
    const mine = moved();
    const refused = mine.ready({ idempotencyKey: '\0' });
    const refusedAgain = mine.hopeless({ id: 'no UUID' });
    for (const message of [refused, refusedAgain, mine.ready()]) formerCheck.push(message);
    await until('three', () => mine.settled.length + checked.length === 3);
    assert.is(refused.quarantined?.code, 'database_refused');
    assert.ok(checked.includes(refused));
    assert.equal(mine.settled, [[refusedAgain.quarantined!.coordinates, 'later']]);
    assert.match(lines.at(-1)!.sentence, 'can be neither accepted nor quarantined');
  }),
);

check(
  'messages pass when their former shard is forgotten, and are left to the broker at the end',
  () =>
    scene(async ({ formerCheck, postgres, checked, projects, lines, moved }) => {
      const [first, second] = [moved(), moved()];
      postgres.cut();
      formerCheck.push(first.ready());
      formerCheck.push(second.ready());
      await until('a failure', () => lines.length > 0);
      projects.set(first.projectId, { formerShards: [], movedAtMs: 0 });
      await until('the first message', () => checked.length === 1);
      formerCheck.stop();
      await until('the second message', () => second.settled.length === 1);
      formerCheck.push(second.ready());
      assert.equal(second.outcomes, ['later', 'later']);
      assert.equal(first.outcomes, []);
    }),
);

check.run();
