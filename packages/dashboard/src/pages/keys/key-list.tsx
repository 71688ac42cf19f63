import type { PersonalKey } from '@gateway/client';
import { useState } from 'preact/hooks';
import { Badge } from '../../components/data/badge.js';
import { Paged } from '../../components/data/paged.js';
import { Table } from '../../components/data/table.js';
import { Time } from '../../components/data/time.js';
import { Empty } from '../../components/feedback/empty.js';
import { toast } from '../../components/feedback/toast.js';
import { Button } from '../../components/form/button.js';
import { ConfirmButton } from '../../components/form/confirm.js';
import { query, setQuery } from '../../router/location.js';
import { NewKey } from './new-key.js';
import { stateOf, type KeyRing } from './key-state.js';

/** Keys that are in use, and with the query `ended` also those that are not. */
export function KeyList({ ring }: { readonly ring: KeyRing }) {
  const { list, label, mayChange, everything } = ring;
  const hasEnded = query.value.get('ended') === '1';
  const columns = [
    { name: 'Name', cell: ({ name }: PersonalKey) => name },
    { name: 'Begins with', cell: ({ mask }: PersonalKey) => <code>{mask}</code> },
    { name: 'May', cell: ({ role }: PersonalKey) => role ?? everything },
    { name: 'State', cell: (row: PersonalKey) => <Badge status={stateOf(row)} tone={stateOf(row) === 'active' ? 'ok' : 'plain'} /> },
    { name: 'Last used', cell: ({ last_used_at: at }: PersonalKey) => (at ? <Time at={at} look="relative" /> : 'never') },
    { name: 'Expires', cell: ({ expires_at: at }: PersonalKey) => (at ? <Time at={at} look="relative" /> : 'never') },
    { name: 'Created', cell: ({ created_at: at }: PersonalKey) => <Time at={at} look="row" /> },
    ...(mayChange ? [{ name: 'Actions', cell: (row: PersonalKey) => <Actions row={row} ring={ring} /> }] : []),
  ];
  return (
    <Paged list={list} lines={3}>
      {(rows) => {
        const shown = rows.filter((row) => hasEnded || stateOf(row) === 'active');
        const endedCount = rows.length - rows.filter((row) => stateOf(row) === 'active').length;
        return (
          <>
            {shown.length > 0 ? (
              <Table<PersonalKey> label={label} columns={columns} rows={shown} />
            ) : (
              <Empty title="No key is in use">
                <p>Programs call the API with a key. {mayChange ? 'Create one; it is shown once.' : 'Ask an admin for one.'}</p>
              </Empty>
            )}
            {endedCount > 0 && (
              <div>
                <Button kind="quiet" isPressed={hasEnded} onPress={() => setQuery({ ended: hasEnded ? undefined : '1' })}>
                  Revoked and expired too ({endedCount})
                </Button>
              </div>
            )}
          </>
        );
      }}
    </Paged>
  );
}

function Actions({ row, ring }: { readonly row: PersonalKey; readonly ring: KeyRing }) {
  const [isRotating, setRotating] = useState(false);
  const { uid, name, mask, last_used_at: used } = row;
  if (stateOf(row) === 'revoked') return null;
  return (
    <span class="row-actions">
      <Button label={`Rotate ${name}`} onPress={() => setRotating(true)}>
        Rotate…
      </Button>
      <ConfirmButton
        label="Revoke…"
        spoken={`Revoke ${name}`}
        title={`Revoke ${name}?`}
        verb="Revoke"
        work={async () => {
          await ring.revoke(uid);
          toast(`${name} was revoked.`);
          ring.list.refresh();
        }}
      >
        <p>
          Requests with <code>{mask}</code> are refused at once, on other servers within a second. This cannot be undone.
        </p>
        <p>
          {used ? (
            <>
              It was used <Time at={used} look="relative" />.
            </>
          ) : (
            'It was never used.'
          )}
        </p>
      </ConfirmButton>
      {isRotating && <NewKey ring={ring} replaces={row} onClose={() => setRotating(false)} />}
    </span>
  );
}
