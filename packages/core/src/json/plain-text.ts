/**
 * Characters that no name may contain, as the inside of a character class: control characters, which terminals and mail obey, and those that change the direction of text.
 * https://trojansource.codes explains the latter.
 */
export const CONTROLS = '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';

const FOUND = new RegExp(`[${CONTROLS}]`, 'g');

/** True if a name contains none of them. */
export function isPlain(name: string): boolean {
  return name.search(FOUND) === -1;
}

/** The text without them. */
export function plainOf(text: string): string {
  return text.replace(FOUND, '');
}
