import type { Meter } from '@gateway/core';
import type { Outcome } from '@gateway/plugin';
import type { IntakeSource } from './intake-source.js';

interface Tally {
  readonly labels: { readonly project: string; readonly source: string };
  readonly latencyLabels: { readonly project: string };
  accepted: number;
  duplicate: number;
  dropped: number;
  quarantined: number;
}

/**
 * Counts what became of messages. They settle by the commit, so they are summed up in numbers and told to the metrics once per turn of the event loop, all
 * series of a source together: nobody ever sees a total that is not the sum of its parts.
 *
 * @returns what is to be called for each message that settles
 */
export function ingestTally(meter: Meter): (source: IntakeSource, outcome: Outcome, receivedAtMs: number) => void {
  const tallies = new Map<IntakeSource, Tally>();
  const tell = () => {
    for (const tally of tallies.values()) tellOne(meter, tally);
    tallies.clear();
  };
  return (source, outcome, receivedAtMs) => {
    // The broker delivers it again; it counts when it is decided.
    if (outcome === 'later') return;
    if (tallies.size === 0) setImmediate(tell);
    let tally = tallies.get(source);
    if (!tally) tallies.set(source, (tally = newTally(source)));
    tally[outcome]++;
    if (outcome === 'accepted') meter.observe('gateway_ingest_latency', tally.latencyLabels, (performance.now() - receivedAtMs) / 1000);
  };
}

function newTally({ projectId: project, id: source }: IntakeSource): Tally {
  return { labels: { project, source }, latencyLabels: { project }, accepted: 0, duplicate: 0, dropped: 0, quarantined: 0 };
}

function tellOne(meter: Meter, { labels, accepted, duplicate, dropped, quarantined }: Tally): void {
  const success = accepted + duplicate + dropped;
  meter.add('gateway_ingest_total', labels, success + quarantined);
  // Also those at zero: a rate of errors over a series that is not there yet would be nothing rather than 0.
  meter.add('gateway_ingest_success', labels, success);
  meter.add('gateway_ingest_error', labels, quarantined);
  if (duplicate > 0) meter.add('gateway_ingest_duplicate_total', labels, duplicate);
  if (dropped > 0) meter.add('gateway_ingest_dropped_total', labels, dropped);
}
