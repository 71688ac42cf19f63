import { styleText } from 'node:util';

type Style = Parameters<typeof styleText>[0];

/**
 * Only if standard output is a terminal that supports colours. Disabled by `NO_COLOR`
 * (https://no-color.org).
 */
export function paint(style: Style, text: string): string {
  const isShown = process.stdout.isTTY && process.stdout.hasColors();
  return isShown ? styleText(style, text) : text;
}

/** `HH:MM:SS.mmm` in the local time zone. */
export function timeOfDay(ms: number): string {
  const date = new Date(ms);
  const milliseconds = String(date.getMilliseconds()).padStart(3, '0');
  return `${date.toLocaleTimeString('en-GB')}.${milliseconds}`;
}
