import { param, query } from '../../router/location.js';

const HOUR_MS = 3_600_000;

/** Values of the query parameter `range`, the first being the default, with label and length. */
export const RANGES = [
  ['', 'Any time', undefined],
  ['15m', 'Last 15 minutes', HOUR_MS / 4],
  ['1h', 'Last hour', HOUR_MS],
  ['6h', 'Last 6 hours', 6 * HOUR_MS],
  ['24h', 'Last 24 hours', 24 * HOUR_MS],
  ['7d', 'Last 7 days', 7 * 24 * HOUR_MS],
  ['custom', 'Custom range', undefined],
] as const;

/** For the API. Unlimited ends are omitted. */
export function shownRange(nowMs = Date.now()): { startDate?: string; endDate?: string } {
  const asked = param('range');
  if (asked === 'custom') {
    return {
      ...timeOf('startDate', query.value.get('from')),
      ...timeOf('endDate', query.value.get('to')),
    };
  }
  const lengthMs = RANGES.find(([value]) => value === asked)?.[2];
  return lengthMs === undefined ? {} : { startDate: new Date(nowMs - lengthMs).toISOString() };
}

/** For a bulk operation. Ends now, to exclude later rows. */
export function closedRange(): { startDate: string; endDate: string } {
  return {
    startDate: new Date(0).toISOString(),
    endDate: new Date().toISOString(),
    ...shownRange(),
  };
}

function timeOf(name: string, text: string | null): Record<string, string> {
  const date = new Date(text ?? '');
  return Number.isNaN(date.getTime()) ? {} : { [name]: date.toISOString() };
}

export function isOpenEnded(): boolean {
  return !(query.value.get('range') === 'custom' && query.value.get('to'));
}

/** Part of a sentence, such as `last hour` or `any time`. */
export function rangeWords(): string {
  const asked = param('range');
  const label = RANGES.find(([value]) => value === asked)?.[1] ?? RANGES[0][1];
  return label.toLowerCase();
}
