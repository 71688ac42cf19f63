import type { AuditEntry } from '@gateway/client';

/** One changed value; a side without the value is undefined. */
export interface Change {
  readonly field: string;
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** Lists the changed values; compares objects member by member. */
export function changesOf(changes: AuditEntry['changes']): Change[] {
  return Object.entries(changes).flatMap(([field, { before, after }]) =>
    differences(field, before, after),
  );
}

function differences(field: string, before: unknown, after: unknown): Change[] {
  if (JSON.stringify(before) === JSON.stringify(after)) return [];
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => differences(`${field}.${name}`, before[name], after[name]));
  }
  return [{ field, before: textOf(before), after: textOf(after) }];
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Strings are unquoted, so that functions keep their lines; other values are JSON. */
function textOf(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
