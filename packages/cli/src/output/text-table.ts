const GAP = 2;
/** What the last column keeps, as long as others can give way. */
const LAST_MIN = 20;

type Rows = readonly (readonly string[])[];

/**
 * Rows as aligned columns, the first row being the heads. Where they are wider than the terminal, cells are wrapped between words: those of the last
 * column first, then always those of the widest. A word, and so an id, is never cut.
 *
 * @param width columns of the terminal; without one nothing is wrapped
 */
export function textTable(rows: Rows, width = Infinity): string {
  const widths = fitted(rows, width);
  return rows
    .flatMap((row) => {
      const cells = widths.map((it, i) => wrap(row[i] ?? '', it));
      const height = Math.max(...cells.map((lines) => lines.length));
      return Array.from({ length: height }, (_, line) =>
        cells
          .map((lines, i) => (lines[line] ?? '').padEnd(widths[i]! + GAP))
          .join('')
          .trimEnd(),
      );
    })
    .join('\n');
}

/** The rows below one another, each with the heads before its cells: for a terminal that is narrower than the narrowest table. */
export function textBlocks([heads = [], ...rows]: Rows, width = Infinity): string {
  return rows
    .map((row) =>
      textTable(
        heads.map((it, i) => [it, row[i] ?? '']),
        width,
      ),
    )
    .join('\n\n');
}

/** The width that no wrapping goes below: the longest word of each column side by side. */
export function narrowestWidth(rows: Rows): number {
  return widthOf(columnsOf(rows).map(longestWord));
}

/** The lines of a text, each no longer than the width unless a single word is. */
export function wrap(text: string, width: number): string[] {
  return text.split('\n').flatMap((paragraph) => {
    const lines = [''];
    for (const word of paragraph.split(' ')) {
      const line = lines.at(-1)!;
      if (line !== '' && line.length + 1 + word.length > width) lines.push(word);
      else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
    }
    return lines;
  });
}

function fitted(rows: Rows, width: number): number[] {
  const columns = columnsOf(rows);
  const widths = columns.map(longest);
  const least = columns.map(longestWord);
  const last = widths.length - 1;
  let over = widthOf(widths) - width;
  if (last < 0 || over <= 0) return widths;
  const kept = Math.max(widths[last]! - over, Math.min(widths[last]!, Math.max(LAST_MIN, least[last]!)));
  over -= widths[last]! - kept;
  widths[last] = kept;
  for (; over > 0; over--) {
    const giving = [...widths.keys()].filter((i) => widths[i]! > least[i]!);
    if (giving.length === 0) break;
    const widest = giving.reduce((a, b) => (widths[b]! > widths[a]! ? b : a));
    widths[widest]!--;
  }
  return widths;
}

function columnsOf(rows: Rows): string[][] {
  return (rows[0] ?? []).map((_, i) => rows.map((row) => row[i] ?? ''));
}

function longestWord(cells: readonly string[]): number {
  return longest(cells.flatMap((cell) => cell.split(/[ \n]/)));
}

/** No `Math.max`, which cannot take a table of a hundred thousand rows. */
function longest(texts: readonly string[]): number {
  return texts.reduce((most, text) => (text.length > most ? text.length : most), 0);
}

function widthOf(widths: readonly number[]): number {
  return widths.reduce((sum, it) => sum + it, 0) + GAP * Math.max(0, widths.length - 1);
}
