import type { Metrics, MetricsPlugin, Series } from '@gateway/plugin';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { renderer, type Metric } from './render.js';

/** Serves the series in the text format that Prometheus scrapes: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
const plugin: MetricsPlugin = { start: (series) => Promise.resolve(start(series)) };

export default plugin;

function start(series: Readonly<Record<string, Series>>): Metrics {
  const metrics = new Map(Object.entries(series).map(([name, row]) => [name, metricOf(name, row)]));
  const find = <Type extends Metric['type']>(name: string, type: Type): Metric & { type: Type } => {
    const metric = metrics.get(name);
    if (metric?.type !== type) throw new Error(`${name} is not a ${type} of the table of series`);
    return metric as Metric & { type: Type };
  };
  const render = renderer(metrics, series);
  return {
    add: (name, labels, amount) => find(name, 'counter').shown.inc(labels, amount),
    set: (name, labels, value) => find(name, 'gauge').shown.set(labels, value),
    observe: (name, labels, value) => find(name, 'histogram').shown.observe(labels, value),
    clear: (name) => metrics.get(name)?.shown.reset(),
    expose: async () => ({ contentType: Registry.PROMETHEUS_CONTENT_TYPE, body: await render() }),
  };
}

function metricOf(name: string, row: Series): Metric {
  const options = { name, help: row.help, labelNames: [...row.labels], registers: [] };
  switch (row.type) {
    case 'counter':
      return { type: 'counter', shown: new Counter(options) };
    case 'gauge':
      return { type: 'gauge', shown: new Gauge(options) };
    case 'histogram':
      return { type: 'histogram', shown: new Histogram({ ...options, ...(row.buckets && { buckets: [...row.buckets] }) }) };
  }
}
