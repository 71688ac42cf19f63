import type { Labels, Metrics, MetricsPlugin, Series } from '@gateway/plugin';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { LabelSets } from './label-sets.js';

interface Settings {
  readonly max_label_sets: number;
}

const FOLDED = 'gateway_pullmetrics_folded_label_sets';

type Metric = { readonly sets: LabelSets } & (
  | { readonly type: 'counter'; readonly shown: Counter }
  | { readonly type: 'gauge'; readonly shown: Gauge }
  | { readonly type: 'histogram'; readonly shown: Histogram }
);

/** Serves the series in the text format that Prometheus scrapes: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
const plugin: MetricsPlugin<Settings> = {
  start: (series, { max_label_sets: limit }) => Promise.resolve(start(series, limit)),
};

export default plugin;

function start(series: Readonly<Record<string, Series>>, limit: number): Metrics {
  const registry = new Registry();
  const metrics = new Map(Object.entries(series).map(([name, row]) => [name, metricOf(name, row, limit, registry)]));
  new Gauge({
    name: FOLDED,
    help: 'Label sets beyond metrics.pullmetrics_metrics.max_label_sets, shown as one with the label values "other".',
    labelNames: ['series'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [name, { sets }] of metrics) if (sets.hidden > 0) this.set({ series: name }, sets.hidden);
    },
  });
  const find = <Type extends Metric['type']>(name: string, type: Type): Metric & { type: Type } => {
    const metric = metrics.get(name);
    if (metric?.type !== type) throw new Error(`${name} is not a ${type} of the table of series`);
    return metric as Metric & { type: Type };
  };
  const seen = ({ sets }: Metric, labels: Labels) => (sets.shows(labels) ? labels : sets.other);
  return {
    add: (name, labels, amount) => {
      const counter = find(name, 'counter');
      counter.shown.inc(seen(counter, labels), amount);
    },
    set: (name, labels, value) => {
      const { shown, sets } = find(name, 'gauge');
      if (sets.shows(labels)) shown.set(labels, value);
      else shown.set(sets.other, sets.fold(value));
    },
    observe: (name, labels, value) => {
      const histogram = find(name, 'histogram');
      histogram.shown.observe(seen(histogram, labels), value);
    },
    clear: (name) => {
      const metric = metrics.get(name);
      metric?.sets.clear();
      metric?.shown.reset();
    },
    expose: async () => ({ contentType: registry.contentType, body: await registry.metrics() }),
  };
}

function metricOf(name: string, row: Series, limit: number, registry: Registry): Metric {
  const sets = new LabelSets(row, limit);
  const options = { name, help: row.help, labelNames: [...row.labels], registers: [registry] };
  switch (row.type) {
    case 'counter':
      return { type: 'counter', shown: new Counter(options), sets };
    case 'gauge':
      return { type: 'gauge', shown: new Gauge(options), sets };
    case 'histogram':
      return { type: 'histogram', shown: new Histogram({ ...options, ...(row.buckets && { buckets: [...row.buckets] }) }), sets };
  }
}
