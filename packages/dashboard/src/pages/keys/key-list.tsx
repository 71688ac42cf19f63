import type { PersonalKey } from '@gateway/client';
import { type TableColumns, DialogButton, timeCell } from '../../components/index.js';
import { InUse, RevokeButton, StateBadge } from './in-use.js';
import { EditKey, NewKey } from './key-dialog.js';
import { type KeyRing, stateOf } from './key-ring.js';

export function KeyList({ ring }: { ring: KeyRing }) {
  const { list, label, mayChange, everything } = ring;
  const columns: TableColumns<PersonalKey> = {
    Name: ({ name, mask }) => (
      <>
        {name}
        <br />
        <code>{mask}</code>
      </>
    ),
    Permissions: ({ role, scopes }) => (
      <>
        {role ?? everything}
        {scopes && <p class="muted">{scopes.join(', ')}</p>}
      </>
    ),
    State: (row) => <StateBadge row={row} />,
    'Last used': timeCell('last_used_at', 'relative', 'never'),
    Expires: timeCell('expires_at', 'relative', 'never'),
    Created: timeCell('created_at', 'row'),
    Actions: mayChange && ((row) => <Actions row={row} ring={ring} />),
  };
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
  if (stateOf(row) === 'revoked') return null;
  return (
    <span class="row-actions">
      <DialogButton
        label={`Edit ${row.name}`}
        dialog={(close) => <EditKey ring={ring} row={row} onClose={close} />}
      >
        Edit…
      </DialogButton>
      <DialogButton
        label={`Rotate ${row.name}`}
        dialog={(close) => <NewKey ring={ring} replaces={row} onClose={close} />}
      >
        Rotate…
      </DialogButton>
      <RevokeButton row={row} revoke={ring.revoke}>
        Requests with <code>{row.mask}</code> are rejected immediately, on other servers within a
        second.
      </RevokeButton>
    </span>
  );
}
