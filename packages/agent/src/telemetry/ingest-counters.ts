import { countIngest, type Meter } from '@gateway/core/metrics';
import type { Outcome } from '@gateway/plugin';
import type { IngestSource } from '../model/ingest-source.js';

interface Tally {
  readonly labels: { readonly project: string; readonly source: string };
  readonly latencyLabels: { readonly project: string };
  accepted: number;
  duplicate: number;
  dropped: number;
  quarantined: number;
}

/**
 * Counts what became of messages. They settle by the commit, so they are summed up in numbers and told to the metrics once per turn of the event loop.
 *
 * @returns what is to be called for each message that settles
 */
export function ingestTally(meter: Meter): (source: IngestSource, outcome: Outcome, receivedAtMs: number) => void {
  const tallies = new Map<IngestSource, Tally>();
  const tell = () => {
    for (const { labels, quarantined: failed, ...counts } of tallies.values()) countIngest(meter, labels, { ...counts, failed });
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

function newTally({ projectId: project, id: source }: IngestSource): Tally {
  return { labels: { project, source }, latencyLabels: { project }, accepted: 0, duplicate: 0, dropped: 0, quarantined: 0 };
}
