/**
 * As the HTTP binding of CloudEvents 1.0 writes an attribute: printable ASCII without blanks, quotes
 * and percent signs, the rest percent-encoded.
 */
export function headerValue(text: string): string {
  return text.replace(/[^!#$&-~]+/gu, (characters) => encodeURIComponent(characters));
}

/** Reads what `headerValue` writes, and the quoted strings of other writers. */
export function textOfHeader(value: string): string {
  const [, quoted] = /^"(.*)"$/.exec(value) ?? [];
  const text = quoted === undefined ? value : quoted.replace(/\\(.)/g, '$1');
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
