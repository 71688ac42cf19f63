import { useState } from 'preact/hooks';

export interface Draft<Values> {
  readonly values: Values;
  /** Returns a field's handler: `onChange={draft.set('name')}`. */
  readonly set: <Field extends keyof Values>(field: Field) => (value: Values[Field]) => void;
  readonly replace: (values: Values) => void;
}

export function useDraft<Values extends object>(initial: Values): Draft<Values> {
  const [values, replace] = useState(initial);
  return {
    values,
    set: (field) => (value) => replace((before) => ({ ...before, [field]: value })),
    replace,
  };
}

/** Returns the values that differ from `before`, for a partial update. */
export function changed<Values extends object>(before: Values, after: Values): Partial<Values> {
  const entries = Object.entries(after) as [keyof Values, unknown][];
  return Object.fromEntries(
    entries.filter(([field, value]) => JSON.stringify(value) !== JSON.stringify(before[field])),
  ) as Partial<Values>;
}
