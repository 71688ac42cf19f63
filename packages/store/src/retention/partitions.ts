import { idBound } from '../pagination/log-page.js';
import { DAY_MS, duringDay } from './cutoffs.js';

/** The partitions that a statement reads or writes. */
export interface Partitions {
  /** The end of the names of the tables; empty for the partitioned ones. */
  readonly suffix: string;
  /**
   * Returns a condition on `occurred_at` with literals, so that the planner can prune partitions,
   * or an empty string for none.
   */
  within(table: string): string;
}

export const DEFAULT: Partitions = { suffix: '_default', within: () => '' };

/** The rows of a day (`2026-01-31`), in its own partitions or in the default ones. */
export function ofDay(day: string): Partitions {
  return { suffix: '', within: (table) => `and ${duringDay(`${table}.occurred_at`, day)}` };
}

/** The ids after the first and up to the second are those of the day. */
export function idsOfDay(day: string): readonly [after: string, until: string] {
  const startMs = Date.parse(day);
  return [idBound(startMs, '0'), idBound(startMs + DAY_MS, '0')];
}
