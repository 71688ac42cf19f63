const dateTime = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'short',
  year: 'numeric',
  timeZoneName: 'short',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
});
const clock = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });

/** In the browser's time zone, such as `25 Nov 2026, 14:03:21 CET`. */
export function localTime(at: string): string {
  return dateTime.format(new Date(at));
}

/** Such as `CET` or `GMT+5:30`. */
export function zoneName(): string {
  const parts = dateTime.formatToParts(new Date());
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

/** Such as `2026-11-25 13:03:21.120 UTC`. */
export function utcTime(at: string): string {
  return `${new Date(at).toISOString().replace('T', ' ').replace('Z', '')} UTC`;
}

/** The time of day, with the date unless it is today. */
export function rowTime(at: string, now = new Date()): string {
  const date = new Date(at);
  const time = clock.format(date);
  return date.toDateString() === now.toDateString() ? time : `${day.format(date)}, ${time}`;
}

const UNITS = [
  ['d', 86_400],
  ['h', 3_600],
  ['min', 60],
] as const;

/** In the largest fitting unit, such as `45 s`, `3 min`, `2 h` or `5 d`. */
export function span(seconds: number): string {
  const [name, size] = UNITS.find(([, size]) => seconds >= size) ?? ['s', 1];
  return `${Math.floor(seconds / size)} ${name}`;
}

/** Such as `12 ms`, `1.4 s` or `3 min`. */
export function milliseconds(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : span(ms / 1_000);
}

/** Such as `3 min ago`, `in 20 s` or `now`. */
export function relative(at: string, nowMs = Date.now()): string {
  const seconds = (new Date(at).getTime() - nowMs) / 1_000;
  if (Math.abs(seconds) < 1) return 'now';
  return seconds > 0 ? `in ${span(seconds)}` : `${span(-seconds)} ago`;
}
