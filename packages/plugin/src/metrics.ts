import type { PluginLog } from './source.js';

/** One row of the table of series. Core declares the rows; a backend shows them. */
export interface Series {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds of a histogram, in the unit of its name (seconds). */
  readonly buckets?: readonly number[];
  /** How core combines the gauges of label sets beyond `metrics.max_label_sets` before they reach a backend; `sum` by default. */
  readonly fold?: 'sum' | 'max';
}

export type Labels = Readonly<Record<string, string>>;

/**
 * `start` is given the table of series and returns the backend. `expose` makes the text of `GET /metrics`. A backend that pushes exposes only a comment line
 * that says where it pushes to, calls `host.collect` before each push, and sends the rest in `close`. Nothing that a backend keeps open may keep the process
 * alive. `metricsConformance` of `@gateway/plugin-conformance` tests these rules.
 */
export interface MetricsPlugin<Settings = Record<string, unknown>> {
  start(series: Readonly<Record<string, Series>>, settings: Settings, host: MetricsHost): Promise<Metrics>;
}

/** What the gateway does for a backend. */
export interface MetricsHost {
  /** Updates the gauges that are sampled on demand. A backend that pushes calls it before each push; before `expose` and `close` the gateway does. Never rejects. */
  collect(): Promise<void>;
  readonly log: PluginLog;
}

/** `add`, `set` and `observe` throw for a name that is not in the table or has another type there. */
export interface Metrics {
  /** Adds to a counter. */
  add(name: string, labels: Labels, amount: number): void;
  /** Sets a gauge. */
  set(name: string, labels: Labels, value: number): void;
  /** Observes a value of a histogram. */
  observe(name: string, labels: Labels, value: number): void;
  /** Removes every label set of a series, before a sample sets them again. */
  clear(name: string): void;
  expose(): Promise<{ contentType: string; body: string }>;
  /** Sends the rest and closes everything when the process ends, within a few seconds. A backend that is scraped needs none. A failure is logged. */
  close?(): Promise<void>;
}
