import type { Labels, Metrics } from '@gateway/plugin';

/** What the author of a metrics backend gives to the conformance suite. */
export interface MetricsRig<Settings = Record<string, unknown>> {
  /** The settings for one start of the backend. Called for every rule, so that each can push to a place of its own. */
  settings(): Settings | Promise<Settings>;
  /**
   * For a backend that pushes: everything that has arrived with these settings, after `metrics` has sent what it still has, unless it was closed.
   * Omit it if `expose` returns the Prometheus text format, which the suite reads itself.
   */
  read?(metrics: Metrics, settings: Settings): Promise<readonly Family[]>;
  /** Ends everything that the rig has opened. */
  close?(): Promise<void>;
}

/** One series as it was read. */
export interface Family {
  readonly name: string;
  /** Omitted if the backend does not carry it. */
  readonly type?: string;
  readonly help?: string;
  /** Of a histogram: `<name>_bucket` with the label `le`, cumulative, `<name>_sum` and `<name>_count`. */
  readonly samples: readonly Sample[];
}

export interface Sample {
  readonly name: string;
  readonly labels: Labels;
  readonly value: number;
}
