import type { Labels, Metrics, MetricsPlugin, Series } from '@gateway/plugin';
import { sampleLines } from './text-format.js';

/** The settings of `settings.json`, by the part of their keys after `metrics.__NAME___metrics.` */
export interface Settings {
  readonly prefix: string;
}

/** The values of a series by label set; for a histogram the counts by bucket, the last being +Inf. */
export interface Sample {
  readonly labels: Labels;
  value: number;
  readonly buckets: number[];
}

/** The example: keeps the values and writes them as text at `GET /metrics`. A back end that pushes sends them instead, and exposes a comment. */
const plugin: MetricsPlugin<Settings> = { start: (series, settings) => Promise.resolve(start(series, settings)) };

export default plugin;

function start(series: Readonly<Record<string, Series>>, { prefix }: Settings): Metrics {
  const samples = new Map<string, Map<string, Sample>>(Object.keys(series).map((name) => [name, new Map()]));
  const sampleOf = (name: string, type: Series['type'], labels: Labels): Sample => {
    const row = series[name];
    const known = samples.get(name);
    if (row?.type !== type || !known) throw new Error(`${name} is not a ${type} of the table of series`);
    const ordered = Object.fromEntries(row.labels.map((label) => [label, labels[label] ?? '']));
    const key = JSON.stringify(ordered);
    let sample = known.get(key);
    if (!sample)
      known.set(key, (sample = { labels: ordered, value: 0, buckets: new Array<number>((row.buckets?.length ?? 0) + 1).fill(0) }));
    return sample;
  };
  return {
    add(name, labels, amount) {
      sampleOf(name, 'counter', labels).value += amount;
    },
    set(name, labels, value) {
      sampleOf(name, 'gauge', labels).value = value;
    },
    observe(name, labels, value) {
      const sample = sampleOf(name, 'histogram', labels);
      const bounds = series[name]?.buckets ?? [];
      const found = bounds.findIndex((bound) => value <= bound);
      sample.value += value;
      sample.buckets[found === -1 ? bounds.length : found]! += 1;
    },
    clear(name) {
      samples.get(name)?.clear();
    },
    expose() {
      const lines = Object.entries(series).flatMap(([name, row]) =>
        sampleLines(prefix + name, row, [...(samples.get(name)?.values() ?? [])]),
      );
      return Promise.resolve({ contentType: 'text/plain; version=0.0.4; charset=utf-8', body: `${lines.join('\n')}\n` });
    },
  };
}
