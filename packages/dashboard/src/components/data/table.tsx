import type { ComponentChildren } from 'preact';

interface Cells<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
}

/**
 * A table of rows that fit on a page; `Log` is for long lists. On phones a row is a card that
 * labels each value with its column.
 */
export function Table<Row extends { readonly uid: string }>({
  label,
  columns,
  rows,
}: {
  readonly label: string;
  readonly columns: readonly Cells<Row>[];
  readonly rows: readonly Row[];
}) {
  return (
    <div class="table" role="group" aria-label={label} tabIndex={0}>
      {/* Explicit roles: some screen readers ignore a table whose `display` is overridden. */}
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {columns.map(({ name, isNumber }) => (
              <th key={name} role="columnheader" scope="col" class={isNumber ? 'number-cell' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={row.uid} role="row">
              {columns.map(({ name, cell, isNumber }) => (
                <td
                  key={name}
                  role="cell"
                  data-name={name}
                  class={isNumber ? 'number number-cell' : ''}
                >
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
