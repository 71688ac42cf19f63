import type { ComponentChildren } from 'preact';

interface Cells<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
}

/** A table of rows that fit on a page; `Log` is for long lists. */
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
      <table>
        <thead>
          <tr>
            {columns.map(({ name, isNumber }) => (
              <th key={name} scope="col" class={isNumber ? 'number-cell' : ''}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.uid}>
              {columns.map(({ name, cell, isNumber }) => (
                <td key={name} class={isNumber ? 'number number-cell' : ''}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
