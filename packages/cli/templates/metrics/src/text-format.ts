import type { Labels, Series } from '@gateway/plugin';
import type { Sample } from './index.js';

/** The lines of a series: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format */
export function sampleLines(name: string, { type, help, labels, buckets: bounds = [] }: Series, samples: readonly Sample[]): string[] {
  // A counter or gauge without labels is there from the beginning.
  const shown = samples.length === 0 && labels.length === 0 && type !== 'histogram' ? [{ labels: {}, value: 0, buckets: [] }] : samples;
  return [
    `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}`,
    `# TYPE ${name} ${type}`,
    ...shown.flatMap((sample) => (type === 'histogram' ? histogramLines(name, bounds, sample) : [line(name, sample.labels, sample.value)])),
  ];
}

function histogramLines(name: string, bounds: readonly number[], { labels, value, buckets }: Sample): string[] {
  let count = 0;
  const lines = buckets.map((inBucket, i) => line(`${name}_bucket`, { ...labels, le: String(bounds[i] ?? '+Inf') }, (count += inBucket)));
  return [...lines, line(`${name}_sum`, labels, value), line(`${name}_count`, labels, count)];
}

function line(name: string, labels: Labels, value: number): string {
  const shown = Object.entries(labels).map(([label, text]) => `${label}="${escaped(text)}"`);
  return `${name}${shown.length > 0 ? `{${shown.join(',')}}` : ''} ${value}`;
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');
}
