import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ClaimCursors } from '#agent/delivery/claimer';
import { BacklogPacing } from '#agent/flow-control/backlog-pacing';
import { WAIT_REASONS } from '#store/deliveries/postponed-deliveries';
import { empty } from '../../store/batches.js';
import { migratedDatabase } from '../../store/migrated.js';
import { type Answer, type Endpoint, endpoint as receiver } from '../../support/endpoint.js';
import { makePending } from '../../support/pending.js';
import { until, within } from '../../support/until.js';
import { delivered, hold, states } from '../hold.js';
import { makeEndpoint } from '../records.js';
import { keptLog, runAgent, type RunningAgent } from '../running.js';

const backlogPacing = suite('agent/flow-control/backlog-pacing');

const db = await migratedDatabase();
backlogPacing.after(() => db.close());

const MINUTE_MS = 60_000;

function backlogsOn(expedite: () => Promise<number> = () => Promise.resolve(1)) {
  const { log, lines } = keptLog();
  return { backlogPacing: new BacklogPacing({ log, expedite }), lines };
}

backlogPacing(
  'what is put off comes back over the longer the more it is, and over ten minutes at most',
  () => {
    const { backlogPacing: of } = backlogsOn();
    assert.is(of.spreadMs('e', 0), 0);
    of.addPostponed('e', 5_000, 10, 0);
    assert.is(of.spreadMs('e', 0), 50_000);
    assert.is(of.spreadMs('e', 20_000), 30_000, 'time passes');
    assert.is(of.spreadMs('other', 0), 0);
    of.addPostponed('e', 1_000_000, 10, 20_000);
    assert.is(of.spreadMs('e', 20_000), 10 * MINUTE_MS);
    assert.is(
      of.spreadMs('e', 20_000 + 21 * MINUTE_MS),
      0,
      'and no amount of it is remembered for longer than twenty',
    );
  },
);

backlogPacing(
  'with what comes back put off again and again, a backlog comes back at its pace',
  () => {
    const { backlogPacing: of } = backlogsOn();
    const deliveries = 20_000;
    const stepMs = 500;
    let due: number[] = Array.from({ length: deliveries }, () => 0);
    let random = 1;
    const chance = () => (random = (random * 16807) % 2147483647) / 2147483647;
    const looks: number[] = [];
    for (let nowMs = 0; nowMs < 30 * MINUTE_MS; nowMs += stepMs) {
      let count = 0;
      const spreadMs = Math.max(5_000, of.spreadMs('e', nowMs));
      due = due.map((at) =>
        at > nowMs || count === 5_000 ? at : (count++, nowMs + 5_000 + chance() * spreadMs),
      );
      of.addPostponed('e', count, 10, nowMs);
      looks.push(count);
    }
    const perSecond = (from: number, to: number) =>
      looks.slice(from / stepMs, to / stepMs).reduce((sum, n) => sum + n, 0) / ((to - from) / 1000);
    // One returns every 10 ms.
    for (const minute of [5, 10, 20, 29]) {
      const rate = perSecond(minute * MINUTE_MS, (minute + 1) * MINUTE_MS);
      assert.ok(rate > 50 && rate < 150, `${rate} a second in minute ${minute}`);
    }
  },
);

backlogPacing(
  'an endpoint that answers well has what is left expedited, now and then, until nothing is left',
  async () => {
    let left = 2;
    let asked = 0;
    const { backlogPacing: of } = backlogsOn(
      () => (asked++, Promise.resolve(left-- > 0 ? 5_000 : 0)),
    );
    const endpoint = { id: 'e', projectId: 'p' };
    of.answeredWell(endpoint, 0);
    assert.is(asked, 0, 'nothing is put off');
    of.addPostponed('e', 400, 10, 0);
    of.answeredWell(endpoint, 0);
    assert.is(asked, 0, 'what comes back within seconds is left alone');
    of.addPostponed('e', 20_000, 10, 0);
    for (const nowMs of [0, 1, 4_999]) of.answeredWell(endpoint, nowMs);
    assert.is(asked, 1);
    of.answeredWell(endpoint, 5_000);
    of.answeredWell(endpoint, 10_000);
    await Promise.resolve();
    assert.is(asked, 3);
    of.answeredWell(endpoint, 20_000);
    assert.is(asked, 3, 'nothing was left the last time');
  },
);

backlogPacing('expediting that fails is told, and tried again', async () => {
  const { backlogPacing: of, lines } = backlogsOn(() => Promise.reject(new Error('away')));
  of.addPostponed('e', 20_000, 10, 0);
  of.answeredWell({ id: 'e', projectId: 'p' }, 0);
  await new Promise((resolve) => setImmediate(resolve));
  assert.match(lines[0]?.sentence ?? '', 'Could not expedite deliveries of a recovered endpoint');
  of.answeredWell({ id: 'e', projectId: 'p' }, 5_000);
  await new Promise((resolve) => setImmediate(resolve));
  assert.is(lines.length, 2);
});

backlogPacing('endpoints of which everything has come back are forgotten', async () => {
  let asked = 0;
  const { backlogPacing: of } = backlogsOn(() => Promise.resolve(++asked));
  of.addPostponed('e', 100, 10, 0);
  of.forget(1_001);
  of.answeredWell({ id: 'e', projectId: 'p' }, 0);
  assert.is(asked, 0);
});

