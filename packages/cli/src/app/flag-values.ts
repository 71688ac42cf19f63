import { readFile } from 'node:fs/promises';
import { didYouMean, fileReason, GatewayError } from '@gateway/core/errors';
import { isId } from '@gateway/core/events';

/** Exits with status 2. */
export function wrongUse(sentence: string, fix: string): GatewayError {
  return new GatewayError('wrong_use', { sentence, fix });
}

/** Lower case. Throws `wrong_use` if it is not an id. */
export function idOf<Given extends string | undefined>(name: string, given: Given): Given {
  const id = given?.trim().toLowerCase();
  if (id === undefined || isId(id)) return id as Given;
  throw wrongUse(
    `${name} must be an id, not ${JSON.stringify(given)}`,
    'ids look like 019ab3c4-5d6e-8f70-9123-456789abcdef; the management API shows them as uid, and list commands show them with --json',
  );
}

/** Ignores case. Undefined if none was given. Throws `wrong_use` for an unknown value. */
export function oneOf<Known extends string>(
  name: string,
  given: string | undefined,
  known: readonly Known[],
): Known | undefined {
  if (given === undefined) return undefined;
  const value = known.find((it) => it.toLowerCase() === given.trim().toLowerCase());
  if (value) return value;
  throw wrongUse(
    `${name} must be one of ${known.join(', ')}, not ${JSON.stringify(given)}${didYouMean(given, known)}`,
    'correct the value, or omit the flag',
  );
}

/** From 1 to `max`, or `otherwise` if the flag was omitted. Throws `wrong_use`. */
export function integerOf(
  name: string,
  given: string | undefined,
  { max, otherwise }: { max: number; otherwise: number },
): number {
  if (given === undefined) return otherwise;
  if (/^[1-9]\d*$/.test(given) && Number(given) <= max) return Number(given);
  throw wrongUse(
    `${name} must be an integer from 1 to ${max}, not ${JSON.stringify(given)}`,
    `omit the flag for ${otherwise}`,
  );
}

/**
 * The first millisecond of a UTC day or a time and, for a day, the last one: both may bound a range
 * that includes them. Throws `wrong_use`.
 */
export function timeOf(
  name: string,
  given: string,
): { readonly firstMs: number; readonly lastMs: number } {
  const ms = /^\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:\d\d))?$/.test(given) ? Date.parse(given) : NaN;
  if (Number.isNaN(ms))
    throw wrongUse(
      `${name} must be a day or a time, not ${JSON.stringify(given)}`,
      'write a UTC day, as in 2026-01-31, or a time, as in 2026-01-31T09:30:00Z',
    );
  return { firstMs: ms, lastMs: given.includes('T') ? ms : ms + DAY_MS - 1 };
}

/**
 * Reads standard input for `-`. Throws `wrong_use` if the file cannot be read.
 *
 * @param given the flag or argument, such as `--body`, for the error message
 */
export async function readInput(given: string, path: string): Promise<Buffer> {
  if (path === '-') return standardInput(given);
  try {
    return await readFile(path);
  } catch (error) {
    throw wrongUse(
      `the file ${path} of ${given} cannot be read: ${fileReason(error)}`,
      'name a readable file, or - for standard input',
    );
  }
}

async function standardInput(given: string): Promise<Buffer> {
  if (process.stdin.isTTY)
    process.stderr.write(`reading ${given} from standard input; end it with Ctrl-D\n`);
  const parts: Buffer[] = [];
  for await (const part of process.stdin) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

const DAY_MS = 86_400_000;
const UNITS = { d: DAY_MS, h: 3_600_000, m: 60_000, s: 1000, ms: 1 };
const PART = /(\d+)(d|h|ms|m|s)/g;

/**
 * Integers with a unit each, in any order, such as `1h30m` or `500ms`. Throws `wrong_use`.
 *
 * @param name the flag, for the error message
 * @returns milliseconds, always more than 0
 */
export function parseDuration(name: string, text: string): number {
  const parts = [...text.matchAll(PART)];
  const ms = parts.reduce(
    (sum, [, count, unit]) => sum + Number(count) * UNITS[unit as keyof typeof UNITS],
    0,
  );
  const isWhole = parts.map(([part]) => part).join('') === text;
  if (isWhole && ms > 0 && ms <= Number.MAX_SAFE_INTEGER) return ms;
  throw wrongUse(
    `${name} must be a duration, not ${JSON.stringify(text)}`,
    'write integers with units (d, h, m, s, ms), as in 1h30m or 500ms',
  );
}

/** In the notation of `parseDuration`, with at most its two largest units. */
export function formatDuration(ms: number): string {
  let left = Math.round(ms);
  const parts = Object.entries(UNITS).flatMap(([unit, size]) => {
    const count = Math.floor(left / size);
    left %= size;
    return count > 0 ? [`${count}${unit}`] : [];
  });
  return (
    (parts.length > 1 ? parts.filter((part) => !part.endsWith('ms')).slice(0, 2) : parts).join(
      '',
    ) || '0ms'
  );
}

/**
 * From standard input for `-`, without the end of its line.
 *
 * @throws GatewayError `wrong_use` if the file cannot be read or is empty
 */
export async function readPassword(flag: string, file: string): Promise<string> {
  const text = (await readInput(flag, file)).toString('utf8').replace(/\r?\n$/, '');
  if (text !== '') return text;
  throw wrongUse(`the file of ${flag} is empty`, 'omit the flag if no password is needed');
}
