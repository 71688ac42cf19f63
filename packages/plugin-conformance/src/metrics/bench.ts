import type { Labels, Metrics, MetricsHost, MetricsPlugin, Series } from '@gateway/plugin';
import { must, type Rule } from '../run/rule.js';
import { Bench } from '../run/run-rules.js';
import { readExposition } from './exposition.js';
import type { Family, MetricsRig } from './rig.js';

export type MetricsRule = Rule<MetricsRig, MetricsBench>;

/** A table with every type of series, as the gateway has one. */
export const table: Readonly<Record<string, Series>> = {
  conformance_messages_total: { type: 'counter', labels: ['project', 'source'], help: 'Messages, counted.' },
  conformance_recovered_total: { type: 'counter', labels: [], help: 'Without labels.' },
  conformance_backlog: { type: 'gauge', labels: ['project', 'status'], help: 'Deliveries that wait.', fold: 'sum' },
  conformance_age_seconds: { type: 'gauge', labels: ['project'], help: 'Age of the oldest.', fold: 'max' },
  conformance_latency_seconds: { type: 'histogram', labels: ['project'], help: 'From here to there.', buckets: [0.1, 1, 10] },
};
export const [MESSAGES, RECOVERED, BACKLOG, AGE, LATENCY] = Object.keys(table) as [string, string, string, string, string];
/** Labels of `MESSAGES`. */
export const P1S1: Labels = { project: 'p1', source: 's1' };

const ignore = () => undefined;
export const quietHost: MetricsHost = {
  collect: () => Promise.resolve(),
  log: { debug: ignore, info: ignore, warn: ignore, error: ignore },
};

/** A started backend. */
export interface StartedMetrics {
  readonly metrics: Metrics;
  /** What the backend shows: read from `expose`, or by the rig. */
  read(): Promise<Shown>;
}

/** What a rule of a metrics backend works with. */
export class MetricsBench extends Bench<MetricsPlugin, MetricsRig> {
  async start(host = quietHost): Promise<StartedMetrics> {
    const settings = await this.rig.settings();
    const metrics = await this.plugin.start(table, settings, host);
    const read = async () => (this.rig.read ? this.rig.read(metrics, settings) : readExposition((await metrics.expose()).body));
    return { metrics, read: async () => new Shown(await read()) };
  }
}

/** Uses every series once. */
export function useAll(metrics: Metrics): void {
  metrics.add(MESSAGES, P1S1, 1);
  metrics.add(RECOVERED, {}, 1);
  metrics.set(BACKLOG, { project: 'p1', status: 'pending' }, 1);
  metrics.set(AGE, { project: 'p1' }, 1);
  metrics.observe(LATENCY, { project: 'p1' }, 1);
}

/** What a backend shows at one time. */
export class Shown {
  readonly families: readonly Family[];

  constructor(families: readonly Family[]) {
    this.families = families;
  }

  samples(name: string, suffix = ''): Family['samples'] {
    return this.families.find((family) => family.name === name)?.samples.filter((sample) => sample.name === `${name}${suffix}`) ?? [];
  }

  /** Requires a sample of this value. */
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
