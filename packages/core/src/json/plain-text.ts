/**
 * Control characters, which terminals and mail clients interpret, and bidirectional controls
 * (https://trojansource.codes). For use inside a character class.
 */
export const CONTROLS =
  '\\u0000-\\u001f\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069';

const FOUND = new RegExp(`[${CONTROLS}]`, 'g');

export function isPlain(name: string): boolean {
  return name.search(FOUND) === -1;
}

export function plainOf(text: string): string {
  return text.replace(FOUND, '');
}
