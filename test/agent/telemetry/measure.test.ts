import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SourceLags } from '#agent/sources/source-lags';
import { type Measure, measuring } from '#agent/telemetry/measure';
import { createMeter } from '#core/metrics/meter';
import type { AttemptRecord } from '#store/deliveries/delivery-attempts';
import { keptMetrics } from '../../support/kept-metrics.js';

const measure = suite('agent/telemetry/measure');

const source = { projectId: 'p', id: 's', bodyFunction: null };
const turn = () => new Promise((resolve) => setImmediate(resolve));

/** An attempt that started now and took 20 ms, for a message that is ten seconds old. */
function attempt(fields: Partial<AttemptRecord>): AttemptRecord {
  const requestedAtMs = Date.now();
  return {
    projectId: 'p',
    id: 'd',
    occurredAtMs: requestedAtMs - 10_000,
    attemptId: 'a',
    endpointId: 'e',
    number: 1,
    requestedAtMs,
    durationMs: 20,
    target: 'http://127.0.0.1',
    code: 200,
    errorClass: null,
    detail: null,
    responseHeaders: null,
    responseBody: null,
    status: 'success',
    dueInMs: null,
    reason: null,
    agentId: 1,
    traceparent: null,
    isUp: true,
    isGone: false,
    isOperational: false,
    ...fields,
  };
}

function measured(): { kept: ReturnType<typeof keptMetrics>; on: Measure } {
  const kept = keptMetrics();
  const on = measuring(kept);
  if (!on) throw new Error('nothing is measured');
  return { kept, on };
}

measure('nothing is measured while the exposition is closed', () => {
  assert.is(measuring({ meter: createMeter(undefined) }), undefined);
});

measure(
  'each outcome counts as the help of its series says, and the total is never anything but success and error',
  async () => {
    const { kept, on } = measured();
    const received = performance.now();
    for (const outcome of [
      'accepted',
      'accepted',
      'duplicate',
      'dropped',
      'quarantined',
      'later',
    ] as const)
      on.settled(source, outcome, received);
    assert.equal(kept.all('gateway_ingest_total'), []);
    await turn();
    const value = (name: string) => kept.value(name, { project: 'p', source: 's' });
    assert.equal(
      ['total', 'success', 'error', 'duplicate_total', 'dropped_total'].map((name) =>
        value(`gateway_ingest_${name}`),
      ),
      [5, 4, 1, 1, 1],
    );
    assert.is(kept.all('gateway_ingest_latency')[0]?.count, 2);
    on.settled(source, 'quarantined', received);
    await turn();
    assert.equal(
      [
        value('gateway_ingest_total'),
        value('gateway_ingest_success'),
        value('gateway_ingest_error'),
      ],
      [6, 4, 2],
    );
  },
);

measure('a message that is left to its broker counts nothing at all', async () => {
  const { kept, on } = measured();
  on.settled(source, 'later', performance.now());
  await turn();
  for (const name of [
    'gateway_ingest_total',
    'gateway_ingest_success',
    'gateway_ingest_error',
    'gateway_ingest_latency',
  ])
    assert.equal(kept.all(name), []);
});

measure(
  'a delivery that succeeds at its third attempt is observed once, with the time since its message was at the broker',
  () => {
    const { kept, on } = measured();
    const mine = () => true;
    on.recorded([attempt({ status: 'retry', number: 1, dueInMs: 1 })], mine);
    on.recorded([attempt({ status: 'retry', number: 2, dueInMs: 1 })], mine);
    assert.equal(kept.all('gateway_end_to_end_latency'), []);
    on.recorded([attempt({ number: 3 })], mine);
    const [latency, ...others] = kept.all('gateway_end_to_end_latency');
    assert.equal(others, []);
    assert.equal([latency?.labels, latency?.count], [{ project: 'p', endpoint: 'e' }, 1]);
    assert.ok(Math.abs(latency!.value - 10.02) < 1e-6, String(latency?.value));
    assert.equal(
      kept
        .all('gateway_delivery_attempt_count')
        .map(({ labels, value }) => [labels['outcome'], value]),
      [['success', 3]],
    );
    assert.is(kept.value('gateway_deliveries_attempted_total', { outcome: 'retry' }), 2);
    assert.is(kept.value('gateway_deliveries_attempted_total', { outcome: 'success' }), 1);
  },
);

measure(
  'a delivery that may be another agent’s by now is an attempt of this one, and its end is told by that one',
  () => {
    const { kept, on } = measured();
    on.recorded([attempt({}), attempt({ status: 'failure' })], () => false);
    assert.equal(kept.all('gateway_end_to_end_latency'), []);
    assert.equal(kept.all('gateway_delivery_attempt_count'), []);
    assert.equal([kept.all('gateway_deliveries_attempted_total').length], [2]);
  },
);

measure(
  'a clock that is behind gives no negative latency, and a message without a time gives none',
  () => {
    const { kept, on } = measured();
    on.recorded(
      [attempt({ occurredAtMs: Date.now() + 60_000 }), attempt({ occurredAtMs: 0 })],
      () => true,
    );
    const [latency] = kept.all('gateway_end_to_end_latency');
    assert.equal([latency?.count, latency?.value], [1, 0]);
  },
);

measure('a batch of attempts is counted by project and outcome', () => {
  const { kept, on } = measured();
  on.recorded(
    [attempt({}), attempt({}), attempt({ status: 'failure' }), attempt({ projectId: 'q' })],
    () => true,
  );
  assert.equal(
    kept
      .all('gateway_deliveries_attempted_total')
      .map(({ labels, value, count }) => [labels['project'], labels['outcome'], value, count]),
    [
      ['p', 'success', 2, 1],
      ['p', 'failure', 1, 1],
      ['q', 'success', 1, 1],
    ],
  );
});

measure('steps are told in seconds, and a batch of a function is one observation', () => {
  const { kept, on } = measured();
  on.step('wait', 1_000, 3_500);
  on.transformed(source, 7, performance.now());
  assert.is(kept.value('gateway_step_duration_seconds', { step: 'wait' }), 2.5);
  assert.is(kept.value('gateway_batch_size', { batch: 'transform' }), 7);
  assert.is(kept.all('gateway_transform_duration_seconds')[0]?.count, 1);
});

measure(
  'the lag of a partition is what was told last, until it is forgotten; what is no number of messages forgets it as well',
  () => {
    const lags = new SourceLags();
    const shown = () =>
      lags
        .lags()
        .map(({ sourceId, partition, messages }) => `${sourceId}/${partition}=${messages}`);
    const [one, two] = [
      { id: 'one', projectId: 'p' },
      { id: 'two', projectId: 'p' },
    ];
    lags.begin(one);
    lags.begin(two);
    lags.tell('one', '0', 7);
    lags.tell('one', '0', 5);
    lags.tell('one', '1', 0);
    lags.tell('two', '', 3);
    assert.equal(shown(), ['one/0=5', 'one/1=0', 'two/=3']);
    lags.tell('one', '1', null);
    lags.tell('one', '9', null);
    assert.equal(shown(), ['one/0=5', 'two/=3']);
    for (const nonsense of [NaN, -1, Infinity]) {
      lags.tell('one', '0', 5);
      lags.tell('one', '0', nonsense);
      assert.equal(shown(), ['two/=3'], String(nonsense));
    }
    lags.forget('two');
    assert.equal(shown(), []);
  },
);

measure.run();
