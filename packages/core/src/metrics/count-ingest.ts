import type { Meter } from './meter.js';

/**
 * Counts messages, or events that the API was to create, by their ends: `failed` are those in quarantine, and those that could not be stored. All series in one
 * go: nobody ever sees a total that is not the sum of its parts.
 */
export function countIngest(
  meter: Meter,
  labels: { readonly project: string; readonly source: string },
  {
    accepted = 0,
    duplicate = 0,
    dropped = 0,
    failed = 0,
  }: Readonly<Partial<Record<'accepted' | 'duplicate' | 'dropped' | 'failed', number>>>,
): void {
  const success = accepted + duplicate + dropped;
  meter.add('gateway_ingest_total', labels, success + failed);
  // Also those at zero: a rate of errors over a series that is not there yet would be nothing rather than 0.
  meter.add('gateway_ingest_success', labels, success);
  meter.add('gateway_ingest_error', labels, failed);
  if (duplicate > 0) meter.add('gateway_ingest_duplicate_total', labels, duplicate);
  if (dropped > 0) meter.add('gateway_ingest_dropped_total', labels, dropped);
}
