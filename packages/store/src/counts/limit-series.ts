import { OTHER } from '@gateway/core/metrics';

/** A count with its labels, of which the first is a project, and the age of the oldest that is counted, null when that has none. */
export type Count = readonly [...labels: string[], n: number, age: number | null];

/** Counts, from the one that is shown first, and sums of others, each with how many counts are in it. */
export interface Reading<Row extends Count = Count> {
  readonly counts: readonly Row[];
  readonly sums: readonly { readonly count: Row; readonly of: number }[];
}

/** One of this many counts may be a sum of others. */
const SUMS_SHARE = 10;

/**
 * Keeps as many counts as may be shown, from the front, and sums up the others by project and status, or by status alone where there are too many
 * projects: setting a thousand label sets takes a process a few milliseconds, in which it does nothing else.
 *
 * @param max how many counts may come out
 * @param status the place of the label that is kept beside the project
 * @returns the counts, and how many are within sums
 */
export function limitSeries<Row extends Count>(
  { counts, sums: summedUp }: Reading<Row>,
  { max, status }: { max: number; status: number },
): { counts: Row[]; hidden: number } {
  if (counts.length <= max && summedUp.length === 0) return { counts: [...counts], hidden: 0 };
  const kept = counts.slice(0, max - Math.ceil(max / SUMS_SHARE));
  const others = [...counts.slice(kept.length), ...summedUp.map(({ count }) => count)];
  const byProject = summed(others, [0, status]);
  const sums = kept.length + byProject.length <= max ? byProject : summed(others, [status]);
  return { counts: [...kept, ...sums] as Row[], hidden: counts.length - kept.length + summedUp.reduce((total, { of }) => total + of, 0) };
}

function summed(counts: readonly Count[], keptLabels: readonly number[]): Count[] {
  const sums = new Map<string, { labels: string[]; n: number; age: number | null }>();
  for (const count of counts) {
    const key = keptLabels.map((k) => count[k]).join('\n');
    const n = count.at(-2) as number;
    const age = count.at(-1) as number | null;
    const sum = sums.get(key);
    if (!sum) {
      const labels = count.slice(0, -2).map((label, k) => (keptLabels.includes(k) ? (label as string) : OTHER));
      sums.set(key, { labels, n, age });
    } else {
      sum.n += n;
      if (age !== null) sum.age = Math.max(sum.age ?? 0, age);
    }
  }
  return [...sums.values()].map(({ labels, n, age }) => [...labels, n, age] as Count);
}
