import type { Event } from '@gateway/client';
import { headerLines } from '../../format/json.js';

export interface FilterSample {
  readonly type: string;
  readonly headers: string;
  readonly body: string;
}

export const emptySample: FilterSample = {
  type: 'order.created',
  headers: '',
  body: '{\n  "total": 120\n}',
};

export function sampleOf({ event_type: type, headers, data }: Event): FilterSample {
  return { type, headers: headerLines(headers), body: JSON.stringify(data, null, 2) };
}

/** Lines such as `x-region: eu`. Lines without a colon are ignored. */
export function headersOf(text: string): Record<string, string> {
  const lines = text.split('\n').flatMap((line) => {
    const [, name, value] = /^\s*([^:\s]+)\s*:\s*(.*?)\s*$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, value ?? ''] as const];
  });
  return Object.fromEntries(lines);
}
