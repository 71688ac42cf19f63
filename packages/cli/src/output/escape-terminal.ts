import { clip } from '@gateway/core/json';

/**
 * Characters that a terminal interprets: control characters (C0 without tab and line feed, DEL,
 * C1), and those that change the text direction or break lines invisibly
 * (https://trojansource.codes).
 */
const OBEYED =
  // eslint-disable-next-line no-control-regex
  /[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** As `\x1b` or `\u202e`. Line feeds and tabs are unchanged. */
export function escapeTerminal(text: string): string {
  return text.replace(OBEYED, (character) => {
    const code = character.charCodeAt(0);
    return code < 0x100
      ? `\\x${code.toString(16).padStart(2, '0')}`
      : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}

/** Joins the lines. `length` is in characters. */
export function escapeLine(text: string, length = Infinity): string {
  const line = escapeTerminal(text).replaceAll(/\s+/g, ' ').trim();
  return clip(line, length);
}
