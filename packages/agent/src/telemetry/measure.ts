import { countIngest, type Meter } from '@gateway/core/metrics/meter';
import type { ActivatedPlugins } from '@gateway/core/plugins';
import type { Outcome } from '@gateway/plugin';
import type { AttemptRecord, WaitReason } from '@gateway/store/deliveries';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { IngestSource } from '@gateway/ingest/message/ingest-source';

/** Created once per value instead of per observation. */
const labelSets = <Name extends string, Value extends string>(name: Name, ...values: Value[]) =>
  Object.fromEntries(values.map((value) => [value, { [name]: value }])) as Record<
    Value,
    Record<Name, Value>
  >;

const STEPS = labelSets(
  'step',
  'throttle',
  'transform',
  'commit',
  'route',
  'wait',
  'request',
  'record',
);
const BATCHES = labelSets('batch', 'transform', 'commit', 'route', 'record');
const OVER = labelSets('outcome', 'success', 'failure', 'discarded');

/** Times are on the monotonic clock. */
export type Measure = NonNullable<ReturnType<typeof measuring>>;

/** Undefined if metrics are off. */
export function measuring({ meter, metrics }: Pick<ActivatedPlugins, 'meter' | 'metrics'>) {
  if (!metrics) return undefined;
  const step = (name: keyof typeof STEPS, sinceMs: number, untilMs = performance.now()): void =>
    meter.observe('gateway_step_duration_seconds', STEPS[name], (untilMs - sinceMs) / 1000);
  return {
    settled: ingestTally(meter),
    step,
    batch: (name: keyof typeof BATCHES, size: number) =>
      meter.observe('gateway_batch_size', BATCHES[name], size),
    quarantined(messages: readonly QuarantinedMessage[]) {
      for (const { projectId, sourceId, code } of messages)
        meter.add('gateway_ingest_quarantined_total', {
          project: projectId,
          source: sourceId,
          reason: code,
        });
    },
    transformed({ projectId: project, id: source }: IngestSource, size: number, sinceMs: number) {
      const untilMs = performance.now();
      step('transform', sinceMs, untilMs);
      meter.observe('gateway_batch_size', BATCHES.transform, size);
      meter.observe(
        'gateway_transform_duration_seconds',
        { project, source },
        (untilMs - sinceMs) / 1000,
      );
    },
    overran: ({ projectId: project, id: source }: IngestSource) =>
      meter.add('gateway_transform_overruns_total', { project, source }),
    recorded: (attempts: readonly AttemptRecord[], isOver: (attempt: AttemptRecord) => boolean) =>
      countAttempts(meter, attempts, isOver),
    postponed: (
      { projectId: project, id: endpoint }: { projectId: string; id: string },
      reason: WaitReason,
      deliveries: number,
    ) => meter.add('gateway_deliveries_postponed_total', { project, endpoint, reason }, deliveries),
    tripped: ({
      projectId: project,
      endpointId: endpoint,
    }: {
      projectId: string;
      endpointId: string;
    }) => meter.add('gateway_endpoint_breaker_trips_total', { project, endpoint }),
    recovered: (deliveries: number) =>
      meter.add('gateway_deliveries_recovered_total', {}, deliveries),
    reconciled: (events: number) => meter.add('gateway_events_recovered_total', {}, events),
  };
}

function countAttempts(
  meter: Meter,
  attempts: readonly AttemptRecord[],
  isOver: (attempt: AttemptRecord) => boolean,
): void {
  const counts = new Map<
    string,
    { readonly labels: { project: string; outcome: string }; attempts: number }
  >();
  for (const attempt of attempts) {
    const { projectId: project, endpointId: endpoint, status: outcome } = attempt;
    const key = `${project}\n${outcome}`;
    const count = counts.get(key);
    if (count) count.attempts++;
    else counts.set(key, { labels: { project, outcome }, attempts: 1 });
    if (attempt.status === 'retry' || !isOver(attempt)) continue;
    meter.observe('gateway_delivery_attempt_count', OVER[attempt.status], attempt.number);
    // The latency is unknown if the broker provided no timestamp.
    if (attempt.status !== 'success' || attempt.occurredAtMs <= 0) continue;
    const seconds = (attempt.requestedAtMs + attempt.durationMs - attempt.occurredAtMs) / 1000;
    meter.observe('gateway_end_to_end_latency', { project, endpoint }, Math.max(0, seconds));
  }
  for (const { labels, attempts: made } of counts.values())
    meter.add('gateway_deliveries_attempted_total', labels, made);
}

interface Tally {
  readonly labels: { readonly project: string; readonly source: string };
  readonly latencyLabels: { readonly project: string };
  accepted: number;
  duplicate: number;
  dropped: number;
  quarantined: number;
}

/** Commits settle many messages at once, so the counts are reported once per event-loop turn. */
function ingestTally(
  meter: Meter,
): (source: IngestSource, outcome: Outcome, receivedAtMs: number) => void {
  const tallies = new Map<IngestSource, Tally>();
  const tell = () => {
    for (const { labels, quarantined: failed, ...counts } of tallies.values())
      countIngest(meter, labels, { ...counts, failed });
    tallies.clear();
  };
  return (source, outcome, receivedAtMs) => {
    // The broker redelivers the message, which counts once it is decided.
    if (outcome === 'later') return;
    if (tallies.size === 0) setImmediate(tell);
    let tally = tallies.get(source);
    if (!tally) tallies.set(source, (tally = newTally(source)));
    tally[outcome]++;
    if (outcome === 'accepted')
      meter.observe(
        'gateway_ingest_latency',
        tally.latencyLabels,
        (performance.now() - receivedAtMs) / 1000,
      );
  };
}

function newTally({ projectId: project, id: source }: IngestSource): Tally {
  return {
    labels: { project, source },
    latencyLabels: { project },
    accepted: 0,
    duplicate: 0,
    dropped: 0,
    quarantined: 0,
  };
}
