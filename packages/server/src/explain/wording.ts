import { SUMMARY_MAX } from '@gateway/store/counts';

const NAMED = 3;

export function namesOf(those: readonly { readonly name: string }[], count = those.length): string {
  const names = those.slice(0, NAMED).map(({ name }) => name);
  const others = count - names.length;
  const listed = others > 0 ? [...names, `${figure(others)} more`] : names;
  return listed.length === 1
    ? listed[0]!
    : `${listed.slice(0, -1).join(', ')} and ${listed.at(-1)}`;
}

export const figure = (count: number) => count.toLocaleString('en-US');
/** A plus means that counting stopped there. */
export const upTo = (count: number, max = SUMMARY_MAX) =>
  `${figure(count)}${count >= max ? '+' : ''}`;
export const things = (count: number, one: string, many = `${one}s`) =>
  `${upTo(count)} ${count === 1 ? one : many}`;

const DAY_MS = 86_400_000;

/** In UTC, such as `12:04 UTC`, with the date unless it is within a day of `now`. */
export function clock(at: Date, now: Date): string {
  const iso = at.toISOString();
  const isNear = Math.abs(at.getTime() - now.getTime()) < DAY_MS;
  return `${isNear ? iso.slice(11, 16) : iso.slice(0, 16).replace('T', ' ')} UTC`;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const;

/** In the largest unit that fits, such as `45 s` or `3 min`. */
export function span(seconds: number): string {
  const [name, size] = UNITS.find(([, size]) => seconds >= size) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${name}`;
}
