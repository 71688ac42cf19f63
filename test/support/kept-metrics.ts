import { createMeter, type Meter } from '#core/metrics/meter';
import type { ActivatedPlugins } from '#core/plugins/activation';
import type { Labels, Metrics } from '@gateway/plugin';

export interface Told {
  readonly labels: Labels;
  /** A counter's sum, a gauge's last value, or the sum of a histogram's observations. */
  readonly value: number;
  /** The number of recorded values. */
  readonly count: number;
}

/** A metrics backend with the basic verbs, and its recordings. */
export interface KeptMetrics extends Required<Pick<ActivatedPlugins, 'meter' | 'metrics'>> {
  readonly meter: Meter;
  all(name: string): Told[];
  /** The value of the label set that includes these labels; undefined without one. */
  value(name: string, labels?: Labels): number | undefined;
  /** Simulates a scrape: gauges read on demand are set. */
  scrape(): Promise<void>;
}

export function keptMetrics(): KeptMetrics {
  const kept = new Map<string, Map<string, { labels: Labels; value: number; count: number }>>();
  const put = (name: string, labels: Labels, change: (before: number) => number) => {
    const sets = kept.get(name) ?? new Map<string, Told>();
    kept.set(name, sets);
    const key = JSON.stringify(labels);
    const { value, count } = sets.get(key) ?? { value: 0, count: 0 };
    sets.set(key, { labels, value: change(value), count: count + 1 });
  };
  const backend: Metrics = {
    add: (name, labels, amount) => put(name, labels, (before) => before + amount),
    set: (name, labels, value) => put(name, labels, () => value),
    observe: (name, labels, value) => put(name, labels, (before) => before + value),
    clear: (name) => void kept.delete(name),
    expose: () => Promise.resolve({ contentType: 'text/plain', body: '' }),
  };
  const meter = createMeter(backend);
  const all = (name: string) => [...(kept.get(name)?.values() ?? [])];
  return {
    meter,
    metrics: { name: 'kept', sampleTimeSeconds: 5 },
    all,
    value: (name, wanted = {}) =>
      all(name).find(({ labels }) =>
        Object.entries(wanted).every(([label, value]) => labels[label] === value),
      )?.value,
    scrape: async () => void (await meter.expose()),
  };
}
