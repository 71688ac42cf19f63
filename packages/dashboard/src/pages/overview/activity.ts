import type { Activity } from '@gateway/client';
import { api } from '../../api/client.js';
import type { Line } from '../../components/chart/options.js';
import { rate } from '../../format/number.js';

type Step = Activity['content'][number];

/** Requests of the last minutes. */
export interface Recent {
  readonly success: number;
  readonly failure: number;
}

/** Activity with a step for each time: those in which nothing ended are zero. */
export interface Steps {
  readonly atMs: readonly number[];
  readonly stepSeconds: number;
  readonly steps: readonly (Step | undefined)[];
}

/** Fills the gaps of an activity from `fromMs` to `toMs`, without the step that is not over. */
export function filled({ step_seconds: stepSeconds, content }: Activity, { fromMs, toMs }: { fromMs: number; toMs: number }): Steps {
  const stepMs = stepSeconds * 1000;
  const known = new Map(content.map((step) => [new Date(step.at).getTime(), step]));
  const atMs: number[] = [];
  for (let at = Math.ceil(fromMs / stepMs) * stepMs; at + stepMs <= toMs; at += stepMs) atMs.push(at);
  return { atMs, stepSeconds, steps: atMs.map((at) => known.get(at)) };
}

type Filter = NonNullable<Parameters<ReturnType<typeof api>['activity']['get']>[0]>;

/** Reads what happened in so many minutes until now; with the step that is not over when `isWhole` is false. */
export async function readActivity(
  minutes: number,
  signal: AbortSignal,
  { isWhole = true, ...filter }: Filter & { readonly isWhole?: boolean } = {},
): Promise<Steps> {
  const toMs = Date.now();
  const fromMs = toMs - minutes * 60_000;
  const times = { startDate: new Date(fromMs).toISOString(), endDate: new Date(toMs).toISOString() };
  const read = await api().activity.get({ ...filter, ...times }, { signal });
  return filled(read, { fromMs, toMs: isWhole ? toMs : toMs + read.step_seconds * 1_000 });
}

/** A line of what a step counts, per second. */
export function lineOf({ steps, stepSeconds }: Steps, label: string, colour: Line['colour'], value: (step: Step) => number): Line {
  return { label, colour, values: steps.map((step) => (step ? value(step) / stepSeconds : 0)) };
}

/** The last values and the peak of lines, for those who do not see the chart. */
export function summaryOf(lines: readonly Line[]): string {
  return lines
    .map(({ label, values }) => {
      const numbers = values.map((value) => value ?? 0);
      return `${label}: now ${rate(numbers.at(-1) ?? 0)}, at most ${rate(Math.max(0, ...numbers))}`;
    })
    .join('. ');
}
