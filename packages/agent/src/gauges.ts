import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Sandbox } from '@gateway/sandbox';
import type { PausableSource } from '@gateway/store/config';
import type { AgentContext } from './config/agent-context.js';
import type { DeliveriesInFlight } from './delivery/in-flight.js';
import type { Gates } from './flow-control/gates.js';
import type { CircuitBreakers } from './flow-control/circuit-breakers.js';
import type { SourceLags } from './sources/source-lags.js';

interface ShownAgent {
  readonly sandbox: Pick<Sandbox, 'processes'>;
  readonly circuitBreakers: Pick<CircuitBreakers, 'notClosed'>;
  readonly configCache: {
    readonly sources: readonly Pick<PausableSource, 'project_id' | 'id' | 'is_paused'>[];
  };
}

export interface ShownWorker {
  readonly inFlight: Pick<DeliveriesInFlight, 'counts'>;
  readonly gates: Pick<Gates, 'saturatedQueues'>;
  readonly lags: Pick<SourceLags, 'lags' | 'ages'>;
  readonly clock: Pick<AgentContext['clock'], 'offsetMs'>;
}

const BREAKER_STATES = { half_open: 1, open: 2 } as const;

const REPLACED = [
  'gateway_endpoint_breaker_state',
  'gateway_endpoint_slow',
  'gateway_source_lag_messages',
  'gateway_source_last_message_age_seconds',
  'gateway_source_paused',
] as const;

/**
 * Updates the gauges of this agent on each scrape. Returns a function that stops the updates.
 *
 * @param workers returns the workers that run now
 */
export function showGauges(
  { meter }: Pick<ActivatedPlugins, 'meter'>,
  { sandbox, circuitBreakers, configCache }: ShownAgent,
  workers: () => readonly ShownWorker[],
): () => void {
  return meter.collect(() => {
    const shown = workers();
    const counts = shown.map(({ inFlight }) => inFlight.counts());
    const sum = (state: keyof (typeof counts)[number]) =>
      counts.reduce((total, of) => total + of[state], 0);
    meter.set('gateway_deliveries_held', { state: 'waiting' }, sum('waiting'));
    meter.set('gateway_deliveries_held', { state: 'under_way' }, sum('sending'));
    meter.set('gateway_deliveries_held', { state: 'recording' }, sum('recording'));
    meter.set('gateway_sandbox_processes', {}, sandbox.processes);
    for (const series of REPLACED) meter.clear(series);
    for (const { projectId: project, endpointId: endpoint, state } of circuitBreakers.notClosed())
      meter.set('gateway_endpoint_breaker_state', { project, endpoint }, BREAKER_STATES[state]);
    for (const { project_id: project, id: source, is_paused: isPaused } of configCache.sources)
      if (isPaused) meter.set('gateway_source_paused', { project, source }, 1);
    for (const { gates, lags, clock } of shown) {
      meter.set('gateway_clock_offset_seconds', {}, clock.offsetMs / 1000);
      for (const { projectId: project, endpointId: endpoint } of gates.saturatedQueues())
        meter.set('gateway_endpoint_slow', { project, endpoint }, 1);
      for (const { projectId: project, sourceId: source, partition, messages } of lags.lags())
        meter.set('gateway_source_lag_messages', { project, source, partition }, messages);
      for (const { projectId: project, sourceId: source, seconds } of lags.ages())
        meter.set('gateway_source_last_message_age_seconds', { project, source }, seconds);
    }
  });
}
