import type { ActivatedPlugins, Meter } from '@gateway/core';
import type { Sandbox } from '@gateway/sandbox';
import type { Deliverer } from './deliver.js';
import type { SourceLags } from './source-lags.js';

/**
 * Shows what this agent has in hand, read at the moment of each exposition. A label set that is gone (an endpoint that answers again, a partition that another
 * agent reads) is gone from the next one.
 *
 * @returns what ends that
 */
export function showGauges(
  { meter }: Pick<ActivatedPlugins, 'meter'>,
  { deliverer, sandbox, lags }: { deliverer: Deliverer; sandbox: Sandbox; lags: SourceLags },
): () => void {
  return meter.collect(() => {
    const { waiting, underWay, recording } = deliverer.inHand();
    meter.set('gateway_deliveries_held', { state: 'waiting' }, waiting);
    meter.set('gateway_deliveries_held', { state: 'under_way' }, underWay);
    meter.set('gateway_deliveries_held', { state: 'recording' }, recording);
    meter.set('gateway_sandbox_processes', {}, sandbox.processes);
    showBreakers(meter, deliverer);
    showLags(meter, lags);
  });
}

function showBreakers(meter: Meter, deliverer: Deliverer): void {
  meter.clear('gateway_endpoint_breaker_state');
  for (const { projectId: project, endpointId: endpoint } of deliverer.saturated())
    meter.set('gateway_endpoint_breaker_state', { project, endpoint }, 1);
}

function showLags(meter: Meter, lags: SourceLags): void {
  meter.clear('gateway_source_lag_messages');
  for (const { projectId: project, sourceId: source, partition, messages } of lags.all())
    meter.set('gateway_source_lag_messages', { project, source, partition }, messages);
}
