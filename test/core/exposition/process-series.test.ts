import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { createMeter } from '#core/metrics/meter';
import { showProcess } from '#core/exposition/process-series';
import { keptMetrics } from '../../support/kept-metrics.js';
import { until } from '../../support/until.js';

const shows = suite('core/exposition/process-series');

function block(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Uses CPU time, independent of other processes' load. */
function work(ms: number): void {
  const began = process.cpuUsage();
  for (let used = 0; used < ms;) {
    const { user, system } = process.cpuUsage(began);
    used = (user + system) / 1000;
  }
}

const turn = () => new Promise((resolve) => setTimeout(resolve, 50));

shows('CPU time, memory and the start of the process are those of the process', async () => {
  const kept = keptMetrics();
  const stop = showProcess(kept, 'agent');
  try {
    await kept.scrape();
    const before = kept.value('process_cpu_seconds_total')!;
    const { user, system } = process.cpuUsage();
    assert.ok(before > 0 && before <= (user + system) / 1e6 + 0.001, `${before} s`);
    work(100);
    await kept.scrape();
    const used = kept.value('process_cpu_seconds_total')! - before;
    assert.ok(used >= 0.1 && used < 60, `a busy moment took ${used} s`);
    assert.ok(
      Math.abs(kept.value('process_start_time_seconds')! - (Date.now() / 1000 - process.uptime())) <
        2,
    );
    assert.ok(
      kept.value('process_resident_memory_bytes')! > kept.value('nodejs_heap_size_used_bytes')!,
    );
  } finally {
    stop();
  }
});

shows(
  'a blocked event loop is seen in the exposition after it, and not in the one after that',
  async () => {
    const kept = keptMetrics();
    const stop = showProcess(kept, 'agent');
    try {
      await turn();
      await kept.scrape();
      await turn();
      block(400);
      await turn();
      await kept.scrape();
      assert.ok(kept.value('nodejs_eventloop_lag_seconds', { percentile: '100' })! >= 0.3);
      assert.ok(
        kept.value('nodejs_eventloop_utilization')! > 0,
        String(kept.value('nodejs_eventloop_utilization')),
      );
      // Other processes can delay this one too, so the value is polled.
      const lag = (percentile: string) =>
        kept.value('nodejs_eventloop_lag_seconds', { percentile })!;
      await until(
        'an exposition without it, in which what is no delay is not shown as one',
        async () => {
          await turn();
          await turn();
          await kept.scrape();
          return lag('100') < 0.3 && lag('50') < 0.1;
        },
      );
    } finally {
      stop();
    }
  },
);

shows('two parts in one process are both named, and its CPU time is counted once', async () => {
  const kept = keptMetrics();
  const stops = [showProcess(kept, 'server'), showProcess(kept, 'agent')];
  const usedSeconds = () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6;
  try {
    const before = usedSeconds();
    await kept.scrape();
    const counted = kept.value('process_cpu_seconds_total')!;
    assert.ok(counted >= before && counted <= usedSeconds() + 0.001, `${counted} s`);
    assert.equal(
      kept
        .all('gateway_build_info')
        .map(({ labels, value }) => [labels['process'], labels['node'], value]),
      [
        ['server', process.version, 1],
        ['agent', process.version, 1],
      ],
    );
  } finally {
    for (const stop of stops) stop();
  }
});

shows('nothing is watched while nobody looks at metrics, or when it has ended', async () => {
  showProcess({ meter: createMeter(undefined) }, 'agent')();
  const kept = keptMetrics();
  showProcess(kept, 'agent')();
  await kept.scrape();
  assert.equal(kept.all('process_cpu_seconds_total'), []);
});

shows.run();
