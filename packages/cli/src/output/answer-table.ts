import * as Flags from '@oclif/core/flags';
import { narrowestWidth, textBlocks, textTable } from './text-table.js';

/** The flag of every command that prints a table. */
export const jsonFlag = { json: Flags.boolean({ summary: 'Print JSON in place of a table.' }) };

/** One column of a table: its head, and what stands in it. */
export type Column<Item> = readonly [head: string, cell: (item: Item) => string];

/**
 * What a command answers with: the records as JSON, whole, or as a table that fits the terminal. Where no table fits, the records stand below one another.
 *
 * @param columns the last one is wrapped first where the terminal is narrow
 */
export function answerTable<Item>(records: readonly Item[], columns: readonly Column<Item>[], { json }: { json: boolean }): string {
  if (json) return JSON.stringify(records, null, 2);
  const rows = [columns.map(([head]) => head), ...records.map((it) => columns.map(([, cell]) => cell(it)))];
  const { columns: width = Infinity } = process.stdout;
  return narrowestWidth(rows) > width ? textBlocks(rows, width) : textTable(rows, width);
}
