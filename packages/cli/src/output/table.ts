import { escapeLine } from './escape-terminal.js';

const GAP = 2;

type Rows = readonly (readonly string[])[];

type Cell = string | number | null | undefined;

/** The cell is a property, or made from the item. It is clipped to `chars`. */
export type TextColumn<Item> = readonly [
  head: string,
  cell: (keyof Item & string) | ((item: Item) => Cell),
  chars?: number,
];

/**
 * JSON, a table or, on a narrow terminal, one block per item. Cells are safe to print on a
 * terminal; null is `-`.
 */
export function answerTable<Item>(
  items: readonly Item[],
  columns: readonly TextColumn<Item>[],
  { json }: { json: boolean },
): string {
  if (json) return JSON.stringify(items, null, 2);
  const heads = columns.map(([head]) => head);
  const rows = items.map((it) =>
    columns.map(([, cell, chars]) => {
      const value = typeof cell === 'function' ? cell(it) : (it[cell] as Cell);
      return escapeLine(String(value ?? '-'), chars);
    }),
  );
  const { columns: width = Infinity } = process.stdout;
  const table = textTable([heads, ...rows], width);
  return longest(table.split('\n')) > width ? textBlocks(heads, rows, width) : table;
}

/** Wraps the last column to the width. Words, such as ids, are never split. */
export function textTable(rows: Rows, width = Infinity): string {
  const widths = (rows[0] ?? []).map((_, i) => longest(rows.map((row) => row[i] ?? '')) + GAP);
  const indent = widths.slice(0, -1).reduce((sum, it) => sum + it, 0);
  const line = (row: readonly string[]) => {
    const [last = '', ...before] = [...row].reverse();
    const cells = before.reverse().map((cell, i) => cell.padEnd(widths[i]!));
    return (cells.join('') + wrap(last, width - indent).join(`\n${' '.repeat(indent)}`)).trimEnd();
  };
  return rows.map(line).join('\n');
}

/** For a terminal narrower than the table. */
export function textBlocks(heads: readonly string[], rows: Rows, width = Infinity): string {
  const blocks = rows.map((row) => heads.map((head, i) => [head, row[i] ?? '']));
  return blocks.map((block) => textTable(block, width)).join('\n\n');
}

function wrap(text: string, width: number): string[] {
  if (text.length <= width) return [text];
  const lines = text.match(new RegExp(`.{1,${Math.max(1, width)}}(?: |$)|\\S+ ?`, 'g')) ?? [];
  return lines.map((line) => line.trimEnd());
}

/** A single `Math.max` would fail for a hundred thousand arguments. */
function longest(texts: readonly string[]): number {
  return texts.reduce((most, text) => Math.max(most, text.length), 0);
}

/** A falsy value is omitted from the output. */
export type Field = readonly [name: string, value: string | false | null | undefined];

/** One line per field, escaped for a terminal and wrapped to its width. */
export function recordText(
  fields: readonly Field[],
  width: number | undefined = process.stdout.columns,
): string {
  const shown = fields.flatMap(([name, value]) => (value ? [[name, escapeLine(value)]] : []));
  return textTable(shown, width);
}

/** Such as `1 event` or `1,200 events`. */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count.toLocaleString('en-US')} ${count === 1 ? one : several}`;
}
