import { monitorEventLoopDelay, performance } from 'node:perf_hooks';
import type { ActivatedPlugins } from '../plugins/activation.js';
import type { Meter } from '../metrics/meter.js';
import { VERSION } from '../process/version.js';

/** libuv samples the event-loop delay with a timer, without JavaScript. */
const LOOK_EVERY_MS = 20;
const PERCENTILES = [50, 99, 100];

/** An agent and a server in one process share a meter, and CPU time must not be counted twice. */
const shown = new WeakSet<Meter>();

/** Updates on each exposition, until the returned function is called. */
export function showProcess(
  { meter, metrics }: Pick<ActivatedPlugins, 'meter' | 'metrics'>,
  part: 'agent' | 'server',
): () => void {
  if (!metrics) return () => undefined;
  meter.set('gateway_build_info', { version: VERSION, node: process.version, process: part }, 1);
  if (shown.has(meter)) return () => undefined;
  shown.add(meter);
  const startedAtSeconds = Date.now() / 1000 - process.uptime();
  const delay = monitorEventLoopDelay({ resolution: LOOK_EVERY_MS });
  delay.enable();
  let counted = 0;
  let before = performance.eventLoopUtilization();
  const stop = meter.collect(() => {
    const { user, system } = process.cpuUsage();
    const used = (user + system) / 1e6;
    meter.add('process_cpu_seconds_total', {}, Math.max(0, used - counted));
    counted = Math.max(used, counted);
    const { rss, heapUsed } = process.memoryUsage();
    meter.set('process_resident_memory_bytes', {}, rss);
    meter.set('nodejs_heap_size_used_bytes', {}, heapUsed);
    meter.set('process_start_time_seconds', {}, startedAtSeconds);
    for (const percentile of PERCENTILES) {
      // The histogram records the time between samples; only the excess over the interval is delay.
      const seconds =
        delay.count === 0 ? 0 : delay.percentile(percentile) / 1e9 - LOOK_EVERY_MS / 1000;
      meter.set(
        'nodejs_eventloop_lag_seconds',
        { percentile: String(percentile) },
        Math.max(0, seconds),
      );
    }
    delay.reset();
    const now = performance.eventLoopUtilization();
    meter.set(
      'nodejs_eventloop_utilization',
      {},
      performance.eventLoopUtilization(now, before).utilization,
    );
    before = now;
  });
  return () => {
    delay.disable();
    stop();
    shown.delete(meter);
  };
}
