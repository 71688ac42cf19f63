/**
 * Forbidden in names: control characters, which terminals and mail interpret, and changes of text
 * direction (https://trojansource.codes). The inside of a character class.
 */
export const CONTROLS =
  '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';

const FOUND = new RegExp(`[${CONTROLS}]`, 'g');

/** True for a name without `CONTROLS`. */
export function isPlain(name: string): boolean {
  return name.search(FOUND) === -1;
}

/** Removes `CONTROLS` from a text. */
export function plainOf(text: string): string {
  return text.replace(FOUND, '');
}
