import { GatewayError } from '@gateway/core/errors';

const MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PART = /(\d+)(ms|s|m|h|d)/y;

/**
 * Reads a duration: integers, each followed by `d`, `h`, `m`, `s` or `ms`, the larger unit first: `1h30m`, `500ms`.
 *
 * @param name the flag it was given with, for the sentence
 * @returns milliseconds, more than 0
 * @throws GatewayError `wrong_use` for everything else
 */
export function parseDuration(name: string, text: string): number {
  let ms = 0;
  let at = 0;
  let unit = Infinity;
  while (at < text.length) {
    PART.lastIndex = at;
    const [all = '', count = '', suffix = ''] = PART.exec(text) ?? [];
    const size = MS[suffix] ?? Infinity;
    if (all === '' || size >= unit) return refuse(name, text);
    unit = size;
    ms += Number(count) * size;
    at += all.length;
  }
  return ms > 0 && ms <= Number.MAX_SAFE_INTEGER ? ms : refuse(name, text);
}

function refuse(name: string, text: string): never {
  throw new GatewayError('wrong_use', {
    sentence: `${name} must be a duration, not ${JSON.stringify(text)}`,
    fix: 'write integers with a unit each, the larger unit first: d, h, m, s and ms are the units, as in 1h30m or 500ms',
  });
}

/** A duration in that form, for a person: its two largest units. */
export function formatDuration(ms: number): string {
  const parts: string[] = [];
  let left = Math.round(ms);
  for (const [unit, size] of Object.entries(MS).reverse()) {
    if (left < size || (unit === 'ms' && parts.length > 0)) continue;
    parts.push(`${Math.floor(left / size)}${unit}`);
    left %= size;
    if (parts.length === 2) break;
  }
  return parts.join('') || '0ms';
}
