import type { Labels, Metrics, MetricsHost, MetricsPlugin, Series } from '@gateway/plugin';
import { blaming } from '../run/blame.js';
import { must, type Rule } from '../run/rule.js';
import { Bench } from '../run/run-rules.js';
import { readExposition, type Family } from './exposition.js';

export type MetricsRule = Rule<MetricsRig, MetricsBench>;

/** A table with every type of series, in the form of the gateway's own table. */
export const table: Readonly<Record<string, Series>> = {
  conformance_messages_total: {
    type: 'counter',
    labels: ['project', 'source'],
    help: 'Messages, counted.',
  },
  conformance_recovered_total: { type: 'counter', labels: [], help: 'Without labels.' },
  conformance_backlog: {
    type: 'gauge',
    labels: ['project', 'status'],
    help: 'Deliveries that wait.',
    fold: 'sum',
  },
  conformance_age_seconds: {
    type: 'gauge',
    labels: ['project'],
    help: 'Age of the oldest.',
    fold: 'max',
  },
  conformance_latency_seconds: {
    type: 'histogram',
    labels: ['project'],
    help: 'From here to there.',
    buckets: [0.1, 1, 10],
  },
};

const ignore = () => undefined;
export const quietHost: MetricsHost = {
  collect: () => Promise.resolve(),
  log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
};

/** The context for testing a metrics rule. `close` closes the backends that the rule started. */
export class MetricsBench extends Bench<MetricsPlugin, MetricsRig> {
  /**
   * Starts the backend. The returned `read` gets its output through `rig.read`, or from `expose` if
   * the rig has none.
   */
  async start(host = quietHost) {
    const settings = await this.rig.settings();
    const starting = Promise.resolve().then(() => this.plugin.start(table, settings, host));
    this.cleanup(async () => (await starting).close?.());
    const metrics = await starting;
    const read = async () =>
      this.rig.read
        ? this.rig.read(blaming(metrics, 'plugin'), settings, table)
        : readExposition((await metrics.expose()).body);
    return { metrics, read: async () => new ShownSeries(await read()) };
  }
}

/** The series that a backend exposes. */
export class ShownSeries {
  constructor(readonly families: readonly Family[]) {}

  samples(name: string, suffix = ''): Family['samples'] {
    return (
      this.families
        .find((family) => family.name === name)
        ?.samples.filter((sample) => sample.name === `${name}${suffix}`) ?? []
    );
  }

  expect(name: string, labels: Labels, value: number, suffix = ''): void {
    const samples = this.samples(name, suffix);
    const found = samples.find((sample) => isSame(sample.labels, labels));
    const where = `${name}${suffix}${JSON.stringify(labels)}`;
    must(
      found !== undefined,
      `${where} is not shown; shown are ${JSON.stringify(samples.map((sample) => sample.labels)).slice(0, 300)}`,
    );
    must(Math.abs(found.value - value) < 1e-9, `${where} is ${value}, and ${found.value} is shown`);
  }

  expectNoP1(name: string, reason: string): void {
    must(!this.samples(name).some(({ labels }) => labels['project'] === 'p1'), reason);
  }
}

/**
 * Returns whether two label sets are equal. Bucket bounds are compared as numbers: 1 equals 1.0.
 */
function isSame(given: Labels, wanted: Labels): boolean {
  const names = Object.keys(wanted);
  const equal = (name: string) =>
    given[name] === wanted[name] || (name === 'le' && Number(given[name]) === Number(wanted[name]));
  return Object.keys(given).length === names.length && names.every(equal);
}

/** The rig for testing a metrics backend. */
export interface MetricsRig<Settings = Record<string, unknown>> {
  /**
   * Returns the settings for one start of the backend, so that each start can push to a separate
   * destination.
   */
  settings(): Settings | Promise<Settings>;
  /**
   * Returns everything that a push backend sent with these settings and, if `metrics` is not
   * closed, values it has not sent yet. `series` is the backend's table, whose bucket bounds are
   * needed if histograms are sent as raw values. Omit `read` if `expose` returns the Prometheus
   * text format, which the suite reads itself.
   */
  read?(
    metrics: Metrics,
    settings: Settings,
    series: Readonly<Record<string, Series>>,
  ): Promise<readonly Family[]>;
  /**
   * The parts of a histogram that the backend receives. Default: all. Omit `bucket` if the protocol
   * has no buckets or uses different bucket bounds.
   */
  readonly histogram?: readonly ('bucket' | 'sum' | 'count')[];
  /**
   * Returns a label value as the backend receives it, such as with `_` for an unsupported
   * character, or undefined if it need not arrive. By default, values must arrive unchanged. `read`
   * must undo escapes.
   */
  carried?(value: string): string | undefined;
  close?(): Promise<void>;
}
