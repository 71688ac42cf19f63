import type { Outcome } from '@gateway/plugin';
import type { QuarantinedMessage } from '@gateway/store/quarantine';
import type { IngestSource } from './ingest-source.js';

/** What ingest reports to the metrics. Times are of the monotonic clock, `performance.now()`. */
export interface IngestMeasure {
  step(name: 'throttle' | 'route' | 'commit', sinceMs: number, untilMs?: number): void;
  /** One statement handled `size` together. */
  batch(name: 'route' | 'commit', size: number): void;
  transformed(source: IngestSource, size: number, sinceMs: number): void;
  overran(source: IngestSource): void;
  quarantined(messages: readonly QuarantinedMessage[]): void;
  settled(source: IngestSource, outcome: Outcome, receivedAtMs: number): void;
}
