const graphemes = new Intl.Segmenter();

/** The units before and after the cut in which a grapheme or a character reference is looked for. */
const WINDOW = 100;

/**
 * Returns the text or, if it has more than `max` UTF-16 units, its beginning and `mark`, together at
 * most `max`. Never cuts within what people see as one character (a surrogate pair, a grapheme) or a
 * character reference of HTML, such as `&amp;`.
 */
export function clip(text: string, max: number, mark = '…'): string {
  if (text.length <= max) return text;
  const end = Math.max(0, max - mark.length);
  const from = Math.max(0, end - WINDOW);
  const near = text.slice(from, end + WINDOW);
  let at = end - from;
  for (const { 0: reference, index } of near.matchAll(/&(?:#x?[0-9a-f]+|[a-z][0-9a-z]*);/gi))
    if (index < at && at < index + reference.length) at = index;
  const start = graphemes.segment(near).containing(at)?.index ?? at;
  // A longer grapheme, such as a letter with a thousand accents, is cut between its code points.
  const cut = start > 0 || from === 0 ? from + start : end;
  return text.slice(0, cut).replace(/[\ud800-\udbff]$/, '') + mark;
}
