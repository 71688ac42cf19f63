import { Table } from '../../components/data/table.js';
import { schemaRows, type SchemaRow } from './schema-rows.js';

export function SchemaTable({ schema }: { readonly schema: unknown }) {
  const rows = schemaRows(schema);
  if (rows.length === 0) return <p class="muted">The schema names no fields.</p>;
  return <Table<SchemaRow> label="Fields" rows={rows} columns={columns} />;
}

const columns = [
  {
    name: 'Field',
    cell: ({ uid, isRequired }: SchemaRow) => (
      <>
        <span class="mono">{uid}</span> {!isRequired && <span class="muted">optional</span>}
      </>
    ),
  },
  { name: 'Type', cell: ({ type }: SchemaRow) => type },
  {
    name: 'Meaning',
    cell: ({ description, rules }: SchemaRow) => (
      <>
        {description} {rules && <span class="muted">{description ? `(${rules})` : rules}</span>}
      </>
    ),
  },
];
