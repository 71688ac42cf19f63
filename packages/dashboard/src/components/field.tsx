import { GatewayApiError } from '@gateway/client';
import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import type { Draft } from '../api/index.js';

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly hint?: ComponentChildren;
  readonly error?: string | undefined;
  readonly name?: string;
  readonly isRequired?: boolean;
  readonly isDisabled?: boolean;
}

export function fieldError(error: Error | undefined, field: string): string | undefined {
  if (!(error instanceof GatewayApiError)) return undefined;
  return error.errors.find((it) => it.field === field)?.sentence;
}

type TextName<Values> = {
  [Name in keyof Values]: Values[Name] extends string ? Name : never;
}[keyof Values] &
  string;

/**
 * Value, handler and error of a text field in a draft, as in `<TextField label="Name"
 * {...field('name')} />`. `path` is the field's name in the API.
 */
export function textsOf<Values extends object>(
  { values, set }: Pick<Draft<Values>, 'values' | 'set'>,
  error: Error | undefined,
) {
  return (name: TextName<Values>, path: string = name) => ({
    value: values[name] as string,
    onChange: set(name) as (value: string) => void,
    error: fieldError(error, path),
  });
}

/**
 * For a field or a part of it, such as `event_types.0` or `json_schema.properties`. For a part, the
 * error includes its path.
 */
export function errorBelow(error: Error | undefined, field: string): string | undefined {
  if (!(error instanceof GatewayApiError)) return undefined;
  const found = error.errors.find((it) => it.field === field || it.field.startsWith(`${field}.`));
  const place = found?.field.slice(field.length + 1);
  return found && (place ? `${found.sentence} (at ${place})` : found.sentence);
}

interface InputAttributes {
  readonly id: string;
  readonly 'aria-describedby': string | undefined;
  readonly 'aria-invalid': boolean | undefined;
}

export function Field({
  label,
  hint,
  error,
  children,
}: Pick<FieldProps, 'label' | 'hint' | 'error'> & {
  children: (wiring: InputAttributes) => ComponentChildren;
}) {
  const id = useId();
  const described = [hint && `${id}-hint`, error && `${id}-error`].filter(Boolean).join(' ');
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {hint && (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
      {children({
        id,
        'aria-describedby': described || undefined,
        'aria-invalid': error ? true : undefined,
      })}
      {error && (
        <p class="field-error" id={`${id}-error`}>
          {label} {error}
        </p>
      )}
    </div>
  );
}

export function TextField({
  type = 'text',
  placeholder,
  autocomplete,
  isMono = false,
  hasFocus = false,
  ...field
}: FieldProps & {
  type?: 'text' | 'password' | 'email' | 'url' | 'number' | 'datetime-local';
  placeholder?: string;
  autocomplete?: string;
  isMono?: boolean;
  hasFocus?: boolean;
}) {
  return (
    <Field {...field}>
      {(wiring) => (
        <input
          {...wiring}
          class={isMono ? 'mono' : ''}
          {...({ type } as { type: 'text' })}
          name={field.name}
          value={field.value}
          placeholder={placeholder}
          required={field.isRequired}
          disabled={field.isDisabled}
          autocomplete={autocomplete ?? 'off'}
          autofocus={hasFocus}
          onInput={(event) => field.onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function TextArea({
  rows = 4,
  isMono = false,
  ...field
}: FieldProps & { rows?: number; isMono?: boolean }) {
  return (
    <Field {...field}>
      {(wiring) => (
        <textarea
          {...wiring}
          class={isMono ? 'mono' : ''}
          rows={rows}
          name={field.name}
          value={field.value}
          required={field.isRequired}
          disabled={field.isDisabled}
          spellcheck={!isMono}
          onInput={(event) => field.onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function Select({
  options,
  other,
  ...field
}: FieldProps & { options: Choices; other?: string }) {
  return (
    <Field {...field}>
      {(wiring) => (
        <select
          {...wiring}
          name={field.name}
          value={field.value}
          disabled={field.isDisabled}
          onChange={(event) => field.onChange(event.currentTarget.value)}
        >
          <Options options={options} chosen={field.value} other={other} />
        </select>
      )}
    </Field>
  );
}

export function Checkbox({
  label,
  isOn,
  onChange,
  hint,
}: {
  label: string;
  isOn: boolean;
  onChange: (isOn: boolean) => void;
  hint?: string;
}) {
  const id = useId();
  return (
    <div class="checkbox">
      <input
        id={id}
        type="checkbox"
        checked={isOn}
        aria-describedby={hint && `${id}-hint`}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      {hint && (
        <p class="field-hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

export type Choices = readonly (readonly [value: string, label: string, ...more: unknown[]])[];

/**
 * `other` labels a selected value that is not among the options, such as one set by a URL
 * parameter.
 */
export function Options({
  options,
  chosen,
  other,
}: {
  options: Choices;
  chosen: string;
  other?: string | undefined;
}) {
  const isKnown = options.some(([value]) => value === chosen);
  return (
    <>
      {options.map(([value, label]) => (
        <option key={value} value={value} selected={value === chosen}>
          {label}
        </option>
      ))}
      {!isKnown && other !== undefined && (
        <option value={chosen} selected>
          {other}
        </option>
      )}
    </>
  );
}

/** The words of the API; `''` means all of them. */
export function anyOf<Word extends string>(
  all: string,
  words: readonly Word[],
): readonly (readonly [value: Word | '', label: string])[] {
  return [['', all], ...words.map((it) => [it, it] as const)];
}

/** Sorted by name. */
export function byName(
  things: readonly { readonly uid: string; readonly name: string }[],
): Choices {
  return things
    .map(({ uid, name }) => [uid, name] as const)
    .sort(([, one], [, other]) => one.localeCompare(other));
}
