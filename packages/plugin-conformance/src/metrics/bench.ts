import type { Labels, Metrics, MetricsHost, MetricsPlugin, Series } from '@gateway/plugin';
import { blaming } from '../run/blame.js';
import { must, type Rule } from '../run/rule.js';
import { Bench } from '../run/run-rules.js';
import { readExposition, type Family } from './exposition.js';

export type MetricsRule = Rule<MetricsRig, MetricsBench>;

/** A table with every type of series, as the gateway has one. */
export const table: Readonly<Record<string, Series>> = {
  conformance_messages_total: { type: 'counter', labels: ['project', 'source'], help: 'Messages, counted.' },
  conformance_recovered_total: { type: 'counter', labels: [], help: 'Without labels.' },
  conformance_backlog: { type: 'gauge', labels: ['project', 'status'], help: 'Deliveries that wait.', fold: 'sum' },
  conformance_age_seconds: { type: 'gauge', labels: ['project'], help: 'Age of the oldest.', fold: 'max' },
  conformance_latency_seconds: { type: 'histogram', labels: ['project'], help: 'From here to there.', buckets: [0.1, 1, 10] },
};

const ignore = () => undefined;
export const quietHost: MetricsHost = {
  collect: () => Promise.resolve(),
  log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
};

/** What a rule of the metrics suite works with. `close` closes the backends that the rule has started. */
export class MetricsBench extends Bench<MetricsPlugin, MetricsRig> {
  /** Starts the backend; `read` returns what it shows: read from `expose`, or by the rig. */
  async start(host = quietHost) {
    const settings = await this.rig.settings();
    const starting = Promise.resolve().then(() => this.plugin.start(table, settings, host));
    this.cleanup(async () => (await starting).close?.());
    const metrics = await starting;
    const read = async () =>
      this.rig.read ? this.rig.read(blaming(metrics, 'plugin'), settings, table) : readExposition((await metrics.expose()).body);
    return { metrics, read: async () => new Shown(await read()) };
  }
}

/** What a metrics backend shows at one time. */
export class Shown {
  constructor(readonly families: readonly Family[]) {}

  samples(name: string, suffix = ''): Family['samples'] {
    return this.families.find((family) => family.name === name)?.samples.filter((sample) => sample.name === `${name}${suffix}`) ?? [];
  }

  expect(name: string, labels: Labels, value: number, suffix = ''): void {
    const samples = this.samples(name, suffix);
    const found = samples.find((sample) => isSame(sample.labels, labels));
    const where = `${name}${suffix}${JSON.stringify(labels)}`;
    must(found !== undefined, `${where} is not shown; shown are ${JSON.stringify(samples.map((sample) => sample.labels)).slice(0, 300)}`);
    must(Math.abs(found.value - value) < 1e-9, `${where} is ${value}, and ${found.value} is shown`);
  }

  /** Requires that no sample has the label `project="p1"`. */
  expectNoP1(name: string, reason: string): void {
    must(!this.samples(name).some(({ labels }) => labels['project'] === 'p1'), reason);
  }
}

/** Bounds of buckets are numbers: 1 and 1.0 are the same. */
function isSame(given: Labels, wanted: Labels): boolean {
  const names = Object.keys(wanted);
  const equal = (name: string) => given[name] === wanted[name] || (name === 'le' && Number(given[name]) === Number(wanted[name]));
  return Object.keys(given).length === names.length && names.every(equal);
}

/** What the author of a metrics backend gives to the conformance suite. */
export interface MetricsRig<Settings = Record<string, unknown>> {
  /** The settings for one start of the backend. Called for every rule, so that each can push to a place of its own. */
  settings(): Settings | Promise<Settings>;
  /**
   * For a backend that pushes: everything that has arrived with these settings, after `metrics` has sent what it still has, unless it was closed.
   * `series` is the table that the backend was started with: it has the bounds of histograms whose values the protocol sends as they are.
   * Omit `read` if `expose` returns the Prometheus text format, which the suite reads itself.
   */
  read?(metrics: Metrics, settings: Settings, series: Readonly<Record<string, Series>>): Promise<readonly Family[]>;
  /** The parts of a histogram that arrive; all three by default. Without `bucket` if the protocol has no buckets, or others than those of the table. */
  readonly histogram?: readonly ('bucket' | 'sum' | 'count')[];
  /**
   * What arrives in place of a label value, for example with `_` for a character that the protocol cannot carry; undefined if nothing has to arrive. As given by
   * default. What the protocol escapes is undone by `read`.
   */
  carried?(value: string): string | undefined;
  /** Ends everything that the rig has opened. */
  close?(): Promise<void>;
}
