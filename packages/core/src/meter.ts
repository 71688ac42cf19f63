import type { Labels, Metrics, Series } from '@gateway/plugin';
import { series, type SeriesLabels, type SeriesName } from './series.js';
import { settings } from './settings.js';

/**
 * The five verbs over the table of series, typed. Without a metrics backend they do nothing.
 */
export interface Meter {
  /** Adds to a counter. */
  add<Name extends SeriesName>(name: Name, labels: SeriesLabels<Name>, amount?: number): void;
  /** Sets a gauge. */
  set<Name extends SeriesName>(name: Name, labels: SeriesLabels<Name>, value: number): void;
  /** Observes a value of a histogram, in seconds. */
  observe<Name extends SeriesName>(name: Name, labels: SeriesLabels<Name>, value: number): void;
  /** Forgets every label set of a gauge, before it is set anew from a sample. */
  clear(name: SeriesName): void;
  /** The body of `GET /metrics`. */
  expose(): Promise<{ contentType: string; body: string }>;
}

export interface MeterOptions {
  /** Why there is no backend; `/metrics` then says so in a comment line. */
  readonly absence?: string;
  /** Label sets shown per series: a scrape of 10,000 histograms blocks the process for 160 ms, so the rest is folded into one. */
  readonly labelSetsMax?: number;
}

/**
 * @param backend the active metrics plugin
 */
export function createMeter(backend: Metrics | undefined, options: MeterOptions = {}): Meter {
  const { absence = '', labelSetsMax = settings['metrics.max_label_sets'].default } = options;
  if (!backend) return silentMeter(absence);
  const folds = new Map<string, Fold>();
  const folded = (name: SeriesName, labels: Labels): Labels | undefined => {
    let fold = folds.get(name);
    if (!fold) folds.set(name, (fold = new Fold(series[name], labelSetsMax)));
    const hidden = fold.hidden;
    if (fold.shows(labels)) return undefined;
    if (fold.hidden !== hidden) backend.set('gateway_metrics_folded', { series: name }, fold.hidden);
    return fold.labels;
  };
  return {
    add: (name, labels, amount = 1) => backend.add(name, folded(name, labels) ?? labels, amount),
    observe: (name, labels, value) => backend.observe(name, folded(name, labels) ?? labels, value),
    set(name, labels, value) {
      const other = folded(name, labels);
      if (other) backend.set(name, other, folds.get(name)!.put(value));
      else backend.set(name, labels, value);
    },
    clear(name) {
      folds.delete(name);
      backend.set('gateway_metrics_folded', { series: name }, 0);
      backend.clear(name);
    },
    expose: () => backend.expose(),
  };
}

function silentMeter(absence: string): Meter {
  const nothing = () => undefined;
  return {
    add: nothing,
    set: nothing,
    observe: nothing,
    clear: nothing,
    expose: () =>
      Promise.resolve({ contentType: 'text/plain; version=0.0.4; charset=utf-8', body: `# no metrics: ${absence || 'none selected'}\n` }),
  };
}

/** The label sets of one series: the first ones are shown, the others become one set with the value `other`. */
class Fold {
  readonly labels: Labels;
  readonly #names: readonly string[];
  readonly #how: 'sum' | 'max';
  readonly #max: number;
  readonly #shown = new Set<string>();
  readonly #hidden = new Set<string>();
  #value = 0;

  constructor(row: Series, max: number) {
    this.#names = row.labels;
    this.#how = row.fold ?? 'sum';
    this.#max = max;
    this.labels = Object.fromEntries(row.labels.map((name) => [name, 'other']));
  }

  /** True when this label set is shown as it is. */
  shows(labels: Labels): boolean {
    let key = '';
    for (const name of this.#names) key += `${labels[name]}\n`;
    if (this.#shown.has(key)) return true;
    if (this.#shown.size < this.#max) {
      this.#shown.add(key);
      return true;
    }
    // The count of the hidden is exact up to a bound that keeps memory in hand.
    if (this.#hidden.size < 10 * this.#max) this.#hidden.add(key);
    return false;
  }

  get hidden(): number {
    return this.#hidden.size;
  }

  /** Puts a gauge value into the folded one and returns it. */
  put(value: number): number {
    this.#value = this.#how === 'sum' ? this.#value + value : Math.max(this.#value, value);
    return this.#value;
  }
}
