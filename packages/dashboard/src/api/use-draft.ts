import { useState } from 'preact/hooks';

export interface Draft<Values> {
  readonly values: Values;
  /** What a field calls when it changes: `onChange={draft.set('name')}`. */
  readonly set: <Field extends keyof Values>(field: Field) => (value: Values[Field]) => void;
  readonly replace: (values: Values) => void;
}

/** The values of a form while they are edited. */
export function useDraft<Values extends object>(initial: Values): Draft<Values> {
  const [values, replace] = useState(initial);
  return { values, set: (field) => (value) => replace((before) => ({ ...before, [field]: value })), replace };
}

/** The values that differ from those before, for a change that sends nothing else. */
export function changed<Values extends object>(before: Values, after: Values): Partial<Values> {
  const entries = Object.entries(after) as [keyof Values, unknown][];
  return Object.fromEntries(entries.filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field]))) as Partial<Values>;
}
