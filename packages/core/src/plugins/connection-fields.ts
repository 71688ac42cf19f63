import type { ConnectionSchema, ConnectionValue } from '../crypto/sealing.js';
import { isObject } from '../json/json-value.js';

/**
 * `enum` values match case-insensitively, and `Enabled` and `Disabled` are accepted as booleans.
 */
export function canonicalConnection(
  given: ConnectionValue,
  schema: ConnectionSchema,
): ConnectionValue {
  return mapFields(given, schema, (value, { enum: values, type }) => {
    if (typeof value !== 'string') return value;
    if (type === 'boolean')
      return (
        ({ enabled: true, disabled: false } as Record<string, unknown>)[value.toLowerCase()] ??
        value
      );
    if (!Array.isArray(values)) return value;
    return (
      (values as unknown[]).find(
        (it) => typeof it === 'string' && it.toLowerCase() === value.toLowerCase(),
      ) ?? value
    );
  });
}

/** Defaults are not stored, so that a new one applies to every source. */
export function withDefaults(stored: ConnectionValue, schema: ConnectionSchema): ConnectionValue {
  return mapFields(stored, schema, (value, field) =>
    value === undefined ? field['default'] : value,
  );
}

/** At any depth. Fields for which `change` returns undefined are unchanged. */
function mapFields(
  value: ConnectionValue,
  schema: ConnectionSchema,
  change: (value: unknown, field: ConnectionSchema) => unknown,
): ConnectionValue {
  const result: Record<string, unknown> = { ...value };
  for (const [name, field] of Object.entries(
    (schema['properties'] as Record<string, ConnectionSchema> | undefined) ?? {},
  )) {
    const changed = isObject(field) ? change(value[name], field) : value[name];
    if (changed !== undefined)
      result[name] =
        isObject(changed) && isObject(field) ? mapFields(changed, field, change) : changed;
  }
  return result;
}
