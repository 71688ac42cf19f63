/** One line of an exposition. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** What `/metrics` said at one moment. */
export interface Exposition {
  readonly text: string;
  readonly samples: readonly Sample[];
  /** The samples of a name whose labels include these. */
  all(name: string, labels?: Readonly<Record<string, string>>): Sample[];
  /** The sum of their values; undefined when there is none. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number | undefined;
}

/** Asks `/metrics` of a process on this machine. Throws unless it answers 200. */
export async function scrape(port: number): Promise<Exposition> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  const text = await response.text();
  if (response.status !== 200) throw new Error(`/metrics answered ${response.status}: ${text}`);
  return exposition(text);
}

/** Reads the text format of Prometheus, as far as the gateway uses it. */
export function exposition(text: string): Exposition {
  const samples = text.split('\n').flatMap((line): Sample[] => {
    const [, name, labels = '', value] = /^([a-z_]\w*)(?:\{(.*)\})? (\S+)$/i.exec(line) ?? [];
    if (!name || value === undefined) return [];
    const pairs = [...labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, label = '', text = '']) => [label, text] as const);
    return [{ name, labels: Object.fromEntries(pairs), value: value === '+Inf' ? Infinity : Number(value) }];
  });
  const all: Exposition['all'] = (name, labels = {}) =>
    samples.filter((sample) => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value));
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
