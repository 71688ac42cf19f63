import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/** Colours a text when standard output is a terminal that shows colours; `NO_COLOR` switches it off (https://no-color.org). */
export function paint(style: Style, text: string): string {
  const isShown = process.stdout.isTTY && process.stdout.hasColors();
  return isShown ? styleText(style, text) : text;
}

/** The time of day, to the millisecond. */
export function timeOfDay(ms: number): string {
  const date = new Date(ms);
  const [hours, minutes, seconds] = [date.getHours(), date.getMinutes(), date.getSeconds()].map((it) => String(it).padStart(2, '0'));
  return `${hours}:${minutes}:${seconds}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** A text on one line, cut off where it gets long. */
export function excerpt(text: string, length: number): string {
  const line = text.replaceAll(/\s+/g, ' ');
  return line.length > length ? `${line.slice(0, length - 1)}…` : line;
}
