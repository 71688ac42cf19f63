import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { GoneEndpoints } from '#agent/attempt/gone-endpoints';
import { nextAttemptInMs } from '#agent/attempt/retry-schedule';
import { AttemptRunner } from '#agent/attempt/run-attempt';
import type { InFlightDelivery } from '#agent/model/delivery';
import type { Destination, Attempted, NotSent } from '#agent/model/destination';
import { silentLog } from '#core/logging/log';
import type { AttemptRecord } from '#store/deliveries/delivery-attempts';
import type { Strategy } from '#store/config/projects';
import { cachedEndpoint } from '../records.js';

const schedule = suite('agent/attempt/attempt');

const strategies: Strategy[] = (['linear', 'exponential'] as const).flatMap((type) =>
  [1, 10, 333, 86_400].flatMap((duration) =>
    [0, 1, 10, 100, 1000].flatMap((retry_count) => [
      { type, duration, retry_count },
      ...[1, 60, 7200, 604_800].map((max_seconds) => ({
        type,
        duration,
        retry_count,
        max_seconds,
      })),
    ]),
  ),
);
const asked = [null, 0, 1, 30, 3_600, 86_400, 999_999_999];
const corners = [0, 0.25, 0.5, 0.999_999];

/** Every delay of a policy, for a given jitter. */
function waits(
  strategy: Strategy,
  retryAfter: number | null,
  random: () => number,
): (number | null)[] {
  return Array.from({ length: strategy.retry_count + 2 }, (_, n) =>
    nextAttemptInMs(strategy, n + 1, retryAfter, random),
  );
}

schedule(
  'there are as many waits as retries, each a whole number of milliseconds, none negative',
  () => {
    for (const strategy of strategies) {
      for (const retryAfter of asked) {
        for (const corner of corners) {
          const all = waits(strategy, retryAfter, () => corner);
          assert.ok(
            all
              .slice(0, strategy.retry_count)
              .every((wait) => wait !== null && Number.isSafeInteger(wait) && wait >= 0),
          );
          assert.equal(all.slice(strategy.retry_count), [null, null]);
        }
      }
    }
  },
);

schedule('with the same draw no wait is shorter than the one before', () => {
  for (const strategy of strategies) {
    for (const corner of corners) {
      const all = waits(strategy, null, () => corner).slice(0, strategy.retry_count) as number[];
      assert.ok(all.every((wait, n) => n === 0 || wait >= all[n - 1]!));
    }
  }
});

schedule('linear waits the same time, whatever is drawn', () => {
  const strategy: Strategy = { type: 'linear', duration: 30, retry_count: 5 };
  for (const corner of corners)
    assert.equal(waits(strategy, null, () => corner).slice(0, 5), Array(5).fill(30_000));
});

schedule('exponential doubles up to its cap, and the draw decides the upper half alone', () => {
  const strategy: Strategy = {
    type: 'exponential',
    duration: 10,
    retry_count: 8,
    max_seconds: 300,
  };
  const full = [10, 20, 40, 80, 160, 300, 300, 300].map((seconds) => seconds * 1000);
  assert.equal(
    waits(strategy, null, () => 0).slice(0, 8),
    full.map((ms) => ms / 2),
  );
  assert.equal(waits(strategy, null, () => 1).slice(0, 8), full);
  for (let n = 0; n < 10_000; n++) {
    const attempt = 1 + (n % 8);
    const wait = nextAttemptInMs(strategy, attempt, null)!;
    assert.ok(wait >= full[attempt - 1]! / 2 && wait <= full[attempt - 1]!);
  }
});

schedule('without a cap of its own an exponential wait ends at two hours', () => {
  assert.is(
    nextAttemptInMs({ type: 'exponential', duration: 10, retry_count: 1000 }, 1000, null, () => 1),
    7_200_000,
  );
});

schedule('what the endpoint asks for prolongs a wait, never shortens it, and ends at a day', () => {
  const strategy: Strategy = { type: 'linear', duration: 60, retry_count: 3 };
  assert.is(nextAttemptInMs(strategy, 1, 5), 60_000);
  const none = () => 0;
  assert.is(nextAttemptInMs(strategy, 1, 90.5, none), 90_500);
  assert.is(nextAttemptInMs(strategy, 1, 999_999_999, none), 86_400_000);
  assert.is(nextAttemptInMs({ ...strategy, duration: 200_000 }, 1, 999_999_999), 200_000_000);
  assert.is(nextAttemptInMs(strategy, 4, 90), null);
});

