import { escapeLine } from './escape-terminal.js';
import { textTable } from './table.js';

/** A name and its value; a value that is null or empty is left out. */
export type Field = readonly [name: string, value: string | null | undefined];

/**
 * One thing for a person: a line for each field, its values made safe for a terminal and wrapped to its width.
 *
 * @param width columns of the terminal; without it nothing is wrapped
 */
export function recordText(fields: readonly Field[], width: number | undefined = process.stdout.columns): string {
  const shown = fields.flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [[name, escapeLine(value)]],
  );
  return textTable(shown, width);
}

/** `1 event`, `1,200 events`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : several}`;
}
