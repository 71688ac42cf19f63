import type { Labels, Series } from '@gateway/plugin';

/** Up to how many times the limit the hidden label sets are counted exactly. */
const COUNTED = 10;

/**
 * The label sets of one series. The first ones are shown as they are, those beyond the limit all become one set with the label values `other`: a scrape of ten thousand
 * histograms blocks the process for a third of a second.
 */
export class LabelSets {
  /** What a hidden label set is shown as. */
  readonly other: Labels;
  readonly #names: readonly string[];
  readonly #max: boolean;
  readonly #limit: number;
  readonly #shown = new Set<string>();
  readonly #hidden = new Set<string>();
  #folded: number | undefined;

  constructor({ labels, fold = 'sum' }: Series, limit: number) {
    this.#names = labels;
    this.#max = fold === 'max';
    this.#limit = limit;
    this.other = Object.fromEntries(labels.map((name) => [name, 'other']));
  }

  /** Whether this label set is shown as it is. */
  shows(labels: Labels): boolean {
    let key = '';
    for (const name of this.#names) key += `${labels[name]}\n`;
    if (this.#shown.has(key)) return true;
    if (this.#shown.size < this.#limit) {
      this.#shown.add(key);
      return true;
    }
    if (this.#hidden.size < COUNTED * this.#limit) this.#hidden.add(key);
    return false;
  }

  /** How many label sets are hidden. */
  get hidden(): number {
    return this.#hidden.size;
  }

  /** Adds the value of a hidden gauge to what the hidden ones show together since the last `clear`, and returns that. */
  fold(value: number): number {
    this.#folded = this.#folded === undefined ? value : this.#max ? Math.max(this.#folded, value) : this.#folded + value;
    return this.#folded;
  }

  clear(): void {
    this.#shown.clear();
    this.#hidden.clear();
    this.#folded = undefined;
  }
}