const claimFrom = (from: ClaimCursors, excepted: string[], nowMs = 0) =>
  from.from('p', excepted, nowMs);

backlogPacing(
  'a claim begins where the one before has come, while at least the same endpoints are left out',
  () => {
    const cursors = new ClaimCursors();
    assert.is(claimFrom(cursors, ['a']), undefined);
    cursors.advance('p', 'ten', ['a'], 0);
    assert.is(claimFrom(cursors, ['a']), 'ten');
    assert.is(claimFrom(cursors, ['a', 'b']), 'ten');
    assert.is(cursors.from('other', ['a'], 0), undefined);
    cursors.advance('p', 'eleven', ['a', 'b'], 0);
    assert.is(claimFrom(cursors, ['a', 'b']), 'eleven');
    assert.is(claimFrom(cursors, ['a']), undefined, 'due deliveries of b were skipped');
    assert.is(claimFrom(cursors, ['a', 'b']), undefined, 'and the cursor is gone');
  },
);

backlogPacing(
  'skipped rows are scanned again after some seconds, however often the cursor advances',
  () => {
    const cursors = new ClaimCursors();
    cursors.advance('p', 'ten', ['a'], 0);
    cursors.advance('p', 'eleven', ['a'], 4_000);
    assert.is(claimFrom(cursors, ['a'], 4_999), 'eleven');
    assert.is(claimFrom(cursors, ['a'], 5_000), undefined);
    cursors.advance('p', 'twelve', ['a'], 5_000);
    assert.is(claimFrom(cursors, ['a'], 9_000), 'twelve');
  },
);

backlogPacing('a claim that leaves nothing out begins at the oldest', () => {
  const cursors = new ClaimCursors();
  cursors.advance('p', 'ten', [], 0);
  assert.is(claimFrom(cursors, []), undefined);
});

/** An agent with thousands of overdue deliveries to a hanging endpoint. */
async function besideHanging(
  count: number,
  test: (scene: {
    running: RunningAgent;
    hanging: { id: string; answer: () => void };
    neighbour: { id: string; at: Endpoint };
  }) => Promise<void>,
): Promise<void> {
  const running = await runAgent({ db });
  let answer = () => undefined as void;
  const answered = new Promise<Answer>((resolve) => (answer = () => resolve({})));
  const [one, other] = [await receiver({ answer: () => answered }), await receiver()];
  try {
    const hanging = await makeEndpoint(db, running.projectId, {
      url: one.url,
      timeout_ms: 60_000,
      concurrency: 10,
    });
    const neighbour = await makeEndpoint(db, running.projectId, { url: other.url });
    await running.configCache.refresh();
    await makePending(db, hanging.id, count);
    await db.rows('analyze event_deliveries');
    const scene = {
      running,
      hanging: { id: hanging.id, answer },
      neighbour: { id: neighbour.id, at: other },
    };
    await within(test(scene), 90_000, 'the test');
  } finally {
    await one.close();
    await other.close();
    await running.close();
    await empty(db);
  }
}

async function due(running: RunningAgent, endpointId: string, count: number): Promise<void> {
  const ids = (await hold(running, endpointId, count)).map(({ id }) => id);
  await db.rows(
    `update event_deliveries set claimed_by = null, status = 'scheduled', next_attempt_at = now() where id = any ($1)`,
    [ids],
  );
}

backlogPacing(
  'thousands that are due to an endpoint that hangs do not stand before its neighbours, nor in memory',
  () =>
    besideHanging(4_000, async ({ running, hanging, neighbour }) => {
      await due(running, neighbour.id, 300);
      let most = 0;
      const looking = setInterval(() => (most = Math.max(most, running.wiring.inFlight.size)), 5);
      running.wiring.dueTimes.add(running.projectId, 0);
      await delivered(running, neighbour.id, 300);
      clearInterval(looking);
      // The hanging endpoint contributes one claim at most, made before it was known to be saturated.
      assert.ok(most <= 200 + 300, `${most} in memory`);
      assert.ok(((await states(running, hanging.id))['processing'] ?? 0) <= 200);
    }),
);

backlogPacing('what is put off for long is sent soon after the endpoint answers again', () =>
  besideHanging(8_000, async ({ running, hanging }) => {
    running.wiring.dueTimes.add(running.projectId, 0);
    let held = 0;
    const left = async () => {
      const rows = await db.rows<{ n: number; seconds: number; reasons: string[] }>(
        `select count(*)::int as n, coalesce(max(extract(epoch from next_attempt_at - now())), 0)::float8 as seconds, array_agg(distinct reason) as reasons
         from event_deliveries where endpoint_id = $1 and status = 'scheduled'`,
        [hanging.id],
      );
      return rows[0]!;
    };
    await until('some to be put off for long', async () => {
      const { seconds } = await left();
      held = seconds;
      return seconds > 150;
    });
    assert.ok((await left()).reasons.includes(WAIT_REASONS.slow));
    hanging.answer();
    const startedAtMs = performance.now();
    await until('all to be delivered', async () => (await left()).n === 0, { withinMs: 60_000 });
    console.log(
      `  put off for ${held.toFixed(0)} s, sent after ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`,
    );
  }),
);

backlogPacing.run();
