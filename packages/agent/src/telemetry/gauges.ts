import type { Meter } from '@gateway/core/metrics';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Sandbox } from '@gateway/sandbox';
import type { CircuitBreakers } from '../flow-control/circuit-breakers.js';
import type { Scheduler } from '../delivery/scheduler.js';
import type { ConfigCache } from '../config/config-cache.js';
import type { SourceLags } from '../ingest/source-lags.js';

/**
 * Shows what this agent has in hand, read at the moment of each exposition. A label set that is gone (an endpoint that answers again, a partition that another
 * agent reads) is gone from the next one.
 *
 * @returns what ends that
 */
export function showGauges(
  { meter }: Pick<ActivatedPlugins, 'meter'>,
  {
    scheduler,
    circuitBreakers,
    sandbox,
    lags,
    store,
  }: { scheduler: Scheduler; circuitBreakers: CircuitBreakers; sandbox: Sandbox; lags: SourceLags; store: ConfigCache },
): () => void {
  return meter.collect(() => {
    const { waiting, underWay, recording } = scheduler.inHand();
    meter.set('gateway_deliveries_held', { state: 'waiting' }, waiting);
    meter.set('gateway_deliveries_held', { state: 'under_way' }, underWay);
    meter.set('gateway_deliveries_held', { state: 'recording' }, recording);
    meter.set('gateway_sandbox_processes', {}, sandbox.processes);
    showEndpoints(meter, scheduler, circuitBreakers);
    showLags(meter, lags);
    showPauses(meter, store);
  });
}

const BREAKER_STATES = { half_open: 1, open: 2 } as const;

function showEndpoints(meter: Meter, scheduler: Scheduler, circuitBreakers: CircuitBreakers): void {
  meter.clear('gateway_endpoint_breaker_state');
  for (const { projectId: project, endpointId: endpoint, state } of circuitBreakers.notClosed())
    meter.set('gateway_endpoint_breaker_state', { project, endpoint }, BREAKER_STATES[state]);
  meter.clear('gateway_endpoint_slow');
  for (const { projectId: project, endpointId: endpoint } of scheduler.waits.saturated())
    meter.set('gateway_endpoint_slow', { project, endpoint }, 1);
}

function showLags(meter: Meter, lags: SourceLags): void {
  meter.clear('gateway_source_lag_messages');
  for (const { projectId: project, sourceId: source, partition, messages } of lags.all())
    meter.set('gateway_source_lag_messages', { project, source, partition }, messages);
}

function showPauses(meter: Meter, store: ConfigCache): void {
  meter.clear('gateway_source_paused');
  for (const { project_id: project, id: source, resumes_in_ms: resumesInMs } of store.sources)
    if (resumesInMs !== null) meter.set('gateway_source_paused', { project, source }, 1);
}
