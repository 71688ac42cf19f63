import { escapeLine } from './escape-terminal.js';

const GAP = 2;

type Rows = readonly (readonly string[])[];

export type Column<Item> = readonly [head: string, cell: (item: Item) => string];

/** Formats items as JSON, as a table that fits the terminal, or else as blocks. */
export function answerTable<Item>(
  items: readonly Item[],
  columns: readonly Column<Item>[],
  { json }: { json: boolean },
): string {
  if (json) return JSON.stringify(items, null, 2);
  const rows = [
    columns.map(([head]) => head),
    ...items.map((it) => columns.map(([, cell]) => cell(it))),
  ];
  const { columns: width = Infinity } = process.stdout;
  return narrowestWidth(rows) > width ? textBlocks(rows, width) : textTable(rows, width);
}

/**
 * Aligns rows in columns. Wide cells wrap between words, the widest column first. Words, and
 * therefore ids, are never split.
 */
export function textTable(rows: Rows, width = Infinity): string {
  const widths = fittedWidths(rows, width);
  const lines = rows.flatMap((row) => {
    const cells = widths.map((it, i) => wrap(row[i] ?? '', it));
    const height = Math.max(...cells.map((wrapped) => wrapped.length));
    return Array.from({ length: height }, (_, line) =>
      cells.map((wrapped, i) => (wrapped[line] ?? '').padEnd(widths[i]! + GAP)).join(''),
    );
  });
  return lines.map((line) => line.trimEnd()).join('\n');
}

/** Formats each row as a block, for a terminal narrower than the narrowest table. */
export function textBlocks([heads = [], ...rows]: Rows, width = Infinity): string {
  const blocks = rows.map((row) => heads.map((head, i) => [head, row[i] ?? '']));
  return blocks.map((block) => textTable(block, width)).join('\n\n');
}

/** Returns the width of the longest words side by side, the limit of wrapping. */
export function narrowestWidth(rows: Rows): number {
  return widthOf(columnsOf(rows).map(longestWord));
}

/** A longer word gets a separate line. */
function wrap(text: string, width: number): string[] {
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

function fittedWidths(rows: Rows, width: number): number[] {
  const columns = columnsOf(rows);
  const widths = columns.map(longest);
  const least = columns.map(longestWord);
  for (let over = widthOf(widths) - width; over > 0; over--) {
    const widest = [...widths.keys()]
      .filter((i) => widths[i]! > least[i]!)
      .sort((a, b) => widths[b]! - widths[a]!)[0];
    if (widest === undefined) break;
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

/** `Math.max` fails for a hundred thousand arguments. */
function longest(texts: readonly string[]): number {
  return texts.reduce((most, text) => (text.length > most ? text.length : most), 0);
}

function widthOf(widths: readonly number[]): number {
  return widths.reduce((sum, it) => sum + it, 0) + GAP * Math.max(0, widths.length - 1);
}

/** Null and empty values are omitted. */
export type Field = readonly [name: string, value: string | null | undefined];

/** Formats one line per field, escaped for a terminal and wrapped to its width. */
export function recordText(
  fields: readonly Field[],
  width: number | undefined = process.stdout.columns,
): string {
  const shown = fields.flatMap(([name, value]) =>
    value === null || value === undefined || value === '' ? [] : [[name, escapeLine(value)]],
  );
  return textTable(shown, width);
}

/** Returns `1 event`, `1,200 events`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : several}`;
}
