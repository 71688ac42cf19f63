import type { PersonalKey } from '@gateway/client';
import { useState } from 'preact/hooks';
import { timeColumn, type TableColumn } from '../../components/data.js';
import { Button } from '../../components/layout.js';
import { InUse, RevokeButton, StateBadge } from './in-use.js';
import { EditKey, NewKey } from './key-dialog.js';
import { stateOf, type KeyRing } from './key-ring.js';

export function KeyList({ ring }: { ring: KeyRing }) {
  const { list, label, mayChange, everything } = ring;
  const columns: readonly TableColumn<PersonalKey>[] = [
    {
      name: 'Name',
      cell: ({ name, mask }) => (
        <>
          {name}
          <br />
          <code>{mask}</code>
        </>
      ),
    },
    {
      name: 'Permissions',
      cell: ({ role, scopes }) => (
        <>
          {role ?? everything}
          {scopes && <p class="muted">{scopes.join(', ')}</p>}
        </>
      ),
    },
    { name: 'State', cell: (row) => <StateBadge row={row} /> },
    timeColumn('Last used', 'last_used_at', 'relative', 'never'),
    timeColumn('Expires', 'expires_at', 'relative', 'never'),
    timeColumn('Created', 'created_at', 'row'),
    ...(mayChange
      ? [{ name: 'Actions', cell: (row: PersonalKey) => <Actions row={row} ring={ring} /> }]
      : []),
  ];
  return (
    <InUse list={list} label={label} none="No active keys" columns={columns}>
      <p>
        Programs call the API with a key.{' '}
        {mayChange
          ? 'A key is shown only once, when you create it.'
          : 'Ask an admin to create one.'}
      </p>
    </InUse>
  );
}

function Actions({ row, ring }: { row: PersonalKey; ring: KeyRing }) {
  const [open, setOpen] = useState<'edit' | 'rotate'>();
  const onClose = () => setOpen(undefined);
  if (stateOf(row) === 'revoked') return null;
  return (
    <span class="row-actions">
      <Button label={`Edit ${row.name}`} onPress={() => setOpen('edit')}>
        Edit…
      </Button>
      <Button label={`Rotate ${row.name}`} onPress={() => setOpen('rotate')}>
        Rotate…
      </Button>
      <RevokeButton row={row} of={ring}>
        Requests with <code>{row.mask}</code> are rejected immediately, on other servers within a
        second.
      </RevokeButton>
      {open === 'edit' && <EditKey ring={ring} row={row} onClose={onClose} />}
      {open === 'rotate' && <NewKey ring={ring} replaces={row} onClose={onClose} />}
    </span>
  );
}
