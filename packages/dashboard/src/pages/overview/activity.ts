import type { Activity } from '@gateway/client';
import { api, type ReadOptions } from '../../api/index.js';
import type { Line } from '../../components/chart.js';
import { rate } from '../../format/number.js';

type Step = Activity['content'][number];
type Latency = Activity['latency_ms'][number];
type WaitingStep = Activity['backlog'][number];

export interface Recent {
  readonly success: number;
  readonly failure: number;
}

/** An entry for every step. Undefined means that all counts are zero. */
export interface Steps {
  readonly atMs: readonly number[];
  readonly stepSeconds: number;
  readonly steps: readonly (Step | undefined)[];
  readonly latencies: readonly (Latency | undefined)[];
  readonly backlogs: readonly (WaitingStep | undefined)[];
}

export function filled(
  { step_seconds: stepSeconds, content, latency_ms: latency, backlog }: Activity,
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Steps {
  const stepMs = stepSeconds * 1000;
  const byTime = <It extends { readonly at: string }>(list: readonly It[]) =>
    new Map(list.map((it) => [new Date(it.at).getTime(), it]));
  const [known, measured, waiting] = [byTime(content), byTime(latency), byTime(backlog)];
  const atMs: number[] = [];
  for (let at = Math.ceil(fromMs / stepMs) * stepMs; at + stepMs <= toMs; at += stepMs)
    atMs.push(at);
  return {
    atMs,
    stepSeconds,
    steps: atMs.map((at) => known.get(at)),
    latencies: atMs.map((at) => measured.get(at)),
    backlogs: atMs.map((at) => waiting.get(at)),
  };
}

type ActivityFilter = NonNullable<Parameters<ReturnType<typeof api>['activity']['get']>[0]>;

/** The last `minutes`, with the unfinished step only if `isWhole` is false. */
export async function readActivity(
  minutes: number,
  options: ReadOptions,
  { isWhole = true, ...filter }: ActivityFilter & { isWhole?: boolean } = {},
): Promise<Steps> {
  const toMs = Date.now();
  const fromMs = toMs - minutes * 60_000;
  const times = {
    startDate: new Date(fromMs).toISOString(),
    endDate: new Date(toMs).toISOString(),
  };
  const read = await api().activity.get({ ...filter, ...times }, options);
  return filled(read, { fromMs, toMs: isWhole ? toMs : toMs + read.step_seconds * 1_000 });
}

export function lineOf(
  { steps, stepSeconds }: Steps,
  label: string,
  colour: Line['colour'],
  value: (step: Step) => number,
): Line {
  return { label, colour, values: steps.map((step) => (step ? value(step) / stepSeconds : 0)) };
}

/** The share of accepted requests, from 0 to 1, without values where none was sent. */
export function successOf({ steps }: Steps): Line {
  const share = (success: number, failure: number) =>
    success + failure === 0 ? null : success / (success + failure);
  return {
    label: 'Accepted',
    colour: 'ok',
    values: steps.map((step) =>
      step ? share(step.attempts.success, step.attempts.failure) : null,
    ),
  };
}

export function latencyOf(
  { latencies }: Steps,
  label: 'p50' | 'p95' | 'p99',
  colour: Line['colour'],
): Line {
  return { label, colour, values: latencies.map((it) => it?.[label] ?? null) };
}

/** Without values where the backlog was not sampled. */
export function backlogOf(
  { backlogs }: Steps,
  label: string,
  colour: Line['colour'],
  name: 'pending_events' | 'waiting_deliveries',
): Line {
  return { label, colour, values: backlogs.map((it) => it?.[name] ?? null) };
}

/** Last values and peaks, for screen readers. */
export function summaryOf(lines: readonly Line[], format = rate): string {
  return lines
    .map(({ label, values }) => {
      const numbers = values.map((value) => value ?? 0);
      return `${label}: now ${format(numbers.at(-1) ?? 0)}, peak ${format(Math.max(0, ...numbers))}`;
    })
    .join('. ');
}
