export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A scrape of `/metrics`. */
export interface Exposition {
  readonly text: string;
  readonly samples: readonly Sample[];
  /** Samples of a name with at least these labels. */
  all(name: string, labels?: Readonly<Record<string, string>>): Sample[];
  /** The sum of `all`; undefined without samples. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

/** Scrapes `/metrics` of a local process. Throws unless the status is 200. */
export async function scrape(port: number): Promise<Exposition> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}: ${text}`);
  return exposition(text);
}

/** Parses the subset of the Prometheus text format that the gateway uses. */
export function exposition(text: string): Exposition {
  const samples = text.split('\n').flatMap((line): Sample[] => {
    const [, name, labels = '', value] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
    if (!name || value === undefined) return [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
      ([, label = '', text = '']) => [label, text] as const,
    );
    return [
      {
        name,
        labels: Object.fromEntries(pairs),
        value: value === '+Inf' ? Infinity : Number(value),
      },
    ];
  });
  const all: Exposition['all'] = (name, labels = {}) =>
    samples.filter(
      (sample) =>
        sample.name === name &&
        Object.entries(labels).every(([label, value]) => sample.labels[label] === value),
    );
  return {
    text,
    samples,
    all,
    sum: (name, labels) => {
      const found = all(name, labels);
      return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
    },
  };
}
