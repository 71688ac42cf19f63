import type { ChangedApiKey, PersonalKey, Scope } from '@gateway/client';
import { useState } from 'preact/hooks';
import { useAction } from '../../api/change.js';
import { NewSecret } from '../../components/data.js';
import { Problem, toast } from '../../components/feedback.js';
import { Checkbox, fieldError, Select, TextField } from '../../components/field.js';
import { Dialog, FormDialog } from '../../components/form.js';
import { Button } from '../../components/layout.js';
import { ExpiryField, type Expiry } from './in-use.js';
import {
  choicesOf,
  chosenOf,
  EXPIRIES,
  expiryOf,
  labelOf,
  withChoice,
  type KeyRing,
} from './key-ring.js';

/**
 * Shows the new key. To replace another key, copies its name, role and scopes, then offers to
 * revoke it.
 */
export function NewKey({
  ring,
  replaces,
  onClose,
}: {
  ring: KeyRing;
  replaces?: PersonalKey;
  onClose: () => void;
}) {
  const [draft, setDraft] = useState(draftOf(replaces));
  const [expiry, setExpiry] = useState<Expiry>({ choice: EXPIRIES[0][0], time: '' });
  const [key, setKey] = useState<string>();
  const creating = useAction(async () => {
    const created = await ring.create({
      ...fieldsOf(draft),
      expires_at: expiryOf(expiry.choice, expiry.time),
    });
    setKey(created.key);
    ring.list.refresh();
  });
  const revoking = useAction(async () => {
    await ring.revoke(replaces?.uid ?? '');
    toast('The old key was revoked.');
    ring.list.refresh();
    onClose();
  });
  const title = replaces ? `Rotate ${replaces.name}` : 'New API key';
  if (key !== undefined) {
    return (
      <Dialog
        title={title}
        onClose={onClose}
        actions={
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
        <NewSecret what="API key" secret={key} />
        {replaces && (
          <p>
            Both keys work until you revoke the old one, <code>{replaces.mask}</code>. Update
            everything that uses it first.
          </p>
        )}
        {revoking.error && <Problem error={revoking.error} />}
      </Dialog>
    );
  }
  return (
    <FormDialog title={title} verb="Create key" action={creating} onClose={onClose}>
      <KeyFields ring={ring} draft={draft} onChange={setDraft} error={creating.error} />
      <ExpiryField
        options={EXPIRIES}
        value={expiry}
        onChange={setExpiry}
        error={fieldError(creating.error, 'expires_at')}
      />
    </FormDialog>
  );
}

export function EditKey({
  ring,
  row,
  onClose,
}: {
  ring: KeyRing;
  row: PersonalKey;
  onClose: () => void;
}) {
  const [draft, setDraft] = useState(draftOf(row));
  const saving = useAction(async () => {
    await ring.update(row.uid, fieldsOf(draft));
    toast(`${row.name} was changed.`);
    ring.list.refresh();
    onClose();
  });
  return (
    <FormDialog title={`Edit ${row.name}`} verb="Save key" action={saving} onClose={onClose}>
      <KeyFields ring={ring} draft={draft} onChange={setDraft} error={saving.error} />
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
  return {
    name: key.name,
    role: key.role ?? '',
    scopes: key.scopes,
  };
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
  draft,
  onChange,
  error,
}: {
  ring: KeyRing;
  draft: KeyDraft;
  onChange: (draft: KeyDraft) => void;
  error: Error | undefined;
}) {
  const { name, role, scopes } = draft;
  return (
    <>
      <TextField
        label="Name"
        hint="The program that uses the key. Shown in this list and in the audit log."
        value={name}
        onChange={(it) => onChange({ ...draft, name: it })}
        error={fieldError(error, 'name')}
        isRequired
        hasFocus
      />
      <Select
        label="Permissions"
        value={role}
        onChange={(it) => onChange({ ...draft, role: it })}
        options={withRole(ring.roles, role)}
      />
      <Checkbox
        label="Limit to selected resources"
        hint="Scopes limit the key to the resources selected here, within its role."
        isOn={scopes !== null}
        onChange={(isOn) => onChange({ ...draft, scopes: isOn ? [] : null })}
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
                onChange={(choice) =>
                  onChange({ ...draft, scopes: withChoice(scopes, resource, choice) })
                }
                options={choicesOf(resource)}
              />
            ))}
          </div>
        </fieldset>
      )}
    </>
  );
}
