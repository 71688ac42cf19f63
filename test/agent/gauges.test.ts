import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { showGauges } from '#agent/gauges';
import { keptMetrics } from '../support/kept-metrics.js';

const gauges = suite('agent/gauges');

gauges(
  'what is over has no value any more: a breaker, a slow endpoint, a lag, a pause',
  async () => {
    const kept = keptMetrics();
    const breakers = [
      { projectId: 'p', endpointId: 'a', state: 'open' as const },
      { projectId: 'p', endpointId: 'b', state: 'half_open' as const },
    ];
    const slow = [{ projectId: 'p', endpointId: 'a' }];
    const lags = [{ projectId: 'p', sourceId: 's', partition: '0', messages: 7 }];
    const sources = [
      { project_id: 'p', id: 's', is_paused: true },
      { project_id: 'p', id: 't', is_paused: false },
    ];
    const agent = {
      sandbox: { processes: 2 },
      circuitBreakers: { notClosed: () => breakers },
      configCache: { sources },
    };
    const worker = {
      inFlight: { counts: () => ({ waiting: 3, sending: 2, recording: 1 }) },
      gates: { saturatedQueues: () => slow },
      lags: { lags: () => lags, ages: () => [] },
      clock: { offsetMs: -1500 },
    };
    const other = {
      ...worker,
      gates: { saturatedQueues: () => [] },
      lags: { lags: () => [], ages: () => [] },
    };
    const stop = showGauges(kept, agent, () => [worker, other]);
    const values = (name: string) =>
      kept.all(name).map(({ labels, value }) => [...Object.values(labels), value]);
    const shown = async () => {
      await kept.scrape();
      return [
        'endpoint_breaker_state',
        'endpoint_slow',
        'source_lag_messages',
        'source_paused',
      ].map((name) => values(`gateway_${name}`));
    };
    assert.equal(await shown(), [
      [
        ['p', 'a', 2],
        ['p', 'b', 1],
      ],
      [['p', 'a', 1]],
      [['p', 's', '0', 7]],
      [['p', 's', 1]],
    ]);
    assert.equal(values('gateway_deliveries_held'), [
      ['waiting', 6],
      ['under_way', 4],
      ['recording', 2],
    ]);
    for (const list of [breakers, slow, lags]) list.shift();
    sources[0]!.is_paused = false;
    assert.equal(await shown(), [[['p', 'b', 1]], [], [], []]);
    stop();
    breakers.shift();
    assert.equal((await shown())[0], [['p', 'b', 1]], 'nobody reads when it has stopped');
  },
);

gauges.run();
