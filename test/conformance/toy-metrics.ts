import type { Labels, Metrics, MetricsPlugin, Series } from '@gateway/plugin';

/** The replaceable parts of an in-memory backend. */
export interface Parts {
  add(before: number, amount: number): number;
  set(value: number): number;
  inBucket(value: number, bound: number): boolean;
  escape(value: string): string;
  clears(name: string, key: string): boolean;
  started(): void;
}

export const sound: Parts = {
  add: (before, amount) => before + amount,
  set: (value) => value,
  inBucket: (value, bound) => value <= bound,
  escape: (value) => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n'),
  clears: (name, key) => key.startsWith(`${name} `),
  started: () => {},
};

/** A correct backend, except for these parts. Stores every observation by name and label set. */
export function toyMetrics(otherwise: Partial<Parts> = {}): MetricsPlugin {
  const parts = { ...sound, ...otherwise };
  return {
    start: (series) => {
      parts.started();
      return Promise.resolve(backend(parts, series));
    },
  };
}

function backend(parts: Parts, series: Readonly<Record<string, Series>>): Metrics {
  const store = new Map<string, number[]>();
  const change = (
    name: string,
    type: Series['type'],
    labels: Labels,
    next: (before: number[]) => number[],
  ) => {
    if (series[name]?.type !== type) throw new Error(`${name} is not a ${type}`);
    const key = `${name} ${JSON.stringify(Object.entries(labels))}`;
    store.set(key, next(store.get(key) ?? []));
  };
  return {
    add: (name, labels, amount) =>
      change(name, 'counter', labels, ([before = 0]) => [parts.add(before, amount)]),
    set: (name, labels, value) => change(name, 'gauge', labels, () => [parts.set(value)]),
    observe: (name, labels, value) =>
      change(name, 'histogram', labels, (before) => [...before, value]),
    clear: (name) => {
      for (const key of [...store.keys()]) if (parts.clears(name, key)) store.delete(key);
    },
    expose: () => {
      const lines = Object.entries(series).flatMap(([name, row]) =>
        linesOf(parts, store, name, row),
      );
      return Promise.resolve({
        contentType: 'text/plain; version=0.0.4',
        body: `${lines.join('\n')}\n`,
      });
    },
  };
}

function linesOf(
  parts: Parts,
  store: ReadonlyMap<string, number[]>,
  name: string,
  row: Series,
): string[] {
  const lines = [`# HELP ${name} ${row.help}`, `# TYPE ${name} ${row.type}`];
  for (const [key, values] of store) {
    if (!key.startsWith(`${name} `)) continue;
    const labels = JSON.parse(key.slice(name.length + 1)) as [string, string][];
    const line = (suffix: string, value: number, extra: [string, string][] = []) => {
      const given = [...extra, ...labels].map(
        ([label, text]) => `${label}="${parts.escape(text)}"`,
      );
      lines.push(`${name}${suffix}${given.length > 0 ? `{${given.join(',')}}` : ''} ${value}`);
    };
    if (row.type !== 'histogram') {
      line('', values[0] ?? 0);
      continue;
    }
    for (const bound of row.buckets ?? [])
      line('_bucket', values.filter((value) => parts.inBucket(value, bound)).length, [
        ['le', String(bound)],
      ]);
    line('_bucket', values.length, [['le', '+Inf']]);
    line(
      '_sum',
      values.reduce((sum, value) => sum + value, 0),
    );
    line('_count', values.length);
  }
  return lines;
}
