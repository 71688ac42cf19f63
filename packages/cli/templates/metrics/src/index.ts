import type { MetricsPlugin } from '@gateway/plugin';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';

/** The settings in `settings.json`, by the part of their keys after `metrics.__NAME___metrics.`. */
export interface Settings {
  readonly prefix: string;
}

/**
 * An example that keeps values in memory and exposes them as text at `GET /metrics`. A backend that
 * pushes sends them instead, and exposes only a comment.
 */
const plugin: MetricsPlugin<Settings> = {
  async start(series, { prefix }) {
    const registry = new Registry();
    const [counters, gauges, histograms] = [
      new Map<string, Counter>(),
      new Map<string, Gauge>(),
      new Map<string, Histogram>(),
    ];
    for (const [name, { type, help, labels, buckets = [] }] of Object.entries(series)) {
      const options = { name: prefix + name, help, labelNames: [...labels], registers: [registry] };
      if (type === 'counter') counters.set(name, new Counter(options));
      if (type === 'gauge') gauges.set(name, new Gauge(options));
      if (type === 'histogram')
        histograms.set(name, new Histogram({ ...options, buckets: [...buckets] }));
    }
    return {
      add: (name, labels, amount) => known(counters, name).inc(labels, amount),
      set: (name, labels, value) => known(gauges, name).set(labels, value),
      observe: (name, labels, value) => known(histograms, name).observe(labels, value),
      clear: (name) => registry.getSingleMetric(prefix + name)?.reset(),
      expose: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
    };
  },
};

export default plugin;

function known<Metric>(metrics: ReadonlyMap<string, Metric>, name: string): Metric {
  const metric = metrics.get(name);
  if (!metric) throw new Error(`${name} is not in the table of series, or has another type there`);
  return metric;
}
