import type { PluginLog } from './source.js';

/** A metric series, declared by core and exposed by a backend. */
export interface Series {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /**
   * Upper bounds of the histogram buckets, in the series' own unit: seconds for durations,
   * otherwise a count.
   */
  readonly buckets?: readonly number[];
  /** The function that combines gauges beyond `metrics.max_label_sets`; `sum` by default. */
  readonly fold?: 'sum' | 'max';
}

export type Labels = Readonly<Record<string, string>>;

/**
 * A metrics plugin, whose `start` returns the backend. `expose` returns the body of `GET /metrics`.
 * A push backend exposes only a comment with its destination, calls `host.collect` before each
 * push, and sends the remaining samples in `close`. Open resources must not keep the process alive.
 * Tested by `metricsConformance` of `@gateway/plugin-conformance`.
 */
export interface MetricsPlugin<Settings = Record<string, unknown>> {
  start(
    series: Readonly<Record<string, Series>>,
    settings: Settings,
    host: MetricsHost,
  ): Promise<Metrics>;
}

/** The gateway's services for a backend. */
export interface MetricsHost {
  /**
   * Updates the gauges sampled on demand. A push backend calls it before each push; the gateway
   * calls it before `expose` and `close`. Never rejects.
   */
  collect(): Promise<void>;
  readonly log: PluginLog;
}

/** A metrics backend. `add`, `set` and `observe` throw for an unknown name or a wrong type. */
export interface Metrics {
  add(name: string, labels: Labels, amount: number): void;
  set(name: string, labels: Labels, value: number): void;
  observe(name: string, labels: Labels, value: number): void;
  /** Removes all label sets of a series before its next sample. */
  clear(name: string): void;
  expose(): Promise<{ contentType: string; body: string }>;
  /**
   * Sends the remaining samples and closes all resources within a few seconds. Optional for a
   * scraped backend. A failure is logged.
   */
  close?(): Promise<void>;
}
