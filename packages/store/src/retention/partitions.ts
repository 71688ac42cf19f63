import { idBound } from '../pagination/log-page.js';
import { DAY_MS, duringDay } from './cutoffs.js';

export interface Partitions {
  /** Ends the names of the tables; empty for the partitioned ones. */
  readonly suffix: string;
  /** On `occurred_at`, with literals, so that the planner can prune partitions. */
  within(table: string): string;
}

export const DEFAULT: Partitions = { suffix: '_default', within: () => '' };

export function ofDay(day: string): Partitions {
  return { suffix: '', within: (table) => `and ${duringDay(`${table}.occurred_at`, day)}` };
}

/** Ids after the first and up to the second are of the day. */
export function idsOfDay(day: string): readonly [after: string, until: string] {
  const startMs = Date.parse(day);
  return [idBound(startMs, '0'), idBound(startMs + DAY_MS, '0')];
}
