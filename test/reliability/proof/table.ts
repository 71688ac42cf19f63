import type { Report } from './reconcile.js';

export function reportTable({ lines, isBalanced }: Report): string {
  const rows = [
    ['', 'what', 'expected', 'found'],
    ...lines.map(({ what, expected, found, ok }) => [ok ? 'ok' : 'WRONG', what, expected, found]),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => row[column]!.length)));
  const text = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
  const wrong = lines.filter(({ ok }) => !ok).length;
  const verdict = isBalanced
    ? 'The report balances.'
    : `The report does not balance: ${wrong} of ${lines.length} lines are wrong.`;
  return [...text, '', verdict, ''].join('\n');
}
