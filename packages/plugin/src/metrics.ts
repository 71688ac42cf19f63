import type { PluginLog } from './source.js';

/** Declared by core and shown by a backend. */
export interface Series {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  /** Upper bounds, in the unit of the name (seconds). */
  readonly buckets?: readonly number[];
  /** The combination of gauges beyond `metrics.max_label_sets`; by default `sum`. */
  readonly fold?: 'sum' | 'max';
}

export type Labels = Readonly<Record<string, string>>;

/**
 * `start` returns the backend. `expose` returns the body of `GET /metrics`. A push backend exposes
 * only a comment with its destination, calls `host.collect` before each push, and sends the rest in
 * `close`. Open resources must not keep the process alive. `metricsConformance` of
 * `@gateway/plugin-conformance` tests these rules.
 */
export interface MetricsPlugin<Settings = Record<string, unknown>> {
  start(
    series: Readonly<Record<string, Series>>,
    settings: Settings,
    host: MetricsHost,
  ): Promise<Metrics>;
}

/** Services of the gateway for a backend. */
export interface MetricsHost {
  /**
   * Updates gauges sampled on demand. A push backend calls it before each push; the gateway, before
   * `expose` and `close`. Never rejects.
   */
  collect(): Promise<void>;
  readonly log: PluginLog;
}

/** `add`, `set` and `observe` throw for an unknown name or a wrong type. */
export interface Metrics {
  add(name: string, labels: Labels, amount: number): void;
  set(name: string, labels: Labels, value: number): void;
  observe(name: string, labels: Labels, value: number): void;
  /** Removes all label sets before the next sample. */
  clear(name: string): void;
  expose(): Promise<{ contentType: string; body: string }>;
  /**
   * Sends the rest and closes all resources within a few seconds. Not needed if scraped. A failure
   * is logged.
   */
  close?(): Promise<void>;
}
