import type { ChangedApiKey, PersonalKey, Scope } from '@gateway/client';
import { Checkbox, fieldError, Select, TextField } from '../../components/form/field.js';
import type { KeyRing } from './key-state.js';
import { choicesOf, chosenOf, labelOf, withChoice } from './scopes.js';

export interface KeyDraft {
  readonly name: string;
  /** Empty for a key without a role. */
  readonly role: string;
  readonly scopes: readonly Scope[] | null;
}

/** The draft of a key, or of a new one. Drops a role that the ring does not offer. */
export function draftOf(key: PersonalKey | undefined, { roles }: KeyRing): KeyDraft {
  if (!key) return { name: '', role: 'member', scopes: null };
  return {
    name: key.name,
    role: roles.find(([it]) => it === key.role)?.[0] ?? '',
    scopes: key.scopes,
  };
}

/** Converts a draft for the API. */
export function fieldsOf({
  name,
  role,
  scopes,
}: KeyDraft): ChangedApiKey & { readonly name: string } {
  return {
    name: name.trim(),
    role: role === '' ? null : (role as NonNullable<ChangedApiKey['role']>),
    scopes,
  };
}

export function KeyFields({
  ring,
  draft,
  onChange,
  error,
}: {
  readonly ring: KeyRing;
  readonly draft: KeyDraft;
  readonly onChange: (draft: KeyDraft) => void;
  readonly error: Error | undefined;
}) {
  const { name, role, scopes } = draft;
  return (
    <>
      <TextField
        label="Name"
        hint="What uses it: it is named in this list and in the audit log."
        value={name}
        onChange={(it) => onChange({ ...draft, name: it })}
        error={fieldError(error, 'name')}
        isRequired
        hasFocus
      />
      <Select
        label="It may"
        value={role}
        onChange={(it) => onChange({ ...draft, role: it })}
        options={ring.roles}
      />
      <Checkbox
        label="Limit to some resources"
        hint="Scopes. The key reaches only what is chosen here, within its role."
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
