import type { ChangedApiKey, PersonalKey, Scope } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/index.js';
import {
  Button,
  Checkbox,
  DialogButton,
  FormDialog,
  type FormState,
  NewSecret,
  Problem,
  Select,
  type TableColumns,
  TextField,
  timeCell,
  toast,
  useForm,
} from '../../components/index.js';
import { ExpiryField, InUse, RevokeButton, StateBadge } from './in-use.js';
import {
  choicesOf,
  chosenOf,
  EXPIRIES,
  expiryOf,
  type KeyRing,
  labelOf,
  newExpiry,
  stateOf,
  withChoice,
} from './key-ring.js';

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
    <>
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
    </>
  );
}

/** To replace another key, copies its name, role and scopes, then offers to revoke it. */
export function NewKey({
  ring,
  replaces,
  onClose,
}: {
  ring: KeyRing;
  replaces?: PersonalKey;
  onClose: () => void;
}) {
  const [key, setKey] = useState<string>();
  const form = useForm({ ...draftOf(replaces), expiry: newExpiry(EXPIRIES) }, async (values) => {
    const expires_at = expiryOf(values.expiry);
    const created = await ring.create({ ...fieldsOf(values), expires_at });
    setKey(created.key);
  });
  const revoking = useAction(async () => {
    await ring.revoke(replaces?.uid ?? '');
    toast('The old key was revoked.');
    onClose();
  });
  return (
    <FormDialog
      title={replaces ? `Rotate ${replaces.name}` : 'New API key'}
      verb="Create key"
      action={form}
      onClose={onClose}
      done={
        key !== undefined && (
          <>
            <NewSecret what="API key" secret={key} />
            {replaces && (
              <p>
                Both keys work until you revoke the old one, <code>{replaces.mask}</code>. Update
                everything that uses it first.
              </p>
            )}
            {revoking.error && <Problem error={revoking.error} />}
          </>
        )
      }
      doneActions={
        <>
          {replaces && (
            <Button kind="danger" isRunning={revoking.isRunning} onPress={revoking.run}>
              Revoke old key
            </Button>
          )}
          <Button onPress={onClose}>{replaces ? 'Revoke later' : 'Done'}</Button>
        </>
      }
    >
      <KeyFields ring={ring} form={form} />
      <ExpiryField
        options={EXPIRIES}
        value={form.values.expiry}
        onChange={form.set('expiry')}
        error={form.error}
      />
    </FormDialog>
  );
}

function EditKey({ ring, row, onClose }: { ring: KeyRing; row: PersonalKey; onClose: () => void }) {
  const form = useForm(draftOf(row), async (values) => {
    await ring.update(row.uid, fieldsOf(values));
    toast(`${row.name} was changed.`);
    onClose();
  });
  return (
    <FormDialog title={`Edit ${row.name}`} verb="Save key" action={form} onClose={onClose}>
      <KeyFields ring={ring} form={form} />
    </FormDialog>
  );
}

interface KeyDraft {
  readonly name: string;
  /** Empty for a key without a role. */
  readonly role: string;
  readonly scopes: readonly Scope[] | null;
}

function draftOf(key: PersonalKey | undefined): KeyDraft {
  if (!key) return { name: '', role: 'member', scopes: null };
  return { name: key.name, role: key.role ?? '', scopes: key.scopes };
}

function fieldsOf({ name, role, scopes }: KeyDraft): ChangedApiKey & { readonly name: string } {
  return {
    name: name.trim(),
    role: role === '' ? null : (role as NonNullable<ChangedApiKey['role']>),
    scopes,
  };
}

/**
 * Adds a role that the ring does not offer: without it, the form would show and save a different
 * one.
 */
function withRole(roles: KeyRing['roles'], role: string): KeyRing['roles'] {
  return roles.some(([it]) => it === role) ? roles : [...roles, [role, role]];
}

function KeyFields({
  ring,
  form,
}: {
  ring: KeyRing;
  form: Pick<FormState<KeyDraft>, 'values' | 'set' | 'text'>;
}) {
  const { role, scopes } = form.values;
  const setScopes = form.set('scopes');
  return (
    <>
      <TextField
        label="Name"
        hint="The program that uses the key. Shown in this list and in the audit log."
        {...form.text('name')}
        isRequired
        hasFocus
      />
      <Select label="Permissions" options={withRole(ring.roles, role)} {...form.text('role')} />
      <Checkbox
        label="Limit to selected resources"
        hint="Scopes limit the key to the resources selected here, within its role."
        isOn={scopes !== null}
        onChange={(isOn) => setScopes(isOn ? [] : null)}
      />
      {scopes && (
        <fieldset class="field-group">
          <legend>Scopes</legend>
          <div class="field-row">
            {ring.resources.map((resource) => (
              <Select
                key={resource}
                label={labelOf(resource)}
                value={chosenOf(scopes, resource)}
                onChange={(choice) => setScopes(withChoice(scopes, resource, choice))}
                options={choicesOf(resource)}
              />
            ))}
          </div>
        </fieldset>
      )}
    </>
  );
}
