import type { Metrics, MetricsPlugin, Series } from '@gateway/plugin';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { renderer, type Metric } from './render.js';

/**
 * A metrics backend that serves the Prometheus text format:
 * https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
 */
const plugin: MetricsPlugin = { start: (series) => Promise.resolve(start(series)) };

export default plugin;

function start(series: Readonly<Record<string, Series>>): Metrics {
  const metrics = new Map(Object.entries(series).map(([name, row]) => [name, metricOf(name, row)]));
  const find = <Type extends Metric>(
    name: string,
    type: new (...options: never[]) => Type,
  ): Type => {
    const metric = metrics.get(name);
    if (!(metric instanceof type))
      throw new Error(`${name} is not a ${type.name.toLowerCase()} of the table of series`);
    return metric;
  };
  const render = renderer(metrics, series);
  return {
    add: (name, labels, amount) => find(name, Counter).inc(labels, amount),
    set: (name, labels, value) => find(name, Gauge).set(labels, value),
    observe: (name, labels, value) => find(name, Histogram).observe(labels, value),
    clear: (name) => metrics.get(name)?.reset(),
    expose: async () => ({ contentType: Registry.PROMETHEUS_CONTENT_TYPE, body: await render() }),
  };
}

function metricOf(name: string, { type, help, labels, buckets }: Series): Metric {
  const options = { name, help, labelNames: [...labels], registers: [] };
  if (type === 'counter') return new Counter(options);
  if (type === 'gauge') return new Gauge(options);
  return new Histogram({ ...options, ...(buckets && { buckets: [...buckets] }) });
}
