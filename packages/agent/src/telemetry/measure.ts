import type { Meter } from '@gateway/core/metrics';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Outcome } from '@gateway/plugin';
import type { AttemptRecord, WaitReason } from '@gateway/store/deliveries';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import { ingestTally } from './ingest-counters.js';
import type { IngestSource } from '../model/ingest-source.js';

// Label sets are made once, not for every value that is observed.
const STEPS = {
  throttle: { step: 'throttle' },
  transform: { step: 'transform' },
  commit: { step: 'commit' },
  route: { step: 'route' },
  wait: { step: 'wait' },
  request: { step: 'request' },
  record: { step: 'record' },
} as const;
const BATCHES = {
  transform: { batch: 'transform' },
  commit: { batch: 'commit' },
  route: { batch: 'route' },
  record: { batch: 'record' },
} as const;
const OVER = { success: { outcome: 'success' }, failure: { outcome: 'failure' }, discarded: { outcome: 'discarded' } } as const;

/** What the way of a message tells the metrics. Moments are of the monotonic clock, `performance.now()`. */
export interface Measure {
  /** A message has settled. `receivedAtMs` is when its source handed it over. */
  settled(source: IngestSource, outcome: Outcome, receivedAtMs: number): void;
  /** Messages were put in quarantine. */
  quarantined(messages: readonly QuarantinedMessage[]): void;
  /** A step has ended that began at `sinceMs`. */
  step(step: keyof typeof STEPS, sinceMs: number, untilMs?: number): void;
  /** One statement or call took so many together. */
  batch(batch: keyof typeof BATCHES, size: number): void;
  /** A batch of messages of the source has passed its function. */
  transformed(source: IngestSource, size: number, sinceMs: number): void;
  /** A call of the source's function has ended its process. */
  overran(source: IngestSource): void;
  /** Attempts are on record. `isOver` tells whether this agent's word about the delivery is the last one. */
  recorded(attempts: readonly AttemptRecord[], isOver: (attempt: AttemptRecord) => boolean): void;
  /** Deliveries of an endpoint were put off without an attempt. */
  putOff(endpoint: { readonly projectId: string; readonly id: string }, reason: WaitReason, deliveries: number): void;
  /** The circuit breaker of an endpoint has opened. */
  tripped(endpoint: { readonly projectId: string; readonly endpointId: string }): void;
  /** Deliveries of a dead agent move again. */
  recovered(deliveries: number): void;
  /** Events whose signal was lost were routed. */
  reconciled(events: number): void;
}

/** Undefined while nobody looks at metrics, so that the way of a message takes no time for them and reads no clock. */
export function measuring({ meter, metrics }: Pick<ActivatedPlugins, 'meter' | 'metrics'>): Measure | undefined {
  if (!metrics) return undefined;
  const tally = ingestTally(meter);
  const step: Measure['step'] = (name, sinceMs, untilMs = performance.now()) =>
    meter.observe('gateway_step_duration_seconds', STEPS[name], (untilMs - sinceMs) / 1000);
  return {
    settled: tally,
    step,
    batch: (name, size) => meter.observe('gateway_batch_size', BATCHES[name], size),
    quarantined(messages) {
      for (const { projectId, sourceId, code } of messages)
        meter.add('gateway_ingest_quarantined_total', { project: projectId, source: sourceId, reason: code });
    },
    transformed(source, size, sinceMs) {
      const untilMs = performance.now();
      step('transform', sinceMs, untilMs);
      meter.observe('gateway_batch_size', BATCHES.transform, size);
      meter.observe('gateway_transform_duration_seconds', { project: source.projectId, source: source.id }, (untilMs - sinceMs) / 1000);
    },
    overran: (source) => meter.add('gateway_transform_overruns_total', { project: source.projectId, source: source.id }),
    recorded: (attempts, isOver) => countAttempts(meter, attempts, isOver),
    putOff: ({ projectId: project, id: endpoint }, reason, deliveries) =>
      meter.add('gateway_deliveries_postponed_total', { project, endpoint, reason }, deliveries),
    tripped: ({ projectId: project, endpointId: endpoint }) => meter.add('gateway_endpoint_breaker_trips_total', { project, endpoint }),
    recovered: (deliveries) => meter.add('gateway_deliveries_recovered_total', {}, deliveries),
    reconciled: (events) => meter.add('gateway_events_recovered_total', {}, events),
  };
}

function countAttempts(meter: Meter, attempts: readonly AttemptRecord[], isOver: (attempt: AttemptRecord) => boolean): void {
  const counts = new Map<string, { readonly labels: { project: string; outcome: string }; attempts: number }>();
  for (const attempt of attempts) {
    const { projectId: project, endpointId: endpoint, status: outcome } = attempt;
    const key = `${project}\n${outcome}`;
    const count = counts.get(key);
    if (count) count.attempts++;
    else counts.set(key, { labels: { project, outcome }, attempts: 1 });
    if (attempt.status === 'retry' || !isOver(attempt)) continue;
    meter.observe('gateway_delivery_attempt_count', OVER[attempt.status], attempt.number);
    // A message whose broker told no time stands at the epoch.
    if (attempt.status !== 'success' || attempt.occurredAtMs <= 0) continue;
    const seconds = (attempt.requestedAtMs + attempt.durationMs - attempt.occurredAtMs) / 1000;
    meter.observe('gateway_end_to_end_latency', { project, endpoint }, Math.max(0, seconds));
  }
  for (const { labels, attempts: made } of counts.values()) meter.add('gateway_deliveries_attempted_total', labels, made);
}
