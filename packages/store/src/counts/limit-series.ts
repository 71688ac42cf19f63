import { OTHER } from '@gateway/core/metrics';

/** A count with its labels, the first of which is the project, and the age of the oldest counted row, null when finished. */
export type Count = readonly [...labels: string[], n: number, age: number | null];

/** Counts, most important first, and sums of further counts, each with how many it adds up. */
export interface Reading<Row extends Count = Count> {
  readonly counts: readonly Row[];
  readonly sums: readonly { readonly count: Row; readonly of: number }[];
}

/** Share of the label sets reserved for sums: one in this many. */
const SUMS_SHARE = 10;

/**
 * Keeps the first counts and adds up the others by project and status, or by status alone when there are too many projects: setting a thousand label sets
 * blocks a process for milliseconds.
 *
 * @param max maximum counts in the result
 * @param status index of the status label
 * @returns the counts, and how many are part of a sum
 */
export function limitSeries<Row extends Count>(
  readings: readonly Reading<Row>[],
  { max, status }: { max: number; status: number },
): { counts: Row[]; hidden: number } {
  const counts = readings.flatMap((reading) => reading.counts);
  const sums = readings.flatMap((reading) => reading.sums);
  if (counts.length <= max && sums.length === 0) return { counts, hidden: 0 };
  const kept = counts.slice(0, max - Math.ceil(max / SUMS_SHARE));
  const others = [...counts.slice(kept.length), ...sums.map(({ count }) => count)];
  const byProject = addUp(others, [0, status]);
  const added = kept.length + byProject.length <= max ? byProject : addUp(others, [status]);
  return { counts: [...kept, ...added] as Row[], hidden: counts.length - kept.length + sums.reduce((total, { of }) => total + of, 0) };
}

function addUp(counts: readonly Count[], keptLabels: readonly number[]): Count[] {
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
