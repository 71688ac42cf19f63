import { Select, TextField } from '../../components/form/field.js';

/** A choice, with a time if the choice is `custom`. */
export interface Expiry {
  readonly choice: string;
  readonly time: string;
}

/** The expiry of a new key; `expiryOf` converts it for the API. */
export function ExpiryField({
  options,
  value,
  onChange,
  error,
}: {
  readonly options: readonly (readonly [choice: string, label: string])[];
  readonly value: Expiry;
  readonly onChange: (value: Expiry) => void;
  readonly error: string | undefined;
}) {
  return (
    <>
      <Select
        label="Expires"
        value={value.choice}
        onChange={(choice) => onChange({ ...value, choice })}
        options={options}
        error={error}
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
