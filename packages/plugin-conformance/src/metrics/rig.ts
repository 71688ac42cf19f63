import type { Labels, Metrics } from '@gateway/plugin';

/** What the author of a metrics backend gives to the conformance suite. */
export interface MetricsRig<Settings = Record<string, unknown>> {
  /** The settings for one start of the backend. Called for every rule, so that a backend that pushes can give each a place of its own. */
  settings(): Settings | Promise<Settings>;
  /**
   * For a backend that pushes: everything that the place of these settings knows by now, with what is still waiting in `metrics` sent to it before, unless
   * that was closed.
   * Left out when `expose` gives the text of the Prometheus exposition, which the suite reads itself.
   */
  read?(metrics: Metrics, settings: Settings): Promise<readonly Family[]>;
  /** Ends everything that the rig has opened. */
  close?(): Promise<void>;
}

/** One series as it was read. */
export interface Family {
  readonly name: string;
  /** Left out where the backend does not carry it. */
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
