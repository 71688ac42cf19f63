/**
 * Rows as aligned columns, the first row being the heads. The last column takes what is left of the width and is wrapped.
 *
 * @param width columns of the terminal; without one nothing is wrapped
 */
export function textTable(rows: readonly (readonly string[])[], width = Infinity): string {
  const columns = rows[0]?.length ?? 0;
  const widths = Array.from({ length: columns }, (_, i) => Math.max(...rows.map((row) => row[i]?.length ?? 0)));
  const left = widths.slice(0, -1).reduce((sum, it) => sum + it + 2, 0);
  const last = Math.max(20, width - left);
  return rows
    .flatMap((row) => {
      const head = row
        .slice(0, -1)
        .map((cell, i) => cell.padEnd(widths[i]! + 2))
        .join('');
      return wrap(row.at(-1) ?? '', last).map((line, i) => ((i === 0 ? head : ' '.repeat(left)) + line).trimEnd());
    })
    .join('\n');
}

function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
