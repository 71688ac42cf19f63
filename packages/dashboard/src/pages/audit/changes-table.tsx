import type { AuditEntry } from '@gateway/client';
import { Table } from '../../components/data/table.js';
import { changesOf, type Change } from './changes.js';

type Row = Change & { readonly uid: string };

export function Changes({ changes }: Pick<AuditEntry, 'changes'>) {
  const rows = changesOf(changes).map((it) => ({ ...it, uid: it.field }));
  if (rows.length === 0) return <p class="muted">No value changed.</p>;
  return (
    <div class="changes">
      <Table<Row> label="Changes" columns={columns} rows={rows} />
    </div>
  );
}

const columns = [
  { name: 'Field', cell: ({ field }: Row) => <code>{field}</code> },
  { name: 'Before', cell: ({ before }: Row) => before !== undefined && <del>{before}</del> },
  { name: 'After', cell: ({ after }: Row) => after !== undefined && <ins>{after}</ins> },
];
