import { wrongUse } from './flag-values.js';

const UNITS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
const PART = /(\d+)(d|h|ms|m|s)/g;

/**
 * Parses integers with a unit each, in any order: `1h30m`, `500ms`.
 *
 * @param name the flag, for the sentence
 * @returns milliseconds, more than 0
 * @throws GatewayError `wrong_use` for everything else
 */
export function parseDuration(name: string, text: string): number {
  const parts = [...text.matchAll(PART)];
  const ms = parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit as keyof typeof UNITS], 0);
  const isWhole = parts.map(([part]) => part).join('') === text;
  if (isWhole && ms > 0 && ms <= Number.MAX_SAFE_INTEGER) return ms;
  throw wrongUse(
    `${name} must be a duration, not ${JSON.stringify(text)}`,
    'write integers with a unit each: d, h, m, s and ms are the units, as in 1h30m or 500ms',
  );
}

/** A duration in that form, for a person: its two largest units. */
export function formatDuration(ms: number): string {
  let left = Math.round(ms);
  const parts = Object.entries(UNITS).flatMap(([unit, size]) => {
    const count = Math.floor(left / size);
    left %= size;
    return count > 0 ? [`${count}${unit}`] : [];
  });
  return (parts.length > 1 ? parts.filter((part) => !part.endsWith('ms')).slice(0, 2) : parts).join('') || '0ms';
}
