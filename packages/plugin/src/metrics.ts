import type { PluginLog } from './source.js';

/** One row of the table of series. Core declares the rows; a backend only shows them. */
export interface Series {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds of a histogram, in the unit of its name (seconds). */
  readonly buckets?: readonly number[];
  /** How core puts the gauges of label sets beyond `metrics.max_label_sets` together before they reach a backend; the sum without one. */
  readonly fold?: 'sum' | 'max';
}

export type Labels = Readonly<Record<string, string>>;

/**
 * The life of a metrics plugin: `start` is given the table of series and returns the verbs. `expose` makes the text of `GET /metrics`; a backend that
 * pushes returns a body with nothing but a comment line that says where it pushes to, calls `collect` of its host before each push, and sends what is left
 * in `close`. What a backend keeps open must not keep the process alive. The rules of `metricsConformance` say the same one by one.
 */
export interface MetricsPlugin<Settings = Record<string, unknown>> {
  start(series: Readonly<Record<string, Series>>, settings: Settings, host: MetricsHost): Promise<Metrics>;
}

/** What the gateway does for a backend. */
export interface MetricsHost {
  /**
   * Sets the gauges of the moment, which nobody sets unless somebody looks. A backend that pushes calls it before each push; before `expose` and `close`
   * the gateway does it itself. Never rejects.
   */
  collect(): Promise<void>;
  readonly log: PluginLog;
}

/** A name that is not in the table, or is of another type there, is a mistake of the caller: each verb that takes a value throws. */
export interface Metrics {
  /** Adds to a counter. */
  add(name: string, labels: Labels, amount: number): void;
  /** Sets a gauge. */
  set(name: string, labels: Labels, value: number): void;
  /** Observes a value of a histogram. */
  observe(name: string, labels: Labels, value: number): void;
  /** Forgets every label set of a series, before it is set anew from a sample. */
  clear(name: string): void;
  expose(): Promise<{ contentType: string; body: string }>;
  /**
   * Sends what was not sent yet and lets go of everything, when the process ends. A backend that is pulled needs none. It has a few seconds; one that fails
   * is logged.
   */
  close?(): Promise<void>;
}
