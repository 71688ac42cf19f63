import type { Labels, Series } from '@gateway/plugin';
import { OTHER } from './series.js';

/** Folded last, so that sums by project stay correct unless there are too many projects. */
const OF_PROJECT = new Set(['project', 'project_name', 'organisation_id', 'organisation_name']);
/** Identify a resource within a project. Labels in neither set have few values and are kept. */
const WITHIN_PROJECT = new Set(['endpoint', 'source', 'event_type', 'partition']);

/** Folded label sets are counted up to this multiple of the number of shown ones. */
const HIDDEN_PER_SHOWN = 10;
/**
 * `max` divided by this many `other` sets keep their project labels. Beyond that, project labels
 * are folded as well.
 */
const SHOWN_PER_PROJECT = 10;

interface ShownSet {
  readonly labels: Labels;
  /**
   * The sum or maximum of the gauges in an `other` set. Undefined for a label set shown unchanged.
   */
  value?: number;
  /** The number of the latest restart after which this label set was used. */
  since: number;
}

/**
 * A level per label, keyed by label value. A lookup takes a tenth of the time needed to build a
 * string key.
 */
type Tree = Map<string | undefined, Tree | ShownSet>;

/** User-defined label values are unlimited. */
export function isUnbounded({ labels }: Series): boolean {
  return labels.some((name) => OF_PROJECT.has(name) || WITHIN_PROJECT.has(name));
}

/** Shows the first label sets of a series unchanged and folds the others into `other` sets. */
export class LabelCardinality {
  readonly #within: readonly string[];
  readonly #names: readonly string[];
  /**
   * Kept across restarts, because most label sets recur, and rebuilding the tree caused most of the
   * garbage.
   */
  #tree: Tree = new Map();
  #others: Tree = new Map();
  #restarts = 0;
  #count = { places: 0, used: 0, shown: 0, others: 0, hidden: 0 };

  /**
   * @param max the number of label sets shown unchanged
   * @param tell receives the number of folded label sets
   */
  constructor(
    private readonly row: Series,
    private readonly max: number,
    private readonly tell: (hidden: number) => void,
  ) {
    this.#within = row.labels.filter((name) => WITHIN_PROJECT.has(name));
    this.#names = row.labels.filter((name) => OF_PROJECT.has(name) || WITHIN_PROJECT.has(name));
  }

  place(labels: Labels): Labels {
    return this.#shownFor(labels).labels;
  }

  /** For a gauge. Put each label set at most once between restarts. */
  put(labels: Labels, value: number): { readonly labels: Labels; readonly value: number } {
    const shown = this.#shownFor(labels);
    if (shown.value === undefined) return { labels: shown.labels, value };
    shown.value = this.row.fold === 'max' ? Math.max(shown.value, value) : shown.value + value;
    return { labels: shown.labels, value: shown.value };
  }

  /**
   * Starts a new sample.
   * @param hidden the number of label sets that the caller has already folded
   */
  restart(hidden: number): void {
    const { places, used } = this.#count;
    const isWorthKeeping = places <= 2 * used;
    if (!isWorthKeeping) this.#tree = new Map();
    this.#others = new Map();
    this.#restarts += 1;
    this.#count = { places: isWorthKeeping ? places : 0, used: 0, shown: 0, others: 0, hidden };
    this.tell(hidden);
  }

  #shownFor(labels: Labels): ShownSet {
    const known = find(this.#tree, this.row.labels, labels);
    if (known?.since === this.#restarts) return known;
    // The caller has already folded it.
    if (this.#within.length > 0 && this.#within.every((name) => labels[name] === OTHER))
      return this.#otherFor(labels);
    if (this.#count.shown < this.max) {
      this.#count.shown += 1;
      const wasAlone = known !== undefined && known.value === undefined;
      return this.#assign(labels, wasAlone ? known : { labels, since: this.#restarts }, known);
    }
    const other = this.#otherFor(labels);
    if (this.#count.hidden >= HIDDEN_PER_SHOWN * this.max) return other;
    this.tell((this.#count.hidden += 1));
    return this.#assign(labels, other, known);
  }

  #assign(labels: Labels, shown: ShownSet, before: ShownSet | undefined): ShownSet {
    this.#count.used += 1;
    if (before === undefined) this.#count.places += 1;
    shown.since = this.#restarts;
    return shown === before ? shown : plant(this.#tree, this.row.labels, labels, shown);
  }

  #otherFor(labels: Labels): ShownSet {
    const ofProject = folded(labels, this.#within);
    const known = find(this.#others, this.row.labels, ofProject);
    if (known) return known;
    if (this.#count.others < this.max / SHOWN_PER_PROJECT) return this.#newOther(ofProject);
    const ofAll = folded(labels, this.#names);
    return find(this.#others, this.row.labels, ofAll) ?? this.#newOther(ofAll);
  }

  #newOther(labels: Labels): ShownSet {
    this.#count.others += 1;
    return plant(this.#others, this.row.labels, labels, {
      labels,
      value: this.row.fold === 'max' ? -Infinity : 0,
      since: this.#restarts,
    });
  }
}

function find(tree: Tree, names: readonly string[], labels: Labels): ShownSet | undefined {
  let at: Tree | ShownSet | undefined = tree;
  for (const name of names) {
    at = (at as Tree).get(labels[name]);
    if (at === undefined) return undefined;
  }
  return at as ShownSet;
}

function plant(tree: Tree, names: readonly string[], labels: Labels, shown: ShownSet): ShownSet {
  let at = tree;
  for (const name of names.slice(0, -1)) {
    const next = (at.get(labels[name]) as Tree | undefined) ?? (new Map() as Tree);
    at.set(labels[name], next);
    at = next;
  }
  at.set(labels[names.at(-1)!], shown);
  return shown;
}

function folded(labels: Labels, names: readonly string[]): Labels {
  return { ...labels, ...Object.fromEntries(names.map((name) => [name, OTHER])) };
}
