import type { ComponentChildren } from 'preact';
import type { List } from '../../api/index.js';
import {
  Badge,
  Button,
  type Choices,
  type TableColumns,
  ConfirmButton,
  Empty,
  fieldError,
  Paged,
  Select,
  Table,
  TextField,
  Time,
} from '../../components/index.js';
import { query, setQuery } from '../../router/location.js';
import { stateOf, type Ending, type Expiry } from './key-ring.js';

type Expiring = Ending & {
  readonly uid: string;
  readonly name: string;
  readonly last_used_at: string | null;
};

/**
 * Only active keys or links, unless the query parameter `ended` is set. In an empty list,
 * `children` explain what they are for.
 */
export function InUse<It extends Expiring>({
  list,
  label,
  none,
  columns,
  children,
}: {
  list: List<It>;
  label: string;
  none: string;
  columns: TableColumns<It>;
  children: ComponentChildren;
}) {
  const hasEnded = query.value.get('ended') === '1';
  return (
    <Paged list={list} lines={3}>
      {(rows) => {
        const active = rows.filter((row) => stateOf(row) === 'active');
        const shown = hasEnded ? rows : active;
        const endedCount = rows.length - active.length;
        return (
          <>
            {shown.length > 0 ? (
              <Table label={label} columns={columns} rows={shown} />
            ) : list.hasMore ? (
              <p>None of the newest {rows.length} is active.</p>
            ) : (
              <Empty title={none}>{children}</Empty>
            )}
            {endedCount > 0 && (
              <div>
                <Button
                  kind="quiet"
                  isPressed={hasEnded}
                  onPress={() => setQuery({ ended: hasEnded ? undefined : '1' })}
                >
                  Show revoked and expired ({endedCount})
                </Button>
              </div>
            )}
          </>
        );
      }}
    </Paged>
  );
}

export function StateBadge({ row }: { row: Ending }) {
  const state = stateOf(row);
  return <Badge status={state} tone={state === 'active' ? 'ok' : 'plain'} />;
}

export function RevokeButton({
  row: { uid, name, last_used_at: used },
  revoke,
  children,
}: {
  row: Expiring;
  revoke: (id: string) => Promise<unknown>;
  children: ComponentChildren;
}) {
  return (
    <ConfirmButton
      verb="Revoke"
      what={name}
      isRow
      work={() => revoke(uid)}
      told={`${name} was revoked.`}
    >
      <p>{children} This cannot be undone.</p>
      <p>
        {used ? (
          <>
            Last used <Time at={used} look="relative" />.
          </>
        ) : (
          'Never used.'
        )}
      </p>
    </ConfirmButton>
  );
}

export function ExpiryField({
  options,
  value,
  onChange,
  error,
}: {
  options: Choices;
  value: Expiry;
  onChange: (value: Expiry) => void;
  error: Error | undefined;
}) {
  return (
    <>
      <Select
        label="Expires"
        value={value.choice}
        onChange={(choice) => onChange({ ...value, choice })}
        options={options}
        error={fieldError(error, 'expires_at')}
      />
      {value.choice === 'custom' && (
        <TextField
          label="Time"
          type="datetime-local"
          value={value.time}
          onChange={(time) => onChange({ ...value, time })}
          isRequired
        />
      )}
    </>
  );
}
