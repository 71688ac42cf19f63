import type { ActivatedPlugins } from '@gateway/core';
import type { Outcome } from '@gateway/plugin';
import type { AttemptRecord, QuarantinedMessage } from '@gateway/store';
import type { IntakeSource } from './intake-source.js';

/** Counts what became of a message. */
export function countMessage({ meter }: ActivatedPlugins, source: IntakeSource, outcome: Outcome, receivedAtMs: number): void {
  const labels = { project: source.projectId, source: source.id };
  switch (outcome) {
    case 'later':
      return;
    case 'quarantined':
      meter.add('gateway_ingest_total', labels);
      meter.add('gateway_ingest_error', labels);
      return;
    case 'duplicate':
      meter.add('gateway_ingest_duplicate_total', labels);
      break;
    case 'dropped':
      meter.add('gateway_ingest_dropped_total', labels);
      break;
    case 'accepted':
      meter.observe('gateway_ingest_latency', { project: source.projectId }, (performance.now() - receivedAtMs) / 1000);
      break;
  }
  meter.add('gateway_ingest_total', labels);
  meter.add('gateway_ingest_success', labels);
}

/** Counts messages that were put in quarantine, by the code of their reason. */
export function countQuarantined({ meter }: ActivatedPlugins, messages: readonly QuarantinedMessage[]): void {
  for (const message of messages)
    meter.add('gateway_ingest_quarantined_total', { project: message.projectId, source: message.sourceId, reason: message.code });
}

/** Counts attempts that are on record. */
export function countRecorded({ meter, metrics }: ActivatedPlugins, attempts: readonly AttemptRecord[]): void {
  if (!metrics) return;
  for (const attempt of attempts) {
    meter.add('gateway_deliveries_attempted_total', { project: attempt.projectId, outcome: attempt.status });
    if (attempt.status === 'success') {
      const seconds = (attempt.requestedAtMs + attempt.durationMs - attempt.occurredAtMs) / 1000;
      meter.observe('gateway_end_to_end_latency', { project: attempt.projectId, endpoint: attempt.endpointId }, Math.max(0, seconds));
    }
  }
}
