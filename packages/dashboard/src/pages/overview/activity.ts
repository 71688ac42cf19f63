import type { Activity } from '@gateway/client';
import { api } from '../../api/client.js';
import type { Line } from '../../components/chart.js';
import { rate } from '../../format/number.js';

type Step = Activity['content'][number];

export interface Recent {
  readonly success: number;
  readonly failure: number;
}

/** Activity with an entry for every step. Undefined means that all counts are zero. */
export interface Steps {
  readonly atMs: readonly number[];
  readonly stepSeconds: number;
  readonly steps: readonly (Step | undefined)[];
}

/** Fills the gaps in activity between `fromMs` and `toMs`, without the unfinished step. */
export function filled(
  { step_seconds: stepSeconds, content }: Activity,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Steps {
  const stepMs = stepSeconds * 1000;
  const known = new Map(content.map((step) => [new Date(step.at).getTime(), step]));
  const atMs: number[] = [];
  for (let at = Math.ceil(fromMs / stepMs) * stepMs; at + stepMs <= toMs; at += stepMs)
    atMs.push(at);
  return { atMs, stepSeconds, steps: atMs.map((at) => known.get(at)) };
}

type ActivityFilter = NonNullable<Parameters<ReturnType<typeof api>['activity']['get']>[0]>;

/**
 * Reads the activity of the last `minutes`, with the unfinished step only if `isWhole` is false.
 */
export async function readActivity(
  minutes: number,
  signal: AbortSignal,
  { isWhole = true, ...filter }: ActivityFilter & { isWhole?: boolean } = {},
): Promise<Steps> {
  const toMs = Date.now();
  const fromMs = toMs - minutes * 60_000;
  const times = {
    startDate: new Date(fromMs).toISOString(),
    endDate: new Date(toMs).toISOString(),
  };
  const read = await api().activity.get({ ...filter, ...times }, { signal });
  return filled(read, { fromMs, toMs: isWhole ? toMs : toMs + read.step_seconds * 1_000 });
}

/** Returns the chart line of a count, as a rate per second. */
export function lineOf(
  { steps, stepSeconds }: Steps,
  label: string,
  colour: Line['colour'],
  value: (step: Step) => number,
): Line {
  return { label, colour, values: steps.map((step) => (step ? value(step) / stepSeconds : 0)) };
}

/** Describes the last values and the peaks of lines, for screen readers. */
export function summaryOf(lines: readonly Line[]): string {
  return lines
    .map(({ label, values }) => {
      const numbers = values.map((value) => value ?? 0);
      return `${label}: now ${rate(numbers.at(-1) ?? 0)}, at most ${rate(Math.max(0, ...numbers))}`;
    })
    .join('. ');
}
