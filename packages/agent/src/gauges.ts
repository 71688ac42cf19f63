import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Sandbox } from '@gateway/sandbox';
import type { PausableSource } from '@gateway/store/config';
import type { AgentContext } from './config/agent-context.js';
import type { DeliveriesInFlight } from './delivery/in-flight.js';
import type { Backpressure } from './flow-control/backpressure.js';
import type { CircuitBreakers } from './flow-control/circuit-breakers.js';
import type { SourceLags } from './sources/source-lags.js';

export interface GaugeOptions {
  readonly inFlight: Pick<DeliveriesInFlight, 'counts'>;
  readonly backpressure: Pick<Backpressure, 'saturatedQueues'>;
  readonly circuitBreakers: Pick<CircuitBreakers, 'notClosed'>;
  readonly sandbox: Pick<Sandbox, 'processes'>;
  readonly lags: Pick<SourceLags, 'lags' | 'ages'>;
  readonly clock: Pick<AgentContext['clock'], 'offsetMs'>;
  readonly configCache: {
    readonly sources: readonly Pick<PausableSource, 'project_id' | 'id' | 'is_paused'>[];
  };
}

const BREAKER_STATES = { half_open: 1, open: 2 } as const;

/** Updates the gauges of this agent on each scrape. Returns a function that stops the updates. */
export function showGauges(
  { meter }: Pick<ActivatedPlugins, 'meter'>,
  { inFlight, backpressure, circuitBreakers, sandbox, lags, configCache, clock }: GaugeOptions,
): () => void {
  return meter.collect(() => {
    const { waiting, sending, recording } = inFlight.counts();
    meter.set('gateway_deliveries_held', { state: 'waiting' }, waiting);
    meter.set('gateway_deliveries_held', { state: 'under_way' }, sending);
    meter.set('gateway_deliveries_held', { state: 'recording' }, recording);
    meter.set('gateway_sandbox_processes', {}, sandbox.processes);
    meter.set('gateway_clock_offset_seconds', {}, clock.offsetMs / 1000);
    meter.clear('gateway_endpoint_breaker_state');
    for (const { projectId: project, endpointId: endpoint, state } of circuitBreakers.notClosed())
      meter.set('gateway_endpoint_breaker_state', { project, endpoint }, BREAKER_STATES[state]);
    meter.clear('gateway_endpoint_slow');
    for (const { projectId: project, endpointId: endpoint } of backpressure.saturatedQueues())
      meter.set('gateway_endpoint_slow', { project, endpoint }, 1);
    meter.clear('gateway_source_lag_messages');
    for (const { projectId: project, sourceId: source, partition, messages } of lags.lags())
      meter.set('gateway_source_lag_messages', { project, source, partition }, messages);
    meter.clear('gateway_source_last_message_age_seconds');
    for (const { projectId: project, sourceId: source, seconds } of lags.ages())
      meter.set('gateway_source_last_message_age_seconds', { project, source }, seconds);
    meter.clear('gateway_source_paused');
    for (const { project_id: project, id: source, is_paused: isPaused } of configCache.sources)
      if (isPaused) meter.set('gateway_source_paused', { project, source }, 1);
  });
}
