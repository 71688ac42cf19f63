import type { Meter } from './meter.js';

/** Counts messages, or events of the API, by outcome. Synchronous, so that a total is the sum of its parts. */
export function countIngest(
  meter: Meter,
  labels: { readonly project: string; readonly source: string },
  counts: Readonly<Partial<Record<'accepted' | 'duplicate' | 'dropped' | 'failed', number>>>,
): void {
  const { accepted = 0, duplicate = 0, dropped = 0, failed = 0 } = counts;
  const success = accepted + duplicate + dropped;
  meter.add('gateway_ingest_total', labels, success + failed);
  // Zeros too: the error rate of an absent series would be absent, not 0.
  meter.add('gateway_ingest_success', labels, success);
  meter.add('gateway_ingest_error', labels, failed);
  if (duplicate > 0) meter.add('gateway_ingest_duplicate_total', labels, duplicate);
  if (dropped > 0) meter.add('gateway_ingest_dropped_total', labels, dropped);
}