schedule(
  'deliveries that were asked to wait together return at different times, none early',
  () => {
    const linear = { type: 'linear', duration: 1, retry_count: 5 } as const;
    for (const [asked, latest] of [
      [1, 2.25],
      [60, 76],
      [86_400, 86_700],
      [1e9, 86_700],
    ] as const) {
      const waits = Array.from({ length: 50 }, () => nextAttemptInMs(linear, 1, asked)! / 1000);
      assert.ok(Math.min(...waits) >= Math.min(asked, 86_400), `${asked}: none early`);
      assert.ok(Math.max(...waits) <= latest, `${asked}: none much later`);
      assert.ok(Math.max(...waits) - Math.min(...waits) > (latest - Math.min(asked, 86_400)) / 2);
    }
  },
);

const SENT: Attempted = {
  outcome: 'delivered',
  afterSeconds: null,
  isOverloaded: false,
  mayRetryAtOnce: false,
  target: 'topic orders',
  code: null,
  failure: null,
  detail: null,
  headers: null,
  body: '',
  isUp: true,
  sentAtMs: 1_000_000,
  durationMs: 4.6,
};

/** Makes attempt `number` of a delivery to a destination that answers with this result. */
async function attempt(
  result: Partial<Attempted> | NotSent,
  number = 1,
): Promise<{
  readonly record: AttemptRecord;
  readonly unsent: NotSent;
  readonly deactivated: number;
}> {
  const lease = { isHeld: true };
  let deactivated = 0;
  const destination: Pick<Destination, 'send' | 'attributes'> = {
    send: (_item, signal) => {
      assert.not(signal.aborted);
      lease.isHeld = false;
      assert.ok(signal.aborted, 'it ends with the lease');
      return Promise.resolve({ ...SENT, ...result } as Attempted | NotSent);
    },
    attributes: () => ({}),
  };
  const options = {
    log: silentLog,
    lease,
    clock: { now: () => 0 },
    destination,
    functions: { mayChange: () => false, run: () => Promise.reject(new Error('not called')) },
    goneEndpoints: { deactivate: () => void deactivated++ } as unknown as GoneEndpoints,
  } as unknown as ConstructorParameters<typeof AttemptRunner>[0];
  const strategy = { type: 'linear', duration: 60, retry_count: 3 } as const;
  const delivery = { id: 'd', attempts: number - 1, eventType: 't', headers: {} };
  const made = await new Promise<AttemptRecord | NotSent>((resolve) =>
    new AttemptRunner(options).run(
      {
        endpoint: cachedEndpoint({ strategy }),
        delivery: delivery as unknown as InFlightDelivery,
        startedAtMs: performance.now(),
        isProbe: false,
        trace: undefined,
        transformedData: undefined,
      },
      resolve,
    ),
  );
  return { record: made as AttemptRecord, unsent: made as NotSent, deactivated };
}

schedule(
  'what a destination answers is recorded, and decides whether there is a retry',
  async () => {
    const cases: readonly [
      Partial<Attempted>,
      number,
      status: string,
      dueInMs: number | null,
      RegExp,
    ][] = [
      [{}, 1, 'success', null, /^null$/],
      [{ outcome: 'retry', detail: 'Busy.' }, 1, 'retry', 60_000, /^null$/],
      [{ outcome: 'retry', mayRetryAtOnce: true }, 1, 'retry', 0, /^null$/],
      [{ outcome: 'retry', mayRetryAtOnce: true }, 2, 'retry', 60_000, /^null$/],
      [
        { outcome: 'retry', detail: 'Busy.' },
        4,
        'failure',
        null,
        /^No retry is left after attempt 4\. Busy\.$/,
      ],
      [
        { outcome: 'failed', detail: 'Too large.' },
        1,
        'failure',
        null,
        /never take it\. Too large\.$/,
      ],
      [{ outcome: 'gone' }, 1, 'failure', null, /Gone and was deactivated/],
    ];
    for (const [sent, number, status, dueInMs, reason] of cases) {
      const { record, deactivated } = await attempt(sent, number);
      assert.equal([record.status, record.dueInMs, record.number], [status, dueInMs, number]);
      assert.match(String(record.reason), reason);
      assert.equal(
        [record.target, record.requestedAtMs, record.durationMs, record.detail],
        ['topic orders', 1_000_000, 5, sent.detail ?? null],
      );
      assert.equal([deactivated, record.isGone], sent.outcome === 'gone' ? [1, true] : [0, false]);
    }
    const { record } = await attempt({ outcome: 'retry', afterSeconds: 3_600 });
    assert.ok(record.dueInMs! >= 3_600_000, 'not before the destination asks for it');
  },
);

schedule('what was not sent is no attempt', async () => {
  for (const reason of ['lookup', 'shortage', 'unreadable', 'aborted'] as const) {
    const { unsent } = await attempt({ outcome: 'unsent', reason, detail: 'why' });
    assert.equal([unsent.outcome, unsent.reason, unsent.detail], ['unsent', reason, 'why']);
  }
});

schedule.run();
